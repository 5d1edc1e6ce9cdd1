"""Closed forms against Monte Carlo and against each other, for drawn parameters."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import digamma

from longroute import theory
from longroute.theory import simulate


def drawn(seed: int) -> np.random.Generator:
    return simulate.generator(seed, "test")


def assert_within(samples: np.ndarray, exact: Any, what: str) -> None:
    mean, stderr = simulate.mean_and_stderr(samples)
    assert np.all(np.abs(mean - exact) <= 5 * stderr + 1e-12), f"{what}: {mean} ± {stderr}, not {exact}"


@given(st.integers(2, 40), st.floats(0, 1), st.integers(0, 99))
def test_haar_tail(dim: int, t: float, seed: int) -> None:
    cosine = np.abs(simulate.unit_vectors(drawn(seed), 20_000, dim)[:, 0])
    frequency, stderr = simulate.frequency_and_stderr((cosine >= t)[:, None])
    assert abs(frequency[0] - theory.haar_tail(t, dim)) <= 5 * stderr[0]
    assert theory.haar_tail(t, dim) <= theory.levy_tail_bound(t, dim) / 2 * (1 + 1e-12)


@given(st.lists(st.floats(0.2, 2), min_size=4, max_size=12), st.floats(0, 1), st.integers(0, 99))
def test_phase_sum_tail(amplitude: list[float], share: float, seed: int) -> None:
    t = share * sum(amplitude)
    phase = drawn(seed).uniform(0, 2 * np.pi, (20_000, len(amplitude)))
    frequency, stderr = simulate.frequency_and_stderr((np.abs(np.cos(phase) @ amplitude) >= t)[:, None])
    exact = theory.phase_sum_tail(t, amplitude)
    assert abs(frequency[0] - exact) <= 5 * stderr[0]
    assert exact <= theory.bessel_tail_bound(t, amplitude) <= theory.hoeffding_tail_bound(t, amplitude)


@pytest.mark.parametrize("special", [False, True])
def test_second_moments_on_all_rotations_and_on_proper_ones(special: bool) -> None:
    """1/d on O(d) and on SO(d), d = 2 too, where SO(2) has an invariant more."""
    for dim in (2, 3, 5):
        u = simulate.haar_orthogonal(drawn(dim), 20_000, dim)
        if special:
            u[:, :, 0] *= np.linalg.det(u)[:, None]
        assert_within(u[:, 1, 1] ** 2, theory.haar_second_moment(dim), f"d = {dim}")
        np.testing.assert_allclose(u @ u.mT, np.broadcast_to(np.eye(dim), u.shape), atol=1e-12)


@given(st.lists(st.floats(0.1, 2), min_size=1, max_size=4), st.booleans(), st.integers(0, 6), st.integers(0, 99))
def test_block_second_moment(spread: list[float], shared: bool, steps: int, seed: int) -> None:
    rng = drawn(seed)
    pair = rng.standard_normal(len(spread)) + 1j * rng.standard_normal(len(spread))
    plus, minus = theory.pair_characteristics(spread, shared=shared)
    angle = simulate.step_angles(rng, (20_000, steps), spread, shared=shared).sum(axis=1)
    exact = theory.block_second_moment(pair, plus, minus, steps)
    assert_within(np.real(np.exp(1j * angle) @ pair) ** 2, exact, "E (qᵀPk)²")
    bound = theory.second_moment_bound(np.abs(pair), theory.second_moment_radius(plus, minus), steps)
    assert exact <= bound * (1 + 1e-12)


def test_resonance_needs_equal_spreads_of_one_source() -> None:
    for spread, shared, resonant in (
        ([0.5, 0.5], True, True),
        ([0.5, 0.6], True, False),
        ([0.5, 0.5], False, False),
    ):
        radius = theory.second_moment_radius(*theory.pair_characteristics(spread, shared=shared))
        assert (radius == 1) == resonant, (spread, shared)


@given(st.integers(2, 8), st.floats(-1, 1), st.integers(0, 5), st.integers(0, 99))
def test_householder_second_moment(dim: int, cosine: float, steps: int, seed: int) -> None:
    rng, moved = drawn(seed), np.zeros((20_000, dim))
    moved[:, 0], moved[:, 1] = cosine, math.sqrt(1 - cosine**2)
    for _ in range(steps):
        moved = simulate.reflect(moved, simulate.unit_vectors(rng, len(moved), dim))
    assert_within(moved[:, 0] ** 2, theory.householder_second_moment(dim, steps, cosine), "square")
    assert_within(moved[:, 0], cosine * theory.mean_alignment(dim, 2.0, steps), "mean")


@given(st.floats(0.05, 3), st.sampled_from(["normal", "uniform"]), st.integers(1, 2), st.integers(0, 99))
def test_angle_characteristic(spread: float, law: str, order: int, seed: int) -> None:
    angle = simulate.step_angles(drawn(seed), (20_000,), spread, law=law)[:, 0]
    assert_within(np.cos(order * angle), theory.angle_characteristic(spread, order=order, law=law), law)
    assert_within(angle**2, spread**2, "variance")


@given(st.floats(0, 1, exclude_max=True), st.floats(1e-6, 0.999))
def test_mixing_window_is_the_first_distance_below(r: float, epsilon: float) -> None:
    window = float(theory.mixing_window(r, epsilon))
    assert window >= 1
    assert r**window <= epsilon * (1 + 1e-9)
    assert window == 1 or r ** (window - 1) > epsilon * (1 - 1e-9)


@pytest.mark.parametrize(("r", "epsilon", "window"), [(0.5, 0.25, 2), (0.1, 1e-3, 3), (0, 0.5, 1), (1, 0.5, np.inf)])
def test_mixing_window_at_whole_numbers_and_ends(r: float, epsilon: float, window: float) -> None:
    assert theory.mixing_window(r, epsilon) == window


@given(st.floats(0.5, 3), st.integers(1, 300), st.integers(0, 99))
def test_free_energy_and_far_mass_of_gaussian_scores(spread: float, far: int, seed: int) -> None:
    sums = np.exp(spread * drawn(seed).standard_normal((4000, far))).sum(axis=1)
    assert_within(np.log(sums / far), theory.expected_free_energy(spread, far), "free energy")
    assert_within(sums / (sums + 50), theory.expected_far_mass(far, 50.0, spread), "far mass")
    assert theory.expected_free_energy(spread, far, mean=2.0) == theory.expected_free_energy(spread, far) + 2


def test_free_energy_of_one_score_and_of_equal_ones() -> None:
    assert theory.expected_free_energy(2.0, 1) == pytest.approx(0, abs=1e-9)
    np.testing.assert_allclose(theory.expected_free_energy(0.0, [1, 10, 1000]), 0, atol=1e-9)
    assert theory.expected_far_mass(100, 50.0, 0.0) == pytest.approx(100 / 150)


@given(st.floats(0, 3), st.floats(0.5, 100), st.integers(0, 500), st.integers(0, 2000))
def test_log_distance_sum_is_the_sum(exponent: float, scale: float, first: int, count: int) -> None:
    direct = np.sum((1 + np.arange(first, first + count + 1) / scale) ** -exponent)
    assert theory.log_distance_sum(exponent, scale, first, first + count) == pytest.approx(direct, rel=1e-12)


@given(st.floats(1.05, 4), st.floats(0.5, 100), st.integers(0, 500))
def test_log_distance_tail(exponent: float, scale: float, window: int) -> None:
    tail = theory.log_distance_sum(exponent, scale, window + 1)
    assert tail <= theory.log_distance_tail_bound(exponent, scale, window)
    parts = theory.log_distance_sum(exponent, scale, window + 1, window + 900)
    parts += theory.log_distance_sum(exponent, scale, window + 901)
    assert tail == pytest.approx(parts, rel=1e-10)


@given(st.floats(0.5, 0.99), st.integers(0, 40), st.integers(0, 40))
def test_geometric_sum(ratio: float, first: int, count: int) -> None:
    direct = np.sum(ratio ** np.arange(first, first + count + 1))
    assert theory.geometric_sum(ratio, first, first + count) == pytest.approx(direct)
    assert theory.geometric_sum(ratio, first) == pytest.approx(ratio**first / (1 - ratio))


@given(
    st.lists(st.floats(0, 1), min_size=1, max_size=30), st.floats(0, 0.95), st.floats(0, 2 * np.pi), st.integers(0, 99)
)
def test_incoherent_moments_agree(alpha: list[float], r: float, turn: float, seed: int) -> None:
    """The block's double sum, the recursion, the matrix form, and the bound over both."""
    phi = r * np.exp(1j * turn)
    lag = np.abs(np.subtract.outer(np.arange(len(alpha)), np.arange(len(alpha))))
    double = float(np.real(np.array(alpha) @ phi**lag @ np.array(alpha)))
    mean_step = r * np.array([[np.cos(turn), -np.sin(turn)], [np.sin(turn), np.cos(turn)]])
    assert theory.block_incoherent_moment(alpha, phi) == pytest.approx(double)
    assert theory.transported_second_moment(alpha, mean_step, np.array([0.6, 0.8])) == pytest.approx(double)
    assert double <= theory.incoherence_bound(alpha, r) * (1 + 1e-9)
    far = 1 + seed
    flat = theory.block_incoherent_moment(np.full(far, 1 / far), phi)
    assert theory.flat_incoherent_moment(far, phi) == pytest.approx(flat)


@given(st.integers(2, 20), st.floats(0, 2), st.integers(0, 99))
def test_contraction(dim: int, beta: float, seed: int) -> None:
    key = np.eye(dim)[np.zeros(20_000, dtype=int)]
    moved = simulate.reflect(key, simulate.unit_vectors(drawn(seed), len(key), dim), beta)
    assert_within(np.sum(moved**2, axis=1), theory.mean_square_norm(dim, beta, 1), "square")
    assert_within(moved[:, 0], theory.mean_alignment(dim, beta, 1), "alignment")
    assert_within(np.log(np.linalg.norm(moved, axis=1)), theory.log_norm_rate(dim, beta), "logarithm")


def test_log_norm_rate_of_projections_is_a_difference_of_digammas() -> None:
    for dim in (2, 3, 16, 64):
        assert theory.log_norm_rate(dim, 1.0) == pytest.approx((digamma((dim - 1) / 2) - digamma(dim / 2)) / 2)
        assert theory.log_norm_rate(dim, 2.0) == theory.log_norm_rate(dim, 0.0) == 0


def test_simulators_take_the_stated_shapes_and_laws() -> None:
    rng = drawn(0)
    shared = simulate.step_angles(rng, (3, 5), [1.0, 2.0], shared=True)
    assert shared.shape == (3, 5, 2)
    np.testing.assert_allclose(shared[..., 1], 2 * shared[..., 0])
    normal = simulate.unit_vectors(rng, 4, 3)
    x = rng.standard_normal((4, 3))
    matrices = simulate.reflection_matrix(normal, 0.7)
    np.testing.assert_allclose(simulate.reflect(x, normal, 0.7), np.einsum("nde,ne->nd", matrices, x))
