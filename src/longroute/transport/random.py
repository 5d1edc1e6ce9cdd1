"""Random rotation: a frozen random angle for every token type, or for every position. The theorem's own assumption."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from longroute.transport.frozen import FrozenTable, Key
from longroute.transport.phase import to_turns
from longroute.transport.rotation import RotationSteps, check_spread, geometric_spread, plane_count
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class RandomRotation:
    """M_t = ⊕_p R(θ_p(key)), θ_p drawn once with mean 0 and standard deviation σ_p for each key, layer and head.

    The key is the token's type or its position in the document. σ_p falls geometrically from `fastest` to `slowest`.
    With r_p = |E e^{iθ_p}| (normal: e^{-σ_p²/2}) plane p forgets within ln(1/ε) / ln(1/r_p) steps, whatever the length.
    """

    by: Key = "token"
    """What the angle belongs to: the token's type, or its position in the document."""
    distribution: Literal["normal", "uniform"] = "normal"
    """Law of the angle in a plane; `uniform` has the same standard deviation."""
    fastest: float = 1.0
    """Standard deviation of the angle in the fastest plane, radians."""
    slowest: float = 0.1
    """Standard deviation of the angle in the slowest plane, radians."""

    name: ClassVar[str] = "random"
    source: ClassVar[str] = "arXiv 2606.24975 (random accumulated rotations)"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal", "exact"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk", "qkv"})

    def __post_init__(self):
        check_spread(self.fastest, self.slowest)

    def build(self, shape: LayerShape) -> "RandomSteps":
        return RandomSteps(self, shape)


class RandomSteps(RotationSteps):
    """Frozen angles as 32-bit binary angles (a frozen random angle is *defined* at that resolution): small tables."""

    def __init__(self, spec: RandomRotation, shape: LayerShape):
        super().__init__()
        self.spec = spec
        self.heads, self.planes = shape.kv_heads, plane_count(shape.head_dim)
        self.table = FrozenTable(spec.by, shape, self.heads * self.planes, self._angles)

    def forward(self, inputs: StepInputs) -> Tensor:
        return self.table(inputs).to(torch.int64).movedim(2, 1) << 32

    def _angles(self, uniform: Tensor) -> Tensor:
        uniform = uniform.unflatten(1, (self.heads, self.planes))
        standard = torch.special.ndtri(uniform) if self.spec.distribution == "normal" else (uniform - 0.5) * 12**0.5
        spread = geometric_spread(self.spec.fastest, self.spec.slowest, self.planes)
        return (to_turns(standard * spread) >> 32).to(torch.int32)
