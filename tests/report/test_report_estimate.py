"""Means and intervals over seeds, against numbers worked by hand and against scipy."""

import math

import planted_reports as planted
import pytest
from scipy import stats

from longroute.report.comparison import read_comparison
from longroute.report.estimate import Estimate, estimate_over_seeds, finite


def test_three_seeds_average_in_nats_with_a_t_interval() -> None:
    values = [60.0, 62.0, 65.0]
    found = estimate_over_seeds([Estimate(value) for value in values])
    logs = [math.log(value) for value in values]
    expected = stats.t.interval(0.95, 2, loc=sum(logs) / 3, scale=stats.sem(logs))
    assert found is not None
    assert found.value == pytest.approx((60 * 62 * 65) ** (1 / 3))
    assert found.interval == pytest.approx(tuple(math.exp(edge) for edge in expected))
    assert found.source == "seeds"


def test_equal_seeds_have_an_interval_of_no_width() -> None:
    found = estimate_over_seeds([Estimate(2.0), Estimate(2.0)])
    assert found is not None
    assert (found.low, found.value, found.high) == pytest.approx((2.0, 2.0, 2.0))


def test_two_wild_seeds_saturate_rather_than_overflow() -> None:
    found = estimate_over_seeds([Estimate(1.0), Estimate(1e300)])
    assert found is not None
    assert found.low is not None
    assert found.high is not None
    assert 0 < found.low < found.value < found.high < math.inf


def test_a_lone_seed_keeps_its_bootstrap_interval() -> None:
    rows = [planted.row("a", 70, 1.5, interval=True)]
    (encoding,) = read_comparison(planted.summary(*rows)).encodings
    estimate = encoding.at("tail_ratio", 8192)
    assert estimate is not None
    assert estimate.source == "spans"
    assert estimate.value == rows[0]["tail_ratio"]["8192"]
    assert estimate.interval == tuple(rows[0]["interval"]["tail_ratio"]["8192"])


def test_seeds_are_grouped_and_failed_ones_counted_apart() -> None:
    rows = [planted.row("a", 60 + seed, seed=seed) for seed in range(3)]
    (encoding,) = read_comparison(planted.summary(*rows, planted.failed_row("a", seed=3))).encodings
    assert (encoding.seeds, encoding.failed) == (3, 1)
    assert encoding.value("perplexity", 64) == pytest.approx((60 * 61 * 62) ** (1 / 3))


def test_a_seed_without_a_length_leaves_it_to_the_others() -> None:
    first, second = planted.row("a", 60), planted.row("a", 62, seed=1)
    first["perplexity"]["64"] = None
    (encoding,) = read_comparison(planted.summary(first, second)).encodings
    assert encoding.value("perplexity", 64) == 62


@pytest.mark.parametrize("nothing", [None, math.nan, math.inf, 0, -1.0, "7", True])
def test_what_is_not_a_positive_finite_number_is_not_measured(nothing: object) -> None:
    assert finite(nothing) is None
