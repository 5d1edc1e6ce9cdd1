"""Loss on a fixed tail of each stretch of text, at any context length and under any edit: always the same targets."""

from collections.abc import Iterator

import torch
from torch import Tensor

from longroute.diagnose.edit import Edit
from longroute.diagnose.spec import Text
from longroute.diagnose.traced import TracedModel, Visit
from longroute.errors import InputError

UNITS = 8
"""Parts of each tail whose losses are drawn again in a bootstrap."""

_VISITED_TOKENS = 16_384
_VISITED_WINDOWS = 3


def tail_windows(targets: int, tail: int, length: int) -> list[tuple[int, int, int]]:
    """(start, first, last) of the windows of `length` inputs that score the last `tail` of `targets`, once each.

    Windows end every s = min(length // 2, tail) targets and score first … last - 1, their last s, so that a scored
    token sees length - s + 1 to length tokens; the first scores what is left, and begins no earlier than the text.
    """
    stride = max(1, min(length // 2, tail))
    ends = reversed(range(targets, targets - tail, -stride))
    return [(max(0, end - length), max(end - stride, targets - tail), end) for end in ends]


def keep_scored(losses: Tensor, rows: Tensor, windows: list[tuple[int, int, int]], before: int) -> None:
    """Put each window's losses (window time) at its scored targets in `losses` (target), which begins at `before`."""
    for (start, first, last), row in zip(windows, rows, strict=True):
        losses[first - before : last - before] = row[first - start : last - start]


def tail_losses(
    model: TracedModel,
    text: Text,
    length: int,
    *,
    tail: int,
    window_tokens: int,
    edit: Edit | None = None,
    visit: Visit | None = None,
) -> Tensor:
    """Loss of every tail target in nats, (span tail) float64, seen through windows of `length`.

    `visit` is shown a sample of the windows: the last of each stretch, as many as hold 16,384 tokens, three at least.
    Raises InputError for a loss that isn't finite.
    """
    targets = text.tokens.shape[1] - 1
    windows = [(span, *window) for span in range(len(text.tokens)) for window in tail_windows(targets, tail, length)]
    final = [window for window in windows if window[3] == targets]
    seen = set(final[: max(_VISITED_WINDOWS, _VISITED_TOKENS // length)]) if visit is not None else set()
    losses = torch.empty(len(text.tokens), tail, dtype=torch.float64)
    for chosen, shown in ((seen, visit), (set(windows) - seen, None)):
        for group in _batches(sorted(chosen), max(1, window_tokens // length)):
            inputs = torch.stack([text.tokens[span, start : start + length] for span, start, _, _ in group])
            wanted = torch.stack([text.tokens[span, start + 1 : start + length + 1] for span, start, _, _ in group])
            got = model.losses(inputs, wanted, visit=shown, edit=edit).double().cpu()
            for (span, start, first, end), row in zip(group, got, strict=True):
                keep_scored(losses[span], row[None], [(start, first, end)], targets - tail)
    if not losses.isfinite().all():
        raise InputError(
            f"{model.anatomy.name}: the loss at length {length:,} isn't finite; its weights or text are broken"
        )
    return losses


def unit_means(losses: Tensor) -> Tensor:
    """Mean losses of the units that a bootstrap draws, (unit): each stretch's tail in UNITS nearly equal parts."""
    return torch.stack([part.mean(1) for part in losses.tensor_split(min(UNITS, losses.shape[1]), dim=1)], 1).flatten()


def _batches(windows: list[tuple[int, int, int, int]], size: int) -> Iterator[list[tuple[int, int, int, int]]]:
    return (windows[at : at + size] for at in range(0, len(windows), size))
