"""Charges: a far-mass control of the form b_ij = m (c_i - c_j) rides in a few extra columns of query and key.

c_t = Σ_{s≤t} a_s accumulates a log-decay a ≤ 0 per key-value head; m > 0 is a slope per query head. The sums are int64
multiples of 2^-36 nats: a difference of float32 sums costs 4e-4 in the logit at 65,536 tokens, an integer one nothing.

With c split into parts that the dtype holds exactly, c ≈ c¹ + c² + …, and m likewise where the dtype is short,

    q̃ = (m c_i,  m,  m, …,  q/√d),    k̃ = (1,  -c_j¹,  -c_j², …,  k),    q̃ᵀk̃ = m c_i - m c_j + qᵀk/√d.

The columns come *first*: a dot product accumulates in order, so the two large numbers cancel before anything else is
added, and what remains is an error of 1e-7 of the bias over the *distance*, not over the position. (Measured in float32
at 65,536 tokens: the output is off by ≤ 1.2e-6 with the columns first, by up to 5e-3 with the same columns last.) The
first term is constant over a softmax row, so its own rounding is harmless and its gradient is zero.
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from longroute.transport.running_sum import reverse_running_sum, running_sum

NATS = 2.0**-36
"""The unit of an accumulated log-decay, in nats."""

LARGEST_DECAY = 64.0
"""One token's log-decay is kept within this many nats of 0: e^-64 is nothing, and 10⁶ of them still fit in int64."""

_SHIFT = 2.0**10
"""Charges are stored divided by this and slopes times it, so that float16 holds charges beyond its 65,504."""


@dataclass(frozen=True)
class _Parts:
    """How many numbers of a dtype stand for one charge and one slope, and the columns that their products fill."""

    charge: int
    slope: int
    columns: int


_PARTS = {
    torch.float64: _Parts(charge=2, slope=1, columns=4),
    torch.float32: _Parts(charge=2, slope=1, columns=4),
    torch.bfloat16: _Parts(charge=3, slope=2, columns=8),
    torch.float16: _Parts(charge=3, slope=2, columns=8),
}


@dataclass(frozen=True, eq=False)
class Charge:
    """Log-decays `log_decay` (batch|1 kv_head|1 time), nats, ≤ 0, and their `slope` (query_head), ≥ 0.

    `before` is the `end` of the tokens before these, None where there are none.
    """

    log_decay: Tensor
    slope: Tensor
    starts: Tensor | None
    before: Tensor | None = None

    def end(self) -> Tensor:
        """c after the last token in units of NATS, (batch|1 kv_head|1 1) int64: what later tokens go on from."""
        total = fixed_point(self.log_decay).sum(2, keepdim=True)
        return total if self.before is None else total + self.before

    @torch.no_grad()
    def accumulated(self) -> Tensor:
        """c_t = Σ_{s≤t} a_s in nats, (batch|1 kv_head|1 time), float64."""
        return running_sum(fixed_point(self.log_decay), self.starts, self.before).double().mul_(NATS)

    def columns(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """The columns to put before q/√d, (batch|1 query_head time n), and before k, (batch|1 kv_head|1 time n)."""
        parts = _PARTS[dtype]
        key = _KeyColumns.apply(self.log_decay, self.starts, self.before, dtype)
        with torch.no_grad():
            units = running_sum(fixed_point(self.log_decay), self.starts, self.before)
            c = units.double().mul_(NATS / _SHIFT)[:, :, None]
            first = (self.slope.double().view(1, c.shape[1], -1, 1) * c).flatten(1, 2)[..., None]
            slopes = _split(self.slope[:, None] * _SHIFT, parts.slope, dtype).repeat_interleave(parts.charge, -1)
            columns = [first.to(dtype), slopes.expand(*first.shape[:3], -1)]
        return _padded(torch.cat(columns, -1), parts.columns), key  # type: ignore[return-value]  # untyped apply


def fixed_point(log_decay: Tensor) -> Tensor:
    """Log-decays as int64 multiples of NATS, clamped to [-LARGEST_DECAY, 0]."""
    return log_decay.detach().double().clamp(-LARGEST_DECAY, 0).div_(NATS).round_().to(torch.int64)


class _KeyColumns(torch.autograd.Function):
    """(1, -c¹, -c², …) from log-decays. The gradient of c is that of c¹ (c² … only mend c¹'s rounding)."""

    @staticmethod
    def forward(ctx, log_decay: Tensor, starts: Tensor | None, before: Tensor | None, dtype: torch.dtype) -> Tensor:
        parts = _PARTS[dtype]
        ctx.save_for_backward(starts)
        ctx.parts, ctx.decay_dtype = parts, log_decay.dtype
        units = running_sum(fixed_point(log_decay), starts, before)
        split = _split_units(-units, parts.charge, dtype)
        broken = torch.where(log_decay.isnan(), log_decay, 0).sum(2, keepdim=True)[..., None]  # integers can't say NaN
        one = torch.full_like(split[..., :1], _SHIFT) + broken.to(dtype)
        return _padded(torch.cat([one, *[split] * parts.slope], -1), parts.columns)

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor):
        (grad,) = grad_outputs
        (starts,) = ctx.saved_tensors
        firsts = [1 + part * ctx.parts.charge for part in range(ctx.parts.slope)]
        grad_c = grad[..., firsts].to(ctx.decay_dtype).sum(-1).mul_(-1 / _SHIFT)
        return reverse_running_sum(grad_c, starts), None, None, None


def _split_units(units: Tensor, parts: int, dtype: torch.dtype) -> Tensor:
    """Numbers of `dtype` whose exact sum is units · NATS / _SHIFT, as far as `parts` of them reach, in a last dim."""
    split = []
    for _ in range(parts):
        split.append(units.double().mul_(NATS / _SHIFT).to(dtype))
        units = units - (split[-1].double() * (_SHIFT / NATS)).to(torch.int64)
    return torch.stack(split, -1)


def _split(x: Tensor, parts: int, dtype: torch.dtype) -> Tensor:
    """Numbers of `dtype` that add up to x, as far as `parts` of them reach, in a last dim."""
    split = []
    for _ in range(parts):
        split.append(x.to(dtype))
        x = x - split[-1].to(x.dtype)
    return torch.stack(split, -1)


def _padded(x: Tensor, columns: int) -> Tensor:
    return torch.nn.functional.pad(x, (0, columns - x.shape[-1]))
