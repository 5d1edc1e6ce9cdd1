"""Needles in real text: words with numbers, hidden in a book, and the numbers of some of the words asked for."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from longroute.data.tokenizer import vocabulary_size
from longroute.errors import InputError
from longroute.task.samples import Hay, Samples, choose_each, first_asked, given, unfilled

WORDS = (
    *(
        "father",
        "mother",
        "sister",
        "brother",
        "letter",
        "house",
        "table",
        "window",
        "water",
        "night",
        "money",
        "heart",
    ),
    *(
        "river",
        "garden",
        "horse",
        "church",
        "music",
        "summer",
        "winter",
        "village",
        "doctor",
        "captain",
        "king",
        "queen",
    ),
    *("world", "door", "street", "hand", "voice", "book", "paper", "light", "fire", "wind", "tree", "stone"),
    *("school", "friend", "child", "woman", "face", "place", "power", "story", "answer", "party", "market", "number"),
)
MOST = 16
"""Words that a tokenizer's needles have: those it spells with the fewest tokens."""


@dataclass(frozen=True)
class Needle:
    """`keys` needles, each of another word: who finds numbers, but not whose they are, knows the set of them alone."""

    keys: int = 4
    """Needles in a sample, distractors for each other; at most 16. Fewer where it is too short for them: train at a
    length that holds all."""
    queries: int = 4
    """Words whose numbers are asked for at the end. A word may be asked for twice: only the first time is measured."""
    digits: int = 1
    """Digits of a number; whoever knows the set of numbers has all but the first from it."""

    name: ClassVar[str] = "needle"
    origin: ClassVar[str] = "multi-key needles: Hsieh et al. 2024 (RULER), arXiv 2404.06654"
    in_text: ClassVar[bool] = True

    def __post_init__(self):
        if not 1 <= self.keys <= MOST or min(self.queries, self.digits) < 1:
            raise InputError(f"needle: 1 to {MOST} keys, at least one query and one digit: {self}")

    def source(self, hay: Hay | None) -> "NeedleSource":
        return NeedleSource(self.keys, self.queries, self.digits, given(hay))


@dataclass(frozen=True)
class Passkey:
    """One needle, no distractors: whoever finds a number in the text has the answer."""

    digits: int = 4
    """Digits of the number."""

    name: ClassVar[str] = "passkey"
    origin: ClassVar[str] = "Mohtashami & Jaggi 2023 (landmark attention), arXiv 2305.16300"
    in_text: ClassVar[bool] = True

    def __post_init__(self):
        if self.digits < 1:
            raise InputError(f"passkey: at least one digit, not {self.digits}")

    def source(self, hay: Hay | None) -> "NeedleSource":
        return NeedleSource(1, 1, self.digits, given(hay))


@dataclass(frozen=True)
class NeedleSource:
    """Needles in the text and the tokens of `hay`."""

    keys: int
    queries: int
    digits: int
    hay: Hay

    @property
    def vocabulary(self) -> int:
        return vocabulary_size(self.hay.tokenizer)

    @property
    def shortest(self) -> int:
        return (min(self.keys, 2) + self.queries) * self._needle

    @cached_property
    def _needle(self) -> int:
        """Tokens of the longest needle."""
        return max(len(word) for word in self._words) + self.digits

    @cached_property
    def _words(self) -> list[np.ndarray]:
        """The tokens of every word; its number follows. More words around them take deeper models (LOG.md)."""
        return sorted((self._encode(f" {word}") for word in WORDS), key=len)[:MOST]

    @cached_property
    def _digit(self) -> np.ndarray:
        encoded = [self._encode(str(digit)) for digit in range(10)]
        if any(len(one) != 1 for one in encoded):
            raise InputError("the tokenizer does not spell each digit as one token, which needles need")
        return np.concatenate(encoded)

    def _encode(self, text: str) -> np.ndarray:
        return np.array(self.hay.tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        keys = min(self.keys, (length + 1) // self._needle - self.queries)
        word, number = (
            choose_each(generator, count, MOST, keys),
            generator.integers(10, size=(count, keys, self.digits)),
        )
        asked = generator.integers(keys, size=(count, self.queries))
        tokens, ends = (np.empty((count, size), dtype=np.int64) for size in (length + 1, keys + self.queries))
        for sample in range(count):
            needles = [self._needle_of(w, n) for w, n in zip(word[sample], number[sample], strict=True)]
            tokens[sample], ends[sample] = self._hidden(needles, asked[sample], length + 1, generator)
        sample, begins = np.arange(count)[:, None], ends[:, keys:] - self.digits
        places = begins[..., None] - 1 + np.arange(self.digits)
        targets = unfilled(count, length)
        targets[sample[..., None], places] = self._digit[number[sample, asked]]
        first, chance = first_asked(number @ 10 ** np.arange(self.digits), asked)
        if keys == 1:  # there is nothing to bind: chance is a blind guess
            chance[:] = 10.0**-self.digits
        row, query = np.nonzero(first)
        distance = begins[row, query] - ends[row, asked[row, query]]
        slices = {"distance": distance, "keys": np.full(len(row), keys)}
        return Samples(tokens[:, :-1], targets, row, places[row, query], chance[row, query], slices)

    def _needle_of(self, word: int, number: np.ndarray) -> np.ndarray:
        return np.concatenate([self._words[word], self._digit[number]])

    def _hidden(
        self, needles: list[np.ndarray], asked: np.ndarray, size: int, generator: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """`size` tokens of text with needles in it and those `asked` once more at its end; where all of them end."""
        said = [*needles, *(needles[key] for key in asked)]
        hay = self._stretch(size - sum(map(len, said)), generator)
        cuts = np.sort(generator.integers(len(hay) + 1, size=len(needles)))
        pieces = [*np.split(hay, cuts), *[hay[:0]] * (len(asked) - 1)]
        parts = [part for pair in zip(pieces, said, strict=True) for part in pair]
        return np.concatenate(parts), np.cumsum([len(part) for part in parts])[1::2]

    def _stretch(self, size: int, generator: np.random.Generator) -> np.ndarray:
        """`size` tokens from one document that has as many, each place as likely."""
        shard = self.hay.shard
        room = np.diff(shard.offsets) - 1 - size  # without the end-of-text token
        room = np.maximum(room + 1, 0)
        if not room.sum():
            raise InputError(f"no text is long enough to hide needles in: {size} tokens of one document are needed")
        book = generator.choice(len(room), p=room / room.sum())
        first = shard.offsets[book] + generator.integers(room[book])
        return shard.tokens[first : first + size].astype(np.int64)
