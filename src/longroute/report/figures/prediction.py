"""Where runs broke against where they were predicted to, from short windows alone."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.comparison import Comparison
from longroute.report.figures.canvas import (
    TEXT,
    WIDTH,
    Panel,
    add_axes,
    blank,
    log_ticks,
    logarithmic,
    plain,
    set_ticks,
    tag,
)
from longroute.report.figures.ink import INK, MUTED, RULE, Look
from longroute.report.figures.labels import Box, label_points, named
from longroute.report.prediction import FACTOR, Break, RunBreak


def predicted_and_measured(
    comparison: Comparison, looks: Mapping[str, Look], breaks: Sequence[RunBreak]
) -> Figure | None:
    """One point a run: x the predicted breaking length, y the measured; both log, with the band of a factor of 2.

    A length beyond what was looked at stands on the dashed line there. None without a run that has both.
    """
    if not breaks:
        return None
    figure = blank(470)
    axes = add_axes(figure, Panel(44, 56, WIDTH - 64, 374), "measured breaking length, tokens")
    low, edge = breaks[0].train_length, max(one.measured.searched for one in breaks)
    beyond = edge * 2
    limits = logarithmic(low, beyond, margin=0.05)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*limits)
    axes.set_ylim(*limits)
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    ticks = [tick for tick in log_ticks(*limits) if tick <= edge]
    set_ticks(axes, "x", ticks, plain)
    set_ticks(axes, "y", ticks, plain)
    axes.set_xlabel(
        "predicted from windows of at most 4 × the training length, tokens", size=TEXT, color=INK, labelpad=10
    )
    axes.plot(limits, limits, color=INK, linewidth=1.0, zorder=1.5)
    axes.fill_between(limits, [x / FACTOR for x in limits], [x * FACTOR for x in limits], color=MUTED, alpha=0.12, lw=0)
    for draw in (axes.axhline, axes.axvline):
        draw(edge * 2**0.5, color=MUTED, linewidth=1.0, linestyle=(0, (2, 3)))
    axes.text(0.01, 0.955, "not broken within what was measured", transform=axes.transAxes, size=TEXT - 1, color=MUTED)
    _points(axes, comparison, looks, breaks, beyond)
    return figure


def _points(
    axes: Axes, comparison: Comparison, looks: Mapping[str, Look], breaks: Sequence[RunBreak], beyond: float
) -> None:
    known = {one.name: one for one in comparison.encodings}
    first: dict[str, tuple[float, float]] = {}
    for one in breaks:
        encoding, look = known[one.encoding], looks[one.encoding]
        x, y = _place(one.predicted, beyond), _place(one.measured, beyond)
        first.setdefault(one.encoding, (x, y))
        bar = {"color": look.color, "linewidth": 3.0, "alpha": 0.22}
        tag(axes, axes.hlines([y], *_ends(one.predicted, beyond), **bar), encoding.index, "predicted")
        tag(axes, axes.vlines([x], *_ends(one.measured, beyond), **bar), encoding.index, "measured")
        fill = "none" if look.dashed else look.color
        (mark,) = axes.plot([x], [y], look.marker, color=look.color, markersize=7, markerfacecolor=fill)
        tag(axes, mark, encoding.index, "point")
    labels = [named(known[name], looks[name], x, y) for name, (x, y) in first.items()]
    label_points(axes, labels, list[Box]())


def _place(one: Break, beyond: float) -> float:
    return beyond if one.length is None else min(one.length, beyond)


def _ends(one: Break, beyond: float) -> tuple[float, float]:
    place = _place(one, beyond)
    return min(one.low or place, beyond), min(one.high or beyond, beyond)
