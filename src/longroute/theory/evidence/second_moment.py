"""Evidence for §2, second moments: what a mixed score's size tends to, and where resonance keeps it larger."""

import numpy as np
from numpy.random import Generator

from longroute.theory import second_moment, simulate
from longroute.theory.evidence.gap import INDEPENDENT
from longroute.theory.evidence.sources import OWN, PAPER
from longroute.theory.ranges import Array
from longroute.theory.statement import Statement

STEPS = np.array([0, 1, 2, 4, 8, 16, 32, 64])


def second_moment_of_blocks(rng: Generator) -> Statement:
    """Independent blocks: E (qᵀPk)² falls from (Σ r_b)² to ½ Σ r_b² at the rate r₂."""
    spread, amplitude = np.array([0.4, 0.5, 0.7, 0.9, 1.2]), np.array([1.0, 0.8, 1.2, 0.9, 1.1])
    return _blocks("second-moment-of-blocks", rng, spread, amplitude, shared=False)


def second_moment_in_resonance(rng: Generator) -> Statement:
    """Blocks that share their angle's source and three of whose spreads are equal: they stay in step for ever."""
    spread, amplitude = np.array([0.6, 0.6, 0.6, 1.1]), np.array([1.0, 0.8, 1.2, 0.9])
    return _blocks("second-moment-in-resonance", rng, spread, amplitude, shared=True)


def second_moment_mixed(rng: Generator) -> Statement:
    """Phases uniform on the circle: ½ Σ r_b² for any number of blocks."""
    blocks = [1, 2, 4, 8, 16]
    amplitudes = [np.linspace(0.5, 1.5, count) for count in blocks]
    phases = [simulate.step_angles(rng, (40_000,), [np.pi / 3**0.5] * count, law="uniform") for count in blocks]
    samples = [(np.cos(phase) @ r) ** 2 for phase, r in zip(phases, amplitudes, strict=True)]
    means = [simulate.mean_and_stderr(sample) for sample in samples]
    return Statement(
        name="second-moment-mixed",
        section="§2",
        source=PAPER,
        assumptions="phases independent and uniform",
        parameters={"sweep": "blocks", "blocks": blocks, "amplitude": "evenly from 0.5 to 1.5"},
        exact=np.array([second_moment.mixed_second_moment(r) for r in amplitudes]),
        simulated=[float(mean) for mean, _ in means],
        stderr=[float(stderr) for _, stderr in means],
    )


def second_moment_under_haar(rng: Generator) -> Statement:
    """U from Haar measure on O(d): E (qᵀUk)² = 1/d."""
    dims = [2, 3, 4, 8, 16, 32]
    matrices = [simulate.haar_orthogonal(rng, 4000, dim) for dim in dims]
    # Diagonal entries: the squares of a row or a column add up to 1 whatever the law, so they would show nothing.
    diagonals = [np.mean(np.diagonal(u, axis1=1, axis2=2) ** 2, axis=1) for u in matrices]
    means = [simulate.mean_and_stderr(sample) for sample in diagonals]
    return Statement(
        name="second-moment-under-haar",
        section="§2",
        source=PAPER,
        assumptions="Haar measure on O(d); q and k unit vectors",
        parameters={"sweep": "dim", "dim": dims},
        exact=second_moment.haar_second_moment(dims),
        simulated=[float(mean) for mean, _ in means],
        stderr=[float(stderr) for _, stderr in means],
    )


def second_moment_of_reflections(rng: Generator) -> Statement:
    """Products of reflections in uniform random mirrors mix towards 1/d at the rate (d-2)/(d+2)."""
    dim, routes, cosine = 8, 40_000, 0.8
    key = np.zeros(dim)
    key[:2] = cosine, (1 - cosine**2) ** 0.5
    moved, squares = np.tile(key, (routes, 1)), []
    for step in range(25):
        squares.append(moved[:, 0] ** 2)
        if step < 24:
            moved = simulate.reflect(moved, simulate.unit_vectors(rng, routes, dim))
    steps = np.array([0, 1, 2, 3, 4, 6, 8, 12, 16, 24])
    mean, stderr = simulate.mean_and_stderr(np.array(squares).T[:, steps])
    return Statement(
        name="second-moment-of-reflections",
        section="§2",
        source=OWN,
        assumptions=INDEPENDENT + "; reflections in mirrors uniform on the sphere",
        parameters={"sweep": "steps", "steps": steps, "dim": dim, "cosine": cosine},
        exact=second_moment.householder_second_moment(dim, steps, cosine),
        simulated=mean,
        stderr=stderr,
    )


def _blocks(name: str, rng: Generator, spread: Array, amplitude: Array, *, shared: bool) -> Statement:
    angles = simulate.step_angles(rng, (20_000, int(STEPS[-1])), spread, shared=shared)
    phase = np.pad(np.cumsum(angles, axis=1), ((0, 0), (1, 0), (0, 0)))[:, STEPS]
    mean, stderr = simulate.mean_and_stderr((np.cos(phase) @ amplitude) ** 2)
    plus, minus = second_moment.pair_characteristics(spread, shared=shared)
    r2 = second_moment.second_moment_radius(plus, minus)
    limit = float(second_moment.mixed_second_moment(amplitude))
    return Statement(
        name=name,
        section="§2",
        source=OWN,
        assumptions=INDEPENDENT + f"; block rotations with normal angles, {'one source' if shared else 'independent'}",
        parameters={
            "sweep": "steps",
            "steps": STEPS,
            "spread": spread,
            "amplitude": amplitude,
            "r2": r2,
            "limit without resonance": limit,
            "meets": [0],
        },
        bound=second_moment.second_moment_bound(amplitude, r2, STEPS),
        exact=second_moment.block_second_moment(amplitude.astype(np.complex128), plus, minus, STEPS),
        simulated=mean,
        stderr=stderr,
    )
