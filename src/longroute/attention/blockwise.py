"""Attention over blocks of rows: for scores that aren't plain dot products, and for queries that follow cached keys.

ROWS queries are looked at together: memory is O(ROWS · time), and scores are made again for gradients.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from longroute.attention.pruning import KEYS, ROWS, Pruning, content_bound, least_score
from longroute.control.pairwise import PairwiseBias
from longroute.transport.frame import PairScores


@dataclass(frozen=True, eq=False)
class Block:
    """Queries [first, last) of a chunk that `past` keys precede, and the keys up to them.

    The first `pads` (batch) keys of each row are padding: nothing sees them but they themselves. The keys that are
    looked at are those from `begin` on, or `chosen` ones.
    """

    first: int
    last: int
    past: int
    pads: Tensor | None
    device: torch.device
    begin: int = 0
    chosen: Tensor | None = None

    @property
    def keys(self) -> int:
        """Keys up to the last query."""
        return self.past + self.last

    @property
    def row(self) -> Tensor:
        """Index of every query among the keys, (row 1)."""
        return torch.arange(self.past + self.first, self.keys, device=self.device)[:, None]

    @property
    def key(self) -> Tensor:
        """Index of every key that is looked at, (key)."""
        return torch.arange(self.begin, self.keys, device=self.device) if self.chosen is None else self.chosen

    def of(self, x: Tensor) -> Tensor:
        """Keys or values that are looked at, of all, (batch kv_head key dim)."""
        return x[:, :, self.begin : self.keys] if self.chosen is None else x.index_select(2, self.chosen)

    def seen(self) -> Tensor:
        """Which keys a query sees, (batch|1 1 row key)."""
        seen = (self.key <= self.row)[None, None]
        if self.pads is None:
            return seen
        return seen & ((self.key >= self.pads[:, None, None, None]) | (self.key == self.row))

    def mask(self, pairwise: PairwiseBias | None) -> Tensor | None:
        """What the fused kernel needs to know: which keys are seen, or the bias; None if a query sees all."""
        if pairwise is not None:
            return self.bias(pairwise)
        return None if self.last - self.first == 1 and self.pads is None else self.seen()

    def bias(self, pairwise: PairwiseBias) -> Tensor:
        """b of all heads, -∞ where a query doesn't see a key, (batch|1 head row key)."""
        pads = 0 if self.pads is None else self.pads[:, None, None, None]
        head = torch.arange(pairwise.heads, device=self.device)[:, None, None]
        return pairwise(head, self.row - pads, self.key - pads).masked_fill(~self.seen(), -torch.inf)

    def sliding(self, pairwise: PairwiseBias, dtype: torch.dtype) -> Tensor | None:
        """`bias`, the last query first, where the distance alone decides: a view of one number a distance.

        As a table it takes six times as long as the attention itself. None where more decides.
        """
        if not pairwise.shift or self.pads is not None:
            return None
        distance = torch.arange(self.keys - 1 - self.begin, self.first - self.last, -1, device=self.device)
        head = torch.arange(pairwise.heads, device=self.device)[:, None]
        bias = pairwise(head, distance, distance.new_zeros(())).masked_fill(distance < 0, -torch.inf)
        bias = bias if bias.requires_grad else bias.to(dtype)  # a view that is cast is a table
        return bias.unfold(-1, self.keys - self.begin, 1)[None]


def blocks(query: Tensor, key: Tensor, pads: Tensor | None) -> Iterator[Block]:
    """The blocks of ROWS queries, the last of which come last among the keys."""
    time = query.shape[2]
    for first in range(0, time, ROWS):
        yield Block(first, min(first + ROWS, time), key.shape[2] - time, pads, query.device)


def masked_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    *,
    pairwise: PairwiseBias | None = None,
    pads: Tensor | None = None,
    pruning: Pruning | None = None,
) -> Tensor:
    """Softmax attention of plain dot products with a pairwise bias; query (batch head time dim), keys at least as many.

    Queries are the last of the keys' tokens. Memory O(time), gradients too. Keys that no row of a block sees aren't
    looked at, and with `pruning` none that is certified for all heads.
    """
    outputs = []
    skips = None
    if pairwise is not None and pads is None and not torch.compiler.is_compiling():  # what is skipped depends on data
        skips = unneeded_keys(query, key, scale, pairwise, pruning)
    for number, block in enumerate(blocks(query, key, pads)):
        if pairwise is not None and skips is not None and skips[number].any():
            block = _without(block, skips[number], pairwise)
        parts = query[:, :, block.first : block.last], block.of(key), block.of(value)
        outputs.append(_recomputed(_masked_rows, *parts, block, pairwise, scale))
    return torch.cat(outputs, 2)


def unneeded_keys(query: Tensor, key: Tensor, scale: float, pairwise: PairwiseBias, pruning: Pruning | None) -> Tensor:
    """Which whole blocks of KEYS keys a block of ROWS queries needn't look at, (rows keys) bool; see `pruning`.

    Needs what `PairwiseBias` promises: in a block the bias is largest for the nearest pair, or for the first key.
    """
    time, past = query.shape[2], key.shape[2] - query.shape[2]
    row = torch.arange(past, key.shape[2], ROWS, device=key.device)[:, None]
    begin = torch.arange(0, key.shape[2] - key.shape[2] % KEYS, KEYS, device=key.device)
    head = torch.arange(pairwise.heads, device=key.device)[:, None, None]
    with torch.no_grad():
        bound = torch.maximum(pairwise(head, row, begin), pairwise(head, row, begin + KEYS - 1)).double()
        if pruning is None:
            certified = (bound == -torch.inf).all(0)
        else:
            bound = bound + content_bound(query, key, scale)
            certified = (bound < least_score(query, key, scale, pruning.epsilon)).all(0).all(0)
    certified &= begin + KEYS <= row
    if pairwise.shift:  # which slides over all keys from one on
        certified = certified.cummin(-1).values
    if pruning is not None:
        lengths = (row[:, 0] + ROWS).clamp(max=key.shape[2]) - row[:, 0]
        pruning.pairs += len(query) * pairwise.heads * (time * (time + 1) // 2 + time * past)
        pruning.skipped += len(query) * pairwise.heads * int((certified.sum(1) * lengths).sum()) * KEYS
    return certified


def _without(block: Block, skipped: Tensor, pairwise: PairwiseBias) -> Block:
    """The block without the keys of skipped blocks."""
    if pairwise.shift:
        return replace(block, begin=int(skipped.sum()) * KEYS)
    key = torch.arange(block.keys, device=block.device)
    number = (key // KEYS).clamp(max=len(skipped) - 1)
    within = key < len(skipped) * KEYS
    return replace(block, chosen=key[~(skipped[number] & within)])


def pair_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    scale: float,
    pairs: PairScores,
    *,
    columns: tuple[Tensor, Tensor] | None = None,
    pairwise: PairwiseBias | None = None,
    pads: Tensor | None = None,
) -> Tensor:
    """The same for scores that `pairs` multiplies out; `columns` of a charge, if any, add their own dot products."""
    scores = pairs.against(key)
    outputs = []
    for block in blocks(query, key, pads):
        rows = slice(block.first, block.last)
        own = None if columns is None else (columns[0][:, :, rows], columns[1][:, :, : block.keys])
        parts = query[:, :, rows], value[:, :, : block.keys]
        outputs.append(_recomputed(_pair_rows, *parts, own, scores, block, pairwise, scale))
    return torch.cat(outputs, 2)


def _recomputed(rows: Callable[..., Tensor], *arguments: object) -> Tensor:
    """`rows(*arguments)`, computed once more for its gradient instead of being kept."""
    if not torch.is_grad_enabled():
        return rows(*arguments)
    return checkpoint(rows, *arguments, use_reentrant=False, preserve_rng_state=False)  # type: ignore[return-value]


def _masked_rows(
    query: Tensor, key: Tensor, value: Tensor, block: Block, pairwise: PairwiseBias | None, scale: float
) -> Tensor:
    sliding = None if pairwise is None else block.sliding(pairwise, query.dtype)
    if sliding is None:
        return _masked(query, key, value, block.mask(pairwise), scale)
    return _masked(query.flip(2), key, value, sliding, scale).flip(2)


def _masked(query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None, scale: float) -> Tensor:
    if mask is not None and mask.requires_grad:  # which the fused kernels can't give a gradient to
        scores = _grouped(query, key) @ key.mT[:, :, None] * scale
        return weighted(scores.flatten(1, 2) + mask, value).to(query.dtype)
    grouped = query.shape[1] != key.shape[1]
    if mask is not None and mask.is_floating_point():
        mask = mask.to(query.dtype)
        mask = mask.contiguous() if mask.is_cuda else mask  # whose kernels want aligned rows
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, scale=scale, enable_gqa=grouped)


def _pair_rows(
    query: Tensor,
    value: Tensor,
    columns: tuple[Tensor, Tensor] | None,
    pair_scores: Callable[[Tensor, int, int], Tensor],
    block: Block,
    pairwise: PairwiseBias | None,
    scale: float,
) -> Tensor:
    scores = pair_scores(query, block.first, block.last) * scale
    if columns is not None:
        charged = _grouped(columns[0], columns[1]) @ columns[1].mT[:, :, None]
        scores = scores + charged.flatten(1, 2)
    scores = scores.masked_fill(~block.seen(), -torch.inf) if pairwise is None else scores + block.bias(pairwise)
    return weighted(scores, value).to(query.dtype)


def weighted(scores: Tensor, value: Tensor) -> Tensor:
    """softmax(scores) · values, scores (batch head row key), value (batch kv_head key dim)."""
    weights = scores.softmax(-1).unflatten(1, (value.shape[1], -1))
    return (weights.to(value.dtype) @ value[:, :, None]).flatten(1, 2)


def _grouped(query: Tensor, key: Tensor) -> Tensor:
    return query.unflatten(1, (key.shape[1], -1))
