"""Multi-query associative recall: key-value pairs among filler, then keys whose values are asked for."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longroute.errors import InputError
from longroute.task.samples import Hay, Samples, choose_each, first_asked, unfilled


@dataclass(frozen=True)
class MQAR:
    """`k v` pairs scattered over the context, filler between; then `k v` again for keys drawn from them.

    Keys of a sample differ, values needn't. The same key may be asked for twice: only the first time is measured.
    """

    pairs: int = 4
    """Pairs in a sample; fewer where it is too short for them."""
    queries: int = 4
    """Keys asked for at the end."""
    keys: int = 16
    """Types of keys."""
    values: int = 16
    """Types of values."""
    filler: int = 16
    """Types of filler."""

    name: ClassVar[str] = "mqar"
    origin: ClassVar[str] = "Arora et al. 2023 (Zoology), arXiv 2312.04927"
    in_text: ClassVar[bool] = False

    def __post_init__(self):
        if min(self.pairs, self.values) < 2 or min(self.queries, self.filler) < 1 or self.keys < self.pairs:
            raise InputError(
                f"mqar: at least two pairs and values, one query and filler, as many keys as pairs: {self}"
            )

    def source(self, hay: Hay | None) -> "MQAR":
        return self

    @property
    def vocabulary(self) -> int:
        return self.keys + self.values + self.filler

    @property
    def shortest(self) -> int:
        return 2 * self.queries + 4

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        body = length + 1 - 2 * self.queries
        pairs = min(self.pairs, body // 2)
        sample = np.arange(count)[:, None]
        tokens = generator.integers(self.keys + self.values, self.vocabulary, size=(count, length + 1))
        key = choose_each(generator, count, self.keys, pairs)
        value = self.keys + generator.integers(self.values, size=(count, pairs))
        place = body % 2 + 2 * np.sort(choose_each(generator, count, body // 2, pairs))
        tokens[sample, place], tokens[sample, place + 1] = key, value
        asked = generator.integers(pairs, size=(count, self.queries))
        ask = np.broadcast_to(body + 2 * np.arange(self.queries), asked.shape)
        tokens[sample, ask], tokens[sample, ask + 1] = key[sample, asked], value[sample, asked]
        targets = unfilled(count, length)
        targets[sample, ask] = value[sample, asked]
        first, chance = first_asked(value, asked)
        query, row = np.nonzero(first.T)
        distance = ask[row, query] - place[row, asked[row, query]] - 1
        slices = {"distance": distance, "pairs": np.full(len(row), pairs)}
        return Samples(tokens[:, :-1], targets, row, ask[row, query][:, None], chance[row, query], slices)
