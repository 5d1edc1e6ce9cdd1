"""Pairwise biases through FlexAttention, where it trains: on CUDA. (On a CPU it has no backward, torch 2.13.)"""

import functools
from collections.abc import Callable

import torch
from torch import Tensor
from torch.nn.attention.flex_attention import BlockMask, create_block_mask, flex_attention

from longroute.control.pairwise import PairwiseBias


def flex_biased_attention(query: Tensor, key: Tensor, value: Tensor, scale: float, pairwise: PairwiseBias) -> Tensor:
    """Causal softmax attention with a pairwise bias, as `blockwise.masked_attention` defines it; no scores are kept.

    query (batch head time dim), key and value (batch kv_head time dim). The bias is compiled into the kernel.
    """

    def biased(score: Tensor, batch: Tensor, head: Tensor, row: Tensor, column: Tensor) -> Tensor:
        return score + pairwise(head, row, column)

    grouped = query.shape[1] != key.shape[1]
    mask = _causal_mask(query.shape[2], str(query.device))
    return _compiled()(query, key, value, score_mod=biased, block_mask=mask, scale=scale, enable_gqa=grouped)


@functools.cache
def _compiled() -> Callable[..., Tensor]:
    return torch.compile(flex_attention)  # type: ignore[return-value]  # of one output


@functools.lru_cache(maxsize=16)
def _causal_mask(time: int, device: str) -> BlockMask:
    return create_block_mask(lambda batch, head, row, column: row >= column, None, None, time, time, device=device)
