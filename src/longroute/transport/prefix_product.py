"""Running products of small matrices along time."""

import torch
from torch import Tensor

_SHORT = 8


def prefix_product(x: Tensor, before: Tensor) -> Tensor:
    """A_t = x_t … x_1 · before for every t of dim 2, x (batch head time … n n), before (batch|1 head|1 … n n).

    Chunks of √time run side by side, then each goes on from the product of those before it: about 2 √time steps one
    after another, and 2 multiplications a token.
    """
    time = x.shape[2]
    chunk = max(1, round(time**0.5))
    if time <= _SHORT:
        return _one_by_one(x, before)
    whole, rest = x.split([time - time % chunk, time % chunk], 2)
    within = _one_by_one(whole.unflatten(2, (-1, chunk)).transpose(2, 3), None)
    ends = prefix_product(within[:, :, -1], before)
    starts = torch.cat([before.expand_as(ends[:, :, 0])[:, :, None], ends[:, :, :-1]], 2)
    product = (within @ starts[:, :, None]).transpose(2, 3).flatten(2, 3)
    if not rest.shape[2]:
        return product
    return torch.cat([product, _one_by_one(rest, ends[:, :, -1])], 2)


def _one_by_one(x: Tensor, before: Tensor | None) -> Tensor:
    products = []
    for step in x.unbind(2):
        before = step if before is None else step @ before
        products.append(before)
    return torch.stack(products, 2)
