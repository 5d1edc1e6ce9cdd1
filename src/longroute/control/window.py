"""Window with sinks: only the last tokens are seen, and the first few of the document."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from longroute.control.penalty import Penalty
from longroute.errors import InputError
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class WindowWithSinks:
    """b_ij = 0 for i - j < window or j < sinks, else -∞; j counts from 0 in the document."""

    window: int = 64
    """Tokens that are seen, the query's own included."""
    sinks: int = 4
    """First tokens that are always seen: what attention sends there has somewhere to go."""

    name: ClassVar[str] = "window"
    source: ClassVar[str] = "Xiao et al. 2024 (attention sinks), arXiv 2309.17453"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "summable"})

    def __post_init__(self):
        if self.window < 1 or self.sinks < 0:
            raise InputError(
                f"window: needs window >= 1 and sinks >= 0 (tokens), not window={self.window}, sinks={self.sinks}"
            )

    def build(self, shape: LayerShape) -> "WindowBias":
        return WindowBias(self, shape)


class WindowBias(nn.Module):
    """Nothing is learned."""

    def __init__(self, spec: WindowWithSinks, shape: LayerShape):
        super().__init__()
        self.spec, self.heads = spec, shape.heads

    def forward(self, inputs: StepInputs, starts: Tensor | None, before: Tensor | None = None) -> Penalty:
        return Penalty(pairwise=_Seen(self.spec, self.heads))


class _Seen:
    def __init__(self, spec: WindowWithSinks, heads: int):
        self.spec, self.heads, self.shift = spec, heads, spec.sinks == 0

    def __call__(self, head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        unseen = (row - key >= self.spec.window) & (key >= self.spec.sinks) & (head >= 0)
        return torch.where(unseen, -torch.inf, 0.0)
