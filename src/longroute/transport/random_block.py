"""Random block rotation: frozen random rotations of small blocks for every token type, or for every position."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from torch import Tensor

from longroute.transport.block_rotation import BlockSteps, Map, block_count, entry_count
from longroute.transport.frozen import FrozenTable, Key
from longroute.transport.rotation import check_spread, geometric_spread
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class RandomBlockRotation:
    """M_t = ⊕_p f(S_p(key)), the entries of S normal with standard deviation σ_p, drawn once a key, layer and head.

    The key is the token's type or its position in the document; f and the spread are the block rotation's.
    """

    by: Key = "token"
    """What the rotation belongs to: the token's type, or its position in the document."""
    size: Literal[2, 4] = 4
    """Dimensions of a block."""
    map: Map = "exponential"
    """f, from skew-symmetric matrices to rotations."""
    fastest: float = 1.0
    """Standard deviation of an entry in the fastest block, radians."""
    slowest: float = 0.1
    """Standard deviation of an entry in the slowest block, radians."""

    name: ClassVar[str] = "random-block"
    source: ClassVar[str] = "arXiv 2606.24975 (random accumulated transformations)"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk", "qkv"})

    def __post_init__(self):
        check_spread(self.fastest, self.slowest)

    def build(self, shape: LayerShape) -> "RandomBlockSteps":
        return RandomBlockSteps(self, shape)


class RandomBlockSteps(BlockSteps):
    """Looks the frozen entries up."""

    def __init__(self, spec: RandomBlockRotation, shape: LayerShape):
        super().__init__(spec.size, spec.map)
        self.spec = spec
        self.shape = (shape.kv_heads, block_count(shape.head_dim, spec.size), entry_count(spec.size))
        self.table = FrozenTable(spec.by, shape, torch.Size(self.shape).numel(), self._entries)

    def forward(self, inputs: StepInputs) -> Tensor:
        return self.table(inputs).movedim(2, 1).to(torch.promote_types(inputs.hidden.dtype, torch.float32))

    def _entries(self, uniform: Tensor) -> Tensor:
        spread = geometric_spread(self.spec.fastest, self.spec.slowest, self.shape[1])[:, None]
        return (torch.special.ndtri(uniform.unflatten(1, self.shape)) * spread).float()
