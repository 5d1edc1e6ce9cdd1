"""Pairwise biases: far-mass controls that aren't a difference of charges, so a softmax row can't split them off."""

from typing import Protocol

from torch import Tensor


class PairwiseBias(Protocol):
    """b_ij in nats as a function of where query and key stand in their document."""

    @property
    def heads(self) -> int:
        """Query heads of the layer."""
        ...

    @property
    def shift(self) -> bool:
        """Whether b depends on row - key alone."""
        ...

    def __call__(self, head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        """b of query heads `head`, for queries at positions `row` and keys at positions `key`.

        int64 tensors that broadcast; the result is their common shape, float32 at least, -inf where a key isn't seen.
        Where key > row it means nothing, but is no NaN. It never rises with the row, and of a stretch of keys the last
        or the first has the largest: then what a block of rows can't see is known without a look at all pairs.
        """
        ...
