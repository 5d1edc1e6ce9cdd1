"""Figures: names apart, ticks round, a dial only where there is one, all of it well-formed."""

import itertools
import xml.etree.ElementTree as ElementTree

import planted_reports as planted
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longroute.report.comparison import read_comparison
from longroute.report.figures import draw_figures
from longroute.report.figures.canvas import log_ticks
from longroute.report.figures.dial import find_dials
from longroute.report.figures.labels import spread
from longroute.report.figures.training import averaged, tokens_text
from longroute.report.run_log import Curve, read_records


@given(st.lists(st.floats(-50, 450), max_size=30))
def test_spread_labels_keep_their_gap_their_order_and_their_bounds(wanted: list[float]) -> None:
    placed = spread(wanted, 15.0, 0.0, 400.0)
    gap = min(15.0, 400.0 / max(1, len(wanted) - 1))
    ordered = [placed[i] for i in sorted(range(len(wanted)), key=lambda i: (wanted[i], i))]
    assert all(after - before >= gap - 1e-9 for before, after in itertools.pairwise(ordered))
    assert all(-1e-9 <= y <= 400 + 1e-9 for y in placed)


def test_spread_leaves_labels_that_are_apart_where_they_are() -> None:
    assert spread([300.0, 10.0, 100.0], 15.0, 0.0, 400.0) == pytest.approx([300.0, 10.0, 100.0])
    assert spread([100.0, 100.0], 10.0, 0.0, 400.0) == pytest.approx([95.0, 105.0])


@given(st.floats(1e-3, 1e4), st.floats(1.05, 1e6))
def test_ticks_lie_within_the_axis_and_are_few(low: float, factor: float) -> None:
    ticks = log_ticks(low, low * factor)
    assert 1 <= len(ticks) <= 12
    assert all(low * (1 - 1e-9) <= tick <= low * factor * (1 + 1e-9) for tick in ticks)
    assert ticks == sorted(ticks)


def test_training_curves_are_averaged_in_bins() -> None:
    curve = Curve("a", 0, tuple(float(t) for t in range(1, 1001)), tuple(float(t) for t in range(1, 1001)))
    points = averaged(curve)
    assert len(points) == 100
    assert all(x == pytest.approx(y) for x, y in points)
    assert [tokens_text(n) for n in (0, 500_000, 2.5e6, 1e9)] == ["0", "500 K", "2.5 M", "1 B"]


def test_a_dial_needs_three_spreads_and_nothing_else_changed() -> None:
    family = [planted.row(f"random-{at}", 70 + at, spread=10.0**-at) for at in range(3)]
    (dial,) = find_dials(read_comparison(planted.summary(*family)))
    assert dial.field == "slowest"
    assert [angle for angle, _ in dial.points] == [0.01, 0.1, 1.0]
    assert not find_dials(read_comparison(planted.summary(*family[:2])))
    family[0]["spec"]["transport"]["by"] = "position"
    assert not find_dials(read_comparison(planted.summary(*family)))


def test_seeds_of_one_encoding_are_no_dial() -> None:
    rows = [planted.row("random", seed=seed, spread=0.1) for seed in range(4)]
    assert not find_dials(read_comparison(planted.summary(*rows)))


def test_every_figure_is_well_formed_and_names_every_encoding_once() -> None:
    rows = planted.trial()
    records = read_records(planted.training_records(*rows))
    figures = draw_figures(read_comparison(planted.summary(*rows)), records.curves)
    assert list(figures) == [
        "tail-ratio",
        "whole-ratio",
        "price-and-reach",
        "tail-perplexity",
        "training",
        "dial",
    ]
    for name, svg in figures.items():
        texts = ["".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter() if "text" in node.tag]
        for row in rows if name != "dial" else []:
            drawn = name == "training" or row["status"] == "ok"
            assert texts.count(row["encoding"]) == int(drawn), (name, row["encoding"])
