"""What closed forms refuse: every range that a docstring states."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from longroute import theory

NAN = math.nan

REFUSED: list[tuple[Callable[..., Any], tuple]] = [
    (theory.angle_characteristic, (-1,)),
    (theory.angle_characteristic, (NAN,)),
    (theory.mean_step_norm, (np.ones((2, 3)),)),
    (theory.mixing_window, (1.1, 0.1)),
    (theory.mixing_window, (0.5, 0)),
    (theory.mixing_window, (NAN, 0.1)),
    (theory.mean_score_bound, (1.1, 1, 1, 1, 4)),
    (theory.mean_score_bound, (0.5, -1, 1, 1, 4)),
    (theory.mean_score_bound, (0.5, 1.5, 1, 1, 4)),
    (theory.mean_score_bound, (0.5, 1, -1, 1, 4)),
    (theory.mean_score_bound, (0.5, 1, 1, 1, 0)),
    (theory.mean_block_score, (np.ones(1), 1.1, 1)),
    (theory.mean_score, (np.ones(1), np.ones(1), np.eye(1), -1)),
    (lambda spread: theory.pair_characteristics(spread, shared=True), (-1,)),
    (theory.block_second_moment, (np.ones(1), np.ones((1, 1)), np.ones((1, 1)), -1)),
    (theory.mixed_second_moment, ([-1],)),
    (theory.second_moment_bound, ([1], 1.5, 1)),
    (theory.haar_second_moment, (1,)),
    (theory.householder_second_moment, (1, 1, 0)),
    (theory.householder_second_moment, (4, 1, 1.5)),
    (theory.levy_tail_bound, (-1, 4)),
    (theory.levy_tail_bound, (0.5, 0)),
    (theory.haar_tail, (1.5, 4)),
    (theory.haar_tail, (0.5, 1)),
    (theory.hoeffding_tail_bound, (1, [0])),
    (theory.bessel_tail_bound, (-1, [1])),
    (theory.phase_sum_tail, (1, [1])),
    (theory.haar_score_threshold, (0, 0.1, 1, 1, 4)),
    (theory.haar_score_threshold, (1, 1, 1, 1, 4)),
    (theory.haar_score_threshold, (1, 0.1, 1, 1, 0)),
    (theory.block_score_threshold, (1, 0.1, [-1])),
    (theory.far_weight_bound, (NAN, 1)),
    (theory.far_mass_lower_bound, (-1, 1, 1)),
    (theory.far_mass_lower_bound, (0, 0, 1)),
    (theory.far_mass_lower_bound, (1, 1, -1)),
    (theory.far_mass_upper_bound, (0, 0, 1)),
    (theory.far_mass_upper_bound, (NAN, 1, 1)),
    (theory.half_mass_length, (-1, 1)),
    (theory.typical_far_mass, (0, 1, 1)),
    (theory.typical_far_mass, (1, 0, 1)),
    (theory.typical_far_mass, (1, 1, NAN)),
    (theory.typical_half_mass_length, (0, 1)),
    (theory.gaussian_free_energy, (0, -1)),
    (theory.expected_free_energy, (13.0, 1)),
    (theory.expected_free_energy, (1.0, 0)),
    (theory.expected_far_mass, (1, 0.0, 1.0)),
    (theory.typical_range, (-1,)),
    (theory.geometric_sum, (1, 0)),
    (theory.geometric_sum, (0.5, 3, 2)),
    (theory.log_distance_sum, (-1, 1, 0)),
    (theory.log_distance_sum, (1, 0, 0)),
    (theory.log_distance_sum, (1, 1, 3, 2)),
    (theory.log_distance_tail_bound, (1, 1, 1)),
    (theory.least_far_mass, (1, 1, 5, 5, 1)),
    (theory.log_count_far_sum, (10, 5, -1, 5)),
    (theory.log_count_far_sum, (10, 5, 1, 11)),
    (theory.log_count_far_sum, (10, 11, 1, 5)),
    (theory.recall_cost, (-1, 1, 1)),
    (theory.least_recall_cost, (0, 1)),
    (theory.least_recall_cost, (1, 0)),
    (theory.score_upper_bound, (-1, 1, 0, 4)),
    (theory.score_upper_bound, (1, 1, 0, 0)),
    (theory.pruning_margin, (0, 0.1)),
    (theory.pruning_margin, (1, 1)),
    (theory.skipped_mass_bound, ([NAN], 0)),
    (theory.skipped_mass_bound, ([0], np.inf)),
    (theory.coherent_second_moment, ([1], -1, 0)),
    (theory.block_incoherent_moment, ([-1], 0.5)),
    (theory.block_incoherent_moment, ([1], 1.5)),
    (theory.transported_second_moment, ([-1], np.eye(1), np.ones(1))),
    (theory.incoherence_bound, ([1], 1)),
    (theory.flat_incoherent_moment, (0, 0.5)),
    (theory.flat_incoherent_moment, (1, 1)),
    (theory.far_covariance_bound, ([1], 0.5, -1, 0)),
    (theory.shared_phase_coherence, (-1,)),
    (theory.mean_square_norm, (4, 2.5, 1)),
    (theory.mean_alignment, (1, 1, 1)),
    (theory.log_norm_rate, (4, -1)),
    (theory.mean_reflection, (np.eye(2),)),
    (theory.reflection_pair_angle, (1.5,)),
    (theory.route_transport, (np.ones((3, 2, 2)), 2, 1)),
    (theory.route_transport, (np.ones((3, 2, 2)), 0, 3)),
]


@pytest.mark.parametrize(("function", "given"), REFUSED, ids=lambda one: getattr(one, "__name__", None))
def test_what_is_out_of_range_is_refused(function: Callable[..., Any], given: tuple) -> None:
    with pytest.raises(ValueError, match="needs "):
        function(*given)
