"""Random PaTH: a frozen random step of PaTH for every token type, or for every position."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor

from longroute.transport.frozen import FrozenTable, Key
from longroute.transport.path import PathSteps
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class RandomPaTH:
    """M_t = I - β w wᵀ, w(key) uniform on the sphere and β(key) uniform on (0, 2), drawn once a key, layer and head.

    The key is the token's type or its position in the document. E[M] = (1 - 1/dim) I, and a step keeps
    E‖M x‖² = (1 - 2 / (3 dim)) ‖x‖²: contraction and incoherence, of known size.
    """

    by: Key = "token"
    """What the step belongs to: the token's type, or its position in the document."""

    name: ClassVar[str] = "random-path"
    source: ClassVar[str] = "arXiv 2606.24975 (random accumulated transformations)"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk"})

    def build(self, shape: LayerShape) -> "RandomPathSteps":
        return RandomPathSteps(self, shape)


class RandomPathSteps(PathSteps):
    """Looks the frozen vectors up."""

    def __init__(self, spec: RandomPaTH, shape: LayerShape):
        super().__init__()
        self.heads, self.head_dim = shape.kv_heads, shape.head_dim
        self.table = FrozenTable(spec.by, shape, self.heads * (self.head_dim + 1), self._vectors)

    def forward(self, inputs: StepInputs) -> Tensor:
        return self.table(inputs).movedim(2, 1).to(torch.promote_types(inputs.hidden.dtype, torch.float32))

    def _vectors(self, uniform: Tensor) -> Tensor:
        drawn = uniform.unflatten(1, (self.heads, self.head_dim + 1))
        return (F.normalize(torch.special.ndtri(drawn[..., :-1]), dim=-1) * (2 * drawn[..., -1:]).sqrt()).float()
