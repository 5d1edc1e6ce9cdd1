"""Evidence for §6, certified pruning: what is skipped never weighs more than was allowed, and may weigh that much."""

import numpy as np
from numpy.random import Generator
from scipy.special import softmax

from longroute.theory import pruning, simulate
from longroute.theory.evidence.sources import OWN
from longroute.theory.ranges import Array
from longroute.theory.statement import Statement

EPSILON = np.array([0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 1e-4])


def pruning_is_certified(rng: Generator) -> Statement:
    """Rows of 2,048 sources behind reflections, with ALiBi: the largest mass that any of 50 rows loses."""
    length, dim, rows, slope, near = 2048, 32, 50, 1 / 64, 16
    query, keys = rng.standard_normal((rows, dim)), rng.standard_normal((rows, length, dim))
    bias = -slope * np.arange(length)
    scores = _scores(rng, query, keys) + bias
    norms = np.linalg.norm(query, axis=1)[:, None], np.linalg.norm(keys, axis=2)
    upper = pruning.score_upper_bound(*norms, bias, dim)
    known = np.logaddexp.reduce(scores[:, :near], axis=1)
    weights = softmax(scores, axis=1)
    margins = pruning.pruning_margin(length, EPSILON)
    skipped = [upper < known[:, None] - margin for margin in margins]
    return Statement(
        name="pruning-is-certified",
        section="§6",
        source=OWN,
        assumptions="orthogonal steps; the log-sum-exp is bounded by that over the nearest 16 sources",
        parameters={
            "sweep": "epsilon",
            "epsilon": EPSILON,
            "length": length,
            "slope": slope,
            "share skipped": np.array([one.mean() for one in skipped]),
        },
        bound=EPSILON,
        simulated=np.array([np.max(np.sum(np.where(one, weights, 0), axis=1)) for one in skipped]),
        stderr=0.0,
    )


def pruning_margin_attained(rng: Generator) -> Statement:
    """All sources but one exactly at the margin: the mass skipped is ε, but for one part in the length."""
    del rng  # nothing is drawn
    length = 4096
    margins = pruning.pruning_margin(length, EPSILON)
    # One source holds the rest of the row, so that the row's log-sum-exp is 0.
    tops = np.log1p(-(length - 1) * np.exp(-margins))
    rows = np.hstack([tops[:, None], np.tile(-margins[:, None], length - 1)])
    return Statement(
        name="pruning-margin-attained",
        section="§6",
        source=OWN,
        assumptions="exact upper bounds; all sources but one lie at the margin",
        parameters={
            "sweep": "epsilon",
            "epsilon": EPSILON,
            "length": length,
            "meets": list(range(EPSILON.size)),
            "within": 1e-3,
        },
        bound=EPSILON,
        exact=softmax(rows, axis=1)[:, 1:].sum(axis=1),
    )


def skipped_mass_attained(rng: Generator) -> Statement:
    """Keys that their routes turn along the query: the bound on the mass beyond each distance is that mass."""
    length, dim = 256, 16
    query = rng.standard_normal((1, dim))
    sizes, bias = rng.uniform(0.5, 2.0, length), -np.arange(length) / 16
    pulled = _pulled(rng, query, length)[0]
    keys = sizes[:, None] * pulled / np.linalg.norm(query)
    scores = np.sum(pulled * keys, axis=1) / dim**0.5 + bias
    upper = pruning.score_upper_bound(np.linalg.norm(query), sizes, bias, dim)
    firsts = [1, 4, 16, 64, 128]
    return Statement(
        name="skipped-mass-attained",
        section="§6",
        source=OWN,
        assumptions="orthogonal steps; every key arrives along the query",
        parameters={"sweep": "first skipped", "first skipped": firsts, "length": length, "meets": list(range(5))},
        bound=np.array([pruning.skipped_mass_bound(upper[n:], np.logaddexp.reduce(scores)) for n in firsts]),
        exact=np.array([softmax(scores)[n:].sum() for n in firsts]),
    )


def _pulled(rng: Generator, query: Array, length: int) -> Array:
    """P(j→i)ᵀ q for every distance, (row length dim), through random reflections."""
    pulled = [query]
    for _ in range(length - 1):
        pulled.append(simulate.reflect(pulled[-1], simulate.unit_vectors(rng, *query.shape)))
    return np.stack(pulled, axis=1)


def _scores(rng: Generator, query: Array, keys: Array) -> Array:
    return np.einsum("rjd,rjd->rj", _pulled(rng, query, keys.shape[1]), keys) / query.shape[1] ** 0.5
