"""What undoing each cause recovers, and what each control does to perplexity: horizontal bars by name."""

import math
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.diagnosis.figures.frame import KEPT, MEASURED, PREDICTED, write_legend
from longroute.report.diagnosis.findings import Findings
from longroute.report.diagnosis.verdict import proven
from longroute.report.diagnosis.words import percent
from longroute.report.figures.canvas import TEXT, WIDTH, Panel, add_axes, blank, log_ticks, logarithmic, set_ticks
from longroute.report.figures.ink import INK, MUTED
from longroute.report.figures.labels import shortened
from longroute.report.wording import perplexity_text

ROW = 46.0
_LEFT = 176.0
_LEAST, _MOST = -1.0, 1.5
"""Shares outside these are drawn up to the edge; their number stands beside them."""


def causes_figure(findings: Findings) -> Figure | None:
    """A bar a cause, from 0 to the share recovered, with its 95 % interval; hollow where it is no cause."""
    tried = [one for one in findings.causes if one["recovered"] is not None]
    if not tried:
        return None
    names = {one["name"] for one in proven(findings)}
    title = f"share recovered of the loss that {findings.evidence_length:,} tokens add"
    axes = _rows(title, len(tried), [("■ a cause", MEASURED), ("□ none shown", MUTED)])
    low = min(0.0, *(max(_LEAST, _or(one["low"], one["recovered"])) for one in tried))
    high = max(1.0, *(min(_MOST, _or(one["high"], one["recovered"])) for one in tried))
    axes.set_xlim(low - 0.03, high + 0.03)
    fine = 4 if high - low < 1.3 else 2
    ticks = range(math.ceil(low * fine), math.floor(high * fine) + 1)
    set_ticks(axes, "x", [k / fine for k in ticks], percent)
    axes.axvline(0, color=MUTED, linewidth=1)
    for row, one in enumerate(tried):
        ends = [min(max(_or(one[key], one["recovered"]), low), high) for key in ("recovered", "low", "high")]
        color = MEASURED if one["name"] in names else MUTED
        fill = MEASURED if one["name"] in names else "none"
        axes.barh(row, ends[0], height=0.36, color=fill, edgecolor=color, linewidth=1)
        axes.hlines(row, ends[1], ends[2], color=INK, linewidth=1.6)
        words = f"{percent(one['recovered'])}  ({percent(one['low'])} to {percent(one['high'])})"
        _name(axes, row, one["name"], words, color)
    return _figure(axes)


def controls_figure(findings: Findings) -> Figure | None:
    """From each control's perplexity before to that after, with that at the training length as a tick."""
    controls = findings.controls
    if not controls:
        return None
    length = findings.evidence_length
    legend = [("○ without", PREDICTED), ("● with it", KEPT), (f"┃ at {findings.train_length:,} tokens", INK)]
    axes = _rows(f"perplexity at {length:,} tokens, log scale", len(controls), legend)
    keys = ("at_train", "before", "after")
    values = [one[key] for one in controls for key in keys if one[key] is not None]
    axes.set_xscale("log")
    axes.set_xlim(*logarithmic(min(values), max(values), margin=0.07))
    set_ticks(axes, "x", log_ticks(*axes.get_xlim(), most=6), perplexity_text)
    for row, one in enumerate(controls):
        if one["at_train"] is not None:
            axes.vlines(one["at_train"], row - 0.18, row + 0.18, color=INK, linewidth=2)
        color = KEPT if one["after"] < one["before"] else PREDICTED
        axes.hlines(row, *sorted((one["before"], one["after"])), color=color, linewidth=4, alpha=0.35)
        axes.plot([one["before"]], [row], "o", color=PREDICTED, markerfacecolor="none", markersize=9, zorder=3)
        axes.plot([one["after"]], [row], "o", color=KEPT, markersize=8, zorder=3)
        _name(axes, row, one["name"], f"{perplexity_text(one['before'])} → {perplexity_text(one['after'])}", color)
    return _figure(axes)


def _rows(title: str, rows: int, legend: Sequence[tuple[str, str]]) -> Axes:
    """Axes with so many rows, the first on top, and room for names beside them."""
    height = ROW * rows + 100
    figure = blank(height)
    axes = add_axes(figure, Panel(_LEFT, 36, WIDTH - _LEFT - 16, ROW * rows), "")
    figure.text(0, (height - 16) / height, title, size=TEXT, color=INK)
    write_legend(figure, legend, height - 38)
    axes.grid(visible=False)
    axes.set_ylim(rows - 0.5, -0.5)
    set_ticks(axes, "y", (), str)
    return axes


def _name(axes: Axes, row: int, name: str, value: str, color: str) -> None:
    """A row's name, and its value in words under it, left of the axes."""
    figure = _figure(axes)
    height = figure.get_figheight() * 72
    y = height - 64 - ROW * (row + 0.5)
    figure.text(0, (y + 3) / height, shortened(name), size=TEXT, color=INK, parse_math=False)
    figure.text(0, (y - 13) / height, value, size=TEXT - 2, color=color)


def _or(value: float | None, other: float) -> float:
    return other if value is None else value


def _figure(axes: Axes) -> Figure:
    figure = axes.figure
    assert isinstance(figure, Figure)  # no subfigures here
    return figure
