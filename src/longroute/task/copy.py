"""Copying: marked spans of random tokens, one of which is to be said again."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from longroute.errors import InputError
from longroute.task.samples import Hay, Samples, choose_each, unfilled, without_binding


@dataclass(frozen=True)
class Copy:
    """A marker and `span` random tokens, as often as there are `marks`, filler of the same tokens between; at the end
    one of the markers again, and its span is to follow.

    The first token is found by the marker, each further one also by the one before it (induction). One mark: plain
    copying, where what is asked is known but not where it stands.
    """

    span: int = 4
    """Tokens to copy."""
    marks: int = 2
    """Spans in a sample, each with a marker of its own; fewer where it is too short for them."""
    alphabet: int = 16
    """Types of the tokens."""

    name: ClassVar[str] = "copy"
    origin: ClassVar[str] = "induction heads, Olsson et al. 2022, arXiv 2209.11895"
    in_text: ClassVar[bool] = False

    def __post_init__(self):
        if min(self.span, self.marks) < 1 or self.alphabet < 2:
            raise InputError(f"copy: at least a span of 1, one mark and an alphabet of 2: {self}")

    def source(self, hay: Hay | None) -> "Copy":
        return self

    @property
    def vocabulary(self) -> int:
        return self.alphabet + self.marks

    @property
    def shortest(self) -> int:
        return 2 * (self.span + 1) - 1

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        size = self.span + 1
        body = length + 1 - size
        marks = min(self.marks, body // size)
        sample = np.arange(count)[:, None]
        tokens = generator.integers(self.alphabet, size=(count, length + 1))
        # Spans one after the other, with gaps whose sizes sum to what is left: every arrangement is as likely.
        gap = np.sort(choose_each(generator, count, body - marks * (size - 1), marks))
        place = gap + np.arange(marks) * (size - 1)
        marker = self.alphabet + choose_each(generator, count, self.marks, marks)
        tokens[sample, place] = marker
        asked = generator.integers(marks, size=count)
        first = place[sample[:, 0], asked]
        again = np.arange(size)
        tokens[:, body:] = tokens[sample, first[:, None] + again]
        targets = unfilled(count, length)
        targets[:, body:] = tokens[:, body + 1 :]
        places = np.broadcast_to(body + np.arange(self.span), (count, self.span))
        distance = body - (first + self.span)
        slices = {"distance": distance, "marks": np.full(count, marks)}
        return Samples(tokens[:, :-1], targets, sample[:, 0], places, self._chance(tokens, place), slices)

    def _chance(self, tokens: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Without binding the guess is the commonest span; with one mark, the tokens are guessed as such."""
        count, marks = place.shape
        if marks == 1:
            return np.full(count, float(self.alphabet) ** -self.span)
        inside = place[:, :, None] + 1 + np.arange(self.span)
        spans = tokens[np.arange(count)[:, None, None], inside] @ (self.alphabet ** np.arange(self.span))
        return without_binding(spans, np.ones((count, marks), dtype=bool))
