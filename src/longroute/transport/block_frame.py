"""The global frame of steps that turn small blocks of dimensions, each by a rotation of its own."""

import torch
from torch import Tensor

from longroute.transport.frame import PairScores
from longroute.transport.prefix_product import prefix_product


class BlockFrame:
    """A_t = ⊕_p A_t,p with A_t,p = M_t,p … M_1,p orthogonal, n × n; block p holds the dimensions p, p + dim/n, ….

    `matrices` are M, (batch|1 kv_head|1 time block n n), multiplied in their own dtype; `before` (batch|1 kv_head|1
    block n n) is the frame that the first token finds. Products are rounded to `dtype`, results to x's.
    """

    pairs: PairScores | None = None

    def __init__(self, matrices: Tensor, dtype: torch.dtype, before: Tensor | None = None):
        size = matrices.shape[-1]
        identity = torch.eye(size, dtype=matrices.dtype, device=matrices.device)
        if before is None:
            before = identity.expand(1, 1, matrices.shape[3], size, size)
        product = prefix_product(matrices, before.to(matrices.dtype))
        self.product, self.end = product.to(dtype), product[:, :, -1]

    def pull(self, x: Tensor) -> Tensor:
        return self._apply(self.product.mT, x)

    def push(self, x: Tensor) -> Tensor:
        return self._apply(self.product, x)

    def at(self, index: Tensor) -> Tensor:
        return block_matrix(self.product[:, :, index].double())

    def _apply(self, matrix: Tensor, x: Tensor) -> Tensor:
        size, heads = matrix.shape[-1], matrix.shape[1]
        wide = x.to(torch.promote_types(x.dtype, matrix.dtype)).unflatten(-1, (size, -1)).transpose(-1, -2)
        grouped = wide.unflatten(1, (heads, -1))
        moved = (matrix[:, :, None] * grouped[..., None, :]).sum(-1)
        return moved.flatten(1, 2).transpose(-1, -2).flatten(-2).to(x.dtype)


def block_matrix(blocks: Tensor) -> Tensor:
    """⊕_p of (… block n n) as one matrix (… dim dim), block p on the dimensions p, p + dim/n, …."""
    count, size = blocks.shape[-3], blocks.shape[-1]
    whole = blocks.movedim(-3, -1).diag_embed()  # (… n n block block)
    return whole.transpose(-3, -2).reshape(*blocks.shape[:-3], size * count, size * count)
