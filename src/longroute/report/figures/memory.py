"""Holding and remembering in one plane, and recall and the worth of context along length and distance."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.comparison import Comparison
from longroute.report.estimate import Estimate
from longroute.report.figures.canvas import logarithmic, set_ticks
from longroute.report.figures.ink import INK, Look
from longroute.report.figures.labels import label_ends, named
from longroute.report.figures.lengths import draw_line, line_figure, set_length_ticks
from longroute.report.figures.plane import reach_plane
from longroute.report.recall import TaskRecall
from longroute.report.wording import length_text, multiple_text, share_text

SHARES = (0, 0.25, 0.5, 0.75, 1)
NOTHING = -0.04
"""Where binding below 0 is drawn: not even the set of values is known, and how far below says nothing more."""


def holding_and_remembering(comparison: Comparison, looks: Mapping[str, Look], task: TaskRecall) -> Figure | None:
    """One point an encoding that learned the task: x its binding, y its tail ratio at the longest length (log).

    None without anything measured beyond the training length.
    """
    at = task.judged_at or 0
    recalls = {name: one.binding[at] for name, one in task.learned.items() if at in one.binding}
    found = ((one, recalls.get(one.name), one.at("tail_ratio", comparison.longest)) for one in comparison.measured)
    points = [(one, _drawn(recall), reach) for one, recall, reach in found if recall and reach]

    def scale(axes: Axes) -> None:
        axes.set_xlim(NOTHING - 0.04, 1.06)
        set_ticks(axes, "x", SHARES, share_text)

    label = f"binding recalled in {task.task} at {length_text(at)} tokens ({multiple_text(at, task.train_length)})"
    return reach_plane(comparison, looks, points, label, scale, better="right")


def recall_against_length(comparison: Comparison, looks: Mapping[str, Look], task: TaskRecall) -> Figure | None:
    """Binding over context length, of every encoding that learned the task."""
    found = {name: one.binding for name, one in task.learned.items()}
    return _shares(comparison, looks, found, f"binding recalled in {task.task}", task.train_length)


def recall_against_distance(comparison: Comparison, looks: Mapping[str, Look], task: TaskRecall) -> Figure | None:
    """Binding over the distance of what is asked for, all lengths together; points stand where their octave begins."""
    found = {name: one.by_distance for name, one in task.learned.items()}
    return _shares(comparison, looks, found, f"binding recalled in {task.task}, by distance in tokens", None)


def worth_against_length(
    comparison: Comparison, looks: Mapping[str, Look], worth: Mapping[str, Mapping[int, Estimate]], title: str
) -> Figure | None:
    """What context is worth over its length, in nats a token."""
    values = [estimate.value for one in worth.values() for estimate in one.values()]

    def scale(axes: Axes) -> None:
        margin = 0.06 * max(max(values) - min(values), 0.01)
        axes.set_ylim(min(0.0, *values) - margin, max(0.0, *values) + margin)
        axes.locator_params(axis="y", nbins=6)

    return _curves(comparison, looks, worth, title, comparison.train_length, scale)


def _shares(
    comparison: Comparison,
    looks: Mapping[str, Look],
    found: Mapping[str, Mapping[int, Estimate]],
    title: str,
    train_length: int | None,
) -> Figure | None:
    def scale(axes: Axes) -> None:
        axes.set_ylim(NOTHING - 0.03, 1.04)
        set_ticks(axes, "y", SHARES, share_text)

    drawn = {name: {place: _drawn(one) for place, one in by_place.items()} for name, by_place in found.items()}
    return _curves(comparison, looks, drawn, title, train_length, scale)


def _curves(
    comparison: Comparison,
    looks: Mapping[str, Look],
    found: Mapping[str, Mapping[int, Estimate]],
    title: str,
    train_length: int | None,
    scale: Callable[[Axes], None],
) -> Figure | None:
    """Lines over a logarithmic axis of tokens, the vertical one as `scale` sets it; None without any."""
    shown = [one for one in comparison.encodings if found.get(one.name)]
    if not shown:
        return None
    figure, axes = line_figure(shown, title)
    places = sorted({place for one in shown for place in found[one.name]})
    axes.set_xscale("log", base=2)
    axes.set_xlim(*logarithmic(places[0], places[-1], least=2.0))
    set_length_ticks(axes, places, train_length)
    scale(axes)
    axes.axhline(0.0, color=INK, linewidth=1.0, zorder=1.5)
    for one in shown:
        draw_line(axes, one, looks[one.name], found[one.name])
    last = [(one, max(found[one.name])) for one in shown]
    label_ends(axes, [named(one, looks[one.name], place, found[one.name][place].value) for one, place in last])
    return figure


def _drawn(binding: Estimate) -> Estimate:
    """The estimate with nothing below NOTHING."""
    low, high = (None if edge is None else max(NOTHING, edge) for edge in (binding.low, binding.high))
    return replace(binding, value=max(NOTHING, binding.value), low=low, high=high)
