"""All figures of a comparison, by the name of their file."""

from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure

from longroute.report.comparison import Comparison
from longroute.report.estimate import Estimate
from longroute.report.figures.canvas import svg_text
from longroute.report.figures.dial import dial_figure
from longroute.report.figures.ink import looks
from longroute.report.figures.lengths import against_length
from longroute.report.figures.memory import (
    holding_and_remembering,
    recall_against_distance,
    recall_against_length,
    worth_against_length,
)
from longroute.report.figures.prediction import predicted_and_measured
from longroute.report.figures.reach import price_and_reach
from longroute.report.figures.training import training_curves
from longroute.report.prediction import RunBreak
from longroute.report.recall import TaskRecall, shown_task
from longroute.report.run_log import Curve

WORTH = {
    "context": "gained by context beyond the training length, nats a token",
    "order": "lost when far tokens are shuffled, nats a token",
}
MOST_TASKS = 9
NAMES = (
    "recall",
    *(f"recall-{n}-{what}" for n in range(MOST_TASKS) for what in ("length", "distance")),
    "worth-context",
    "worth-order",
    "tail-ratio",
    "whole-ratio",
    "price-and-reach",
    "tail-perplexity",
    "training",
    "dial",
    "prediction",
)


def draw_figures(
    comparison: Comparison,
    curves: Sequence[Curve],
    breaks: Sequence[RunBreak] = (),
    tasks: Sequence[TaskRecall] = (),
    worth: Mapping[str, Mapping[str, Mapping[int, Estimate]]] | None = None,
) -> dict[str, str]:
    """SVG text by name, in the order of NAMES; a figure that has nothing to show is left out."""
    look = looks(comparison.encodings)
    base = f"perplexity ÷ perplexity at {comparison.train_length:,} tokens"
    worth = worth or {}
    shown = shown_task(tasks, (one.name for one in comparison.measured))
    figures: dict[str, Figure | None] = {"recall": shown and holding_and_remembering(comparison, look, shown)}
    for n, task in enumerate(tasks[:MOST_TASKS]):
        figures[f"recall-{n}-length"] = recall_against_length(comparison, look, task)
        figures[f"recall-{n}-distance"] = recall_against_distance(comparison, look, task)
    for kind, title in WORTH.items():
        figures[f"worth-{kind}"] = worth_against_length(comparison, look, worth.get(kind, {}), title)
    figures |= {
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
