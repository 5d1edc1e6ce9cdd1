"""Where every run broke, beside where it was predicted to, from a summary."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longroute.diagnose.spec import REACH
from longroute.report.estimate import finite

FACTOR = 2.0
"""A prediction within this factor of what was measured counts as right."""


@dataclass(frozen=True)
class Break:
    """A breaking length in tokens and its interval; None where it lies beyond `searched`, the longest looked at."""

    length: float | None
    low: float | None
    high: float | None
    searched: float


@dataclass(frozen=True)
class RunBreak:
    """One run's break, measured and predicted."""

    encoding: str
    seed: int
    train_length: int
    measured: Break
    predicted: Break

    @property
    def read(self) -> bool:
        """Whether the break lies within the short windows that were read, so that nothing had to be predicted."""
        return any(
            x is not None and x <= REACH * self.train_length for x in (self.measured.length, self.predicted.length)
        )

    @property
    def right(self) -> bool:
        """Both within FACTOR of each other, or neither within what was measured."""
        measured, predicted = self.measured.length, self.predicted.length
        if measured is None:
            return predicted is None or predicted >= self.measured.searched
        return predicted is not None and max(measured / predicted, predicted / measured) <= FACTOR


def read_breaks(summary: Mapping[str, Any]) -> list[RunBreak]:
    """Every run that has both, in the order of the summary."""
    found = []
    for row in summary.get("rows") or ():
        breaking = row.get("breaking") or {}
        if breaking.get("measured") and breaking.get("predicted"):
            both = (_break(breaking[name]) for name in ("measured", "predicted"))
            found.append(RunBreak(str(row["encoding"]), int(row["seed"]), int(row["train_length"]), *both))
    return found


def prediction_sentence(breaks: list[RunBreak]) -> str:
    """How many predictions were right; runs that broke, that didn't, and where nothing had to be predicted, apart."""
    read = sum(one.read for one in breaks)
    broke = [one for one in breaks if one.measured.length is not None and not one.read]
    whole = [one for one in breaks if one.measured.length is None and not one.read]
    parts = []
    if broke:
        right = sum(one.right for one in broke)
        parts.append(
            f"of {len(broke)} that broke past {REACH} × their training length, {right} were predicted within 2 ×"
        )
    if whole:
        right = sum(one.right for one in whole)
        parts.append(f"of {len(whole)} that didn't break, {right} were predicted not to")
    if read:
        parts.append(f"{read} broke within {REACH} × already, where there was nothing to predict")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _break(data: Mapping[str, Any]) -> Break:
    length, low, high, searched = (finite(data.get(key)) for key in ("length", "low", "high", "searched"))
    return Break(length, low, high, searched or 0.0)
