"""Attention on far tokens against length, head by head, and as the law of far mass has it from short windows."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.diagnosis.figures.frame import KEPT, MEASURED, PREDICTED, framed, length_axis
from longroute.report.diagnosis.findings import Findings
from longroute.report.diagnosis.words import percent
from longroute.report.figures.canvas import set_ticks
from longroute.report.figures.ink import INK, MUTED


def far_mass_figure(findings: Findings) -> Figure | None:
    """A thin line a head, the mean bold, the law's mean as diamonds, sinks apart; None without far tokens."""
    lengths = [n for n in findings.traced_lengths if findings.heads("far_mass", n) is not None]
    if not lengths:
        return None
    tables = np.stack([_heads(findings, "far_mass", n) for n in lengths])
    legend = [("━ mean of heads", INK), ("─ one head", MEASURED), ("┅ sinks, mean", KEPT)]
    law = [n for n in lengths if findings.law(n) is not None]
    if law:
        legend.insert(2, ("◆ law, mean", PREDICTED))
    axes = framed(f"share of attention further back than {findings.train_length:,} tokens", legend)
    length_axis(axes, lengths, findings.train_length)
    _shares(axes, "y")
    inside = _inside(findings, tables.shape[1])
    for head in range(tables.shape[1]):
        style = "-" if inside[head] else (0, (1.5, 1.8))
        axes.plot(
            lengths, tables[:, head], color=MEASURED, linewidth=0.9, alpha=0.45, linestyle=style, marker=_dot(lengths)
        )
    axes.plot(
        lengths,
        [findings.mean("far_mass", n) or np.nan for n in lengths],
        color=INK,
        linewidth=2.6,
        marker=_dot(lengths),
    )
    sinks = [np.nan if (mean := findings.mean("sink_mass", n)) is None else mean for n in lengths]
    axes.plot(lengths, sinks, color=KEPT, linewidth=1.8, linestyle=(0, (3, 2)), marker=_dot(lengths))
    means = [_mean(findings.law(n)) for n in law]
    axes.plot(law, means, "D", color=PREDICTED, markersize=6.5, zorder=4)
    return _figure(axes)


def law_figure(findings: Findings) -> Figure | None:
    """The law's far mass of every head at the longest length against the measured one, with the diagonal."""
    lengths = [n for n in findings.traced_lengths if findings.law(n) is not None]
    if not lengths or findings.heads("far_mass", lengths[-1]) is None:
        return None
    length = lengths[-1]
    law, measured = findings.law(length), _heads(findings, "far_mass", length)
    assert law is not None  # asked above
    inside = _inside(findings, measured.size)
    legend = [("● in the law's range", PREDICTED), ("○ out of it", MUTED), ("─ equal", INK)]
    axes = framed(f"far mass at {length:,} tokens by the law", legend, x="far mass measured there")
    _shares(axes, "x")
    _shares(axes, "y")
    axes.plot([0, 1], [0, 1], color=INK, linewidth=0.9)
    axes.plot(measured[inside], law.ravel()[inside], "o", color=PREDICTED, markersize=6, alpha=0.8, markeredgewidth=0)
    axes.plot(measured[~inside], law.ravel()[~inside], "o", color=MUTED, markersize=6, markerfacecolor="none")
    return _figure(axes)


def _shares(axes: Axes, which: str) -> None:
    (axes.set_xlim if which == "x" else axes.set_ylim)(-0.03, 1.03)
    set_ticks(axes, which, [0, 0.25, 0.5, 0.75, 1], percent)


def _heads(findings: Findings, measure: str, length: int) -> np.ndarray:
    grid = findings.heads(measure, length)
    assert grid is not None  # asked before
    return grid.ravel()


def _inside(findings: Findings, heads: int) -> np.ndarray:
    inside = findings.in_range
    return np.ones(heads, dtype=bool) if inside is None else inside.ravel()


def _mean(grid: np.ndarray | None) -> float:
    known = np.zeros(0) if grid is None else grid[np.isfinite(grid)]
    return float(known.mean()) if known.size else np.nan


def _dot(lengths: list[int]) -> str | None:
    """One length alone would draw no line."""
    return "o" if len(lengths) == 1 else None


def _figure(axes: Axes) -> Figure:
    figure = axes.figure
    assert isinstance(figure, Figure)  # no subfigures here
    return figure
