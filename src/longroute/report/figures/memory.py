"""Holding and remembering in one plane, and recall and the worth of context along length and distance."""

from collections.abc import Mapping
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.comparison import Comparison, EncodingResult
from longroute.report.estimate import Estimate
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
from longroute.report.figures.labels import GAP, Box, label_ends, label_points, margin_for, named, shortened
from longroute.report.recall import TaskRecall
from longroute.report.wording import length_text, multiple_text, share_text, short_length_text

MOST_TICKS = 8
NOTHING = -0.04
"""Where binding below 0 is drawn: not even the set of values is known, and how far below says nothing more."""

Point = tuple[EncodingResult, Estimate, Estimate]


def holding_and_remembering(comparison: Comparison, looks: Mapping[str, Look], task: TaskRecall) -> Figure | None:
    """One point an encoding that learned the task: x its binding, y its tail ratio at the longest length (log).

    None without anything measured beyond the training length.
    """
    longest, points = comparison.longest, _points(comparison, task)
    if longest is None or not comparison.milestones or not points:
        return None
    figure = blank(max(430.0, 150 + 17.0 * len(points)))
    height = figure.get_figheight() * 72
    title = f"tail ratio at {length_text(longest)} tokens ({multiple_text(longest, comparison.train_length)})"
    axes = add_axes(figure, Panel(44, 56, WIDTH - 64, height - 96), title)
    reaches = [1.0, *(reach.value for _, _, reach in points)]
    axes.set_yscale("log")
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    low, high = logarithmic(min(reaches), max(reaches), margin=0.08)
    axes.set_ylim(low * (low / high) ** 0.12, high)
    axes.set_xlim(NOTHING - 0.04, 1.06)
    set_ticks(axes, "y", log_ticks(*axes.get_ylim()), plain)
    set_ticks(axes, "x", [0, 0.25, 0.5, 0.75, 1], share_text)
    at = task.judged_at or 0
    where = f"{length_text(at)} tokens ({multiple_text(at, task.train_length)})"
    label = axes.set_xlabel(f"binding recalled in {task.task} at {where}", size=TEXT, color=INK, labelpad=10)
    label.set_parse_math(False)
    axes.axhline(1.0, color=INK, linewidth=1.0, zorder=1.5)
    axes.text(1.0, 0.012, "better ↘", transform=axes.transAxes, size=TEXT, color=MUTED, style="italic", ha="right")
    for encoding, recall, reach in points:
        _draw_point(axes, encoding, looks[encoding.name], recall, reach)
    frame, one = axes.bbox, float(axes.transData.transform((0.0, 1.0))[1])
    obstacles = [
        Box(frame.x1 - 60, frame.y0, frame.x1, frame.y0 + 16),  # the word in the corner
        Box(frame.x0, one - 2, frame.x1, one + 2),  # the line at 1
    ]
    labels = [named(one, looks[one.name], max(NOTHING, recall.value), reach.value) for one, recall, reach in points]
    label_points(axes, labels, obstacles)
    return figure


def recall_against_length(comparison: Comparison, looks: Mapping[str, Look], task: TaskRecall) -> Figure | None:
    """Binding over context length, of every encoding that learned the task."""
    found = {name: one.binding for name, one in task.learned.items()}
    return _curves(comparison, looks, found, f"binding recalled in {task.task}", task.train_length)


def recall_against_distance(comparison: Comparison, looks: Mapping[str, Look], task: TaskRecall) -> Figure | None:
    """Binding over the distance of what is asked for, all lengths together; points stand where their octave begins."""
    found = {name: one.by_distance for name, one in task.learned.items()}
    return _curves(comparison, looks, found, f"binding recalled in {task.task}, by distance in tokens", None)


def worth_against_length(
    comparison: Comparison, looks: Mapping[str, Look], worth: Mapping[str, Mapping[int, Estimate]], title: str
) -> Figure | None:
    """What context is worth over its length, in nats a token."""
    return _curves(comparison, looks, worth, title, comparison.train_length, share=False)


def _points(comparison: Comparison, task: TaskRecall) -> list[Point]:
    found = []
    for one in comparison.measured:
        recalled = task.learned.get(one.name)
        reach = one.at("tail_ratio", comparison.longest)
        recall = recalled.binding.get(task.judged_at or 0) if recalled else None
        if recall and reach:
            found.append((one, recall, reach))
    return found


def _draw_point(axes: Axes, encoding: EncodingResult, look: Look, recall: Estimate, reach: Estimate) -> None:
    bar: dict[str, Any] = {"color": look.color, "linewidth": 3.0, "alpha": 0.22}
    x, y = max(NOTHING, recall.value), reach.value
    if reach.interval:
        tag(axes, axes.vlines([x], *reach.interval, **bar), encoding.index, "reach")
    if recall.interval:
        low, high = (_within(edge, (NOTHING, 1.0)) for edge in recall.interval)
        tag(axes, axes.hlines([y], low, high, **bar), encoding.index, "recall")
    fill = "none" if look.dashed else look.color
    (mark,) = axes.plot([x], [y], look.marker, color=look.color, markersize=7, markerfacecolor=fill)
    tag(axes, mark, encoding.index, "point")


def _curves(
    comparison: Comparison,
    looks: Mapping[str, Look],
    found: Mapping[str, Mapping[int, Estimate]],
    title: str,
    train_length: int | None,
    *,
    share: bool = True,
) -> Figure | None:
    """Lines over a logarithmic axis of tokens: shares from just below 0 to 1, or any numbers around 0."""
    shown = [one for one in comparison.encodings if found.get(one.name)]
    if not shown:
        return None
    height = max(400.0, 90 + GAP * len(shown))
    figure = blank(height)
    panel = Panel(44, 50, WIDTH - 44 - margin_for(shortened(one.name) for one in shown), height - 90)
    axes = add_axes(figure, panel, title)
    places = sorted({place for one in shown for place in found[one.name]})
    axes.set_xscale("log", base=2)
    axes.set_xlim(*logarithmic(places[0], places[-1], least=2.0))
    step = -(-len(places) // MOST_TICKS)
    set_ticks(axes, "x", places[::-1][::step][::-1], lambda tick: _tick(int(tick), train_length))
    if share:
        axes.set_ylim(NOTHING - 0.03, 1.04)
        set_ticks(axes, "y", [0, 0.25, 0.5, 0.75, 1], share_text)
    else:
        values = [estimate.value for one in shown for estimate in found[one.name].values()]
        margin = 0.06 * max(max(values) - min(values), 0.01)
        axes.set_ylim(min(0.0, *values) - margin, max(0.0, *values) + margin)
        axes.locator_params(axis="y", nbins=6)
    axes.axhline(0.0, color=INK, linewidth=1.0, zorder=1.5)
    limits = (NOTHING, 1.0) if share else axes.get_ylim()
    for one in shown:
        _draw_line(axes, one, looks[one.name], found[one.name], limits)
    last = [(one, max(found[one.name])) for one in shown]
    ends = [named(one, looks[one.name], n, _within(found[one.name][n].value, limits)) for one, n in last]
    label_ends(axes, ends)
    return figure


def _draw_line(
    axes: Axes,
    encoding: EncodingResult,
    look: Look,
    estimates: Mapping[int, Estimate],
    limits: tuple[float, float],
) -> None:
    """A line with its intervals, nothing of it outside the limits."""
    bars = {place: one.interval for place, one in estimates.items() if one.interval is not None}
    if bars:
        lows, highs = zip(*([_within(edge, limits) for edge in pair] for pair in bars.values()), strict=True)
        whiskers = axes.vlines(list(bars), lows, highs, color=look.color, linewidth=3.0, alpha=0.22)
        tag(axes, whiskers, encoding.index, "intervals")
    (line,) = axes.plot(
        list(estimates),
        [_within(one.value, limits) for one in estimates.values()],
        color=look.color,
        linestyle=look.linestyle,
        linewidth=look.width,
        marker=look.marker,
        markersize=4.6,
    )
    tag(axes, line, encoding.index, "line")


def _within(value: float, limits: tuple[float, float]) -> float:
    return min(max(value, limits[0]), limits[1])


def _tick(place: int, train_length: int | None) -> str:
    return short_length_text(place) + (f"\n{multiple_text(place, train_length)}" if train_length else "")
