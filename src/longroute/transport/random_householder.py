"""Random Householder: a frozen random reflection for every token type, or for every position."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from longroute.transport.frozen import FrozenTable, Key
from longroute.transport.reflections import ReflectionSteps
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class RandomHouseholder:
    """M_t = Π_r (I - 2 w_r w_rᵀ), w_r(key) uniform on the sphere, drawn once for each key, layer and head.

    The key is the token's type or its position in the document. E[M] = (1 - 2/dim)^r I: the gap is the same in every
    direction, and the mixing window ln(1/ε) / (r ln(dim / (dim - 2))) tokens, whatever the length.
    """

    by: Key = "token"
    """What the reflection belongs to: the token's type, or its position in the document."""
    reflections: Literal[1, 2] = 1
    """Reflections of a token."""

    name: ClassVar[str] = "random-householder"
    source: ClassVar[str] = "arXiv 2606.24975 (random accumulated transformations)"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk", "qkv"})

    def build(self, shape: LayerShape) -> "RandomHouseholderSteps":
        return RandomHouseholderSteps(self, shape)


class RandomHouseholderSteps(ReflectionSteps):
    """Looks the frozen vectors up."""

    def __init__(self, spec: RandomHouseholder, shape: LayerShape):
        super().__init__()
        self.shape = (shape.kv_heads, spec.reflections, shape.head_dim)
        self.table = FrozenTable(spec.by, shape, torch.Size(self.shape).numel(), self._vectors)

    def forward(self, inputs: StepInputs) -> Tensor:
        return self.table(inputs).movedim(2, 1)

    def _vectors(self, uniform: Tensor) -> Tensor:
        return torch.special.ndtri(uniform).unflatten(1, self.shape).float()
