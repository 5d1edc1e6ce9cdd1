"""A wrong constant planted in any closed form turns a statement false, too large or too small alike."""

import importlib
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import longroute.theory
from longroute.theory import Statement
from longroute.theory.evidence import EVIDENCE
from longroute.theory.simulate import generator

CHECKED_BY = {
    "attention_by_frame": "output_is_frame",
    "attention_by_route": "output_is_frame",
    "route_transport": "route_is_frame",
    "angle_characteristic": "incoherent_flat_law",
    "mean_block_score": "mean_score_attained",
    "mean_score": "mean_score_without_commutation",
    "mean_score_bound": "mean_score_attained",
    "mean_step_norm": "mean_score_without_commutation",
    "mixing_window": "mixing_window_by_block",
    "block_second_moment": "second_moment_of_blocks",
    "haar_second_moment": "second_moment_under_haar",
    "householder_second_moment": "second_moment_of_reflections",
    "mixed_second_moment": "second_moment_mixed",
    "second_moment_bound": "second_moment_of_blocks",
    "haar_tail": "levy_tail",
    "phase_sum_tail": "bessel_tail",
    "levy_tail_bound": "union_budget_under_haar",
    "bessel_tail_bound": "union_budget_of_blocks",
    "block_score_threshold": "union_budget_of_blocks",
    "haar_score_threshold": "union_budget_under_haar",
    "far_weight_bound": "far_weight_attained",
    "far_mass_lower_bound": "far_mass_attained",
    "far_mass_upper_bound": "far_mass_at_most",
    "half_mass_length": "half_mass_at_the_latest",
    "expected_far_mass": "typical_law",
    "expected_free_energy": "free_energy_of_few",
    "gaussian_free_energy": "free_energy_of_few",
    "typical_far_mass": "typical_law",
    "typical_half_mass_length": "typical_half_mass",
    "geometric_sum": "forget_gate_sum",
    "least_far_mass": "log_distance_at_the_edge",
    "least_recall_cost": "recall_cost_floor",
    "log_count_far_sum": "log_count_bounds_far_mass",
    "log_distance_sum": "log_distance_tail",
    "log_distance_tail_bound": "log_distance_tail",
    "recall_cost": "recall_cost_of_log_distance",
    "pruning_margin": "pruning_margin_attained",
    "score_upper_bound": "skipped_mass_attained",
    "skipped_mass_bound": "skipped_mass_attained",
    "block_incoherent_moment": "incoherent_block_sum",
    "coherent_second_moment": "coherent_far_sum",
    "far_covariance_bound": "far_covariance",
    "flat_incoherent_moment": "incoherent_flat_law",
    "incoherence_bound": "incoherent_flat_law",
    "shared_phase_coherence": "weights_that_see_phases",
    "transported_second_moment": "incoherent_without_commutation",
    "log_norm_rate": "typical_norm_lost",
    "mean_alignment": "alignment_against_beta",
    "mean_reflection": "mirrored_direction_alternates",
    "mean_square_norm": "norm_against_beta",
    "reflection_pair_angle": "reflection_pair_rotates",
}
"""Closed forms that are scaled by 1.1 and by 0.9, and the evidence that must notice."""


def off_by(factor: float) -> Callable[[Any], Any]:
    return lambda right: lambda *given, **named: right(*given, **named) * factor


def replaced(wrong: Callable[..., Any]) -> Callable[[Any], Any]:
    return lambda right: wrong


MISTAKES: list[tuple[str, str, str, Callable[[Any], Any]]] = [
    *((name, f"times {factor}", by, off_by(factor)) for name, by in CHECKED_BY.items() for factor in (1.1, 0.9)),
    (
        "accumulated_frame",
        "the last step on the right",
        "output_is_frame",
        replaced(
            lambda steps: np.array([np.linalg.multi_dot([np.eye(6), np.eye(6), *steps[: t + 1]]) for t in range(48)])
        ),
    ),
    ("second_moment_radius", "times 0.9", "second_moment_of_blocks", off_by(0.9)),
    (
        "pair_characteristics",
        "independent where shared",
        "second_moment_in_resonance",
        lambda right: lambda spread, *, shared: right(spread, shared=not shared),
    ),
    (
        "typical_range",
        "e^{σ²}",
        "typical_law_at_its_edge",
        replaced(lambda spread: np.exp(np.asarray(spread) ** 2)),
    ),
    (
        "typical_range",
        "e^{σ²/4}",
        "typical_law_at_its_edge",
        replaced(lambda spread: np.exp(np.asarray(spread) ** 2 / 4)),
    ),
    (
        "hoeffding_tail_bound",
        "without the factor 2",
        "hoeffding_exponent",
        off_by(0.5),
    ),
    (
        "hoeffding_tail_bound",
        "exponent doubled",
        "hoeffding_exponent",
        replaced(lambda t, r: 2 * np.exp(-(np.asarray(t) ** 2) / np.sum(np.square(r)))),
    ),
    (
        "bessel_tail_bound",
        "exponent of Hoeffding",
        "bessel_exponent",
        replaced(lambda t, r: 2 * np.exp(-(np.asarray(t) ** 2) / (2 * np.sum(np.square(r))))),
    ),
    (
        "bessel_tail_bound",
        "exponent a tenth too large",
        "bessel_exponent",
        replaced(lambda t, r: 2 * np.exp(-1.1 * np.asarray(t) ** 2 / np.sum(np.square(r)))),
    ),
    (
        "levy_tail_bound",
        "exponent a twentieth too large",
        "levy_exponent",
        replaced(lambda t, d: 2 * np.exp(-1.05 * d * np.asarray(t) ** 2 / 2)),
    ),
    (
        "levy_tail_bound",
        "exponent a twentieth too small",
        "levy_exponent",
        replaced(lambda t, d: 2 * np.exp(-0.95 * d * np.asarray(t) ** 2 / 2)),
    ),
    (
        "mean_score_bound",
        "r² for r",
        "mean_score_attained",
        lambda right: lambda r, *rest: right(r**2, *rest),
    ),
    (
        "incoherence_bound",
        "r² for r",
        "incoherent_flat_law",
        lambda right: lambda alpha, r: right(alpha, r**2),
    ),
    (
        "incoherence_bound",
        "1/(1-r)",
        "incoherent_flat_law",
        lambda right: lambda alpha, r: right(alpha, r) / (1 + r),
    ),
    (
        "far_mass_lower_bound",
        "e^λ for e^{2λ}",
        "far_mass_attained",
        lambda right: lambda far, near, bound: right(far, near, bound / 2),
    ),
    (
        "least_far_mass",
        "criterion at κ = 1.1",
        "summability",
        lambda right: lambda k, w, d, n, bound: 1.0 if k <= 1.1 and n == np.inf else right(k, w, d, n, bound),
    ),
    (
        "gaussian_free_energy",
        "σ² for σ²/2",
        "typical_law",
        replaced(lambda mean, spread: mean + np.asarray(spread) ** 2),
    ),
    (
        "householder_second_moment",
        "rate (1-2/d)²",
        "second_moment_of_reflections",
        replaced(lambda d, n, c: 1 / d + (c**2 - 1 / d) * (1 - 2 / d) ** (2 * n)),
    ),
    (
        "mixing_window",
        "logarithm of 1/ε² for 1/ε",
        "mixing_window_by_spread",
        lambda right: lambda r, epsilon: right(r, epsilon**2),
    ),
]


def evidence(name: str) -> Statement:
    (chosen,) = [one for one in EVIDENCE if one.__name__ == name]
    return chosen(generator(0, name))


@pytest.mark.parametrize(
    ("name", "by", "mistake"),
    [pytest.param(name, by, mistake, id=f"{name}: {what}") for name, what, by, mistake in MISTAKES],
)
def test_a_wrong_constant_is_noticed(
    name: str, by: str, mistake: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = importlib.import_module(getattr(longroute.theory, name).__module__)
    monkeypatch.setattr(home, name, mistake(getattr(home, name)))
    assert not evidence(by).holds


def test_every_closed_form_has_a_planted_mistake() -> None:
    public = {name for name, one in vars(longroute.theory).items() if inspect.isfunction(one)}
    assert public == {name for name, *_ in MISTAKES}
