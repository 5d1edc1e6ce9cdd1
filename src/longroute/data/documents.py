"""Documents taken out of their rows and put back: what runs on each document alone."""

from collections.abc import Sequence

import torch
from torch import Tensor

from longroute.data.packing import Packing


def by_document(x: Tensor, packing: Packing) -> list[Tensor]:
    """(batch|1 head time …) as one (count head length …) for every group of documents of one length."""
    batch = len(packing.starts)
    flat = x.expand(batch, *x.shape[1:]).transpose(1, 2).flatten(0, 1).index_select(0, packing.order)
    parts = flat.split([count * length for count, length in packing.groups])
    return [part.unflatten(0, group).transpose(1, 2) for part, group in zip(parts, packing.groups, strict=True)]


def into_rows(parts: Sequence[Tensor], packing: Packing) -> Tensor:
    """Back from `by_document`: (batch head time …)."""
    flat = torch.cat([part.transpose(1, 2).flatten(0, 1) for part in parts])
    back = torch.empty_like(packing.order)
    back[packing.order] = torch.arange(len(back), device=back.device)
    return flat.index_select(0, back).unflatten(0, packing.starts.shape).transpose(1, 2)
