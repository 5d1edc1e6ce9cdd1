"""How far charged attention is from float64, at every row of a long sequence."""

import torch
from torch import Tensor

from longroute.attention import Route, attend
from longroute.control import Charge

_ROWS = 1024


@torch.inference_mode()
def largest_error(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, slope: Tensor, device: torch.device
) -> float:
    """Largest |o - o64| over all rows and dimensions of one head, (time dim), with log-decays `decay` (time).

    o is `attend` in the tensors' dtype with the charge in columns; o64 the same attention in float64 with the bias
    m (c_i - c_j) added to the scores, row block by row block.
    """
    charge = Charge(decay[None, None].to(device), slope.to(device), None)
    query, key, value = (x[None, None].to(device) for x in (query, key, value))
    ours = attend(query, key, value, Route(charge=charge))[0, 0]
    query, key, value = (x[0, 0].double() for x in (query, key, value))
    c = slope.to(device) * decay.to(device, torch.float64).cumsum(0)
    worst = 0.0
    for first in range(0, len(query), _ROWS):
        last = min(first + _ROWS, len(query))
        scores = query[first:last] @ key[:last].T / query.shape[-1] ** 0.5 + (c[first:last, None] - c[None, :last])
        future = torch.ones(last - first, last, dtype=torch.bool, device=device).triu(first + 1)
        exact = scores.masked_fill_(future, -torch.inf).softmax(-1) @ value[:last]
        worst = max(worst, (ours[first:last] - exact).abs().max().item())
    return worst
