"""One block of fused attention with its log-sum-exp, so that blocks can be joined; and its gradient.

On a CPU torch's own fused kernel, which gives both (the operator isn't public; torch 2.2 to 2.13 have it); elsewhere,
and where it is missing, the same from matrix products.
"""

import torch
from torch import Tensor

_FORWARD = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)
_BACKWARD = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu_backward", None)


def fused_block(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    """softmax(query keyᵀ) value and ln Σ exp(query keyᵀ), (batch head row dim) and (batch head row).

    All three are of one width. `causal`: query i sees keys j ≤ i.
    """
    if _is_fused(query):
        return _FORWARD(query, key, value, 0.0, causal, scale=1.0)  # type: ignore[misc]  # asked just before
    return matrix_block(query, key, value, causal=causal)


def fused_block_gradient(
    grad: Tensor, query: Tensor, output: Tensor, log_sum: Tensor, key: Tensor, value: Tensor, *, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of query, key and value through this block, of a softmax over more blocks.

    `output` (batch head row dim) and `log_sum` (batch head row) are those of all blocks together.
    """
    if _is_fused(query):
        return _BACKWARD(  # type: ignore[misc]  # asked just before
            grad.contiguous(), query, key, value, output.contiguous(), log_sum.contiguous(), 0.0, causal, scale=1.0
        )
    return matrix_block_gradient(grad, query, output, log_sum, key, value, causal=causal)


def matrix_block(query: Tensor, key: Tensor, value: Tensor, *, causal: bool) -> tuple[Tensor, Tensor]:
    """`fused_block` from matrix products."""
    scores = _scores(query, key, causal)
    log_sum = scores.logsumexp(-1)
    return (scores - log_sum[..., None]).exp().to(value.dtype) @ value, log_sum


def matrix_block_gradient(
    grad: Tensor, query: Tensor, output: Tensor, log_sum: Tensor, key: Tensor, value: Tensor, *, causal: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """`fused_block_gradient` from matrix products."""
    weights = (_scores(query, key, causal) - log_sum[..., None]).exp()
    inner = (grad @ value.mT - (grad * output).sum(-1, keepdim=True)) * weights
    inner, weights = inner.to(query.dtype), weights.to(query.dtype)
    return inner @ key, inner.mT @ query, weights.mT @ grad


def _scores(query: Tensor, key: Tensor, causal: bool) -> Tensor:
    scores = (query @ key.mT).to(torch.promote_types(query.dtype, torch.float32))
    if not causal:
        return scores
    unseen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
    return scores.masked_fill(unseen, -torch.inf)


def _is_fused(query: Tensor) -> bool:
    return query.device.type == "cpu" and _FORWARD is not None and _BACKWARD is not None
