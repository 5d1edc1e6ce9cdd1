"""No transport: M_t = I (NoPE, and the content scores of ALiBi)."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from longroute.data.packing import Packing
from longroute.transport.frame import Frame, IdentityFrame
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class NoTransport:
    """M_t = I: the score is q_iᵀ k_j / √d, whatever lies between."""

    name: ClassVar[str] = "none"
    source: ClassVar[str] = "Kazemnejad et al. 2023 (NoPE)"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal", "shift", "exact"})
    moves: ClassVar[frozenset[str]] = frozenset()

    def build(self, shape: LayerShape) -> "NoSteps":
        return NoSteps(shape.head_dim)


class NoSteps(nn.Module):
    """Steps that are the identity."""

    def __init__(self, head_dim: int):
        super().__init__()
        self.head_dim = head_dim

    def forward(self, inputs: StepInputs) -> Tensor:
        return torch.zeros((1, 1, inputs.token_ids.shape[1], 0), device=inputs.token_ids.device)

    def frame(
        self, steps: Tensor, dtype: torch.dtype, *, packing: Packing | None = None, before: Tensor | None = None
    ) -> Frame:
        return IdentityFrame()

    def matrix(self, steps: Tensor) -> Tensor:
        identity = torch.eye(self.head_dim, dtype=torch.float64, device=steps.device)
        return identity.expand(*steps.shape[:-1], self.head_dim, self.head_dim)
