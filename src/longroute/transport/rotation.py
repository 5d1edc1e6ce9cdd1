"""What all rotations share: how wide the angles of each plane are spread, and a step as a matrix (its definition)."""

import math

import torch
from torch import Tensor, nn

from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.transport.frame import RotationFrame, rotation_matrix
from longroute.transport.phase import accumulate, to_radians


def plane_count(head_dim: int) -> int:
    """Planes that a head rotates in. Raises InputError for an odd head_dim."""
    if head_dim % 2:
        raise InputError(f"a rotation pairs dimensions, so head_dim must be even, not {head_dim}")
    return head_dim // 2


def turning_planes(share: float, head_dim: int) -> int:
    """How many planes turn when a `share` of them does: at least one."""
    return math.ceil(share * plane_count(head_dim))


def check_share(name: str, share: float) -> None:
    """Raises InputError unless 0 < share ≤ 1."""
    if not 0 < share <= 1:
        raise InputError(f"{name}: share must be in (0, 1], not {share}")


def geometric_spread(fastest: float, slowest: float, planes: int) -> Tensor:
    """σ_p = fastest · (slowest / fastest)^(p / (planes - 1)), radians, float64.

    With fastest = slowest every plane has a gap; RoPE's frequencies are the case fastest = 1,
    slowest = theta^(2/dim - 1).
    """
    ends = torch.tensor([fastest, slowest], dtype=torch.float64).log()
    return torch.linspace(0, 1, planes, dtype=torch.float64).mul(ends[1] - ends[0]).add(ends[0]).exp()


def check_spread(fastest: float, slowest: float) -> None:
    """Raises InputError unless 0 < slowest ≤ fastest."""
    if not 0 < slowest <= fastest:
        raise InputError(f"a spread needs 0 < slowest <= fastest (radians), not slowest={slowest}, fastest={fastest}")


class RotationSteps(nn.Module):
    """Steps that rotate planes, as binary angles (int64) or radians (float): (batch|1, kv_head|1, time, plane)."""

    def frame(
        self, steps: Tensor, dtype: torch.dtype, *, packing: Packing | None = None, before: Tensor | None = None
    ) -> RotationFrame:
        starts = None if packing is None else packing.starts
        phase, turns = accumulate(steps, starts, before=before, dtype=dtype)
        return RotationFrame(phase, turns[:, :, -1:])

    def matrix(self, steps: Tensor) -> Tensor:
        angle = to_radians(steps, torch.float64) if steps.dtype == torch.int64 else steps
        return rotation_matrix(angle)
