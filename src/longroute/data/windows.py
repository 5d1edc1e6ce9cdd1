"""Training batches: windows in an order that depends on the seed and the step alone, so any step can be redone."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from longroute.data.packing import Packing
from longroute.data.shards import TokenShard
from longroute.errors import InputError

IGNORED = -100
"""The target of a token that is not scored."""


@dataclass(frozen=True, eq=False)
class Batch:
    """`inputs` and next-token `targets` (batch time), int64; `packing` if a row holds several documents, else None."""

    inputs: Tensor
    targets: Tensor
    packing: Packing | None


class WindowSampler:
    """Windows of `length` inputs over a shard laid end to end, `batch` at a time.

    Every epoch cuts the text at a fresh offset and shuffles the windows, both drawn from (seed, epoch). Documents that
    share a window are kept apart by the batch's packing, and the last token of a document has no target.
    """

    def __init__(self, shard: TokenShard, *, length: int, batch: int, seed: int):
        self.shard, self.length, self.batch, self.seed = shard, length, batch, seed
        self.windows = (len(shard.tokens) - 1) // length - 1
        if self.windows < 1:
            raise InputError(
                f"the training text has {len(shard.tokens)} tokens; "
                f"a context of {length} needs at least {2 * length + 1}"
            )
        self._epoch = lru_cache(maxsize=2)(self._shuffle)

    def draw(self, step: int) -> Batch:
        """The batch of a step, from 0; the same for the same (shard, seed, step) whatever was drawn before."""
        firsts = [self._first(index) for index in range(step * self.batch, (step + 1) * self.batch)]
        rows = np.stack([self.shard.tokens[first : first + self.length + 1] for first in firsts]).astype(np.int64)
        tokens = torch.from_numpy(rows)
        inputs, targets = tokens[:, :-1], tokens[:, 1:].clone()
        edges = [self._boundaries(first) for first in firsts]
        for row, inner in enumerate(edges):
            targets[row, [edge - 1 for edge in inner]] = IGNORED
        inside = [[edge for edge in inner if edge < self.length] for inner in edges]
        if not any(inside):
            return Batch(inputs, targets, None)
        packing = Packing.from_boundaries([[0, *inner, self.length] for inner in inside], self.length)
        return Batch(inputs, targets, packing)

    def _first(self, index: int) -> int:
        epoch, place = divmod(index, self.windows)
        offset, order = self._epoch(epoch)
        return int(offset + order[place] * self.length)

    def _shuffle(self, epoch: int) -> tuple[int, np.ndarray]:
        generator = np.random.default_rng([self.seed, epoch])
        return int(generator.integers(self.length)), generator.permutation(self.windows)

    def _boundaries(self, first: int) -> list[int]:
        """Where documents begin in (first, first + length], counted from `first`."""
        low, high = np.searchsorted(self.shard.offsets, [first, first + self.length], side="right")
        return [int(edge - first) for edge in self.shard.offsets[low:high]]
