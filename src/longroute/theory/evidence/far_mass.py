"""Evidence for §5: the far-mass bounds, met by extremal logits and kept by every rotation."""

import numpy as np
from numpy.random import Generator
from scipy.optimize import brentq
from scipy.special import expit, softmax

from longroute.theory import far_mass, simulate
from longroute.theory.evidence.sources import OWN, PAPER
from longroute.theory.statement import Statement

FAR = 4 ** np.arange(1, 9)


def far_mass_attained(rng: Generator) -> Statement:
    """Far logits all -λ, near ones all +λ: the softmax is the lower bound."""
    del rng  # nothing is drawn
    near, bound = 64, 1.5
    return Statement(
        name="far-mass-attained",
        section="§5",
        source=PAPER,
        assumptions="logits within ±λ; far ones at -λ, near ones at +λ",
        parameters={
            "sweep": "far",
            "far": FAR,
            "near": near,
            "logit bound": bound,
            "side": "lower",
            "meets": list(range(FAR.size)),
        },
        bound=far_mass.far_mass_lower_bound(FAR, near, bound),
        exact=np.array([_far_share(int(far), near, -bound, bound) for far in FAR]),
    )


def far_mass_at_most(rng: Generator) -> Statement:
    """Far logits all +λ, near ones all -λ: the softmax is the upper bound."""
    del rng  # nothing is drawn
    near, bound = 64, 1.5
    return Statement(
        name="far-mass-at-most",
        section="§5",
        source=OWN,
        assumptions="logits within ±λ; far ones at +λ, near ones at -λ",
        parameters={
            "sweep": "far",
            "far": FAR,
            "near": near,
            "logit bound": bound,
            "meets": list(range(FAR.size)),
        },
        bound=far_mass.far_mass_upper_bound(FAR, near, bound),
        exact=np.array([_far_share(int(far), near, bound, -bound) for far in FAR]),
    )


def far_mass_of_reflections(rng: Generator) -> Statement:
    """The least far mass of 200 rows with random keys behind routes of reflections: never below the bound."""
    dim, rows, near, bound = 32, 200, 16, 1.5
    far = np.array([16, 64, 256, 1024])
    pulled = simulate.unit_vectors(rng, rows, dim)
    scores = []
    for _ in range(near + int(far[-1])):
        scores.append(bound * np.sum(pulled * simulate.unit_vectors(rng, rows, dim), axis=1))
        pulled = simulate.reflect(pulled, simulate.unit_vectors(rng, rows, dim))
    weights = np.exp(np.array(scores))
    near_sum, far_sum = weights[:near].sum(axis=0), np.cumsum(weights[near:], axis=0)[far - 1]
    return Statement(
        name="far-mass-of-reflections",
        section="§5",
        source=PAPER,
        assumptions="orthogonal steps and ‖q‖‖k‖/√d = λ, so that no logit leaves ±λ",
        parameters={"sweep": "far", "far": far, "near": near, "logit bound": bound, "rows": rows, "side": "lower"},
        bound=far_mass.far_mass_lower_bound(far, near, bound),
        simulated=np.min(far_sum / (far_sum + near_sum), axis=1),
        stderr=0.0,
    )


def half_mass_at_the_latest(rng: Generator) -> Statement:
    """The number of far tokens that takes half of the attention in the extremal case, found on the softmax."""
    del rng  # nothing is drawn
    near, bounds = 64, np.arange(0.0, 4.1, 0.5)
    # The far share of extremal logits is the logistic function of the difference of log-sums.
    roots = [brentq(lambda x, b=b: expit(x - b - np.log(near) - b) - 0.5, -10, 30) for b in bounds]
    return Statement(
        name="half-mass-at-the-latest",
        section="§5",
        source=PAPER,
        assumptions="logits within ±λ; far ones at -λ, near ones at +λ",
        parameters={
            "sweep": "logit bound",
            "logit bound": bounds,
            "near": near,
            "meets": list(range(bounds.size)),
        },
        bound=far_mass.half_mass_length(near, bounds),
        exact=np.exp(np.array(roots)),
    )


def _far_share(far: int, near: int, far_logit: float, near_logit: float) -> float:
    return float(softmax(np.append(np.full(far, far_logit), np.full(near, near_logit)))[:far].sum())
