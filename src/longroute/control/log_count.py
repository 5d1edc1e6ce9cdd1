"""Log-count offset: far scores are lowered by the logarithm of how many there are."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from longroute.control.penalty import Penalty
from longroute.errors import InputError
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class LogCount:
    """b_ij = -c ln max(1, (i + 1) / near) for i - j > near, else 0: with c ≥ 1 the far mass can't grow with length.

    i counts from 0 in the document. `near` is the training length, as a rule.
    """

    near: int = 64
    """D: tokens further off are far."""
    strength: float = 1.0
    """c."""

    name: ClassVar[str] = "log-count"
    source: ClassVar[str] = "arXiv 2609.07314 (log-count offset)"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "bounded"})

    def __post_init__(self):
        if self.near < 1 or not self.strength >= 1 or not math.isfinite(self.strength):
            raise InputError(
                f"log-count: needs near >= 1 (tokens) and strength >= 1, not near={self.near}, strength={self.strength}"
            )

    def build(self, shape: LayerShape) -> "LogCountBias":
        return LogCountBias(self, shape)


class LogCountBias(nn.Module):
    """Nothing is learned."""

    def __init__(self, spec: LogCount, shape: LayerShape):
        super().__init__()
        self.spec, self.heads = spec, shape.heads

    def forward(self, inputs: StepInputs, starts: Tensor | None, before: Tensor | None = None) -> Penalty:
        return Penalty(pairwise=_Counted(self.spec, self.heads))


class _Counted:
    shift = False

    def __init__(self, spec: LogCount, heads: int):
        self.spec, self.heads = spec, heads

    def __call__(self, head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        count = ((row + 1) / self.spec.near).clamp(min=1)
        far = (row - key > self.spec.near) & (head >= 0)
        return torch.where(far, -self.spec.strength * count.log(), 0.0)
