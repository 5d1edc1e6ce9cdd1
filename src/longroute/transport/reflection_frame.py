"""The global frame of steps that are products of reflections."""

import torch
from torch import Tensor

from longroute.transport.compact_wy import CHUNK, chunked, moved, reflected
from longroute.transport.frame import PairScores


class ReflectionFrame:
    """A_t = M_t … M_1 with M_t = Π_r (I - 2 w_r w_rᵀ / ‖w_r‖²), `count` of them a token.

    `vectors` are w, (batch kv_head time count dim); `before` (batch kv_head dim dim) is the frame that the first token
    finds. With A the frame at the chunk's start and V as in `compact_wy`,

        A_t⁻¹ x = Aᵀ x - Σ_{s ≤ t} (V A)_s (w_s·x),        A_t x = A x - Σ_{s ≤ t} w_s ((V A)_s·x).

    O(time · (chunk + dim) · dim) work, the same order as a linear layer of the head. `dtype` is the one that it is
    computed in while gradients are taken; without them chunks are multiplied in float64, so that a million tokens drift
    by no more than a few roundings. Results have x's dtype.
    """

    pairs: PairScores | None = None

    def __init__(self, vectors: Tensor, dtype: torch.dtype, before: Tensor | None = None):
        self.rows, (self.time, self.count, dim) = vectors.shape[:2], vectors.shape[2:]
        self.chunk = min(CHUNK, self.time)
        exact = dtype if torch.is_grad_enabled() else torch.float64
        parts = chunked(vectors.to(exact), self.chunk).flatten(3, 4).flatten(0, 1)
        start = torch.eye(dim, dtype=exact, device=vectors.device) if before is None else before.to(exact).flatten(0, 1)
        carried, starts, end = reflected(parts, start.expand(len(parts), dim, dim))
        self.end = end.unflatten(0, self.rows)
        self._vectors, self._carried, self._starts = (x.to(dtype).flatten(0, 1) for x in (parts, carried, starts))

    def pull(self, x: Tensor) -> Tensor:
        return self._move(x, self._starts, self._vectors, self._carried)

    def push(self, x: Tensor) -> Tensor:
        return self._move(x, self._starts.mT, self._carried, self._vectors)

    def at(self, index: Tensor) -> Tensor:
        vectors, carried, starts = (
            x.unflatten(0, (*self.rows, -1))[:, :, index // self.chunk].double()
            for x in (self._vectors, self._carried, self._starts)
        )
        token = torch.arange(vectors.shape[3], device=index.device) // self.count
        past = token <= (index % self.chunk)[:, None]
        return starts - (vectors * past[..., None]).mT @ carried

    def _move(self, x: Tensor, through: Tensor, seen: Tensor, back: Tensor) -> Tensor:
        wide = torch.promote_types(x.dtype, through.dtype)
        parts = chunked(x.to(wide), self.chunk).unflatten(1, (self.rows[1], -1))  # (batch kv_head group chunks …)
        flat = parts.transpose(2, 3).flatten(0, 2)
        with torch.autocast(x.device.type, enabled=False):
            y = moved(flat, through.to(wide), seen.to(wide), back.to(wide), self.count)
        y = y.unflatten(0, (*self.rows, -1)).transpose(2, 3)
        return y.flatten(3, 4)[..., : self.time, :].flatten(1, 2).to(x.dtype)
