"""Flip-flop language: one bit of memory, written, read, and to be kept through everything between."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longroute.errors import InputError
from longroute.task.samples import Hay, Samples, unfilled

WRITE, READ, IGNORE, ZERO = range(4)


@dataclass(frozen=True)
class FlipFlop:
    """Pairs of an instruction and a bit: `write b`, `ignore b`, and `read b`, whose b is that of the last write.

    Held-out samples come in three parts: as trained, and two tails that are counted apart: sparse (writes far apart)
    and dense (hardly anything ignored: what is asked for was said just now).
    """

    ignore: float = 0.8
    """Probability of an ignore; writes and reads share the rest."""
    sparse: float = 0.98
    """The same in the sparse part of held-out samples."""
    dense: float = 0.1
    """The same in the dense part."""

    name: ClassVar[str] = "flip-flop"
    origin: ClassVar[str] = "Liu et al. 2023 (attention glitches), arXiv 2306.00946"
    in_text: ClassVar[bool] = False

    def __post_init__(self):
        if not all(0 <= share < 1 for share in (self.ignore, self.sparse, self.dense)):
            raise InputError(f"flip-flop: probabilities of an ignore must be in [0, 1): {self}")

    def source(self, hay: Hay | None) -> "FlipFlop":
        return self

    @property
    def vocabulary(self) -> int:
        return 5

    @property
    def shortest(self) -> int:
        return 16

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        pairs = (length + 2) // 2  # one token more than the inputs: the last target
        shares = np.array([self.ignore, self.sparse, self.dense]) if heldout else np.array([self.ignore])
        share = shares[np.arange(count) % len(shares)]
        ignored = generator.random((count, pairs)) < share[:, None]
        instruction = np.where(ignored, IGNORE, np.where(generator.random((count, pairs)) < 0.5, WRITE, READ))
        last = (length - 1) // 2  # the last pair whose bit is a target
        instruction[:, 0], instruction[:, last] = WRITE, READ
        written = np.where(instruction == WRITE, np.arange(pairs), 0)
        memory = np.maximum.accumulate(written, axis=1)
        bit = generator.integers(2, size=(count, pairs))
        bit = np.where(instruction == READ, np.take_along_axis(bit, memory, 1), bit)
        tokens = np.stack([instruction, ZERO + bit], axis=2).reshape(count, -1)[:, : length + 1]
        targets = unfilled(count, length)
        row, pair = np.nonzero((instruction == READ)[:, : last + 1])
        targets[row, 2 * pair] = tokens[row, 2 * pair + 1]
        # A read shows the bit too: what gives an answer away is the last write or read before it.
        shown = np.maximum.accumulate(np.where(instruction != IGNORE, np.arange(pairs), 0), axis=1)
        slices = {
            "distance": 2 * (pair - shown[row, pair - 1]) - 1,
            "ignore": np.rint(100 * share[row]).astype(np.int64),
            "shifted": (share[row] != self.ignore).astype(np.int64),
        }
        return Samples(tokens[:, :length], targets, row, 2 * pair[:, None], np.full(len(row), 0.5), slices)
