"""Perplexity against length: measured, as predicted from short windows, and where both pass the threshold."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.diagnosis.figures.frame import MEASURED, PREDICTED, framed, length_axis
from longroute.report.diagnosis.findings import Break, Findings
from longroute.report.figures.canvas import TEXT, log_ticks, logarithmic, set_ticks
from longroute.report.figures.ink import INK, MUTED, RULE
from longroute.report.wording import perplexity_text


def ratio_figure(findings: Findings) -> Figure | None:
    """Both curves, the threshold, and each crossing with its 95 % interval; None if nothing longer was measured."""
    measured, predicted = findings.ratios, findings.predicted_ratios
    if len(measured) < 2:
        return None
    foretold = findings.predicted is not None and max(predicted, default=0) > findings.read_short
    legend = [("● measured", MEASURED)]
    if foretold:
        legend += [("◆ predicted", PREDICTED), (f"▒ read for it: up to {findings.read_short:,}", MUTED)]
    axes = framed(f"perplexity ÷ perplexity at {findings.train_length:,} tokens", legend)
    _scale(axes, findings, foretold)
    axes.axhline(findings.threshold, color=INK, linewidth=0.9, linestyle=(0, (1.5, 2.5)), zorder=1.5)
    if foretold:
        axes.axvspan(axes.get_xlim()[0], findings.read_short, color=RULE, alpha=0.35, linewidth=0, zorder=0)
        later = {length: ratio for length, ratio in predicted.items() if length >= findings.read_short}
        axes.plot(
            list(later), list(later.values()), color=PREDICTED, linewidth=1.6, linestyle=(0, (4.0, 2.2)), zorder=3
        )
    axes.plot(list(measured), list(measured.values()), color=MEASURED, linewidth=2, marker="o", markersize=4.6)
    if foretold and findings.predicted and (findings.predicted.length or 0) > findings.read_short:
        _crossing(axes, findings.predicted, findings.threshold, PREDICTED, "D", -15)
    _crossing(axes, findings.breaking, findings.threshold, MEASURED, "o", 9)
    return axes.figure if isinstance(axes.figure, Figure) else None


def _scale(axes: Axes, findings: Findings, foretold: bool) -> None:
    predicted = findings.predicted_ratios if foretold else {}
    values = [1.0, findings.threshold, *findings.ratios.values(), *predicted.values()]
    length_axis(axes, sorted({*findings.ratios, *predicted}), findings.train_length)
    axes.set_yscale("log")
    axes.set_ylim(*logarithmic(min(values), max(values), margin=0.08))
    set_ticks(axes, "y", log_ticks(*axes.get_ylim(), most=6), lambda y: f"{y:.4g}" if y < 1000 else perplexity_text(y))
    end = (axes.get_position().x1, findings.threshold)
    axes.annotate(
        f"breaks above {findings.threshold:g}",
        (end[0], end[1]),
        xycoords=("figure fraction", "data"),
        xytext=(0, 4),
        textcoords="offset pixels",
        size=TEXT - 2,
        color=MUTED,
        ha="right",
    )


def _crossing(axes: Axes, breaking: Break, threshold: float, color: str, marker: str, below: float) -> None:
    """A large marker where a curve passes the threshold, with a bar over its interval, moved off the line a little."""
    if breaking.length is None:
        return
    low = breaking.low or breaking.length
    high = breaking.high or axes.get_xlim()[1]
    y = axes.transData.inverted().transform((0, axes.transData.transform((1, threshold))[1] + below / 3))[1]
    axes.hlines(y, low, high, color=color, linewidth=5, alpha=0.35, zorder=3.5)
    axes.plot([breaking.length], [y], marker, color=color, markersize=9, zorder=4, markeredgewidth=0)
