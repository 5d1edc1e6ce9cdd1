"""The heads of one attention layer as their scores see them, and their rows in blocks: never L × L at once."""

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Protocol

import torch
from torch import Tensor

from longroute.control import PairwiseBias


class Accumulated(Protocol):
    """What transports accumulate to: `longroute.transport.frame.Frame` is one."""

    def at(self, index: Tensor) -> Tensor | None:
        """A_t for the tokens t in `index`, (batch|1 kv_head|1 index dim dim); None where every A_t is the identity."""
        ...


SINKS = 4
"""The first tokens of a window, on which models rest attention that they don't need: told apart from far tokens."""

_SCORES_AT_ONCE = 1 << 22


@dataclass(frozen=True, eq=False)
class Heads:
    """One layer over a batch of windows, everything pulled into the global frame.

        s_ij = scale · q̃_iᵀ k̃_j + b_ij,   α_i = softmax over i - window < j ≤ i,   õ_i = Σ_j α_ij ṽ_j

    query is (batch head time dim); key and value are (batch kv_head time dim); query head h uses key-value head
    h // (head / kv_head). b is m (c_i - c_j) with `charge` c, (batch|1 kv_head|1 time) in nats, float64, and `slope` m,
    (head); or the `pairwise` bias of positions in the window; or 0. `frame` is what they were pulled into, None if
    nothing moves or nobody knows; `values_ride` says whether values were.
    """

    query: Tensor
    key: Tensor
    value: Tensor
    scale: float
    charge: Tensor | None = None
    slope: Tensor | None = None
    window: int | None = None
    frame: Accumulated | None = None
    values_ride: bool = False
    pairwise: PairwiseBias | None = None

    @property
    def time(self) -> int:
        """Tokens of a window."""
        return self.query.shape[2]

    def to(self, dtype: torch.dtype) -> "Heads":
        """The same heads, to be scored in `dtype`."""
        query, key, value = self.query.to(dtype), self.key.to(dtype), self.value.to(dtype)
        return replace(self, query=query, key=key, value=value)


@dataclass(frozen=True, eq=False)
class Rows:
    """Scores of some queries against every key that the last of them sees, -inf where one sees none.

    `index` are the queries' positions, (row); `scores` is (batch head row key), nats; `distance` is i - j, (row key).
    """

    index: Tensor
    scores: Tensor
    distance: Tensor

    def far(self, near: int) -> Tensor:
        """Which keys are further off than `near` tokens and no sink, (row key) bool."""
        key = torch.arange(self.distance.shape[1], device=self.distance.device)
        return (self.distance > near) & (key >= SINKS)


def score_rows(heads: Heads, index: Tensor) -> Rows:
    """The rows `index` (increasing positions) of every head, in float32 or, for float64 heads, float64."""
    keys = int(index[-1]) + 1
    scores = content_scores(heads, index, heads.key[:, :, :keys])
    if heads.charge is not None:
        scores = scores + bias(heads, heads.charge[:, :, index, None] - heads.charge[:, :, None, :keys]).to(
            scores.dtype
        )
    if heads.pairwise is not None:
        scores = scores + pairwise_bias(heads.pairwise, index, torch.arange(keys, device=index.device)).to(scores.dtype)
    distance = index[:, None] - torch.arange(keys, device=index.device)
    unseen = distance < 0 if heads.window is None else (distance < 0) | (distance >= heads.window)
    return Rows(index, scores.masked_fill_(unseen, -math.inf), distance)


def content_scores(heads: Heads, index: Tensor, key: Tensor) -> Tensor:
    """scale · q̃_iᵀ k̃ of the rows `index` and any pulled keys (batch kv_head key dim), (batch head row key)."""
    dtype = torch.promote_types(heads.query.dtype, torch.float32)
    batch, kv_heads, keys, _ = key.shape
    query = heads.query[:, :, index].to(dtype).unflatten(1, (kv_heads, -1)).flatten(2, 3) * heads.scale
    return (query @ key.to(dtype).transpose(-1, -2)).view(batch, -1, len(index), keys)


def pairwise_bias(pairwise: PairwiseBias, row: Tensor, key: Tensor) -> Tensor:
    """b between positions `row` and positions `key`, (head row key)."""
    head = torch.arange(pairwise.heads, device=row.device)[:, None, None]
    return pairwise(head, row[:, None], key)


def bias(heads: Heads, difference: Tensor) -> Tensor:
    """m (c_i - c_j) of differences (batch|1 kv_head|1 row key), (batch|1 head row key)."""
    assert heads.slope is not None  # a charge has a slope
    slope = heads.slope.to(difference).view(1, difference.shape[1], -1, 1, 1)
    return (slope * difference[:, :, None]).flatten(1, 2)


def row_blocks(heads: Heads, index: Tensor | None = None, *, more_keys: int = 0) -> Iterator[Rows]:
    """`score_rows` of all rows, or of `index`, in blocks of about 4 million scores (with `more_keys` beside each)."""
    index = torch.arange(heads.time, device=heads.query.device) if index is None else index
    many = heads.query.shape[0] * heads.query.shape[1] * (heads.time + more_keys)
    for block in index.split(max(1, _SCORES_AT_ONCE // many)):
        yield score_rows(heads, block)


def weighted_values(weights: Tensor, value: Tensor) -> Tensor:
    """Σ_j w_ij ṽ_j, (batch head row dim), for weights (batch head row key) and value (batch kv_head time dim)."""
    batch, heads, rows, keys = weights.shape
    grouped = weights.view(batch, value.shape[1], -1, keys)
    return (grouped @ value[:, :, :keys].to(weights.dtype)).view(batch, heads, rows, -1)
