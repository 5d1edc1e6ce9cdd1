"""A row of the bench: what is measured, against what, and the goal."""

from collections.abc import Callable
from dataclasses import dataclass

Job = Callable[[], object]


@dataclass(frozen=True)
class Timed:
    """`job` against `reference`, each built once and run in turn: the ratio of times must be at most `goal`."""

    name: str
    against: str
    shape: str
    goal: float
    job: Callable[[], Job]
    reference: Callable[[], Job]
    pairs: int = 25
    """Pairs of runs, at most; one alone isn't warmed up for."""


@dataclass(frozen=True)
class Limited:
    """A number that `measure` returns as a share of its limit, or the row's peak memory where `limit_mib` is set."""

    name: str
    against: str
    shape: str
    measure: Callable[[], float]
    limit_mib: float | None = None
