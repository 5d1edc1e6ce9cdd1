"""Evidence for §2: the mean score falls as r^n and is gone within a window that no context length enters."""

import numpy as np
from numpy.random import Generator

from longroute.theory import gap, simulate
from longroute.theory.evidence.sources import PAPER
from longroute.theory.ranges import Array, Integers
from longroute.theory.statement import Statement

INDEPENDENT = "steps independent of each other and of q and k"


def mean_score_attained(rng: Generator) -> Statement:
    """Block rotations, q = k in the slowest plane: the bound is the mean score itself."""
    spread, steps, routes = np.array([1.0, 0.7, 0.5, 0.35]), np.array([0, 1, 2, 4, 8, 16, 24, 32]), 40_000
    phi = gap.angle_characteristic(spread)
    dim, norm = 2 * spread.size, 3.0
    pair = np.array([0, 0, 0, norm**2], dtype=np.complex128)
    phase = _phases(simulate.step_angles(rng, (routes, 32), spread[-1:])[..., 0], steps)
    mean, stderr = simulate.mean_and_stderr(norm**2 / dim**0.5 * np.cos(phase))
    r = gap.mean_step_norm(np.diag(phi))
    return Statement(
        name="mean-score-attained",
        section="§2",
        source=PAPER,
        assumptions=INDEPENDENT + "; block rotations with normal angles, q = k in the slowest plane",
        parameters={"sweep": "steps", "steps": steps, "spread": spread, "r": r, "meets": list(range(steps.size))},
        bound=gap.mean_score_bound(r, steps, norm, norm, dim),
        exact=gap.mean_block_score(pair, phi, steps) / dim**0.5,
        simulated=mean,
        stderr=stderr,
    )


def mean_score_without_commutation(rng: Generator) -> Statement:
    """Steps that don't commute and whose mean isn't normal: a fixed rotation after a reflection in a random mirror."""
    dim, routes, steps = 6, 40_000, np.arange(1, 13)
    mirrors, odds = simulate.unit_vectors(rng, 24, dim), rng.dirichlet(np.full(24, 4.0))
    turn = simulate.haar_orthogonal(rng, 1, dim)[0]
    mean_step = turn @ (np.eye(dim) - 2 * np.einsum("m,md,me->de", odds, mirrors, mirrors))
    left, values, right = np.linalg.svd(mean_step)
    moved, scores = np.tile(right[0], (routes, 1)), []
    for _ in steps:
        moved = simulate.reflect(moved, simulate.choose_rows(rng, mirrors, odds, routes)) @ turn.T
        scores.append(moved @ left[:, 0] / dim**0.5)
    mean, stderr = simulate.mean_and_stderr(np.array(scores).T)
    return Statement(
        name="mean-score-without-commutation",
        section="§2",
        source=PAPER,
        assumptions=INDEPENDENT + "; orthogonal, not commuting; q and k the singular vectors of E M",
        parameters={"sweep": "steps", "steps": steps, "dim": dim, "r": values[0], "meets": [0]},
        bound=gap.mean_score_bound(gap.mean_step_norm(mean_step), steps, 1.0, 1.0, dim),
        exact=gap.mean_score(left[:, 0], right[0], mean_step, steps) / dim**0.5,
        simulated=mean,
        stderr=stderr,
    )


def mixing_window_by_spread(rng: Generator) -> Statement:
    """The closed window beside the first distance at which the mean score is at most ε of its largest."""
    del rng  # nothing is drawn
    spread, epsilon = np.array([2.0, 1.4, 1.0, 0.7, 0.5, 0.35, 0.25, 0.18, 0.12]), 0.01
    phi = gap.angle_characteristic(spread)
    distances = np.arange(1, 2000)
    first = [distances[gap.mean_block_score(np.ones(1, dtype=complex), [one], distances) <= epsilon][0] for one in phi]
    return Statement(
        name="mixing-window-by-spread",
        section="§2",
        source=PAPER,
        assumptions=INDEPENDENT + "; block rotations with normal angles, q = k in the plane",
        parameters={"sweep": "spread", "spread": spread, "epsilon": epsilon, "meets": list(range(spread.size))},
        bound=gap.mixing_window(phi, epsilon),
        exact=np.array(first, dtype=np.float64),
    )


def mixing_window_by_length(rng: Generator) -> Statement:
    """The window measured in contexts of growing length, through accumulated phases: it doesn't move."""
    lengths, spread, epsilon, route = [64, 512, 4096, 32_768], 0.5, 0.1, 8
    r = float(gap.angle_characteristic(spread, law="uniform"))
    windows = [_measured_window(rng, length, spread, epsilon, route) for length in lengths]
    return Statement(
        name="mixing-window-by-length",
        section="§2",
        source=PAPER,
        assumptions=INDEPENDENT + "; block rotations with uniform angles",
        parameters={"sweep": "context", "context": lengths, "spread": spread, "r": r, "epsilon": epsilon},
        bound=gap.mixing_window(r, epsilon),
        exact=np.log(epsilon) / np.log(r),
        simulated=[window for window, _ in windows],
        stderr=[stderr for _, stderr in windows],
    )


def mixing_window_by_block(rng: Generator) -> Statement:
    """Spreads that fall like RoPE's frequencies: a window for each block, and r so near 1 that the theorem is empty."""
    blocks, epsilon, route = 16, 0.01, 4
    spread = 10_000.0 ** (-np.arange(blocks) / blocks)
    phase = simulate.step_angles(rng, (20_000, route), spread).sum(axis=1)
    # 1 - cos keeps the digits that the cosine of a tiny angle loses.
    lost, error = simulate.mean_and_stderr(2 * np.sin(phase / 2) ** 2)
    simulated = route * np.log(epsilon) / np.log1p(-lost)
    # The least double below 1 is too coarse for the slowest r, so the windows are those of 1 - r.
    exact = 2 * np.log(1 / epsilon) / spread**2
    windows = gap.mixing_window(gap.angle_characteristic(spread), epsilon)
    return Statement(
        name="mixing-window-by-block",
        section="§2",
        source=PAPER,
        assumptions=INDEPENDENT + "; block rotations with normal angles, σ_b = 10000^(-b/16)",
        parameters={
            "sweep": "block",
            "block": list(range(blocks)),
            "epsilon": epsilon,
            "below 64 tokens": int(np.sum(windows < 64)),
            "1 - r": float(-np.expm1(-(spread[-1] ** 2) / 2)),
            "meets": list(range(4, blocks)),
            "within": 0.02,
        },
        bound=windows,
        exact=exact,
        simulated=simulated,
        stderr=simulated * error / ((1 - lost) * -np.log1p(-lost)),
    )


def _phases(angles: Array, steps: Integers) -> Array:
    """Accumulated phases after each of `steps` steps, (route, steps)."""
    return np.pad(np.cumsum(angles, axis=1), ((0, 0), (1, 0)))[:, steps]


def _measured_window(rng: Generator, length: int, spread: float, epsilon: float, route: int) -> tuple[float, float]:
    """A window and its standard error, from the mean cosine over routes that end all over the context."""
    contexts = 2**19 // length
    phase = np.cumsum(simulate.step_angles(rng, (contexts, length), spread, law="uniform")[..., 0], axis=1)
    turned = np.cos(phase[:, route::route] - phase[:, :-route:route]).ravel()
    mean, stderr = simulate.mean_and_stderr(turned)
    window = route * np.log(epsilon) / np.log(mean)
    return float(window), float(window * stderr / (mean * -np.log(mean)))
