"""Attention changed at test time: what undoes a cause of failure, and what a user may switch on.

An edit is called with a layer's number and its heads and returns their output in the global frame. `near` is D, the
training length: a source further off than D that is no sink is far. Nothing here touches weights or rotates a trained
model's values.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from longroute.diagnose.heads import SINKS, Heads, Rows, row_blocks, weighted_values

Edit = Callable[[int, Heads], Tensor]
"""(layer, heads) to the output (batch head time dim), in the global frame."""


def attention(heads: Heads, change: Callable[[Rows], Tensor]) -> Tensor:
    """Softmax attention with changed scores, (batch head time dim), in O(time) memory."""
    return torch.cat([weighted_values(change(rows).softmax(-1), heads.value) for rows in row_blocks(heads)], 2)


@dataclass(frozen=True)
class Exact:
    """The same attention in float64: what is left of a difference is the model's own precision."""

    def __call__(self, layer: int, heads: Heads) -> Tensor:
        return attention(heads.to(torch.float64), lambda rows: rows.scores)


@dataclass(frozen=True)
class Temperature:
    """s_ij · max(1, ln(i + 1) / ln D): sharper as the context grows, so that entropy needn't (Su 2021, "log n")."""

    near: int

    def __call__(self, layer: int, heads: Heads) -> Tensor:
        def sharper(rows: Rows) -> Tensor:
            count = (rows.index + 1).to(rows.scores.dtype)
            return rows.scores * (count.log() / math.log(self.near)).clamp(min=1)[:, None]

        return attention(heads, sharper)


@dataclass(frozen=True)
class LogCount:
    """Far scores lowered by ln((i + 1) / D): the far mass can't grow with the number of far tokens."""

    near: int

    def __call__(self, layer: int, heads: Heads) -> Tensor:
        def lowered(rows: Rows) -> Tensor:
            count = (rows.index + 1).to(rows.scores.dtype) / self.near
            return rows.scores - rows.far(self.near) * count.log().clamp(min=0)[:, None]

        return attention(heads, lowered)


@dataclass(frozen=True)
class WindowWithSinks:
    """Only the last D tokens are seen, and the first SINKS of the window (Xiao et al. 2023)."""

    near: int

    def __call__(self, layer: int, heads: Heads) -> Tensor:
        return attention(heads, lambda rows: rows.scores.masked_fill(rows.far(self.near), float("-inf")))


@dataclass(frozen=True, eq=False)
class FarShift:
    """Far scores moved by `shift` nats, (layer head)."""

    near: int
    shift: Tensor

    def __call__(self, layer: int, heads: Heads) -> Tensor:
        def moved(rows: Rows) -> Tensor:
            shift = self.shift[layer][:, None, None].to(rows.scores)
            return rows.scores + rows.far(self.near) * shift

        return attention(heads, moved)


@dataclass(frozen=True)
class WithoutFarMean:
    """õ_i - ρ_i · mean of far ṽ: the far sum without its coherent part; weights stay as they are."""

    near: int

    def __call__(self, layer: int, heads: Heads) -> Tensor:
        value = heads.value.to(torch.promote_types(heads.value.dtype, torch.float32))
        after_sinks = torch.cat([torch.zeros_like(value[:, :, :SINKS]), value[:, :, SINKS:]], 2).double().cumsum(2)
        blocks = []
        for rows in row_blocks(heads):
            weights, far = rows.scores.softmax(-1), rows.far(self.near)
            count, last = far.sum(-1), (rows.index - self.near - 1).clamp(min=0)
            mean = (after_sinks[:, :, last] / count.clamp(min=1)[:, None]).to(value.dtype)
            mean = mean.repeat_interleave(weights.shape[1] // value.shape[1], 1)
            far_mass = (weights * far).sum(-1, keepdim=True)
            blocks.append(weighted_values(weights, value) - far_mass * mean)
        return torch.cat(blocks, 2)
