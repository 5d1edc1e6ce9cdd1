"""Block rotation: small blocks of dimensions, each turned by a rotation that the hidden state chooses."""

from dataclasses import dataclass
from functools import partial
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.transport.block_frame import BlockFrame, block_matrix
from longroute.transport.document_frame import DocumentFrame
from longroute.transport.rotation import check_spread, geometric_spread
from longroute.transport.step import LayerShape, StepInputs

Map = Literal["exponential", "cayley"]


@dataclass(frozen=True)
class BlockRotation:
    """M_t = ⊕_p f(S_p(x_t)), S = -Sᵀ of `size` × `size`, its entries η W x: planes no longer keep to themselves.

    f is e^S, or Cayley's (I - S/2)⁻¹ (I + S/2). At size 2 an entry is an angle and e^S the learned rotation with
    start=mixing; from 3 on steps don't commute. An entry of block p has standard deviation σ_p at the start, falling
    geometrically from `fastest` to `slowest`. η as in the learned rotation.
    """

    size: Literal[2, 4] = 4
    """Dimensions of a block."""
    map: Map = "exponential"
    """f, from skew-symmetric matrices to rotations."""
    fastest: float = 1.0
    """Standard deviation of an entry in the fastest block at the start, radians."""
    slowest: float = 0.1
    """Standard deviation of an entry in the slowest block at the start, radians."""
    rate: float = 0.1
    """η: how fast entries learn, relative to other weights."""

    name: ClassVar[str] = "block"
    source: ClassVar[str] = "Longroute; Cayley's map: Cayley 1846"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal", "shift"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk", "qkv"})

    def __post_init__(self):
        check_spread(self.fastest, self.slowest)
        if not self.rate > 0:
            raise InputError(f"block: rate must be positive, not {self.rate}")

    def build(self, shape: LayerShape) -> "LearnedBlockSteps":
        return LearnedBlockSteps(self, shape)


def block_count(head_dim: int, size: int) -> int:
    """Blocks of a head. Raises InputError where `size` doesn't divide head_dim."""
    if head_dim % size:
        raise InputError(f"blocks of {size} dimensions don't divide head_dim={head_dim}")
    return head_dim // size


def entry_count(size: int) -> int:
    """Free entries of a skew-symmetric matrix."""
    return size * (size - 1) // 2


class BlockSteps(nn.Module):
    """Steps as the entries below the diagonal of S, (batch|1 kv_head|1 time block entry), radians."""

    def __init__(self, size: int, map: Map):
        super().__init__()
        self.size = size
        self.rotation = {"exponential": torch.linalg.matrix_exp, "cayley": cayley}[map]

    def frame(
        self, steps: Tensor, dtype: torch.dtype, *, packing: Packing | None = None, before: Tensor | None = None
    ) -> BlockFrame | DocumentFrame:
        matrices = self._matrices(steps.double())
        if torch.is_grad_enabled():
            matrices = matrices.to(dtype)  # a million tokens drift by 1e-4 then, not by 1e-11
        if packing is None:
            return BlockFrame(matrices, dtype, before)
        return DocumentFrame(matrices, packing, partial(BlockFrame, dtype=dtype))

    def matrix(self, steps: Tensor) -> Tensor:
        return block_matrix(self._matrices(steps.double()))

    def _matrices(self, steps: Tensor) -> Tensor:
        return self.rotation(skew_symmetric(steps, self.size))


def skew_symmetric(entries: Tensor, size: int) -> Tensor:
    """S (… size size) with `entries` below its diagonal, row by row, and their negatives above."""
    row, column = torch.tril_indices(size, size, -1, device=entries.device)
    index = torch.arange(len(row), device=entries.device)
    basis = torch.zeros(len(row), size, size, dtype=entries.dtype, device=entries.device)
    basis[index, row, column], basis[index, column, row] = 1, -1
    return torch.einsum("...e,eij->...ij", entries, basis).contiguous()  # matrix_exp needs it (torch 2.13)


def cayley(skew: Tensor) -> Tensor:
    """(I - S/2)⁻¹ (I + S/2), orthogonal for skew-symmetric S (… n n); turns by 2 arctan(θ/2) where e^S turns by θ."""
    identity = torch.eye(skew.shape[-1], dtype=skew.dtype, device=skew.device)
    return torch.linalg.solve(identity - skew / 2, identity + skew / 2)


class LearnedBlockSteps(BlockSteps):
    """Entries in float32 at least, whatever the module's dtype or autocast."""

    def __init__(self, spec: BlockRotation, shape: LayerShape):
        super().__init__(spec.size, spec.map)
        self.spec, self.width = spec, shape.width
        self.shape = (shape.kv_heads, block_count(shape.head_dim, spec.size), entry_count(spec.size))
        self.weight = nn.Parameter(torch.empty(torch.Size(self.shape).numel(), shape.width))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Back to the start that the spec names; draws from torch's global generator."""
        heads, blocks, entries = self.shape
        spread = geometric_spread(self.spec.fastest, self.spec.slowest, blocks).repeat_interleave(entries).repeat(heads)
        self.weight.normal_().mul_(spread[:, None] / (self.width**0.5 * self.spec.rate))

    def forward(self, inputs: StepInputs) -> Tensor:
        dtype = torch.promote_types(inputs.hidden.dtype, torch.float32)
        with torch.autocast(inputs.hidden.device.type, enabled=False):
            entries = F.linear(inputs.hidden.to(dtype), self.weight.to(dtype)) * self.spec.rate
        return entries.unflatten(-1, self.shape).transpose(1, 2)
