"""A measure against context length, one line an encoding: the main figure, its twin, and perplexity."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.comparison import Comparison, EncodingResult
from longroute.report.estimate import Estimate
from longroute.report.figures.canvas import (
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
from longroute.report.figures.ink import INK, Look
from longroute.report.figures.labels import GAP, label_ends, margin_for, named, shortened
from longroute.report.wording import multiple_text, short_length_text

MOST_TICKS = 8


def against_length(comparison: Comparison, looks: Mapping[str, Look], measure: str, title: str) -> Figure:
    """Lines of `measure` over length, both axes logarithmic, intervals as bars; ratios have a line at 1."""
    shown = [one for one in comparison.measured if one.measures[measure]]
    figure, axes = line_figure(shown, title)
    _scale(axes, comparison, shown, measure)
    if measure.endswith("ratio"):
        axes.axhline(1.0, color=INK, linewidth=1.0, zorder=1.5)
    for encoding in shown:
        draw_line(axes, encoding, looks[encoding.name], encoding.measures[measure])
    last = [(one, max(one.measures[measure])) for one in shown]
    ends = [named(one, looks[one.name], length, one.measures[measure][length].value) for one, length in last]
    label_ends(axes, ends)
    return figure


def line_figure(shown: Sequence[EncodingResult], title: str) -> tuple[Figure, Axes]:
    """A figure whose axes have room to the right for the names of these encodings."""
    height = max(400.0, 90 + GAP * len(shown))
    figure = blank(height)
    panel = Panel(44, 50, WIDTH - 44 - margin_for(shortened(one.name) for one in shown), height - 90)
    return figure, add_axes(figure, panel, title)


def _scale(axes: Axes, comparison: Comparison, shown: list[EncodingResult], measure: str) -> None:
    """Limits from the values, not from their intervals: two seeds' intervals would hide everything else."""
    values = [estimate.value for one in shown for estimate in one.measures[measure].values()]
    if measure.endswith("ratio"):
        values.append(1.0)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlim(*logarithmic(comparison.lengths[0], comparison.lengths[-1], least=2.0))
    axes.set_ylim(*logarithmic(min(values), max(values)))
    set_ticks(axes, "y", log_ticks(*axes.get_ylim()), plain)
    set_length_ticks(axes, comparison.lengths, comparison.train_length)


def set_length_ticks(axes: Axes, lengths: Sequence[int], train_length: int | None) -> None:
    """At most eight ticks, with multiples of the training length if there is one to compare with."""
    step = -(-len(lengths) // MOST_TICKS)
    # Counted from the longest, so that it always has its tick.
    ticks = lengths[::-1][::step][::-1]
    set_ticks(axes, "x", ticks, lambda tick: _tick(int(tick), train_length))


def _tick(length: int, train_length: int | None) -> str:
    return short_length_text(length) + (f"\n{multiple_text(length, train_length)}" if train_length else "")


def draw_line(axes: Axes, encoding: EncodingResult, look: Look, estimates: Mapping[int, Estimate]) -> None:
    """A line through the estimates, with their intervals as bars."""
    bars = {length: one.interval for length, one in estimates.items() if one.interval is not None}
    if bars:
        lows, highs = zip(*bars.values(), strict=True)
        whiskers = axes.vlines(list(bars), lows, highs, color=look.color, linewidth=3.0, alpha=0.22)
        tag(axes, whiskers, encoding.index, "intervals")
    (line,) = axes.plot(
        list(estimates),
        [one.value for one in estimates.values()],
        color=look.color,
        linestyle=look.linestyle,
        linewidth=look.width,
        marker=look.marker,
        markersize=4.6,
    )
    tag(axes, line, encoding.index, "line")
