"""Evidence for §8: PaTH's factor loses norm, reflections lose direction alone, an overused mirror alternates."""

import numpy as np
from numpy.random import Generator

from longroute.theory import contraction, gap, simulate
from longroute.theory.evidence.gap import INDEPENDENT
from longroute.theory.evidence.sources import OWN, TEXTBOOK
from longroute.theory.ranges import Array
from longroute.theory.statement import Statement

UNIFORM = INDEPENDENT + "; I - β w wᵀ with w uniform on the sphere"
DIM, ROUTES = 16, 10_000
BETA = np.array([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.5, 1.75, 2.0])


def norm_lost_along_the_route(rng: Generator) -> Statement:
    """β = 1: the mean square norm falls geometrically."""
    steps = np.array([0, 1, 2, 4, 8, 16, 32, 48])
    moved = _routes(rng, 1.0, int(steps[-1]))[steps]
    mean, stderr = simulate.mean_and_stderr(np.sum(moved**2, axis=2).T)
    return Statement(
        name="norm-lost-along-the-route",
        section="§8",
        source=OWN,
        assumptions=UNIFORM,
        parameters={"sweep": "steps", "steps": steps, "dim": DIM, "beta": 1.0},
        exact=contraction.mean_square_norm(DIM, 1.0, steps),
        simulated=mean,
        stderr=stderr,
    )


def typical_norm_lost(rng: Generator) -> Statement:
    """β = 1: the typical route loses more than the mean square says."""
    steps = np.array([1, 2, 4, 8, 16, 32, 48])
    moved = _routes(rng, 1.0, int(steps[-1]))[steps]
    mean, stderr = simulate.mean_and_stderr(np.log(np.linalg.norm(moved, axis=2)).T)
    return Statement(
        name="typical-norm-lost",
        section="§8",
        source=OWN,
        assumptions=UNIFORM,
        parameters={"sweep": "steps", "steps": steps, "dim": DIM, "beta": 1.0},
        bound=np.log(contraction.mean_square_norm(DIM, 1.0, steps)) / 2,
        exact=steps * contraction.log_norm_rate(DIM, 1.0),
        simulated=mean,
        stderr=stderr,
    )


def norm_against_beta(rng: Generator) -> Statement:
    """After 16 steps: the norm is kept at β = 0 and 2 alone."""
    steps = 16
    moments = [simulate.mean_and_stderr(np.sum(_routes(rng, b, steps)[-1] ** 2, axis=1)) for b in BETA]
    return Statement(
        name="norm-against-beta",
        section="§8",
        source=OWN,
        assumptions=UNIFORM,
        parameters={"sweep": "beta", "beta": BETA, "dim": DIM, "steps": steps, "meets": [0, 8]},
        bound=1.0,
        exact=contraction.mean_square_norm(DIM, BETA, steps),
        simulated=[float(mean) for mean, _ in moments],
        stderr=[float(stderr) for _, stderr in moments],
    )


def alignment_against_beta(rng: Generator) -> Statement:
    """After 16 steps: how much of its direction a key keeps, contraction and incoherence together."""
    steps = 16
    moments = [simulate.mean_and_stderr(_routes(rng, b, steps)[-1][:, 0]) for b in BETA]
    return Statement(
        name="alignment-against-beta",
        section="§8",
        source=OWN,
        assumptions=UNIFORM,
        parameters={"sweep": "beta", "beta": BETA, "dim": DIM, "steps": steps},
        exact=contraction.mean_alignment(DIM, BETA, steps),
        simulated=[float(mean) for mean, _ in moments],
        stderr=[float(stderr) for _, stderr in moments],
    )


def mirrored_direction_alternates(rng: Generator) -> Statement:
    """A direction mirrored nine times in ten: its mean score changes sign with every step, under a bound that can't."""
    steps, odds, routes = np.arange(0, 9), np.array([0.9, 0.1]), 40_000
    mean_step = contraction.mean_reflection(np.diag(odds))
    moved, scores = np.tile([1.0, 0.0], (routes, 1)), []
    for _ in steps:
        scores.append(moved[:, 0])
        moved = simulate.reflect(moved, simulate.choose_rows(rng, np.eye(2), odds, routes))
    mean, stderr = simulate.mean_and_stderr(np.array(scores).T)
    r = gap.mean_step_norm(mean_step)
    return Statement(
        name="mirrored-direction-alternates",
        section="§8",
        source=OWN,
        assumptions=INDEPENDENT + "; reflections in two mirrors, nine times in ten in the key's own",
        parameters={"sweep": "steps", "steps": steps, "r": r, "meets": [0, 2, 4, 6, 8]},
        bound=gap.mean_score_bound(r, steps, 1.0, 1.0, 1),
        exact=gap.mean_score(np.array([1.0, 0.0]), np.array([1.0, 0.0]), mean_step, steps),
        simulated=mean,
        stderr=stderr,
    )


def reflection_pair_rotates(rng: Generator) -> Statement:
    """Two reflections make a rotation by twice the angle between their mirrors."""
    dim, between = 5, np.linspace(0.1, np.pi / 2, 8)
    plane = simulate.haar_orthogonal(rng, 1, dim)[0][:2]
    second = np.cos(between)[:, None] * plane[0] + np.sin(between)[:, None] * plane[1]
    product = simulate.reflection_matrix(second) @ simulate.reflection_matrix(plane[0])
    turned = np.arccos(np.clip((np.trace(product, axis1=1, axis2=2) - dim + 2) / 2, -1, 1))
    return Statement(
        name="reflection-pair-rotates",
        section="§8",
        source=TEXTBOOK,
        assumptions="none",
        parameters={"sweep": "angle between mirrors", "angle between mirrors": between, "dim": dim},
        exact=contraction.reflection_pair_angle(second @ plane[0]),
        simulated=turned,
        # The arccosine near -1 keeps half of the digits.
        stderr=1e-8,
    )


def _routes(rng: Generator, beta: float, steps: int) -> Array:
    """A unit key after 0 … `steps` random factors, (steps + 1, route, dim)."""
    moved = np.zeros((ROUTES, DIM))
    moved[:, 0] = 1
    route = [moved]
    for _ in range(steps):
        route.append(simulate.reflect(route[-1], simulate.unit_vectors(rng, ROUTES, DIM), beta))
    return np.array(route)
