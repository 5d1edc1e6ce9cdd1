"""Products of many reflections in compact form, chunk by chunk (Bischof & Van Loan 1987; Yang et al. 2024).

With the vectors w_s of a chunk's reflections I - 2 w wᵀ / ‖w‖² as rows of W, and V = L⁻¹ W, L = strictly-lower(W Wᵀ) +
½ diag(W Wᵀ), every running product of the chunk is there at once:

    (I - 2 w_t w_tᵀ / ‖w_t‖²) … (I - 2 w_1 w_1ᵀ / ‖w_1‖²) = I - Σ_{s ≤ t} w_s v_sᵀ.

One triangular solve serves all of its tokens, no vector needs to be normalised (L + Lᵀ = W Wᵀ makes the product
orthogonal), and w = 0 is the identity.
"""

import functools
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable

CHUNK = 64
"""Tokens of a chunk. Fewer mean more steps one after another, more mean more work within a chunk."""


def without_autocast(backward: Callable[..., Any]) -> Callable[..., Any]:
    """A backward in its tensors' own precision, as the forward had it, even where a gradient is asked for inside."""

    @functools.wraps(backward)
    def exact(ctx, *grads: Tensor) -> Any:
        with torch.autocast(grads[0].device.type, enabled=False):
            return backward(ctx, *grads)

    return exact


def chunked(x: Tensor, chunk: int) -> Tensor:
    """(batch head time …) as (batch head chunks chunk …), zeros after the end."""
    missing = -x.shape[2] % chunk
    if missing:
        x = torch.cat([x, x.new_zeros(*x.shape[:2], missing, *x.shape[3:])], 2)
    return x.unflatten(2, (-1, chunk))


def reflected(vectors: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """(V A, A) of every chunk, with A the product of all before it, and A after the last.

    `vectors` W are (n chunks count dim), `before` (n dim dim). Returns (n chunks count dim), (n chunks dim dim), (n dim
    dim). Differentiable in W.
    """
    return _Reflected.apply(vectors, before)  # type: ignore[return-value]  # Function.apply is untyped


class _Reflected(torch.autograd.Function):
    """A' = A - Wᵀ (V A), chunk after chunk. Autograd's own graph of this loop takes three times as long."""

    @staticmethod
    def forward(ctx, vectors: Tensor, before: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        vectors = vectors.transpose(0, 1).contiguous()  # a chunk of all heads in one piece
        lower = _lower(vectors)
        dual = torch.linalg.solve_triangular(lower, vectors, upper=False)
        carried, product = torch.empty_like(vectors), before.clone()
        starts = vectors.new_empty(*vectors.shape[:2], *before.shape[1:])
        for chunk in range(len(vectors)):
            starts[chunk] = product
            torch.bmm(dual[chunk], product, out=carried[chunk])
            product.baddbmm_(vectors[chunk].mT, carried[chunk], alpha=-1)
        ctx.save_for_backward(vectors, lower, dual, carried, starts)
        return carried.transpose(0, 1).contiguous(), starts.transpose(0, 1).contiguous(), product

    @staticmethod
    @once_differentiable
    @without_autocast
    def backward(ctx, *grads: Tensor):  # type: ignore[reportIncompatibleMethodOverride]  # the decorator's doing
        grad_carried, grad_starts, grad_product = grads[0].transpose(0, 1).contiguous(), grads[1], grads[2].clone()
        vectors, lower, dual, carried, starts = ctx.saved_tensors
        after = torch.empty_like(starts)
        for chunk in range(len(vectors) - 1, -1, -1):
            after[chunk] = grad_product
            grad_carried[chunk].baddbmm_(vectors[chunk], grad_product, alpha=-1)
            grad_product.baddbmm_(dual[chunk].mT, grad_carried[chunk]).add_(grad_starts[:, chunk])
        vectors, lower, dual, carried, starts, after, grad_carried = (
            x.flatten(0, 1) for x in (vectors, lower, dual, carried, starts, after, grad_carried)
        )
        grad = torch.linalg.solve_triangular(lower.mT, torch.bmm(grad_carried, starts.mT), upper=True)
        inner = torch.bmm(grad, dual.mT)
        inner = inner.tril(-1).add_(inner.tril_().mT)  # the diagonal once: L has half of it
        grad.baddbmm_(inner, vectors, alpha=-1).baddbmm_(carried, after.mT, alpha=-1)
        return grad.unflatten(0, (-1, len(grads[0]))).transpose(0, 1), grad_product


def _lower(vectors: Tensor) -> Tensor:
    """L = strictly-lower(W Wᵀ) + ½ diag(W Wᵀ); a zero on the diagonal becomes the least positive number."""
    lower = (vectors @ vectors.mT).tril_()
    lower.diagonal(dim1=-2, dim2=-1).mul_(0.5).clamp_(min=torch.finfo(lower.dtype).tiny)
    return lower


def moved(x: Tensor, through: Tensor, seen: Tensor, back: Tensor, count: int) -> Tensor:
    """x B - earlier(x Sᵀ) R for the tokens of a chunk, where token t sees the first (t + 1) · count rows of S and R.

    x is (n group chunk dim), B = `through` (n dim dim), S = `seen` and R = `back` (n chunk·count dim). Differentiable.
    """
    return _Moved.apply(x, through, seen, back, count)  # type: ignore[return-value]  # Function.apply is untyped


class _Moved(torch.autograd.Function):
    """Three products forward, six backward, nothing copied in between."""

    @staticmethod
    def forward(ctx, x: Tensor, through: Tensor, seen: Tensor, back: Tensor, count: int) -> Tensor:
        rows = x.flatten(1, 2)
        weights = _earlier(torch.bmm(rows, seen.mT), x.shape[2], count)
        ctx.save_for_backward(x, through, seen, back, weights)
        ctx.count = count
        return torch.bmm(rows, through).baddbmm_(weights, back, alpha=-1).view_as(x)

    @staticmethod
    @once_differentiable
    @without_autocast
    def backward(ctx, *grads: Tensor):  # type: ignore[reportIncompatibleMethodOverride]  # the decorator's doing
        x, through, seen, back, weights = ctx.saved_tensors
        rows, grad = x.flatten(1, 2), grads[0].flatten(1, 2)
        given = _earlier(torch.bmm(grad, back.mT), x.shape[2], ctx.count).neg_()
        grad_x = torch.bmm(grad, through.mT).baddbmm_(given, seen).view_as(x)
        return grad_x, torch.bmm(rows.mT, grad), torch.bmm(given.mT, rows), torch.bmm(weights.mT, grad).neg_(), None


def _earlier(products: Tensor, chunk: int, count: int) -> Tensor:
    """(n group·chunk chunk·count), in place: zero where the vector belongs to a later token."""
    if count == 1:
        return products.unflatten(1, (-1, chunk)).tril_().flatten(1, 2)
    token = torch.arange(products.shape[2], device=products.device) // count
    later = token > torch.arange(chunk, device=products.device)[:, None]
    return products.masked_fill_(later.repeat(products.shape[1] // chunk, 1), 0)


def reflection_matrix(vectors: Tensor) -> Tensor:
    """The definition: M = Π_r (I - 2 w_r w_rᵀ / ‖w_r‖²) of each token, (… r dim) to (… dim dim), r = 1 rightmost."""
    identity = torch.eye(vectors.shape[-1], dtype=vectors.dtype, device=vectors.device)
    matrix = identity.expand(*vectors.shape[:-2], -1, -1)
    for w in vectors.unbind(-2):
        u = torch.nn.functional.normalize(w, dim=-1, eps=torch.finfo(w.dtype).tiny)
        matrix = matrix - 2 * u[..., :, None] * (u[..., None, :] @ matrix)
    return matrix
