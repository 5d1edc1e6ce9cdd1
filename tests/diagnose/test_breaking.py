"""Breaking lengths from planted curves, ranked causes from planted losses, and the tail that both are measured on."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from longroute.diagnose.breaking import breaking_length
from longroute.diagnose.causes import UNDOES, rank_causes
from longroute.diagnose.tail import tail_windows


def planted(slope: float, units: int = 12, noise: float = 0.0) -> dict[int, list[float]]:
    """Losses that grow by `slope` nats with every doubling from 64."""
    return {
        64 << k: [4.0 + 0.1 * u + slope * k + noise * ((-1) ** u) * (k > 0) for u in range(units)] for k in range(8)
    }


def test_the_crossing_is_where_the_planted_curve_passes_a_tenth():
    found = breaking_length(planted(0.03), 64)
    assert found.length == pytest.approx(64 * 2 ** (math.log(1.1) / 0.03))
    assert found.low == pytest.approx(found.length)
    assert found.searched == 8192


def test_noise_widens_the_interval_around_it():
    found = breaking_length(planted(0.03, noise=0.05), 64)
    assert found.low is not None
    assert found.high is not None
    assert found.low < (found.length or 0) < found.high


def test_a_model_that_does_not_break_is_said_not_to():
    found = breaking_length(planted(0.01), 64)
    assert (found.length, found.low, found.high) == (None, None, None)


def test_lengths_below_the_training_length_do_not_count():
    units = planted(0.03) | {32: [9.0] * 12}
    assert breaking_length(units, 64) == breaking_length(planted(0.03), 64)


def test_one_length_alone_breaks_nowhere():
    assert breaking_length({64: [1.0, 2.0]}, 64).length is None


def test_causes_are_ranked_by_what_undoing_them_recovers():
    trained, broken = [4.0] * 8, [4.5] * 8
    undone = {
        UNDOES["dilution"]: [4.1] * 8,
        UNDOES["untrained positions"]: [4.4] * 8,
        UNDOES["coherent far values"]: [4.6] * 8,
        UNDOES["precision"]: [4.5] * 8,
    }
    ranked = rank_causes(trained, broken, undone, {"contraction": {"norm": 1.0}})
    assert [cause.name for cause in ranked] == [
        "dilution",
        "untrained positions",
        "precision",
        "coherent far values",
        "contraction",
    ]
    assert [cause.recovered for cause in ranked[:4]] == pytest.approx([0.8, 0.2, 0.0, -0.2])
    assert ranked[-1].recovered is None
    assert ranked[-1].evidence == {"norm": 1.0}


@given(st.integers(2, 40), st.integers(1, 6), st.integers(1, 60))
def test_the_tail_scores_each_target_once_with_enough_context(half, more, tail):
    length = 2 * half
    tail = min(tail, length)
    targets = max(length, 2 * tail, length * more // 4)
    windows = tail_windows(targets, tail, length)
    scored = [target for _, first, last in windows for target in range(first, last)]
    assert scored == list(range(targets - tail, targets))
    assert all(0 <= start <= first < last <= start + length for start, first, last in windows)
