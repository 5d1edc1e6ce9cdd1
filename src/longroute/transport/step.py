"""What a token's step may look at, and the shape of the layer that it serves."""

from dataclasses import dataclass

from torch import Tensor

from longroute.errors import InputError


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


@dataclass(frozen=True, eq=False)
class StepInputs:
    """What a step or a gate may see of the tokens, (batch time …): never anything of a later token.

    `positions` count from 0 within each token's document. `longest` bounds them without a look at the device.
    """

    hidden: Tensor
    token_ids: Tensor
    positions: Tensor
    longest: int
