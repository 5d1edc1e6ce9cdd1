"""Bounds are kept by sampled models and attained on their extremal cases."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import softmax

from longroute import theory
from longroute.theory import simulate

COUNTS = st.integers(1, 60)


def far_share(far: list[float], near: list[float]) -> float:
    return float(softmax([*far, *near])[: len(far)].sum())


@given(COUNTS, COUNTS, st.floats(0, 5), st.integers(0, 99))
def test_far_mass_bounds_are_kept_and_attained(far: int, near: int, bound: float, seed: int) -> None:
    logits = simulate.generator(seed, "far mass").uniform(-bound, bound, far + near).tolist()
    least = theory.far_mass_lower_bound(far, near, bound)
    most = theory.far_mass_upper_bound(far, near, bound)
    assert least * (1 - 1e-12) <= far_share(logits[:far], logits[far:]) <= most * (1 + 1e-12)
    assert far_share([-bound] * far, [bound] * near) == pytest.approx(least)
    assert far_share([bound] * far, [-bound] * near) == pytest.approx(most)


@given(COUNTS, st.floats(0, 3))
def test_half_of_the_mass_is_far_at_the_stated_length_and_not_before(near: int, bound: float) -> None:
    length = float(theory.half_mass_length(near, bound))
    assert theory.far_mass_lower_bound(length, near, bound) == pytest.approx(0.5)
    before = math.ceil(length) - 1
    assert not before or far_share([-bound] * before, [bound] * near) < 0.5 + 1e-9


def test_the_typical_law_is_an_identity_in_the_rows_own_free_energy() -> None:
    scores = simulate.generator(0, "typical").standard_normal(200)
    partition, energy = np.exp(scores[:50]).sum(), np.log(np.exp(scores[50:]).mean())
    share = far_share(scores[50:].tolist(), scores[:50].tolist())
    assert theory.typical_far_mass(150, partition, energy) == pytest.approx(share)
    half = theory.typical_half_mass_length(partition, energy)
    assert theory.typical_far_mass(half, partition, energy) == pytest.approx(0.5)


@pytest.mark.parametrize("r", [0.3, 0.9, 0.99])
def test_the_factor_of_the_incoherence_bound_is_approached(r: float) -> None:
    ratios = [
        theory.block_incoherent_moment(np.ones(far), r) / theory.incoherence_bound(np.ones(far), r)
        for far in (10, 100, 10_000)
    ]
    assert ratios == sorted(ratios)
    assert 0.98 < ratios[-1] <= 1


def test_a_mean_angle_makes_the_incoherence_bound_loose() -> None:
    phi = 0.9 * np.exp(1j * np.pi / 2)
    exact = theory.flat_incoherent_moment(10_000, phi) * 10_000
    assert exact == pytest.approx((1 - 0.81) / abs(1 - phi) ** 2, rel=1e-3)
    assert exact < theory.incoherence_bound([1.0], 0.9) / 100


def test_hoeffding_needs_its_factor_and_is_met_by_opposite_phases() -> None:
    assert theory.hoeffding_tail_bound(1, [1.0]) / 2 < 1 <= theory.hoeffding_tail_bound(1, [1.0])


def test_the_bounds_of_uniform_laws_have_their_variances_exponent() -> None:
    """The second derivative of a cumulant at 0 is the variance: no smaller exponent can be right."""
    amplitude = np.array([0.5, 1.0, 2.0])
    x = np.cos(simulate.generator(0, "phases").uniform(0, 2 * np.pi, (200_000, 3))) @ amplitude
    assert np.var(x) == pytest.approx(theory.mixed_second_moment(amplitude), rel=0.02)
    assert -np.log(theory.bessel_tail_bound(3.0, amplitude) / 2) == pytest.approx(9 / (2 * np.var(x)), rel=0.02)


@pytest.mark.parametrize(("exponent", "bounded"), [(0.5, False), (1.0, False), (1.001, True), (1.5, True)])
def test_summability_is_the_criterion(exponent: float, bounded: bool) -> None:
    """Even content that does its best lets the far mass go to 1 exactly when the bias isn't summable."""
    limit = theory.least_far_mass(exponent, 16.0, 64, math.inf, 2.0)
    masses = [theory.least_far_mass(exponent, 16.0, 64, 10.0**k, 2.0) for k in (3, 10, 100, 300)]
    assert masses == sorted(masses)
    assert masses[-1] <= limit
    assert (limit < 1) == bounded
    near, far = theory.log_distance_sum(exponent, 16.0, 0, 64), theory.log_distance_sum(exponent, 16.0, 65)
    assert np.isfinite(far) == bounded
    if bounded:
        assert theory.far_mass_upper_bound(far, near, 2.0) < 1


@pytest.mark.parametrize(("strength", "limit"), [(0.5, 1.0), (1.0, None), (1.5, 0.0)])
def test_log_count_offset_holds_from_strength_one(strength: float, limit: float | None) -> None:
    far = theory.log_count_far_sum([1e3, 1e6, 1e12, 1e18], 64, strength, 256.0)
    masses = theory.far_mass_upper_bound(far, 64, 1.0)
    if limit is None:
        assert np.all(masses <= theory.far_mass_upper_bound(256.0, 64, 1.0))
    else:
        assert masses[-1] == pytest.approx(limit, abs=1e-3)


@given(st.floats(0.001, 2), st.integers(1, 200), st.integers(0, 99))
def test_no_falling_bias_recalls_cheaper_than_the_floor(slope: float, distance: int, seed: int) -> None:
    falls = simulate.generator(seed, "bias").exponential(slope, 400)
    bias = -np.cumsum(falls)
    cost = -bias[distance - 1]
    assert cost >= theory.least_recall_cost(distance, np.exp(bias).sum()) - 1e-9


@given(st.integers(2, 12), st.floats(0, 2 * np.pi), st.integers(0, 99))
def test_two_reflections_rotate_by_twice_the_angle(dim: int, between: float, seed: int) -> None:
    plane = simulate.haar_orthogonal(simulate.generator(seed, "plane"), 1, dim)[0][:2]
    second = np.cos(between) * plane[0] + np.sin(between) * plane[1]
    product = simulate.reflection_matrix(second) @ simulate.reflection_matrix(plane[0])
    angle = theory.reflection_pair_angle(np.clip(second @ plane[0], -1, 1))
    assert np.trace(product) == pytest.approx(dim - 2 + 2 * np.cos(angle), abs=1e-7)


def test_a_mirror_seen_more_often_than_not_has_a_negative_eigenvalue() -> None:
    for odds, beta, negative in ((0.9, 2.0, True), (0.4, 2.0, False), (0.9, 1.0, False), (0.6, 1.8, True)):
        smallest = np.linalg.eigvalsh(
            theory.mean_reflection(np.diag([odds, (1 - odds) / 2, (1 - odds) / 2]), beta)
        ).min()
        assert (smallest < -1e-12) == negative, (odds, beta)


def test_weights_that_see_phases_keep_half_of_their_logit_coherent() -> None:
    assert theory.shared_phase_coherence(0.0) == 0
    assert theory.shared_phase_coherence(0.01) == pytest.approx(0.005, rel=1e-4)
    assert theory.shared_phase_coherence(1e4) == pytest.approx(1, abs=1e-3)


@given(st.integers(1, 300), st.floats(0, 6), st.sampled_from([1e-3, 0.05, 0.5]), st.integers(0, 99))
def test_certified_pruning_never_loses_more_than_allowed(length: int, wide: float, epsilon: float, seed: int) -> None:
    rng = simulate.generator(seed, "pruning")
    scores, slack = rng.normal(0, wide, length), rng.exponential(1.0, length)
    known = np.logaddexp.reduce(scores[: 1 + length // 2])
    skipped = scores + slack < known - theory.pruning_margin(length, epsilon)
    mass = softmax(scores)[skipped].sum()
    assert mass <= theory.skipped_mass_bound((scores + slack)[skipped], known) <= epsilon


def test_the_frame_serves_steps_that_contract_too() -> None:
    rng = simulate.generator(0, "path")
    steps = simulate.reflection_matrix(simulate.unit_vectors(rng, 12, 4), 0.8)
    query, key, value = rng.standard_normal((3, 12, 4))
    charge = -np.cumsum(rng.exponential(0.2, 12))
    given = (query, key, value, steps, charge)
    np.testing.assert_allclose(theory.attention_by_frame(*given), theory.attention_by_route(*given), atol=1e-9)
    shifted = (query, key, value, steps, charge + 5.0)
    np.testing.assert_allclose(theory.attention_by_frame(*shifted), theory.attention_by_frame(*given), atol=1e-9)
