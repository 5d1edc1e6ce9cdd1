"""Certified pruning: keys that can't have more than ε of a row's attention together are not looked at.

With |q_i| |k_j| / √d ≥ the content score, a bound b of the bias, and s_ii a lower bound of row i's log-sum-exp, a block
J of keys is skipped for a block I of rows only if

    max_I |q| · max_J |k| / √d + b(I, J) < min_I s_ii - ln(n / ε),    n the keys that I's last row sees.

Then each skipped key has at most ε / n of the row's mass, all of them together at most ε. Orthogonal transports keep
norms, so that pulled queries and keys will do. (The adaptive pruning of Lin et al. 2025, with a certificate.)
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor

from longroute.attention.fused import fused_block, fused_block_gradient
from longroute.control.charge import Charge
from longroute.errors import InputError

ROWS = 512
KEYS = 128
"""Sizes of the blocks that are skipped or not."""


@dataclass(eq=False)
class Pruning:
    """ε, and how many pairs of query and key were there and were skipped, so far."""

    epsilon: float
    pairs: int = 0
    skipped: int = 0

    def __post_init__(self):
        if not 0 < self.epsilon < 1:
            raise InputError(f"pruning needs 0 < epsilon < 1 (share of a row's attention), not {self.epsilon}")

    @property
    def share(self) -> float:
        """Share of all pairs that were skipped."""
        return self.skipped / self.pairs if self.pairs else 0.0


@torch.no_grad()
def first_keys(query: Tensor, key: Tensor, scale: float, charge: Charge, epsilon: float) -> Tensor:
    """The first key that each block of ROWS rows must look at, (head block) int64: all before it are certified.

    query (batch head time dim) and key (batch kv_head time dim) are pulled, without the charge's columns. A key is
    certified for every row of the batch or for none.
    """
    time, group = query.shape[2], query.shape[1] // key.shape[1]
    total = charge.accumulated().expand(len(query), key.shape[1], time).repeat_interleave(group, 1)
    total = total * charge.slope.to(total)[:, None]
    rows = torch.arange(0, time, ROWS, device=query.device)
    ends = torch.arange(KEYS - 1, time - time % KEYS, KEYS, device=query.device)
    bias = total[..., rows, None] - total[..., None, ends]  # the nearest pair's; charges never rise
    certified = (content_bound(query, key, scale) + bias < least_score(query, key, scale, epsilon)) & (
        ends < rows[:, None]
    )
    return certified.all(0).long().cumprod(-1).sum(-1) * KEYS


def content_bound(query: Tensor, key: Tensor, scale: float) -> Tensor:
    """max_I |q| · max_J |k| · scale of every block of ROWS queries and whole block of KEYS keys, float64."""
    keys = key.shape[2] // KEYS
    size = key[:, :, : keys * KEYS].double().norm(dim=-1).unflatten(-1, (keys, KEYS)).amax(-1)
    reach = _blocks(query.double().norm(dim=-1), ROWS, 0.0).amax(-1) * scale
    return reach[..., None] * size.repeat_interleave(query.shape[1] // key.shape[1], 1)[:, :, None]


def least_score(query: Tensor, key: Tensor, scale: float, epsilon: float) -> Tensor:
    """min_I s_ii - ln(n / ε) of every block of ROWS queries, whose bias of themselves is 0, (batch head block 1)."""
    past, group = key.shape[2] - query.shape[2], query.shape[1] // key.shape[1]
    own = (query.double() * key[:, :, past:].double().repeat_interleave(group, 1)).sum(-1) * scale
    least = _blocks(own, ROWS, math.inf).amin(-1)
    seen = (torch.arange(1, least.shape[-1] + 1, device=key.device) * ROWS).clamp(max=query.shape[2]) + past
    return (least - (seen.double() / epsilon).log())[..., None]


def _blocks(x: Tensor, size: int, beyond: float) -> Tensor:
    """(… time) as (… block size), the end filled with `beyond`."""
    return torch.nn.functional.pad(x, (0, -x.shape[-1] % size), value=beyond).unflatten(-1, (-1, size))


def pruned_attention(query: Tensor, key: Tensor, value: Tensor, first: Tensor, pruning: Pruning) -> Tensor:
    """Causal softmax attention of query·key without the keys before `first` (head block); all three of one width."""
    time = query.shape[2]
    rows = torch.arange(0, time, ROWS, device=first.device)
    lengths = (rows + ROWS).clamp(max=time) - rows
    pruning.pairs += len(query) * query.shape[1] * time * (time + 1) // 2
    pruning.skipped += len(query) * int((first * lengths).sum())
    return _Pruned.apply(query, key, value, first.tolist())  # type: ignore[return-value]  # Function.apply is untyped


class _Pruned(torch.autograd.Function):
    """Per head and block of rows: the keys before the block and its own triangle, joined by their log-sum-exps."""

    @staticmethod
    def forward(ctx, query: Tensor, key: Tensor, value: Tensor, first: list[list[int]]) -> Tensor:
        output = torch.empty_like(query)
        total = query.new_empty(query.shape[:3], dtype=torch.promote_types(query.dtype, torch.float32))
        for head, kv_head, rows, before in _pieces(query, key, first):
            q = query[:, head, rows]
            joined, log_sum = fused_block(q, key[:, kv_head, rows], value[:, kv_head, rows], causal=True)
            if before.start < before.stop:
                past, past_sum = fused_block(q, key[:, kv_head, before], value[:, kv_head, before], causal=False)
                joined = torch.lerp(joined, past, (past_sum - log_sum).sigmoid()[..., None].to(joined.dtype))
                log_sum = torch.logaddexp(log_sum, past_sum)
            output[:, head, rows], total[:, head, rows] = joined, log_sum
        ctx.save_for_backward(query, key, value, output, total)
        ctx.first = first
        return output

    @staticmethod
    @torch.autograd.function.once_differentiable
    def backward(ctx, *grads: Tensor):  # type: ignore[reportIncompatibleMethodOverride]  # the decorator's doing
        query, key, value, output, total = ctx.saved_tensors
        of_query, of_key, of_value = (torch.zeros_like(x) for x in (query, key, value))
        for head, kv_head, rows, before in _pieces(query, key, ctx.first):
            given = grads[0][:, head, rows], query[:, head, rows], output[:, head, rows], total[:, head, rows]
            for keys, causal in ((rows, True), (before, False)):
                if keys.start < keys.stop:
                    parts = fused_block_gradient(*given, key[:, kv_head, keys], value[:, kv_head, keys], causal=causal)
                    of_query[:, head, rows] += parts[0]
                    of_key[:, kv_head, keys] += parts[1]
                    of_value[:, kv_head, keys] += parts[2]
        return of_query, of_key, of_value, None


def _pieces(query: Tensor, key: Tensor, first: list[list[int]]):
    """(head, its key-value head, a block of rows, the keys before it that are looked at), heads as slices."""
    group, time = query.shape[1] // key.shape[1], query.shape[2]
    for head, blocks in enumerate(first):
        for block, start in enumerate(blocks):
            rows = slice(block * ROWS, min((block + 1) * ROWS, time))
            kv_head = head // group
            yield slice(head, head + 1), slice(kv_head, kv_head + 1), rows, slice(start, rows.start)
