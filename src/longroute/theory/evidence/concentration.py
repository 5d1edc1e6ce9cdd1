"""Evidence for §3: each tail bound beside the exact law and a simulation, and its exponent far into the tail."""

import numpy as np
from numpy.random import Generator
from scipy.optimize import minimize_scalar
from scipy.special import i0e
from scipy.stats import binom

from longroute.theory import concentration, simulate
from longroute.theory.evidence.sources import OWN, PAPER
from longroute.theory.ranges import Array
from longroute.theory.statement import Statement

AMPLITUDE = np.linspace(0.5, 1.5, 16)


def levy_tail(rng: Generator) -> Statement:
    """Haar steps in d = 64: bound, Beta law, simulation."""
    dim, t = 64, np.arange(0.0, 0.51, 0.05)
    cosine = np.abs(simulate.unit_vectors(rng, 100_000, dim)[:, 0])
    frequency, stderr = simulate.frequency_and_stderr(cosine[:, None] >= t)
    return Statement(
        name="levy-tail",
        section="§3",
        source=PAPER,
        assumptions="the route's transport is Haar on O(d)",
        parameters={"sweep": "t", "t": t, "dim": dim},
        bound=concentration.levy_tail_bound(t, dim),
        exact=concentration.haar_tail(t, dim),
        simulated=frequency,
        stderr=stderr,
    )


def levy_exponent(rng: Generator) -> Statement:
    """-ln P far into the tail in a large dimension: Lévy's exponent can't be improved."""
    del rng  # nothing is drawn
    dim, deviation = 2**20, np.array([1.0, 3.0, 5.0, 10.0, 15.0, 20.0, 25.0, 30.0, 35.0])
    t = deviation / dim**0.5
    return Statement(
        name="levy-exponent",
        section="§3",
        source=PAPER,
        assumptions="the route's transport is Haar on O(d)",
        parameters={
            "sweep": "t √d",
            "t √d": deviation,
            "dim": dim,
            "side": "lower",
            "meets": [deviation.size - 1],
            "within": 0.02,
        },
        bound=-np.log(concentration.levy_tail_bound(t, dim)),
        exact=-np.log(concentration.haar_tail(t, dim)),
    )


def hoeffding_tail(rng: Generator) -> Statement:
    """Sixteen blocks with uniform phases under Hoeffding's bound."""
    t = np.arange(0.0, 12.1, 1.0)
    return _phase_tail("hoeffding-tail", PAPER, rng, t, concentration.hoeffding_tail_bound(t, AMPLITUDE))


def bessel_tail(rng: Generator) -> Statement:
    """The same blocks under the sharper bound."""
    t = np.arange(0.0, 12.1, 1.0)
    return _phase_tail("bessel-tail", OWN, rng, t, concentration.bessel_tail_bound(t, AMPLITUDE))


def hoeffding_exponent(rng: Generator) -> Statement:
    """Phases 0 or π: one block reaches the bound's factor 2, many its exponent. -ln P from the binomial law."""
    del rng  # nothing is drawn
    blocks = np.array([1, 2**20, 2**20, 2**20, 2**20])
    deviation = np.array([1.0, 10.0, 15.0, 20.0, 25.0])
    t = deviation * np.sqrt(blocks)
    heads = np.ceil((blocks + t) / 2)
    bounds = [concentration.hoeffding_tail_bound(at, np.ones(count)) for at, count in zip(t, blocks, strict=True)]
    return Statement(
        name="hoeffding-exponent",
        section="§3",
        source=PAPER,
        assumptions="independent phases, each 0 or π with equal odds; the first point has one block",
        parameters={
            "sweep": "t / √Σr²",
            "t / √Σr²": deviation,
            "blocks": blocks,
            "side": "lower",
            "meets": [4],
            "within": 0.02,
        },
        bound=-np.log(bounds),
        exact=-np.log(2) - binom.logsf(heads - 1, blocks, 0.5),
    )


def bessel_exponent(rng: Generator) -> Statement:
    """Cramér's exact rate of uniform phases beside the Bessel bound's exponent, as a share of the largest score."""
    del rng  # nothing is drawn
    blocks, share = 16, np.array([0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    bound = concentration.bessel_tail_bound(share * blocks, np.ones(blocks))
    return Statement(
        name="bessel-exponent",
        section="§3",
        source=OWN,
        assumptions="independent uniform phases, equal amplitudes; the rate holds for any number of blocks",
        parameters={
            "sweep": "t / Σr",
            "t / Σr": share,
            "blocks": blocks,
            "side": "lower",
            "meets": [0, 1],
            "within": 0.01,
        },
        bound=-np.log(bound / 2),
        exact=blocks * np.array([_cramer_rate(one) for one in share]),
    )


def _phase_tail(name: str, source: str, rng: Generator, t: Array, bound: Array) -> Statement:
    phase = rng.uniform(0, 2 * np.pi, (100_000, AMPLITUDE.size))
    frequency, stderr = simulate.frequency_and_stderr(np.abs(np.cos(phase) @ AMPLITUDE)[:, None] >= t)
    return Statement(
        name=name,
        section="§3",
        source=source,
        assumptions="block rotations, mixed: phases independent and uniform",
        parameters={"sweep": "t", "t": t, "amplitude": AMPLITUDE},
        bound=bound,
        exact=concentration.phase_sum_tail(t, AMPLITUDE),
        simulated=frequency,
        stderr=stderr,
    )


def _cramer_rate(share: float) -> float:
    """sup_λ [λ u - ln I₀(λ)] for one block."""

    def negative(x: float) -> float:
        return x + np.log(i0e(x)) - x * share

    return float(-minimize_scalar(negative, bounds=(0, 60), method="bounded", options={"xatol": 1e-10}).fun)  # type: ignore[attr-defined]
