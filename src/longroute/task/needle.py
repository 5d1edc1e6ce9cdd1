"""Needles in real text: sentences that give numbers to words, hidden in a book, and one word's number asked for."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from longroute.data.tokenizer import vocabulary_size
from longroute.errors import InputError
from longroute.task.samples import Hay, Samples, choose_each, given, unfilled, without_binding

WORDS = (
    *("river", "garden", "captain", "window", "letter", "sister", "horse", "table"),
    *("doctor", "summer", "church", "money", "father", "music", "winter", "village"),
)


@dataclass(frozen=True)
class Needle:
    """`keys` needles, each of another word: a model that finds numbers, but not whose they are, is right 1 / `keys`."""

    keys: int = 4
    """Needles in a sample, all but one of them distractors; at most 16. Fewer where it is too short for them:
    train at a length that holds all."""
    digits: int = 2
    """Digits of a number."""

    name: ClassVar[str] = "needle"
    origin: ClassVar[str] = "multi-key needles: Hsieh et al. 2024 (RULER), arXiv 2404.06654"
    in_text: ClassVar[bool] = True

    def __post_init__(self):
        if not 1 <= self.keys <= len(WORDS) or self.digits < 1:
            raise InputError(f"needle: 1 to {len(WORDS)} keys and at least one digit: {self}")

    def source(self, hay: Hay | None) -> "NeedleSource":
        return NeedleSource(self.keys, self.digits, given(hay))


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
        return NeedleSource(1, self.digits, given(hay))


@dataclass(frozen=True)
class NeedleSource:
    """Needles in the text and the tokens of `hay`."""

    keys: int
    digits: int
    hay: Hay

    @property
    def vocabulary(self) -> int:
        return vocabulary_size(self.hay.tokenizer)

    @property
    def shortest(self) -> int:
        return (min(self.keys, 2) + 1) * self._needle

    @cached_property
    def _needle(self) -> int:
        """Tokens of the longest needle."""
        return max(len(before) for before in self._before) + self.digits + len(self._after)

    @cached_property
    def _before(self) -> list[np.ndarray]:
        """A needle's tokens up to its number, by word; the question is the same."""
        return [self._encode(f"\nThe number of the {word} is") for word in WORDS]

    @cached_property
    def _after(self) -> np.ndarray:
        return self._encode(".\n")

    @cached_property
    def _digit(self) -> np.ndarray:
        encoded = [self._encode(str(digit)) for digit in range(10)]
        if any(len(one) != 1 for one in encoded):
            raise InputError("the tokenizer does not spell each digit as one token, which needles need")
        return np.concatenate(encoded)

    def _encode(self, text: str) -> np.ndarray:
        return np.array(self.hay.tokenizer.encode(text, add_special_tokens=False).ids, dtype=np.int64)

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        keys = min(self.keys, (length + 1) // self._needle - 1)
        word = choose_each(generator, count, len(WORDS), keys)
        number = generator.integers(10, size=(count, keys, self.digits))
        asked = generator.integers(keys, size=count)
        tokens, distances = np.empty((count, length + 1), dtype=np.int64), np.empty(count, dtype=np.int64)
        for sample in range(count):
            question = np.concatenate(
                [self._before[word[sample, asked[sample]]], self._digit[number[sample, asked[sample]]]]
            )
            needles = [
                np.concatenate([self._before[w], self._digit[n], self._after])
                for w, n in zip(word[sample], number[sample], strict=True)
            ]
            hay = self._stretch(length + 1 - len(question) - sum(map(len, needles)), generator)
            cuts = np.sort(generator.integers(len(hay) + 1, size=keys))
            parts, stands = [], 0
            for index, (piece, needle) in enumerate(zip(np.split(hay, cuts), [*needles, question], strict=True)):
                parts += [piece, needle]
                if index == asked[sample]:
                    stands = sum(map(len, parts)) - len(self._after)
            tokens[sample] = np.concatenate(parts)
            distances[sample] = length + 1 - self.digits - stands
        targets = unfilled(count, length)
        targets[:, -self.digits :] = tokens[:, -self.digits :]
        places = np.broadcast_to(np.arange(length - self.digits, length), (count, self.digits))
        slices = {"distance": distances, "keys": np.full(count, keys)}
        return Samples(tokens[:, :-1], targets, np.arange(count), places, self._chance(number), slices)

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

    def _chance(self, number: np.ndarray) -> np.ndarray:
        count, keys, _ = number.shape
        if keys == 1:
            return np.full(count, 10.0**-self.digits)
        return without_binding(number @ 10 ** np.arange(self.digits), np.ones((count, keys), dtype=bool))
