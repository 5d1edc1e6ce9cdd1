"""Evidence for §7: a shared background adds up while values stay, and as F^{-1/2} when their routes transport them."""

from collections.abc import Callable

import numpy as np
from numpy.random import Generator
from scipy.special import i0

from longroute.theory import gap, simulate, values
from longroute.theory.evidence.sources import OWN, PAPER
from longroute.theory.ranges import Array
from longroute.theory.statement import Statement

APART = "independent steps; weights independent of the steps"
FAR = 4 ** np.arange(0, 6)


def coherent_far_sum(rng: Generator) -> Statement:
    """Untransported values: the background stays whole however many far sources share the mass."""
    far, mass, noise, dim = FAR[:5], 0.5, 2.0, 4
    drawn = rng.standard_normal((10_000, int(far[-1]), dim)) * noise / dim**0.5
    sums = np.cumsum(drawn, axis=1)[:, far - 1] / far[:, None]
    sums[..., 0] += 1.0
    mean, stderr = simulate.mean_and_stderr(mass**2 * np.sum(sums**2, axis=-1))
    return Statement(
        name="coherent-far-sum",
        section="§7",
        source=PAPER,
        assumptions="values are a background of norm 1 plus independent noise; flat far weights",
        parameters={"sweep": "far", "far": far, "far mass": mass, "noise": noise, "side": "lower"},
        bound=mass**2,
        exact=np.array([values.coherent_second_moment(np.full(f, mass / f), 1.0, noise) for f in far]),
        simulated=mean,
        stderr=stderr,
    )


def incoherent_block_sum(rng: Generator) -> Statement:
    """One block, uneven weights and angles with a mean: the exact double sum, its bound, a simulation."""
    far, spread, turn, routes = FAR[1:5], 0.8, 0.3, 20_000
    phi = complex(gap.angle_characteristic(spread) * np.exp(1j * turn))
    alpha = 1 / (1 + np.arange(int(far[-1])) / 16)
    angles = turn + simulate.step_angles(rng, (routes, alpha.size), spread)[..., 0]
    sums = np.cumsum(alpha * np.exp(1j * np.cumsum(angles, axis=1)), axis=1)[:, far - 1]
    mean, stderr = simulate.mean_and_stderr(np.abs(sums) ** 2)
    return Statement(
        name="incoherent-block-sum",
        section="§7",
        source=PAPER,
        assumptions=APART + "; block rotations with normal angles of mean 0.3",
        parameters={"sweep": "far", "far": far, "spread": spread, "mean angle": turn},
        bound=np.array([values.incoherence_bound(alpha[:f], abs(phi)) for f in far]),
        exact=np.array([values.block_incoherent_moment(alpha[:f], phi) for f in far]),
        simulated=mean,
        stderr=stderr,
    )


def incoherent_flat_law(rng: Generator) -> Statement:
    """Flat weights: the second moment falls as 1/F, the amplitude as F^{-1/2}, and the bound is approached."""
    spread, routes = 1.0, 5000
    r = float(gap.angle_characteristic(spread))
    phase = np.cumsum(simulate.step_angles(rng, (routes, int(FAR[-1])), spread)[..., 0], axis=1)
    sums = np.cumsum(np.exp(1j * phase), axis=1)[:, FAR - 1] / FAR
    mean, stderr = simulate.mean_and_stderr(np.abs(sums) ** 2)
    return Statement(
        name="incoherent-flat-law",
        section="§7",
        source=PAPER,
        assumptions=APART + "; block rotations with normal angles, flat weights",
        parameters={"sweep": "far", "far": FAR, "spread": spread, "r": r, "meets": [5], "within": 0.01},
        bound=np.array([values.incoherence_bound(np.full(f, 1 / f), r) for f in FAR]),
        exact=values.flat_incoherent_moment(FAR, r),
        simulated=mean,
        stderr=stderr,
    )


def incoherent_without_commutation(rng: Generator) -> Statement:
    """Pairs of reflections, turned: steps that neither commute nor have a symmetric mean obey the same law."""
    dim, routes, far = 6, 20_000, np.array([1, 4, 16, 64, 128])
    mirrors, odds = simulate.unit_vectors(rng, 24, dim), rng.dirichlet(np.full(24, 4.0))
    turn = simulate.haar_orthogonal(rng, 1, dim)[0]
    mean_mirror = np.eye(dim) - 2 * np.einsum("m,md,me->de", odds, mirrors, mirrors)
    mean_step = turn @ mean_mirror @ mean_mirror
    background = np.eye(dim)[0]

    def step(x: Array) -> Array:
        for _ in range(2):
            x = simulate.reflect(x, simulate.choose_rows(rng, mirrors, odds, routes))
        return x @ turn.T

    mean, stderr = simulate.mean_and_stderr(_square_norms(step, lambda: np.tile(background, (routes, 1)), far))
    return Statement(
        name="incoherent-without-commutation",
        section="§7",
        source=OWN,
        assumptions=APART + "; orthogonal, not commuting, E M not symmetric",
        parameters={"sweep": "far", "far": far, "dim": dim, "r": gap.mean_step_norm(mean_step)},
        bound=np.array([values.incoherence_bound(np.full(f, 1 / f), gap.mean_step_norm(mean_step)) for f in far]),
        exact=np.array([values.transported_second_moment(np.full(f, 1 / f), mean_step, background) for f in far]),
        simulated=mean,
        stderr=stderr,
    )


def far_covariance(rng: Generator) -> Statement:
    """Background and noise behind pairs of uniform reflections in d = 4: the covariance bound, attained as F grows."""
    dim, routes, noise, far = 4, 20_000, 1.5, np.array([1, 4, 16, 64, 128])
    mean_step = (1 - 2 / dim) ** 2 * np.eye(dim)
    background = np.eye(dim)[0]

    def step(x: Array) -> Array:
        for _ in range(2):
            x = simulate.reflect(x, simulate.unit_vectors(rng, routes, dim))
        return x

    def source() -> Array:
        return background + noise / dim**0.5 * rng.standard_normal((routes, dim))

    mean, stderr = simulate.mean_and_stderr(_square_norms(step, source, far))
    moments = [values.transported_second_moment(np.full(f, 1 / f), mean_step, background) for f in far]
    return Statement(
        name="far-covariance",
        section="§7",
        source=PAPER,
        assumptions=APART + "; noise independent of all; flat weights",
        parameters={"sweep": "far", "far": far, "noise": noise, "r": mean_step[0, 0], "meets": [4], "within": 0.01},
        bound=np.array([values.far_covariance_bound(np.full(f, 1 / f), mean_step[0, 0], 1.0, noise) for f in far]),
        exact=np.array(moments) + noise**2 / far,
        simulated=mean,
        stderr=stderr,
    )


def weights_that_see_phases(rng: Generator) -> Statement:
    """One rotation for scores and values: weights e^{a cos Θ} pick aligned phases, and the law ends at a floor."""
    logit, routes = 0.5, 5000
    phase = rng.uniform(0, 2 * np.pi, (routes, int(FAR[-1])))
    weighted = np.exp(logit * np.cos(phase) + 1j * phase) / i0(logit)
    mean, stderr = simulate.mean_and_stderr(np.abs(np.cumsum(weighted, axis=1)[:, FAR - 1] / FAR) ** 2)
    floor = float(values.shared_phase_coherence(logit)) ** 2
    return Statement(
        name="weights-that-see-phases",
        section="§7",
        source=OWN,
        assumptions="mixed phases, one rotation for scores and values; weights over their mean partition",
        parameters={
            "sweep": "far",
            "far": FAR,
            "logit amplitude": logit,
            "side": "lower",
            "meets": [5],
            "within": 0.03,
        },
        bound=floor,
        exact=floor * (1 - 1 / FAR) + i0(2 * logit) / i0(logit) ** 2 / FAR,
        simulated=mean,
        stderr=stderr,
    )


def _square_norms(step: Callable[[Array], Array], source: Callable[[], Array], far: Array) -> Array:
    """‖(1/F) Σ_j P(j→i) v_j‖² for each F in `far`, (route far): sources at distances 0 … F - 1, the farthest first."""
    total, squares = source(), []
    for count in range(1, int(far[-1]) + 1):
        if count > 1:
            total = step(total) + source()
        if count in far:
            squares.append(np.sum((total / count) ** 2, axis=1))
    return np.array(squares).T
