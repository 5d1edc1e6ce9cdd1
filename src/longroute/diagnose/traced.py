"""A causal language model whose attention can be looked at, and changed, while it runs."""

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor, nn

from longroute.diagnose.edit import Edit
from longroute.diagnose.heads import Heads

Visit = Callable[[int, Heads, Tensor], None]
"""(layer, heads, the model's own output of that attention in the global frame, (batch head time dim))."""


@dataclass(frozen=True)
class Anatomy:
    """What is known of a model before anything is measured.

    `weights` is their `weights_digest`. `longest` is the most tokens that it can read at all, None for no bound;
    `untraced` says why its heads can't be looked at, None if they can.
    """

    name: str
    kind: str
    train_length: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    weights: str = ""
    longest: int | None = None
    untraced: str | None = None


def weights_digest(model: nn.Module) -> str:
    """SHA-256 of every parameter's name and bytes."""
    digest = hashlib.sha256()
    for name, weight in model.named_parameters():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


class TracedModel(Protocol):
    """What diagnosis asks of a model."""

    anatomy: Anatomy

    def encode(self, text: str) -> Tensor:
        """Token ids, (time) int64."""
        ...

    def losses(
        self, inputs: Tensor, targets: Tensor, *, visit: Visit | None = None, edit: Edit | None = None
    ) -> Tensor:
        """-ln p(target) in nats, (window time) float32, for token ids (window time).

        `visit` is called for every attention layer in turn and changes nothing. With `edit`, every layer's output is
        the edit's instead. Raises InputError for either if the model is untraced.
        """
        ...

    def steps(self, inputs: Tensor) -> list[Tensor | None]:
        """Every layer's steps M_t as matrices, (window kv_head time dim dim) float64.

        None where nothing moves, or where what moves could not be confirmed.
        """
        ...
