"""Attention along a route: pull into the global frame, plain fused softmax attention, push back."""

from dataclasses import dataclass, field

import torch
import torch.nn.functional as F
from torch import Tensor

from longroute.attention.blockwise import masked_attention, pair_attention
from longroute.attention.flex import flex_biased_attention
from longroute.attention.pruning import ROWS, Pruning, first_keys, pruned_attention
from longroute.control.charge import Charge
from longroute.control.pairwise import PairwiseBias
from longroute.data.documents import by_document, into_rows
from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.transport.frame import Frame, IdentityFrame


@dataclass(frozen=True, eq=False)
class Route:
    """What accumulates between tokens of one layer: the frame, whether values ride in it, the penalty, the documents.

    The penalty is a separable `charge` or a `pairwise` bias, or neither.
    """

    frame: Frame = field(default_factory=IdentityFrame)
    values: bool = False
    charge: Charge | None = None
    pairwise: PairwiseBias | None = None
    packing: Packing | None = None


def attend(query: Tensor, key: Tensor, value: Tensor, route: Route, *, pruning: Pruning | None = None) -> Tensor:
    """Causal attention whose scores, and values if the route says so, are transported along the route.

        s_ij = q_iᵀ P(j→i) k_j / √d + b_ij,   α_i = softmax_{j ≤ i} s_ij,   o_i = Σ_j α_ij [P(j→i)] v_j

    b_ij is m (c_i - c_j) of the charge, or the pairwise bias. query is (batch head time dim); key and value are (batch
    kv_head time dim), head a multiple of kv_head: query head h uses key-value head h // (head / kv_head). Documents of
    `route.packing` don't see each other. `pruning` skips what can't have more than its epsilon of a row's attention: of
    a charge in unpacked rows from 2 · ROWS tokens on, of a pairwise bias everywhere. Result: query's shape and dtype
    (autocast's, under autocast). Memory O(time). Raises InputError where the shapes of query, key, value and packing
    don't fit.
    """
    _check_shapes(query, key, value, route)
    result = _result_dtype(query)
    with torch.autocast(query.device.type, enabled=False):  # which would round frames and columns
        query, key = route.frame.pull(query).to(result), route.frame.pull(key).to(result)
        value = (route.frame.pull(value) if route.values else value).to(result)
        if route.frame.pairs is not None or route.pairwise is not None:
            output = _pairwise_attention(query, key, value, route, pruning)
        elif route.charge is not None:
            output = _charged_attention(query, key, value, route.charge, route.packing, pruning)
        else:
            output = _by_document(query, key, value, value.shape[-1] ** -0.5, route.packing)
        return route.frame.push(output).to(result) if route.values else output.to(result)


def _result_dtype(query: Tensor) -> torch.dtype:
    """The dtype of the result: the query's, or autocast's."""
    device = query.device.type
    if torch.is_autocast_enabled(device) and query.dtype != torch.float64:
        return torch.get_autocast_dtype(device)
    return query.dtype


def _charged_attention(
    query: Tensor, key: Tensor, value: Tensor, charge: Charge, packing: Packing | None, pruning: Pruning | None
) -> Tensor:
    """In float32 at least while a charge learns.

    Its gradient is a running sum of the columns' gradients: in bfloat16 their rounding was a third of it after 2,048
    tokens.
    """
    learns = torch.is_grad_enabled() and charge.log_decay.requires_grad
    dtype = torch.promote_types(query.dtype, torch.float32) if learns else query.dtype
    query, key, value = query.to(dtype), key.to(dtype), value.to(dtype)
    query_columns, key_columns, padded = charged(query, key, value, charge)
    if pruning is None or packing is not None or query.shape[2] < 2 * ROWS:
        output = _by_document(query_columns, key_columns, padded, 1.0, packing)
    else:
        first = first_keys(query, key, value.shape[-1] ** -0.5, charge, pruning.epsilon)
        output = pruned_attention(query_columns, key_columns, padded, first, pruning)
    return output[..., : value.shape[-1]]


def charged(query: Tensor, key: Tensor, value: Tensor, charge: Charge) -> tuple[Tensor, Tensor, Tensor]:
    """Query and key with the charge's columns before them, so that scores need no scale; value as wide as they are."""
    before_query, before_key = charge_columns(query, key, charge)
    query = torch.cat([before_query, query * value.shape[-1] ** -0.5], -1)
    key = torch.cat([before_key, key], -1)
    return query, key, F.pad(value, (0, before_key.shape[-1]))  # another width costs the CPU its fused kernel


def charge_columns(query: Tensor, key: Tensor, charge: Charge) -> tuple[Tensor, Tensor]:
    """The charge's columns for every query and key, (batch head time n), in the query's dtype."""
    before_query, before_key = charge.columns(query.dtype)
    return before_query.expand(*query.shape[:3], -1), before_key.expand(*key.shape[:3], -1)


def _pairwise_attention(query: Tensor, key: Tensor, value: Tensor, route: Route, pruning: Pruning | None) -> Tensor:
    """Where scores aren't plain dot products: row block by row block, each group of documents alone."""
    pairs, scale = route.frame.pairs, value.shape[-1] ** -0.5
    columns = None
    if route.charge is not None:
        columns = charge_columns(query.to(torch.promote_types(query.dtype, torch.float32)), key, route.charge)
    tensors = [query, key, value, *(columns or ())]
    if route.packing is None:
        groups, every = [tensors], [pairs]
    else:
        groups = list(zip(*[by_document(x, route.packing) for x in tensors], strict=True))
        every = [None] * len(groups) if pairs is None else pairs.documents(route.packing)
    outputs = []
    for (q, k, v, *own), one in zip(groups, every, strict=True):
        if one is None:
            outputs.append(_biased(q, k, v, scale, route.pairwise, pruning))
        else:
            both = (own[0], own[1]) if own else None
            outputs.append(pair_attention(q, k, v, scale, one, columns=both, pairwise=route.pairwise))
    return outputs[0] if route.packing is None else into_rows(outputs, route.packing)


def _biased(
    query: Tensor, key: Tensor, value: Tensor, scale: float, pairwise: PairwiseBias | None, pruning: Pruning | None
) -> Tensor:
    if pairwise is not None and query.is_cuda:  # where FlexAttention trains
        return flex_biased_attention(query, key, value, scale, pairwise)
    return masked_attention(query, key, value, scale, pairwise=pairwise, pruning=pruning)


def _by_document(query: Tensor, key: Tensor, value: Tensor, scale: float, packing: Packing | None) -> Tensor:
    return causal_attention(query, key, value, scale) if packing is None else _packed(query, key, value, scale, packing)


def causal_attention(query: Tensor, key: Tensor, value: Tensor, scale: float) -> Tensor:
    grouped = query.shape[1] != key.shape[1]
    return F.scaled_dot_product_attention(query, key, value, is_causal=True, scale=scale, enable_gqa=grouped)


def _packed(query: Tensor, key: Tensor, value: Tensor, scale: float, packing: Packing) -> Tensor:
    """One call for all documents of a length: an eighth of the cost of a dense document mask, and O(time) memory."""
    split = [by_document(x, packing) for x in (query, key, value)]
    return into_rows([causal_attention(q, k, v, scale) for q, k, v in zip(*split, strict=True)], packing)


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
