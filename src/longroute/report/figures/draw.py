"""All figures of a comparison, by the name of their file."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from longroute.report.comparison import Comparison
from longroute.report.figures.canvas import svg_text
from longroute.report.figures.dial import dial_figure
from longroute.report.figures.ink import looks
from longroute.report.figures.lengths import against_length
from longroute.report.figures.prediction import predicted_and_measured
from longroute.report.figures.reach import price_and_reach
from longroute.report.figures.training import training_curves
from longroute.report.prediction import RunBreak
from longroute.report.run_log import Curve

NAMES = ("tail-ratio", "whole-ratio", "price-and-reach", "tail-perplexity", "training", "dial", "prediction")


def draw_figures(comparison: Comparison, curves: Sequence[Curve], breaks: Sequence[RunBreak] = ()) -> dict[str, str]:
    """SVG text by name, in the order of NAMES; a figure that has nothing to show is left out."""
    look = looks(comparison.encodings)
    base = f"perplexity ÷ perplexity at {comparison.train_length:,} tokens"
    figures: dict[str, Figure | None] = {
        "tail-ratio": _lines(comparison, "tail_ratio", f"tail ratio: {base}"),
        "whole-ratio": _lines(comparison, "ratio", f"whole-window ratio: {base}"),
        "price-and-reach": price_and_reach(comparison, look),
        "tail-perplexity": _lines(comparison, "tail_perplexity", "tail perplexity"),
        "training": training_curves(comparison, look, curves),
        "dial": dial_figure(comparison, look),
        "prediction": predicted_and_measured(comparison, look, breaks),
    }
    return {name: svg_text(figure, name) for name, figure in figures.items() if figure is not None}


def _lines(comparison: Comparison, measure: str, title: str) -> Figure | None:
    """None when nothing was measured, or a ratio at the training length alone, where it is 1."""
    ratio_alone = measure.endswith("ratio") and not comparison.milestones
    if ratio_alone or not any(one.measures[measure] for one in comparison.measured):
        return None
    return against_length(comparison, looks(comparison.encodings), measure, title)
