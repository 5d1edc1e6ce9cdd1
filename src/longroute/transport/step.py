"""What a token's step may look at, and the shape of the layer that it serves."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.transport.frame import Frame


@dataclass(frozen=True)
class LayerShape:
    """The attention layer that an encoding is built for. `seed` and `layer` make frozen random steps reproducible."""

    width: int
    heads: int
    kv_heads: int
    head_dim: int
    vocabulary: int
    layer: int = 0
    seed: int = 0

    def __post_init__(self):
        if min(self.width, self.heads, self.kv_heads, self.head_dim, self.vocabulary) < 1:
            raise InputError(f"every size of a layer must be at least 1: {self}")
        if not (0 <= self.seed < 2**63 and 0 <= self.layer < 2**63):
            raise InputError(f"seed and layer must be in [0, 2^63): {self}")
        if self.heads % self.kv_heads:
            raise InputError(f"heads ({self.heads}) must be a multiple of kv_heads ({self.kv_heads})")


class Steps(Protocol):
    """The module of a transport: what one token's step is, and how steps become a frame.

    Steps are one tensor (batch|1 kv_head|1 time …), angles or vectors or whatever the transport calls a step. Zeros are
    the step that moves nothing: padding has it.
    """

    def __call__(self, inputs: "StepInputs") -> Tensor:
        """The step of every token."""
        ...

    def matrix(self, steps: Tensor) -> Tensor:
        """The definition: every step as a matrix M_t, (batch|1 kv_head|1 time dim dim), float64, differentiable."""
        ...

    def frame(
        self, steps: Tensor, dtype: torch.dtype, *, packing: Packing | None = None, before: Tensor | None = None
    ) -> Frame:
        """A_t = M_t … M_1 in `dtype`, fast. It begins afresh in every document, or goes on from `before`, an `end`."""
        ...


@dataclass(frozen=True, eq=False)
class StepInputs:
    """What a step or a gate may see of the tokens, (batch time …): never anything of a later token.

    `positions` count from 0 within each token's document. `longest` bounds them without a look at the device.
    """

    hidden: Tensor
    token_ids: Tensor
    positions: Tensor
    longest: int
