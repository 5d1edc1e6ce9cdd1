"""The word problem of a permutation group: what do all the tokens so far multiply to?"""

from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import ClassVar, Literal

import numpy as np

from longroute.errors import InputError
from longroute.task.samples import WINDOW, Hay, Samples

GROUPS = {"S3": (3, False), "S4": (4, False), "A5": (5, True), "S5": (5, False)}


@dataclass(frozen=True)
class WordProblem:
    """Tokens are elements of a group, and after each one the product of all so far is asked for: state tracking.

    Every element matters, so that no attention to a few of them answers. A5 and S5 are the smallest groups that can't
    be had by steps of commuting ones; S3 can, and is small enough to be learned in minutes.
    """

    group: Literal["S3", "S4", "A5", "S5"] = "A5"
    """The group: symmetric or alternating, of so many things."""
    generators: Literal["all", "swaps"] = "all"
    """What the tokens are: any element, or those that swap two things (each a reflection; not in A5)."""

    name: ClassVar[str] = "word-problem"
    origin: ClassVar[str] = "Merrill et al. 2024 (illusion of state), arXiv 2404.08819"
    in_text: ClassVar[bool] = False

    def __post_init__(self):
        if not len(self.steps()):
            raise InputError(f"word-problem: {self.group} has no swaps, only even permutations; take generators=all")

    def source(self, hay: Hay | None) -> "WordProblem":
        return self

    @property
    def vocabulary(self) -> int:
        return len(elements(self.group))

    @property
    def shortest(self) -> int:
        return 4

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        tokens = generator.choice(self.steps(), size=(count, length))
        table = product_table(self.group)
        targets = np.empty((count, length), dtype=np.int64)
        state = np.zeros(count, dtype=np.int64)  # the identity
        for time in range(length):
            state = table[state, tokens[:, time]]
            targets[:, time] = state
        row, place = (index.ravel() for index in np.indices((count, length)))
        slices = {"distance": place}  # to the first token: all of them are needed
        return Samples(tokens, targets, row, place[:, None], self._chances(length)[place], slices)

    def steps(self) -> np.ndarray:
        """The elements that tokens are drawn from."""
        every = elements(self.group)
        if self.generators == "all":
            return np.arange(len(every))
        return np.array([i for i, one in enumerate(every) if sum(a != b for a, b in enumerate(one)) == 2])

    def _chances(self, length: int) -> np.ndarray:
        """By token: the likeliest product of the tokens that one who sees the last few does not see, (length)."""
        table, steps = product_table(self.group), self.steps()
        law = np.zeros(len(table))
        law[0] = 1.0
        chances = np.ones(length)
        for time in range(WINDOW, length):
            if time < WINDOW + 64:  # after that it is uniform, or uniform on one half and then on the other
                law = np.mean([np.bincount(table[:, step], law, len(law)) for step in steps], axis=0)
            chances[time] = law.max()
        return chances


@cache
def elements(group: str) -> tuple[tuple[int, ...], ...]:
    """The permutations of a group, the identity first."""
    size, even = GROUPS[group]
    return tuple(one for one in permutations(range(size)) if not even or _is_even(one))


@cache
def product_table(group: str) -> np.ndarray:
    """table[a, b]: first a, then b."""
    every = elements(group)
    index = {one: i for i, one in enumerate(every)}
    return np.array([[index[tuple(b[a[i]] for i in range(len(a)))] for b in every] for a in every])


def _is_even(one: tuple[int, ...]) -> bool:
    return sum(a > b for i, a in enumerate(one) for b in one[i + 1 :]) % 2 == 0
