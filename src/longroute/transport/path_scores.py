"""PaTH's scores, block by block: its steps have no stable inverse, so no global frame."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from longroute.data.documents import by_document
from longroute.data.packing import Packing
from longroute.transport.compact_wy import chunked
from longroute.transport.frame import PairScores

BLOCK = 64
"""Tokens that one triangular solve serves."""


class PathScores:
    """Scores q_iᵀ P(j→i) k_j, P(j→i) = M_i … M_{j+1}, of steps M = I - u uᵀ with 0 ≤ ‖u‖² ≤ 2 (PaTH §3, UT transform).

    `steps` are u, (batch kv_head time dim). Within a block of rows U, with T = (I + strictly-lower(U Uᵀ))⁻¹, all
    scores are Q Kᵀ - lower(Q Uᵀ) T strictly-lower(U Kᵀ). Between blocks, queries are carried back to their block's
    start and from there over whole blocks, keys forward to their block's end. O(time² · dim) work, O(time) memory.
    """

    def __init__(self, steps: Tensor):
        self.steps = steps
        self.time = steps.shape[2]
        self.size = min(BLOCK, self.time)
        self._blocks: _Blocks | None = None

    def _made(self) -> "_Blocks":
        """What all scores need of the steps, made when the first are asked for."""
        if self._blocks is not None and (self._blocks.graph or not torch.is_grad_enabled()):
            return self._blocks
        vectors = chunked(self.steps, self.size)
        gram = vectors @ vectors.mT
        dual = torch.linalg.solve_triangular(gram, vectors, upper=False, unitriangular=True)
        after = torch.linalg.solve_triangular(gram, vectors, upper=True, unitriangular=True)
        identity = torch.eye(vectors.shape[-1], dtype=vectors.dtype, device=vectors.device)
        self._blocks = _Blocks(vectors, gram, dual, after, identity - vectors.mT @ dual, torch.is_grad_enabled())
        return self._blocks

    def documents(self, packing: Packing) -> "list[PairScores]":
        return [PathScores(part) for part in by_document(self.steps, packing)]

    def against(self, key: Tensor) -> Callable[[Tensor, int, int], Tensor]:
        """See `PairScores`. The keys before the last `time` of them have been carried to these steps' start."""
        blocks, heads = self._made(), key.shape[1]
        old, own = key.to(self.steps.dtype).split([key.shape[2] - self.time, self.time], 2)
        own = chunked(own, self.size)
        ends = blocks.to_ends(own)

        def scores(query: Tensor, first: int, last: int) -> Tensor:
            begin, end = first // self.size, -(-last // self.size)
            query = query.to(self.steps.dtype)
            parts = chunked(query, self.size).unflatten(1, (heads, -1))
            at_start, rows = [], []
            for block in range(begin, end):
                start, within = blocks.within(parts[:, :, :, block - begin], own[:, :, block], block)
                start, before = blocks.walk(start, ends, block, begin)
                beyond = within.new_zeros(*within.shape[:-1], (end - 1 - block) * self.size)
                at_start.append(start)
                rows.append(torch.cat([before, within, beyond], -1))
            start, before = blocks.walk(torch.cat(at_start, 3), ends, begin, 0)
            whole = torch.cat([start @ old.mT[:, :, None], before, torch.cat(rows, 3)], -1)
            return whole.flatten(1, 2)[:, :, : last - first, : old.shape[2] + last]

        return scores

    def carry(self, key: Tensor) -> Tensor:
        """See `PairScores`: all keys at these steps' end."""
        blocks = self._made()
        old, own = key.to(self.steps.dtype).split([key.shape[2] - self.time, self.time], 2)
        ends = blocks.to_ends(chunked(own, self.size))
        after = torch.eye(key.shape[3], dtype=old.dtype, device=key.device)
        carried: list[Tensor] = []
        for block in range(ends.shape[2] - 1, -1, -1):
            carried.append(ends[:, :, block] @ after.mT)
            after = after @ blocks.products[:, :, block]
        carried.append(old @ after.mT)
        return torch.cat(carried[::-1], 2)[:, :, : key.shape[2]].to(key.dtype)


@dataclass(frozen=True, eq=False)
class _Blocks:
    """U, U Uᵀ, V = T U, Tᵀ U and I - Uᵀ V of every block, (batch kv_head block …).

    `graph` says whether gradients were on when they were made.
    """

    vectors: Tensor
    gram: Tensor
    dual: Tensor
    after: Tensor
    products: Tensor
    graph: bool

    def to_ends(self, key: Tensor) -> Tensor:
        """M_e … M_{j+1} k_j for the keys j of every block, e its last token."""
        return key - (key @ self.vectors.mT).triu(1) @ self.after

    def within(self, query: Tensor, key: Tensor, block: int) -> tuple[Tensor, Tensor]:
        """Queries (batch kv_head group row dim) carried to their block's start, and scores of the block's own keys."""
        vectors, key = self.vectors[:, :, block, None], key[:, :, None]
        seen = (query @ vectors.mT).tril()
        later = (vectors @ key.mT).tril(-1)
        later = torch.linalg.solve_triangular(self.gram[:, :, block, None], later, upper=False, unitriangular=True)
        return query - seen @ self.dual[:, :, block, None], query @ key.mT - seen @ later

    def walk(self, query: Tensor, ends: Tensor, last: int, first: int) -> tuple[Tensor, Tensor]:
        """Queries carried from the start of block `last` back to that of `first`, and scores of the keys between."""
        scores = [query.new_zeros(*query.shape[:-1], 0)]
        for block in range(last - 1, first - 1, -1):
            scores.append(query @ ends[:, :, block, None].mT)
            query = query @ self.products[:, :, block, None]
        return query, torch.cat(scores[::-1], -1)
