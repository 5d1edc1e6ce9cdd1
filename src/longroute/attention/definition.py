"""The definition: every route walked token by token, in float64. Slow on purpose; the oracle of every fast path."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from longroute.attention.encoding import PositionEncoding, step_inputs
from longroute.control.charge import LARGEST_DECAY
from longroute.data.packing import Packing


def walk_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    position: PositionEncoding,
    *,
    hidden: Tensor,
    token_ids: Tensor,
    packing: Packing | None = None,
) -> Tensor:
    """Attention with P(j→i) = M_i M_{i-1} … M_{j+1} multiplied out for every pair, as `attend` defines it.

    Shapes as in `attend`; float64; O(time² dim³) work. Differentiable, steps and gates included.
    """
    inputs = step_inputs(hidden.double(), token_ids, packing)
    steps = position.steps(inputs)
    batch, heads, time, dim = query.shape
    kv_heads = key.shape[1]
    matrices = position.steps.matrix(steps).expand(batch, kv_heads, time, dim, dim)
    penalty = position.control(inputs, None).sparing(position.spec.free)
    decay = torch.zeros(batch, kv_heads, time, dtype=torch.float64)
    slope = torch.ones(heads, dtype=torch.float64)
    if penalty.charge is not None:
        decay = penalty.charge.log_decay.double().clamp(-LARGEST_DECAY, 0).expand(batch, kv_heads, time)
        slope = penalty.charge.slope.double()
    starts = torch.zeros(batch, time, dtype=torch.int64) if packing is None else packing.starts
    rows = [
        torch.stack(
            [
                _walk_row(
                    query[b, h].double(),
                    key[b, h * kv_heads // heads].double(),
                    value[b, h * kv_heads // heads].double(),
                    matrices[b, h * kv_heads // heads],
                    slope[h] * decay[b, h * kv_heads // heads],
                    None if penalty.pairwise is None else partial(penalty.pairwise, torch.tensor(h)),
                    starts[b],
                    values=position.spec.values,
                )
                for h in range(heads)
            ]
        )
        for b in range(batch)
    ]
    return torch.stack(rows)


def _walk_row(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    matrices: Tensor,
    decay: Tensor,
    pairwise: Callable[[Tensor, Tensor], Tensor] | None,
    starts: Tensor,
    *,
    values: bool,
) -> Tensor:
    """One head of one row: from each query i back to the first token of its document."""
    time, dim = query.shape
    outputs = []
    for i in range(time):
        transport = torch.eye(dim, dtype=torch.float64)
        bias = torch.zeros((), dtype=torch.float64)
        scores, carried = [], []
        for j in range(i, int(starts[i]) - 1, -1):
            place = torch.tensor([i, j]) - starts[i]
            beyond = 0.0 if pairwise is None else pairwise(place[0], place[1]).double()
            scores.append(query[i] @ transport @ key[j] / dim**0.5 + bias + beyond)
            carried.append(transport @ value[j] if values else value[j])
            transport = transport @ matrices[j]
            bias = bias + decay[j]
        outputs.append(torch.stack(scores).softmax(0) @ torch.stack(carried))
    return torch.stack(outputs)
