"""Evidence for §6: the far mass at growing length under every control, and what recall costs."""

from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike
from scipy.special import softmax

from longroute.theory import control, far_mass
from longroute.theory.evidence.sources import OWN, PAPER
from longroute.theory.ranges import Array, Integers, real
from longroute.theory.simulate import mean_and_stderr
from longroute.theory.statement import Statement

WINDOW, LOGIT = 64, 1.0
SCALE = 16.0
WORST = "content scores within ±λ; far ones at +λ, near ones at -λ"
BEST = "content scores within ±λ; far ones at -λ, near ones at +λ"


def alibi_bounds_far_mass(rng: Generator) -> Statement:
    """ALiBi: the far mass of the worst content stops growing."""
    del rng  # nothing is drawn
    slope, lengths = 1 / 32, 2 ** np.arange(7, 15)
    near = float(np.sum(np.exp(-slope * np.arange(WINDOW + 1))))
    limit = far_mass.far_mass_upper_bound(control.geometric_sum(np.exp(-slope), WINDOW + 1), near, LOGIT)
    return Statement(
        name="alibi-bounds-far-mass",
        section="§6",
        source=PAPER,
        assumptions=WORST,
        parameters={**_lengths(lengths), "slope": slope, "meets": [lengths.size - 1]},
        bound=limit,
        exact=np.array([_far_share(-slope * np.arange(length), LOGIT) for length in lengths]),
    )


def log_distance_bounds_far_mass(rng: Generator) -> Statement:
    """A log-distance bias with κ = 2: the far mass of the worst content stops growing."""
    del rng  # nothing is drawn
    exponent, lengths = 2.0, 4 ** np.arange(4, 11)
    far, near = (control.log_distance_sum(exponent, SCALE, *ends) for ends in ((WINDOW + 1, np.inf), (0, WINDOW)))
    return Statement(
        name="log-distance-bounds-far-mass",
        section="§6",
        source=OWN,
        assumptions=WORST,
        parameters={
            **_lengths(lengths),
            "exponent": exponent,
            "scale": SCALE,
            "meets": [lengths.size - 1],
            "within": 1e-3,
        },
        bound=far_mass.far_mass_upper_bound(far, near, LOGIT),
        exact=np.array([_far_share(_log_distance(exponent, length), LOGIT) for length in lengths]),
    )


def log_distance_at_the_edge(rng: Generator) -> Statement:
    """κ = 1 isn't summable: even under the best content the far mass creeps towards 1, as ln L."""
    del rng  # nothing is drawn
    lengths = 4 ** np.arange(4, 11)
    return Statement(
        name="log-distance-at-the-edge",
        section="§6",
        source=OWN,
        assumptions=BEST,
        parameters={
            **_lengths(lengths),
            "exponent": 1.0,
            "scale": SCALE,
            "side": "lower",
            "meets": list(range(lengths.size)),
        },
        bound=np.array([control.least_far_mass(1.0, SCALE, WINDOW, int(n) - 1, LOGIT) for n in lengths]),
        exact=np.array([_far_share(_log_distance(1.0, length), -LOGIT) for length in lengths]),
    )


def summability(rng: Generator) -> Statement:
    """The least far mass without end, against the exponent: 1 up to κ = 1, below it beyond. Beside 2^200 tokens."""
    del rng  # nothing is drawn
    exponents = np.array([0.25, 0.5, 0.75, 0.9, 1.0, 1.1, 1.25, 1.5, 2.0, 2.5, 3.0])
    return Statement(
        name="summability",
        section="§6",
        source=OWN,
        assumptions=BEST,
        parameters={
            "sweep": "exponent",
            "exponent": exponents,
            "scale": SCALE,
            "window": WINDOW,
            "logit bound": LOGIT,
            "meets": [0, 1, 2, 3, 5, 6, 7, 8, 9, 10],
            "within": 1e-3,
        },
        bound=np.array([control.least_far_mass(k, SCALE, WINDOW, np.inf, LOGIT) for k in exponents]),
        exact=np.array([control.least_far_mass(k, SCALE, WINDOW, 2.0**200, LOGIT) for k in exponents]),
    )


def log_distance_tail(rng: Generator) -> Statement:
    """Σ_{n>D} (1 + n/w)^-κ: the integral bound, Hurwitz's zeta, and the sum itself."""
    del rng  # nothing is drawn
    exponent, windows, last = 1.5, 4 ** np.arange(0, 8), 2**20
    terms = np.exp(_log_distance(exponent, last + 1))
    rest = float(control.log_distance_tail_bound(exponent, SCALE, last + 0.5))
    return Statement(
        name="log-distance-tail",
        section="§6",
        source=OWN,
        assumptions="none",
        parameters={
            "sweep": "window",
            "window": windows,
            "exponent": exponent,
            "scale": SCALE,
            "meets": [6, 7],
            "within": 0.005,
        },
        bound=control.log_distance_tail_bound(exponent, SCALE, windows),
        exact=np.array([control.log_distance_sum(exponent, SCALE, int(d) + 1) for d in windows]),
        simulated=np.array([terms[d + 1 :].sum() + rest for d in windows]),
        stderr=0.0,
    )


def forget_gate_sum(rng: Generator) -> Statement:
    """Independent gates: the expected Σ_{n>D} e^{b(n)} is geometric in the mean gate."""
    shape, windows, far = 8.0, 2 ** np.arange(0, 7), 256
    kept = np.cumprod(rng.beta(shape, 1.0, (20_000, int(windows[-1]) + far)), axis=1)
    sums = np.pad(np.cumsum(kept, axis=1), ((0, 0), (1, 0)))
    mean, stderr = mean_and_stderr(sums[:, windows + far] - sums[:, windows])
    return Statement(
        name="forget-gate-sum",
        section="§6",
        source=OWN,
        assumptions="gates independent of each other and of content, from Beta(8, 1)",
        parameters={"sweep": "window", "window": windows, "mean gate": shape / (shape + 1), "far": far},
        exact=control.geometric_sum(shape / (shape + 1), windows + 1, windows + far),
        simulated=mean,
        stderr=stderr,
    )


def log_count_bounds_far_mass(rng: Generator) -> Statement:
    """Far scores lowered by ln(n/n_ref): the far mass of the worst content stays below a limit."""
    del rng  # nothing is drawn
    return _log_count("log-count-bounds-far-mass", 1.0, LOGIT)


def log_count_too_weak(rng: Generator) -> Statement:
    """Half of that offset: even under the best content the far mass tends to 1."""
    del rng  # nothing is drawn
    return _log_count("log-count-too-weak", 0.5, -LOGIT)


def recall_cost_of_log_distance(rng: Generator) -> Statement:
    """What recalling a token costs under κ = 1.5, above the floor for any control of the same sum."""
    del rng  # nothing is drawn
    exponent, distances = 1.5, 4 ** np.arange(0, 9)
    total = control.log_distance_sum(exponent, SCALE, 1)
    terms = [control.log_distance_sum(exponent, SCALE, int(n), int(n)) for n in distances]
    return Statement(
        name="recall-cost-of-log-distance",
        section="§6",
        source=OWN,
        assumptions="the bias falls with distance and is summable",
        parameters={
            "sweep": "distance",
            "distance": distances,
            "exponent": exponent,
            "scale": SCALE,
            "ALiBi, slope 1/32": distances / 32,
            "side": "lower",
        },
        bound=control.least_recall_cost(distances, total),
        exact=control.recall_cost(distances, exponent, SCALE),
        simulated=-np.log(terms),
        stderr=0.0,
    )


def recall_cost_floor(rng: Generator) -> Statement:
    """A window of N tokens at bias -c is the cheapest control of its sum N e^{-c}: its cost c is the floor."""
    del rng  # nothing is drawn
    reach, costs = 1024, np.arange(0.0, 4.1, 0.5)
    return Statement(
        name="recall-cost-floor",
        section="§6",
        source=OWN,
        assumptions="the bias falls with distance; here -c within a window, nothing beyond",
        parameters={
            "sweep": "bias",
            "bias": 0 - costs,
            "distance": reach,
            "side": "lower",
            "meets": list(range(costs.size)),
        },
        bound=control.least_recall_cost(reach, reach * np.exp(-costs)),
        exact=costs,
    )


def _log_count(name: str, strength: float, far_logit: float) -> Statement:
    near, reference, lengths = 64, 256, 4 ** np.arange(4, 10)
    shares = []
    for length in lengths:
        bias = np.where(np.arange(length) < near, 0.0, -strength * np.log(length / reference))
        shares.append(_far_share(bias, far_logit, near=near))
    bound = far_mass.far_mass_upper_bound if far_logit > 0 else far_mass.far_mass_lower_bound
    return Statement(
        name=name,
        section="§6",
        source=OWN,
        assumptions=WORST if far_logit > 0 else BEST,
        parameters={
            "sweep": "length",
            "length": lengths,
            "near": near,
            "reference": reference,
            "strength": strength,
            "logit bound": LOGIT,
            "side": "upper" if far_logit > 0 else "lower",
            "meets": list(range(lengths.size)),
        },
        bound=bound(control.log_count_far_sum(lengths, near, strength, reference), near, LOGIT),
        exact=np.array(shares),
    )


def _lengths(lengths: Integers) -> dict[str, Any]:
    return {"sweep": "length", "length": lengths, "window": WINDOW, "logit bound": LOGIT}


def _log_distance(exponent: float, length: int | np.int_) -> Array:
    return -exponent * np.log1p(np.arange(length) / SCALE)


def _far_share(bias: ArrayLike, far_logit: float, *, near: int = WINDOW + 1) -> float:
    """The far mass by softmax: `far_logit` on every far source, its opposite on the first `near`."""
    logits = real(bias) + np.where(np.arange(np.size(bias)) < near, -far_logit, far_logit)
    return float(softmax(logits)[near:].sum())
