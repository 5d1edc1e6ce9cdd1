"""Which document each token belongs to, when several documents share a row."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import torch
from torch import Tensor

from longroute.errors import InputError


@dataclass(frozen=True, eq=False)
class Packing:
    """Documents laid end to end in each row of a batch.

    `starts` (batch time) is the index, within its row, of the first token of each token's document. `order` lists all
    tokens (indices into the flattened batch) document by document, documents of one length together, and `groups` says
    how many documents of what length follow each other there: (count, length). Attention runs once per group.
    """

    starts: Tensor
    order: Tensor
    groups: tuple[tuple[int, int], ...]

    @staticmethod
    def from_boundaries(boundaries: Sequence[Sequence[int]], time: int) -> "Packing":
        """Packing of rows of `time` tokens from each row's boundaries, [0, …, time], never decreasing.

        Two equal boundaries are an empty document, which contributes nothing. Raises InputError for anything else.
        """
        if not boundaries or time < 1:
            raise InputError(f"a packing needs at least one row of at least one token, not {len(boundaries)} of {time}")
        for row, edges in enumerate(boundaries):
            _check_boundaries(row, list(edges), time)
        documents = defaultdict(list)
        starts = torch.empty((len(boundaries), time), dtype=torch.int64)
        for row, edges in enumerate(boundaries):
            for first, last in pairwise(edges):
                if first < last:
                    starts[row, first:last] = first
                    documents[last - first].append(row * time + first)
        order = [torch.tensor(firsts)[:, None] + torch.arange(length) for length, firsts in sorted(documents.items())]
        groups = tuple((len(firsts), length) for length, firsts in sorted(documents.items()))
        return Packing(starts, torch.cat([part.flatten() for part in order]), groups)

    @staticmethod
    def left_padded(lengths: Sequence[int], time: int) -> "Packing":
        """Packing of rows whose last `lengths[row]` tokens are real and the ones before are padding.

        The padding is a document of its own: nothing real sees it, and the real tokens' frame begins where they do.
        """
        return Packing.from_boundaries([[0, time - length, time] for length in lengths], time)

    def to(self, device: torch.device) -> "Packing":
        return Packing(self.starts.to(device), self.order.to(device), self.groups)

    @property
    def positions(self) -> Tensor:
        """Positions within the document, (batch time), from 0."""
        return torch.arange(self.starts.shape[1], device=self.starts.device) - self.starts


def _check_boundaries(row: int, edges: list[int], time: int) -> None:
    rising = all(a <= b for a, b in pairwise(edges))
    if len(edges) < 2 or edges[0] != 0 or edges[-1] != time or not rising:
        raise InputError(
            f"boundaries of row {row} must rise from 0 to {time}, the number of tokens, not {edges[:8]}"
            f"{' …' if len(edges) > 8 else ''}"
        )
