"""Angles that add up exactly: phases are 64-bit fixed-point turns, so a million steps lose nothing.

An angle is kept as a *binary angle*: an int64 whose full range is one turn (2^64 units = 2π radians). Adding two of
them wraps around just as angles do, and integer addition is associative: the same steps give the same phase bits
however they are chunked, packed, cached or spread over threads. Only the accumulated phase is turned into radians, in
the dtype that sine and cosine are taken in. A float32 running sum would be off by 1e-3 rad after 65,536 tokens, a
bfloat16 one by whole turns.
"""

import math

import torch
from torch import Tensor

from longroute.transport.running_sum import reverse_running_sum, running_sum

UNITS_PER_TURN = 2.0**64


def to_turns(angle: Tensor) -> Tensor:
    """Binary angles (int64) nearest to `angle` (radians, any float dtype), off by at most π · 2^-63 rad.

        turns = round_even(2^63 · frac(angle / 2π)) · 2,    frac in [-1/2, 1/2]

    Computed in float64. The factor 2 keeps +1/2 turn inside int64: it wraps to -1/2, the same angle.
    """
    turn = angle.to(torch.float64) / (2 * math.pi)
    return (turn - turn.round()).mul_(UNITS_PER_TURN / 2).round_().to(torch.int64) << 1


def to_radians(turns: Tensor, dtype: torch.dtype) -> Tensor:
    """Radians in [-π, π] of binary angles, rounded once to `dtype` (float32: within 4e-7 rad)."""
    return turns.to(dtype).mul_(2 * math.pi / UNITS_PER_TURN)


class _Accumulate(torch.autograd.Function):
    """Radians of the accumulated phase; its gradient passes straight through the rounding: a reverse running sum."""

    @staticmethod
    def forward(
        ctx, angle: Tensor, starts: Tensor | None, before: Tensor | None, dtype: torch.dtype
    ) -> tuple[Tensor, Tensor]:
        ctx.save_for_backward(starts)
        ctx.angle_dtype = angle.dtype
        broken = angle.sum(2, keepdim=True) * 0  # NaN where an angle isn't finite, which an integer can't say; else 0
        turns = running_sum(to_turns(angle), starts, before)
        ctx.mark_non_differentiable(turns)
        return to_radians(turns, dtype) + broken.to(dtype), turns

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor):
        (starts,) = ctx.saved_tensors
        return reverse_running_sum(grad_outputs[0], starts).to(ctx.angle_dtype), None, None, None


def accumulate(
    steps: Tensor,
    starts: Tensor | None = None,
    *,
    before: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Phases Φ_t = Σ_{start(t) ≤ s ≤ t} θ_s in radians, rounded once to `dtype`, and as binary angles, (batch head time
    plane) both.

    `steps` θ are binary angles (int64) or radians (float); the latter carry gradients, ∂Φ_t/∂θ_s = 1 for s within the
    sum (the rounding to fixed point counts as the identity). `starts` is explained at `running_sum`; `before` is the
    last binary angle of the tokens before.
    """
    if steps.dtype == torch.int64:
        turns = running_sum(steps, starts, before)
        return to_radians(turns, dtype), turns
    return _Accumulate.apply(steps, starts, before, dtype)  # type: ignore[return-value]  # Function.apply is untyped
