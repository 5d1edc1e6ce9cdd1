"""Running sums along time that begin afresh in every document, and their gradient."""

import torch
from torch import Tensor


def running_sum(x: Tensor, starts: Tensor | None = None, carry: Tensor | None = None) -> Tensor:
    """S_t = Σ_{start(t) ≤ s ≤ t} x_s over dim 2 of (batch head time …), for exact (int64) x.

    `starts` (batch time) holds the index of the first token of each token's document; None: one document a row. `carry`
    (batch head 1 …) is the last sum of the chunk before. What was summed before a document is subtracted as an integer,
    so a packed document has the very bits that it has alone.
    """
    total = x.cumsum(2)
    if starts is not None:
        total = total - _at(total - x, starts)
    return total if carry is None else total + carry


def reverse_running_sum(x: Tensor, starts: Tensor | None = None) -> Tensor:
    """R_s = Σ_{t ≥ s, start(t) ≤ s} x_t over dim 2: the transpose of `running_sum`, in x's own dtype."""
    total = x.flip(2).cumsum(2).flip(2)
    if starts is None:
        return total
    padded = torch.cat([total, torch.zeros_like(total[:, :, :1])], 2)
    return total - _at(padded, _ends(starts))


def _ends(starts: Tensor) -> Tensor:
    """The index after the last token of each token's document, (batch time)."""
    time = starts.shape[1]
    index = torch.arange(time, device=starts.device)
    begins = torch.where(starts == index, index, time)
    following = torch.cat([begins[:, 1:], begins.new_full((len(begins), 1), time)], 1)
    return following.flip(1).cummin(1).values.flip(1)


def _at(x: Tensor, index: Tensor) -> Tensor:
    """x[b, h, index[b, t], …] for every b, h, t: dim 2 gathered by (batch time) indices."""
    shape = (len(index), x.shape[1], index.shape[1], *x.shape[3:])
    index = index[(slice(None), None, slice(None), *[None] * (x.ndim - 3))].expand(shape)
    return x.expand(shape[0], *x.shape[1:]).gather(2, index)
