"""What a task draws, and what it offers: token rows with answers at known places, under a seed."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from tokenizers import Tokenizer

from longroute.data.shards import TokenShard
from longroute.data.windows import IGNORED
from longroute.errors import InputError

WINDOW = 8
"""Tokens that a guesser from the near end sees, its own included: answers that lie within it prove no memory."""

_SORTED = 10_000
"""Totals up to which choosing by sorting random numbers is quick, all rows at once."""


@dataclass(frozen=True, eq=False)
class Samples:
    """Rows of tokens, what is learned in them, and what is asked of a model.

    An answer is right when every one of its targets is the likeliest token at its place, the ones before it given.
    """

    inputs: np.ndarray
    """Token ids, (sample time), int64."""
    targets: np.ndarray
    """What each token is followed by, (sample time), int64; IGNORED where nothing is to be learned."""
    row: np.ndarray
    """The sample of each answer, (answer)."""
    places: np.ndarray
    """Where its targets stand, (answer width): it is read from the tokens up to and including each."""
    chance: np.ndarray
    """How often it would be right without binding, by a guesser that knows all else in the sample, (answer)."""
    slices: Mapping[str, np.ndarray]
    """What answers are told apart by, int64 (answer) each. `distance` is there always: tokens from the nearest token
    that gives the answer away to the first place where it is asked for. `shifted`, if there: 1 where the sample is not
    of the kind that is trained on."""

    def __len__(self) -> int:
        return len(self.inputs)

    def take(self, rows: np.ndarray) -> "Samples":
        """The samples `rows`, in that order, with their answers."""
        new = np.full(len(self), -1)
        new[rows] = np.arange(len(rows))
        kept = np.flatnonzero(new[self.row] >= 0)
        kept = kept[np.argsort(new[self.row[kept]], kind="stable")]
        slices = {name: values[kept] for name, values in self.slices.items()}
        moved = new[self.row[kept]]
        return Samples(self.inputs[rows], self.targets[rows], moved, self.places[kept], self.chance[kept], slices)

    @property
    def expected(self) -> np.ndarray:
        """The right tokens, (answer width)."""
        return self.targets[self.row[:, None], self.places]


class Source(Protocol):
    """What samples come from."""

    @property
    def vocabulary(self) -> int:
        """Token types; ids are below it."""
        ...

    @property
    def shortest(self) -> int:
        """Fewest tokens of a sample."""
        ...

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        """`count` samples of `length` ≥ `shortest` tokens; `heldout` ones may be of other difficulties as well."""
        ...


@dataclass(frozen=True)
class Hay:
    """Text to hide things in, and its tokenizer."""

    shard: TokenShard
    tokenizer: Tokenizer


def given(hay: Hay | None) -> Hay:
    """The hay of a task that needs some. Raises InputError without."""
    if hay is None:
        raise InputError("this task hides needles in text; give it text")
    return hay


def unfilled(count: int, length: int) -> np.ndarray:
    """Targets with nothing to learn, (count length)."""
    return np.full((count, length), IGNORED, dtype=np.int64)


def choose_each(generator: np.random.Generator, count: int, total: int, chosen: int) -> np.ndarray:
    """`chosen` different numbers below `total` for each of `count` rows, in random order, (count chosen)."""
    if total <= _SORTED:
        return np.argsort(generator.random((count, total)), axis=1)[:, :chosen]
    return np.stack([generator.choice(total, chosen, replace=False) for _ in range(count)])


def without_binding(options: np.ndarray, open_: np.ndarray) -> np.ndarray:
    """Chance of one who knows which `options` (sample option) are `open_` still, but not which belongs here, (sample).

    The best guess is the option that most of the open places hold: elimination and frequency together.
    """
    same = (options[:, :, None] == options[:, None, :]) & open_[:, :, None] & open_[:, None, :]
    return same.sum(2).max(1) / open_.sum(1)


def first_asked(options: np.ndarray, asked: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Which questions are asked for the first time, and the chance of each by `without_binding`, (sample query) both.

    `asked` (sample query) are places in `options` (sample option), asked for one after another. Chances mean nothing
    where a question is not asked for the first time.
    """
    sample, open_ = np.arange(len(asked)), np.ones(options.shape, dtype=bool)
    first, chances = [], []
    for option in asked.T:
        first.append(open_[sample, option])
        with np.errstate(divide="ignore", invalid="ignore"):  # where all have been asked for
            chances.append(without_binding(options, open_))
        open_[sample, option] = False
    return np.stack(first, 1), np.stack(chances, 1)
