"""Where a model breaks: the length at which its tail perplexity passes 1.1 times that at the training length."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

BREAKS = 1.10
"""A model breaks where its tail ratio passes this."""
LEVEL = 0.95
RESAMPLES = 1000
FEWEST = 4
"""Fewer units of text than this give no interval."""


@dataclass(frozen=True)
class Breaking:
    """A breaking length in tokens, None where the ratio stays below 1.1 as far as was looked, and its interval.

    `low` and `high` hold 95 % of bootstrap resamples; None there means beyond `searched`, the longest length
    looked at, or that there were fewer than FEWEST units of text to draw from.
    """

    length: float | None
    low: float | None
    high: float | None
    searched: int


def breaking_length(units: Mapping[int, Sequence[float]], train_length: int) -> Breaking:
    """The breaking length from mean losses (nats) of the same units of text at each length, ≥ `train_length`.

    The log-ratio is interpolated linearly in the logarithm of the length; it breaks at its first crossing. Units are
    drawn again with replacement, the same for every length.
    """
    lengths = sorted(length for length in units if length >= train_length)
    losses = np.array([units[length] for length in lengths], dtype=np.float64)
    curves = losses - losses[lengths.index(train_length)]
    (length,) = _crossings(np.array(lengths), curves.mean(1, keepdims=True))
    if curves.shape[1] < FEWEST:
        return Breaking(_finite(length), None, None, lengths[-1])
    drawn = np.random.default_rng(0).integers(curves.shape[1], size=(RESAMPLES, curves.shape[1]))
    resampled = _crossings(np.array(lengths), curves[:, drawn].mean(2))
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    low, high = np.quantile(resampled, tails, method="inverted_cdf")
    return Breaking(_finite(length), _finite(low), _finite(high), lengths[-1])


def _crossings(lengths: np.ndarray, curves: np.ndarray) -> np.ndarray:
    """First length at which each curve (length draw) passes ln BREAKS; inf where it doesn't."""
    threshold = math.log(BREAKS)
    above = curves > threshold
    first = np.where(above.any(0), above.argmax(0), 1)
    draw = np.arange(curves.shape[1])
    if len(lengths) < 2:
        return np.full(curves.shape[1], np.inf)
    before, after = curves[first - 1, draw], curves[first, draw]
    part = (threshold - before) / np.where(after > before, after - before, 1.0)
    logs = np.log2(lengths)
    at = 2 ** (logs[first - 1] + np.clip(part, 0, 1) * (logs[first] - logs[first - 1]))
    return np.where(above.any(0), at, np.inf)


def _finite(x: float) -> float | None:
    return float(x) if math.isfinite(x) else None
