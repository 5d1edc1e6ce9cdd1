"""Evidence for every statement of the theory: a function a statement, which draws from its own stream."""

from collections.abc import Callable, Iterator

from numpy.random import Generator

from longroute.theory.evidence import (
    concentration,
    contraction,
    control,
    far_mass,
    gap,
    pruning,
    route,
    score_gap,
    second_moment,
    typical,
    values,
)
from longroute.theory.simulate import generator
from longroute.theory.statement import Statement

EVIDENCE: tuple[Callable[[Generator], Statement], ...] = (
    route.route_is_frame,
    route.output_is_frame,
    gap.mean_score_attained,
    gap.mean_score_without_commutation,
    gap.mixing_window_by_spread,
    gap.mixing_window_by_length,
    gap.mixing_window_by_block,
    second_moment.second_moment_of_blocks,
    second_moment.second_moment_in_resonance,
    second_moment.second_moment_mixed,
    second_moment.second_moment_under_haar,
    second_moment.second_moment_of_reflections,
    concentration.levy_tail,
    concentration.levy_exponent,
    concentration.hoeffding_tail,
    concentration.hoeffding_exponent,
    concentration.bessel_tail,
    concentration.bessel_exponent,
    score_gap.score_gap_under_haar,
    score_gap.score_gap_along_a_route,
    score_gap.union_budget_under_haar,
    score_gap.union_budget_of_blocks,
    score_gap.far_weight_attained,
    far_mass.far_mass_attained,
    far_mass.far_mass_of_reflections,
    far_mass.half_mass_at_the_latest,
    far_mass.far_mass_at_most,
    typical.typical_law,
    typical.typical_half_mass,
    typical.free_energy_of_few,
    typical.typical_law_at_its_edge,
    typical.typical_law_outside,
    control.alibi_bounds_far_mass,
    control.log_distance_bounds_far_mass,
    control.log_distance_at_the_edge,
    control.summability,
    control.log_distance_tail,
    control.forget_gate_sum,
    control.log_count_bounds_far_mass,
    control.log_count_too_weak,
    control.recall_cost_of_log_distance,
    control.recall_cost_floor,
    pruning.pruning_is_certified,
    pruning.pruning_margin_attained,
    pruning.skipped_mass_attained,
    values.coherent_far_sum,
    values.incoherent_block_sum,
    values.incoherent_flat_law,
    values.incoherent_without_commutation,
    values.far_covariance,
    values.weights_that_see_phases,
    contraction.norm_lost_along_the_route,
    contraction.typical_norm_lost,
    contraction.norm_against_beta,
    contraction.alignment_against_beta,
    contraction.mirrored_direction_alternates,
    contraction.reflection_pair_rotates,
)
"""In the order of the theory. A statement's name is its function's, with hyphens."""


def theory_statements(seed: int) -> Iterator[Statement]:
    """Every statement, one after the other as it is computed; each is a function of the seed and its own name alone.

    Raises ValueError for a negative seed.
    """
    for evidence in EVIDENCE:
        yield evidence(generator(seed, evidence.__name__))
