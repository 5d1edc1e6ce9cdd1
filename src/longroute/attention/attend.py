"""Attention along a route: pull into the global frame, plain fused softmax attention, push back."""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from longroute.control.charge import Charge
from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.transport.frame import Frame, IdentityFrame


@dataclass(frozen=True, eq=False)
class Route:
    """What accumulates between tokens of one layer: the frame, whether values ride in it, the charge, the documents."""

    frame: Frame = field(default_factory=IdentityFrame)
    values: bool = False
    charge: Charge | None = None
    packing: Packing | None = None


def attend(query: Tensor, key: Tensor, value: Tensor, route: Route) -> Tensor:
    """Causal attention whose scores, and values if the route says so, are transported along the route.

        s_ij = q_iᵀ P(j→i) k_j / √d + m (c_i - c_j),   α_i = softmax_{j ≤ i} s_ij,   o_i = Σ_j α_ij [P(j→i)] v_j

    query is (batch head time dim); key and value are (batch kv_head time dim), head a multiple of kv_head: query head h
    uses key-value head h // (head / kv_head). Documents of `route.packing` don't see each other. Result: query's shape
    and dtype (autocast's, under autocast). Memory O(time). Raises InputError where the shapes of query, key, value and
    packing don't fit.
    """
    _check_shapes(query, key, value, route)
    query, key = route.frame.pull(query), route.frame.pull(key)
    if route.values:
        value = route.frame.pull(value)
    output = _softmax_attention(query, key, value, route.charge, route.packing)
    return route.frame.push(output) if route.values else output


def _softmax_attention(
    query: Tensor, key: Tensor, value: Tensor, charge: Charge | None, packing: Packing | None
) -> Tensor:
    scale = value.shape[-1] ** -0.5
    if charge is None:
        return _by_document(query, key, value, scale, packing)
    result, compute = _dtypes(query, charge)
    with torch.autocast(query.device.type, enabled=False):  # which would round the columns
        query, key, value = query.to(compute), key.to(compute), value.to(compute)
        before_query, before_key = charge.columns(compute)
        query_columns = torch.cat([_spread(before_query, query), query * scale], -1)
        key_columns = torch.cat([_spread(before_key, key), key], -1)
        padded = F.pad(value, (0, before_key.shape[-1]))  # a width of its own would cost the CPU its fused kernel
        output = _by_document(query_columns, key_columns, padded, 1.0, packing)
    return output[..., : value.shape[-1]].to(result)


def _dtypes(query: Tensor, charge: Charge) -> tuple[torch.dtype, torch.dtype]:
    """The dtype of charged attention's result, as autocast has it, and the dtype that it is computed in.

    A learned charge is computed in float32 at least while gradients are taken: its gradient is a running sum of the
    columns' gradients, and in bfloat16 their rounding was a third of it after 2,048 tokens.
    """
    device, result = query.device.type, query.dtype
    if torch.is_autocast_enabled(device) and result != torch.float64:
        result = torch.get_autocast_dtype(device)
    learns = torch.is_grad_enabled() and charge.log_decay.requires_grad
    return result, torch.promote_types(result, torch.float32) if learns else result


def _by_document(query: Tensor, key: Tensor, value: Tensor, scale: float, packing: Packing | None) -> Tensor:
    return _causal(query, key, value, scale) if packing is None else _packed(query, key, value, scale, packing)


def _spread(columns: Tensor, x: Tensor) -> Tensor:
    return columns.expand(*x.shape[:3], -1)


def _causal(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    grouped = query.shape[1] != key.shape[1]
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=grouped)


def _packed(query: Tensor, key: Tensor, value: Tensor, scale: float, packing: Packing) -> Tensor:
    """One call for all documents of a length: an eighth of the cost of a dense document mask, and O(time) memory."""
    batch, _, time, _ = query.shape
    sizes = [count * length for count, length in packing.groups]
    split = [x.transpose(1, 2).flatten(0, 1).index_select(0, packing.order).split(sizes) for x in (query, key, value)]
    outputs = []
    for (count, length), q, k, v in zip(packing.groups, *split, strict=True):
        q, k, v = (x.unflatten(0, (count, length)).transpose(1, 2) for x in (q, k, v))
        outputs.append(_causal(q, k, v, scale).transpose(1, 2).flatten(0, 1))
    back = torch.empty_like(packing.order)
    back[packing.order] = torch.arange(len(back), device=back.device)
    return torch.cat(outputs).index_select(0, back).unflatten(0, (batch, time)).transpose(1, 2)


def _check_shapes(query: Tensor, key: Tensor, value: Tensor, route: Route) -> None:
    fits = (
        query.ndim == key.ndim == value.ndim == 4
        and key.shape == value.shape
        and (query.shape[0], *query.shape[2:]) == (key.shape[0], *key.shape[2:])
        and query.shape[1] % key.shape[1] == 0
    )
    if not fits:
        raise InputError(
            "attend needs query (batch head time dim) and key, value (batch kv_head time dim), head a multiple of "
            f"kv_head; got query {tuple(query.shape)}, key {tuple(key.shape)}, value {tuple(value.shape)}"
        )
    if route.packing is not None and route.packing.starts.shape != (query.shape[0], query.shape[2]):
        raise InputError(
            f"the packing is of (batch time) {tuple(route.packing.starts.shape)}, but query is {tuple(query.shape)}"
        )
