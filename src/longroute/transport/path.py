"""PaTH: every token removes part of one direction; the only transport here that isn't orthogonal."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.transport.frame import IdentityFrame
from longroute.transport.path_scores import PathScores
from longroute.transport.reflections import HeadVectors
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class PaTH:
    """M_t = I - β_t w_t w_tᵀ, β = 2 σ(b·x + c) in (0, 2), w = W x / ‖W x‖ for each key-value head, x the input.

    It shrinks w's direction by |1 - β|: forgetting by contraction beside incoherence, and no stable inverse, hence no
    global frame: scores are computed pairwise, values can't ride, and a cache must carry all its keys on with every
    chunk. c starts at 0, β at 1. The paper's short convolution before W is left out: a step sees its own token alone.
    """

    rank: int | None = None
    """Inner width of W = W₂ W₁; None for a full matrix."""

    name: ClassVar[str] = "path"
    source: ClassVar[str] = "Yang et al. 2025 (PaTH), arXiv 2505.16381"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "shift"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk"})

    def __post_init__(self):
        if self.rank is not None and self.rank < 1:
            raise InputError(f"path: rank must be at least 1, or null for a full matrix, not {self.rank}")

    def build(self, shape: LayerShape) -> "PathSteps":
        return LearnedPathSteps(self, shape)


class PathSteps(nn.Module):
    """Steps I - u uᵀ as u = √β w, (batch|1 kv_head|1 time dim)."""

    def frame(
        self, steps: Tensor, dtype: torch.dtype, *, packing: Packing | None = None, before: Tensor | None = None
    ) -> IdentityFrame:
        return IdentityFrame(pairs=PathScores(steps.to(dtype)))

    def matrix(self, steps: Tensor) -> Tensor:
        u = steps.double()
        identity = torch.eye(u.shape[-1], dtype=u.dtype, device=u.device)
        return identity - u[..., :, None] * u[..., None, :]


class LearnedPathSteps(PathSteps):
    """Directions and strengths from the hidden state."""

    def __init__(self, spec: PaTH, shape: LayerShape):
        super().__init__()
        self.vectors = HeadVectors(shape.width, shape.kv_heads, (shape.head_dim,), spec.rank)
        self.strength = nn.Parameter(torch.zeros(shape.kv_heads, shape.width))
        self.bias = nn.Parameter(torch.zeros(shape.kv_heads))

    def forward(self, inputs: StepInputs) -> Tensor:
        vectors = self.vectors(inputs)
        with torch.autocast(vectors.device.type, enabled=False):
            hidden, dtype = inputs.hidden.to(vectors.dtype), vectors.dtype
            gate = F.linear(hidden, self.strength.to(dtype), self.bias.to(dtype)).transpose(1, 2)
        return F.normalize(vectors, dim=-1) * (2 * gate.sigmoid()).sqrt()[..., None]
