"""Phone-book lookup: names with numbers, as many as the context holds, then names whose numbers are asked for."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longroute.errors import InputError
from longroute.task.samples import Hay, Samples, choose_each, unfilled


@dataclass(frozen=True)
class PhoneBook:
    """Entries of a name, a number and a line's end fill the context; the longer it is, the more there are to confuse.

    Names and numbers of a sample differ from each other. At the end `queries` different names each with its number;
    the number counts as right when all its digits are.
    """

    letters: int = 26
    """Types of a name's letters."""
    name_length: int = 3
    """Letters of a name."""
    digits: int = 4
    """Digits of a number."""
    queries: int = 2
    """Names asked for."""

    name: ClassVar[str] = "phone-book"
    origin: ClassVar[str] = "Jelassi et al. 2024 (Repeat after me), arXiv 2402.01032"
    in_text: ClassVar[bool] = False

    def __post_init__(self):
        if min(self.name_length, self.digits, self.queries) < 1 or self.letters < 2:
            raise InputError(f"phone-book: sizes must be at least 1, letters at least 2: {self}")
        if max(self.letters**self.name_length, 10**self.digits) >= 2**63:
            raise InputError(f"phone-book: there may be at most 2^63 different names, and numbers: {self}")

    def source(self, hay: Hay | None) -> "PhoneBook":
        return self

    @property
    def vocabulary(self) -> int:
        return self.letters + 10 + 1

    @property
    def entry(self) -> int:
        """Tokens of an entry, its line's end included."""
        return self.name_length + self.digits + 1

    @property
    def shortest(self) -> int:
        return (2 * self.queries + 1) * self.entry - 1

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        asks = self.queries * self.entry
        entries = (length + 1 - asks) // self.entry
        kinds = (self.letters**self.name_length, 10**self.digits)
        if entries > min(kinds):
            raise InputError(
                f"phone-book: {length} tokens hold {entries} entries, but there are {kinds[0]} names and {kinds[1]} "
                "numbers; give longer names and numbers"
            )
        name = _spelled(choose_each(generator, count, kinds[0], entries), self.letters, self.name_length)
        number = _spelled(choose_each(generator, count, kinds[1], entries), 10, self.digits) + self.letters
        end = np.full((count, entries, 1), self.vocabulary - 1)
        book = np.concatenate([name, number, end], axis=2)
        asked = choose_each(generator, count, entries, self.queries)
        sample = np.arange(count)[:, None]
        before = (
            length + 1 - asks - entries * self.entry
        )  # line ends, so that entries need not begin at the first token
        padding = np.full((count, before), self.vocabulary - 1)
        parts = (padding, book.reshape(count, -1), book[sample, asked].reshape(count, -1))
        tokens = np.concatenate(parts, axis=1)
        first = before + entries * self.entry + np.arange(self.queries) * self.entry + self.name_length - 1
        places = first[:, None] + np.arange(self.digits)
        targets = unfilled(count, length)
        targets[:, places] = tokens[:, places + 1]
        row, query = (index.ravel() for index in np.indices((count, self.queries)))
        stands = before + asked * self.entry + self.name_length - 1
        slices = {"distance": (first - stands - self.digits).ravel(), "entries": np.full(len(row), entries)}
        return Samples(tokens[:, :-1], targets, row, places[query], 1.0 / (entries - query), slices)


def _spelled(number: np.ndarray, base: int, digits: int) -> np.ndarray:
    """Digits of numbers, the first the most significant, (… digits)."""
    return number[..., None] // base ** np.arange(digits)[::-1] % base
