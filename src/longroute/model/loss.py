"""Next-token losses in pieces, so that the logits of a long window never exist at once."""

import torch
import torch.nn.functional as F
from torch import Tensor

from longroute.data.windows import IGNORED


def token_losses(hidden: Tensor, output_weight: Tensor, targets: Tensor, *, chunk: int = 2048) -> Tensor:
    """-ln p(target) of every token in nats, float32, (batch time); 0 where the target is IGNORED.

    `hidden` is (batch time width), `output_weight` (vocabulary width). Logits are made `chunk` tokens at a time.
    """
    flat, flat_targets = hidden.flatten(0, 1), targets.flatten()
    losses = [
        F.cross_entropy(F.linear(h, output_weight).float(), t, reduction="none", ignore_index=IGNORED)
        for h, t in zip(flat.split(chunk), flat_targets.split(chunk), strict=True)
    ]
    return torch.cat(losses).view_as(targets)


def answer_losses(hidden: Tensor, output_weight: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The losses of the targets that are not IGNORED, as in `token_losses`, and whether each is the likeliest token.

    Logits are made for these alone. Both are (scored), in the order of rows and time.
    """
    scored = targets != IGNORED
    logits, expected = F.linear(hidden[scored], output_weight).float(), targets[scored]
    return F.cross_entropy(logits, expected, reduction="none"), logits.argmax(-1) == expected
