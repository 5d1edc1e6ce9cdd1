"""Evidence for §5, the typical law: where it predicts the far mass, and by how much it misses outside its range."""

import numpy as np
from numpy.random import Generator
from scipy.optimize import root_scalar

from longroute.theory import simulate, typical
from longroute.theory.evidence.sources import OWN
from longroute.theory.ranges import Array, Integers
from longroute.theory.statement import Statement

GAUSSIAN = "far scores independent and Gaussian, the near partition fixed"


def typical_law(rng: Generator) -> Statement:
    """The mean far mass beside 1 / (1 + Z e^{-f}/F) with f = σ²/2: Jensen's bound, met as F grows."""
    spread, partition, far = 1.5, 600.0, 4 ** np.arange(1, 7)
    sums = _far_sums(rng, 2500, far, spread)
    mean, stderr = simulate.mean_and_stderr(sums / (sums + partition))
    energy = typical.gaussian_free_energy(0.0, spread)
    return Statement(
        name="typical-law",
        section="§5",
        source=OWN,
        assumptions=GAUSSIAN,
        parameters={
            "sweep": "far",
            "far": far,
            "near partition": partition,
            "spread": spread,
            "meets": [4, 5],
            "within": 0.02,
        },
        bound=typical.typical_far_mass(far, partition, energy),
        exact=typical.expected_far_mass(far, partition, spread),
        simulated=mean,
        stderr=stderr,
    )


def typical_half_mass(rng: Generator) -> Statement:
    """The far tokens at which the mean far mass is a half, beside Z e^{-f}: early for narrow scores, late for wide."""
    del rng  # nothing is drawn
    spreads, partition = np.array([0.25, 1.0, 1.5, 2.0, 2.5, 3.0]), 4000.0
    energy = typical.gaussian_free_energy(0.0, spreads)
    return Statement(
        name="typical-half-mass",
        section="§5",
        source=OWN,
        assumptions=GAUSSIAN,
        parameters={
            "sweep": "spread",
            "spread": spreads,
            "near partition": partition,
            "side": "lower",
            "meets": [0, 1, 2],
            "within": 0.01,
        },
        bound=typical.typical_half_mass_length(partition, energy),
        exact=np.array([_half_mass(partition, float(spread)) for spread in spreads]),
    )


def free_energy_of_few(rng: Generator) -> Statement:
    """E ln mean e^s of F scores climbs to σ²/2 and is there once ln F is well above σ²/2."""
    spread, far = 3.0, 4 ** np.arange(0, 8)
    logs = np.log(_far_sums(rng, 1000, far, spread) / far)
    mean, stderr = simulate.mean_and_stderr(logs)
    return Statement(
        name="free-energy-of-few",
        section="§5",
        source=OWN,
        assumptions=GAUSSIAN,
        parameters={
            "sweep": "far",
            "far": far,
            "spread": spread,
            "edge of the range": float(typical.typical_range(spread)),
            "meets": [far.size - 1],
            "within": 0.02,
        },
        bound=typical.gaussian_free_energy(0.0, spread),
        exact=typical.expected_free_energy(spread, far),
        simulated=mean,
        stderr=stderr,
    )


def typical_law_outside(rng: Generator) -> Statement:
    """σ = 5: the factor by which the predicted half-mass length is too short. Exact in the mean of the logarithm."""
    spread, far = 5.0, np.array([16, 64, 256, 1024, 4096, 8192])
    logs = np.log(_far_sums(rng, 1200, far, spread) / far)
    mean, stderr = simulate.mean_and_stderr(logs)
    factor = np.exp(spread**2 / 2 - mean)
    return Statement(
        name="typical-law-outside",
        section="§5",
        source=OWN,
        assumptions=GAUSSIAN + "; ln F < σ²/2 = 12.5, outside the law's range",
        parameters={
            "sweep": "far",
            "far": far,
            "spread": spread,
            "edge of the range": float(typical.typical_range(spread)),
            "factor of the median row": np.exp(spread**2 / 2 - np.median(logs, axis=0)),
            "side": "lower",
        },
        bound=1.0,
        exact=np.exp(typical.gaussian_free_energy(0.0, spread) - typical.expected_free_energy(spread, far)),
        simulated=factor,
        stderr=factor * stderr,
    )


def typical_law_at_its_edge(rng: Generator) -> Statement:
    """F = e^{σ²/2}: the sum is a half of its mean, so the half-mass length is off by 2 (Bovier, Kurkova, Löwe 2002)."""
    del rng  # nothing is drawn
    spreads = np.array([1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0])
    energies = [typical.expected_free_energy(float(s), typical.typical_range(s)) for s in spreads]
    return Statement(
        name="typical-law-at-its-edge",
        section="§5",
        source=OWN,
        assumptions=GAUSSIAN + "; ln F = σ²/2",
        parameters={"sweep": "spread", "spread": spreads, "meets": [3, 4, 5, 6], "within": 0.04},
        bound=2.0,
        exact=np.exp(spreads**2 / 2 - np.array(energies)),
    )


def _far_sums(rng: Generator, rows: int, far: Integers, spread: float) -> Array:
    """Σ e^s over the first F of a row's scores for every F in `far`, (rows far)."""
    weights = np.exp(spread * rng.standard_normal((rows, int(far[-1]))))
    return np.cumsum(weights, axis=1)[:, far - 1]


def _half_mass(partition: float, spread: float) -> float:
    """The F at which the exact mean far mass is a half."""
    centre = np.log(partition) - spread**2 / 2

    def beyond(log_far: float) -> float:
        return float(typical.expected_far_mass(np.exp(log_far), partition, spread)) - 0.5

    return float(np.exp(root_scalar(beyond, bracket=(centre - 1, centre + 3), xtol=1e-8).root))
