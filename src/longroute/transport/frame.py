"""The global frame: where every query, key and value is expressed before attention, so that attention never changes.

With A_t = M_t M_{t-1} … M_1 the route's transport is P(j→i) = A_i A_j⁻¹, and for orthogonal steps

    q_iᵀ P(j→i) k_j = (A_i⁻¹ q_i)ᵀ (A_j⁻¹ k_j),        Σ_j α_ij P(j→i) v_j = A_i Σ_j α_ij (A_j⁻¹ v_j):

`pull` applies A_t⁻¹ to queries, keys and values, `push` applies A_t to the output. Every x is (batch head time dim);
frames are per key-value head, and the query heads of a group share theirs.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from longroute.data.packing import Packing


class PairScores(Protocol):
    """Scores of steps that have no stable inverse, multiplied out between pairs of tokens, block by block."""

    def against(self, key: Tensor) -> Callable[[Tensor, int, int], Tensor]:
        """Scores as a function of (query, first, last): q_iᵀ P(j→i) k_j, (batch head last-first keys).

        key is (batch kv_head keys dim): this chunk's tokens, after those of earlier chunks as `carry` left them. query
        (batch head last-first dim) are the chunk's tokens [first, last), first a multiple of the frame's block. Entries
        with j > i mean nothing.
        """
        ...

    def carry(self, key: Tensor) -> Tensor:
        """P(j→end) k_j for all keys, (batch kv_head keys dim): what a later chunk's scores need of them."""
        ...

    def documents(self, packing: Packing) -> "list[PairScores]":
        """The same for each of the packing's groups of documents of one length."""
        ...


class Frame(Protocol):
    """What a transport's accumulated steps offer attention."""

    @property
    def pairs(self) -> PairScores | None:
        """None for a global frame, in which scores are plain dot products. Else nothing is pulled or pushed."""
        ...

    @property
    def end(self) -> Tensor | None:
        """A after the last token, however the transport keeps it: what the frame of later tokens goes on from."""
        ...

    def pull(self, x: Tensor) -> Tensor:
        """A_t⁻¹ x_t for every token t."""
        ...

    def push(self, x: Tensor) -> Tensor:
        """A_t x_t for every token t."""
        ...

    def at(self, index: Tensor) -> Tensor | None:
        """A_t for the tokens t in `index`, (batch|1 kv_head|1 index dim dim); None where every A_t is the identity,
        or there is no global frame."""
        ...


@dataclass(frozen=True)
class IdentityFrame:
    """A_t = I: nothing is pulled or pushed, because nothing moves or because `pairs` multiplies routes out."""

    pairs: PairScores | None = None
    end: Tensor | None = None

    def pull(self, x: Tensor) -> Tensor:
        return x

    def push(self, x: Tensor) -> Tensor:
        return x

    def at(self, index: Tensor) -> None:
        return None


def rotation_matrix(angle: Tensor) -> Tensor:
    """The step M = ⊕_p R(θ_p) as a matrix: (… plane) radians to (… dim dim), planes paired half-split, float64.

    R(θ) = [[cos θ, -sin θ], [sin θ, cos θ]] acts on the column (x_p, x_{p + dim/2}).
    """
    cos, sin = angle.double().cos().diag_embed(), angle.double().sin().diag_embed()
    return torch.cat([torch.cat([cos, -sin], -1), torch.cat([sin, cos], -1)], -2)


class RotationFrame:
    """A_t = ⊕_p R(Φ_t,p): one rotation a plane, R counter-clockwise, planes paired half-split as (p, p + dim/2).

    `phase` is Φ in radians, (batch|1, kv_head|1, time, dim/2), float32 or float64; `end` the last one as binary angles,
    (batch|1 kv_head|1 1 dim/2) int64. The rotation is computed in that
    dtype or x's, whichever is wider, and rounded once to x's.
    """

    pairs: PairScores | None = None

    def __init__(self, phase: Tensor, end: Tensor | None = None):
        self.phase, self.end = phase, end
        self._cos, self._sin = phase.detach().cos(), phase.detach().sin()
        self._minus_sin = -self._sin

    def pull(self, x: Tensor) -> Tensor:
        return self._rotate(x, self._minus_sin, self._sin, -1)

    def push(self, x: Tensor) -> Tensor:
        return self._rotate(x, self._sin, self._minus_sin, 1)

    def at(self, index: Tensor) -> Tensor:
        return rotation_matrix(self.phase[:, :, index])

    def _rotate(self, x: Tensor, sin: Tensor, back: Tensor, sign: int) -> Tensor:
        return _Rotate.apply(x, self.phase, self._cos, sin, back, sign)  # type: ignore[return-value]  # untyped apply


class _Rotate(torch.autograd.Function):
    """y = R(sign · Φ) x, with ∂L/∂x = R(-sign · Φ) g and ∂L/∂Φ = sign · Σ (g₂ y₁ - g₁ y₂) over all that share Φ.

    `sin` is that of sign · Φ, `back` that of -sign · Φ.
    """

    @staticmethod
    def forward(ctx, x: Tensor, phase: Tensor, cos: Tensor, sin: Tensor, back: Tensor, sign: int) -> Tensor:
        y = _turned(x, cos, sin)
        ctx.save_for_backward(cos, back, y if phase.requires_grad else None)
        ctx.sign, ctx.phase_shape, ctx.phase_dtype = sign, phase.shape, phase.dtype
        return y

    @staticmethod
    def backward(ctx, *grad_outputs: Tensor):
        (grad,) = grad_outputs
        cos, back, y = ctx.saved_tensors
        grad_x = _turned(grad, cos, back) if ctx.needs_input_grad[0] else None
        if y is None:
            return grad_x, None, None, None, None, None
        first, second = _grouped(grad, cos), _grouped(y, cos)
        if ctx.sign < 0:
            first, second = second, first
        (f1, f2), (s1, s2) = first.chunk(2, -1), second.chunk(2, -1)
        moment = (f2 * s1).addcmul_(f1, s2, value=-1).to(ctx.phase_dtype)
        moment = moment.sum(2) if moment.shape[2] > 1 else moment[:, :, 0]
        return grad_x, moment.sum_to_size(ctx.phase_shape), None, None, None, None


def _grouped(x: Tensor, cos: Tensor) -> Tensor:
    """(batch head time dim) as (batch kv_head group time dim), to meet a phase that a group shares."""
    return x.unflatten(1, (cos.shape[1], -1))


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """[x₁ cos - x₂ sin, x₂ cos + x₁ sin], the second terms added in place: three passes, whatever x's strides."""
    wide = _grouped(x.to(torch.promote_types(x.dtype, cos.dtype)), cos)
    cos, sin = cos[:, :, None], sin[:, :, None]
    y = (wide.unflatten(-1, (2, -1)) * cos.unsqueeze(-2)).flatten(-2)
    (x1, x2), (y1, y2) = wide.chunk(2, -1), y.chunk(2, -1)
    y1.addcmul_(x2, sin, value=-1)
    y2.addcmul_(x1, sin)
    return y.to(x.dtype).flatten(1, 2)
