"""One number with its uncertainty: the mean over seeds, or one seed's own bootstrap interval."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from scipy import stats

LEVEL = 0.95
"""Confidence level of the intervals over seeds."""


@dataclass(frozen=True)
class Estimate:
    """A quantity, its interval where there is one, and what the interval ranges over."""

    value: float
    low: float | None = None
    high: float | None = None
    source: Literal["seeds", "spans", "samples", "none"] = "none"

    @property
    def interval(self) -> tuple[float, float] | None:
        """`(low, high)`, or None where no interval is known."""
        return None if self.low is None or self.high is None else (self.low, self.high)


def finite(number: object) -> float | None:
    """`number` as a finite positive float, or None: nulls, NaN, infinities and text are 'not measured'."""
    if isinstance(number, bool) or not isinstance(number, int | float):
        return None
    value = float(number)
    return value if math.isfinite(value) and value > 0 else None


def estimate_over_seeds(measured: Sequence[Estimate]) -> Estimate | None:
    """The mean over seeds with a 95 % t-interval, both on the scale of nats.

        value = exp(mean log x),   low, high = value · exp(-+ t(n-1) s / sqrt n)

    with s the standard deviation of the n logarithms: a perplexity is the exponential of a mean loss, so
    seeds average as losses do, and no interval reaches below zero. A lone seed is returned with the interval
    that it brought; no seed gives None.
    """
    if len(measured) < 2:
        return measured[0] if measured else None
    logs = [math.log(one.value) for one in measured]
    count = len(logs)
    mean = math.fsum(logs) / count
    deviation = math.sqrt(math.fsum((log - mean) ** 2 for log in logs) / (count - 1))
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * deviation / math.sqrt(count)
    return Estimate(math.exp(mean), _exponential(mean - half), _exponential(mean + half), "seeds")


def mean_over_seeds(measured: Sequence[Estimate]) -> Estimate:
    """The plain mean over seeds, of nats or shares, with a 95 % t-interval; a lone seed keeps its own interval."""
    if len(measured) == 1:
        return measured[0]
    values = [one.value for one in measured]
    count, mean = len(values), math.fsum(values) / len(values)
    deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in values) / (count - 1))
    half = float(stats.t.ppf((1 + LEVEL) / 2, count - 1)) * deviation / math.sqrt(count)
    return Estimate(mean, mean - half, mean + half, "seeds")


def _exponential(log: float) -> float:
    """exp that saturates at the largest float: two wild seeds give a wide interval, not an exception."""
    return math.exp(max(-700.0, min(700.0, log)))
