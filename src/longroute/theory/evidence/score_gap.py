"""Evidence for §4: the highest of F far scores, its union bound, and the weight that the gap leaves it."""

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import betaincinv, softmax

from longroute.theory import concentration, score_gap, simulate
from longroute.theory.evidence.sources import OWN, PAPER
from longroute.theory.ranges import Array
from longroute.theory.statement import Statement

DELTA = 0.1


def score_gap_under_haar(rng: Generator) -> Statement:
    """The largest |score| of F sources that one row in ten exceeds: bound, exact quantile, simulation."""
    dim, norm, rows = 64, 8.0, 500
    far = np.array([16, 64, 256, 1024, 4096, 16_384])
    # The cosine of a direction uniform on the sphere: one normal number against the length of all.
    first = rng.standard_normal((rows, int(far[-1])))
    cosine = np.abs(first) / np.sqrt(first**2 + rng.chisquare(dim - 1, first.shape))
    quantiles = [_quantile(cosine[:, :count].max(axis=1) * norm**2 / dim**0.5) for count in far]
    single = -np.expm1(np.log1p(-DELTA) / far)
    return Statement(
        name="score-gap-under-haar",
        section="§4",
        source=PAPER,
        assumptions="far routes are Haar on O(d); exact value and simulation for independent routes",
        parameters={"sweep": "far", "far": far, "dim": dim, "norms": norm, "delta": DELTA},
        bound=score_gap.haar_score_threshold(far, DELTA, norm, norm, dim),
        exact=(1 - 2 * betaincinv((dim - 1) / 2, (dim - 1) / 2, single / 2)) * norm**2 / dim**0.5,
        simulated=[value for value, _ in quantiles],
        stderr=[stderr for _, stderr in quantiles],
    )


def score_gap_along_a_route(rng: Generator) -> Statement:
    """Block rotations, all sources on one accumulated route: they depend on each other, and the bound doesn't mind."""
    blocks, rows, near = 16, 400, 32
    far = np.array([16, 64, 256, 1024])
    angles = simulate.step_angles(rng, (rows, near + int(far[-1])), [1.5] * blocks)
    scores = np.abs(np.cos(np.cumsum(angles, axis=1)[:, near:]).sum(axis=2)) / (2 * blocks) ** 0.5
    quantiles = [_quantile(scores[:, :count].max(axis=1)) for count in far]
    return Statement(
        name="score-gap-along-a-route",
        section="§4",
        source=OWN,
        assumptions="independent steps of normal angles, σ = 1.5; far routes of more than 32 steps, so mixed",
        parameters={"sweep": "far", "far": far, "blocks": blocks, "amplitude": 1.0, "delta": DELTA},
        bound=score_gap.block_score_threshold(far, DELTA, np.ones(blocks)),
        simulated=[value for value, _ in quantiles],
        stderr=[stderr for _, stderr in quantiles],
    )


def union_budget_under_haar(rng: Generator) -> Statement:
    """F times the tail bound at the threshold is δ: all of the allowed risk is spent, none is left."""
    del rng  # nothing is drawn
    dim, far = 64, 4.0 ** np.arange(2, 11)
    t = score_gap.haar_score_threshold(far, DELTA, 8.0, 8.0, dim) * dim**0.5 / 64
    return _budget("union-budget-under-haar", PAPER, far, far * concentration.levy_tail_bound(t, dim))


def union_budget_of_blocks(rng: Generator) -> Statement:
    """The same with the Bessel bound."""
    del rng  # nothing is drawn
    amplitude, far = np.linspace(0.5, 1.5, 16), 4.0 ** np.arange(2, 11)
    t = score_gap.block_score_threshold(far, DELTA, amplitude) * (2 * amplitude.size) ** 0.5
    return _budget("union-budget-of-blocks", OWN, far, far * concentration.bessel_tail_bound(t, amplitude))


def far_weight_attained(rng: Generator) -> Statement:
    """One far source's weight relative to the target's, when it scores just τ."""
    del rng  # nothing is drawn
    far, target, dim = np.array([16, 64, 256, 1024, 4096, 16_384]), 6.0, 64
    threshold = score_gap.haar_score_threshold(far, DELTA, 8.0, 8.0, dim)
    rows = [softmax(np.append(np.full(count, tau), target)) for count, tau in zip(far, threshold, strict=True)]
    return Statement(
        name="far-weight-attained",
        section="§4",
        source=PAPER,
        assumptions="no far source scores more than τ; here each scores τ",
        parameters={"sweep": "far", "far": far, "target": target, "delta": DELTA, "meets": list(range(far.size))},
        bound=score_gap.far_weight_bound(target, threshold),
        exact=np.array([row[0] / row[-1] for row in rows]),
    )


def _budget(name: str, source: str, far: ArrayLike, spent: Array) -> Statement:
    return Statement(
        name=name,
        section="§4",
        source=source,
        assumptions="mixed routes, dependent or not",
        parameters={"sweep": "far", "far": far, "delta": DELTA, "meets": list(range(np.size(far)))},
        bound=DELTA,
        exact=spent,
    )


def _quantile(samples: Array) -> tuple[float, float]:
    """The (1 - DELTA)-quantile and its standard error, from the order statistics three deviations away."""
    ordered, count = np.sort(samples), len(samples)
    place, width = count * (1 - DELTA), 3 * (count * DELTA * (1 - DELTA)) ** 0.5
    low, middle, high = (ordered[min(count - 1, round(at))] for at in (place - width, place, place + width))
    return float(middle), float((high - low) / 6)
