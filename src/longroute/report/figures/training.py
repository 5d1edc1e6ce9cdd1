"""Loss against tokens seen, lightly averaged: did every candidate train, and to where."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from matplotlib.figure import Figure

from longroute.report.comparison import Comparison
from longroute.report.figures.canvas import TEXT, WIDTH, Panel, add_axes, blank, tag
from longroute.report.figures.ink import INK, Look
from longroute.report.figures.labels import GAP, label_ends, margin_for, named, shortened
from longroute.report.run_log import Curve

BINS = 100
SHOWN_FROM = 0.2
"""Share of training after which a curve decides the limits: the first fall would flatten the rest."""


def training_curves(comparison: Comparison, looks: Mapping[str, Look], curves: Sequence[Curve]) -> Figure | None:
    """One line a run, every encoding named at the end of its first seed's. None when no loss was recorded."""
    known = {one.name: one for one in comparison.encodings}
    runs = [(known[curve.encoding], averaged(curve)) for curve in curves if curve.encoding in known]
    if not runs:
        return None
    texts = {shortened(one.name) for one, _ in runs}
    height = max(400.0, 90 + GAP * len(texts))
    figure = blank(height)
    axes = add_axes(figure, Panel(44, 50, WIDTH - 44 - margin_for(texts), height - 90), "training loss, nats a token")
    axes.set_xlabel("tokens seen", size=TEXT, color=INK, labelpad=8)
    axes.xaxis.set_major_formatter(lambda tokens, _: tokens_text(tokens))
    axes.locator_params(axis="x", nbins=5)
    for encoding, points in runs:
        look = looks[encoding.name]
        (line,) = axes.plot(*zip(*points, strict=True), color=look.color, linestyle=look.linestyle, linewidth=1.1)
        tag(axes, line, encoding.index, "loss")
    axes.set_xlim(0, max(points[-1][0] for _, points in runs))
    axes.set_ylim(*_limits([points for _, points in runs]))
    ends: dict[str, tuple[float, float]] = {}
    for encoding, points in runs:
        ends.setdefault(encoding.name, points[-1])
    label_ends(axes, [named(known[name], looks[name], x, y) for name, (x, y) in ends.items()])
    return figure


def averaged(curve: Curve) -> list[tuple[float, float]]:
    """Means of tokens and loss within at most 100 equal bins of tokens, in order."""
    width = max(curve.tokens) / BINS
    pairs = sorted(zip(curve.tokens, curve.loss, strict=True))
    bins = [list(group) for _, group in groupby(pairs, key=lambda pair: min(BINS - 1, int(pair[0] / width)))]
    return [(_mean([x for x, _ in group]), _mean([y for _, y in group])) for group in bins]


def tokens_text(tokens: float) -> str:
    """`500 K`, `2.5 M`, `1 B`: a count of tokens under an axis tick."""
    for size, letter in ((1e9, "B"), (1e6, "M"), (1e3, "K")):
        if tokens >= size:
            return f"{tokens / size:.3g} {letter}"
    return f"{tokens:.0f}"


def _limits(runs: Sequence[Sequence[tuple[float, float]]]) -> tuple[float, float]:
    low = min(loss for points in runs for _, loss in points)
    late = [[loss for x, loss in points if x >= SHOWN_FROM * points[-1][0]] for points in runs]
    high = max(loss for losses in late for loss in losses)
    margin = 0.05 * max(high - low, 0.1)
    return low - margin, high + margin


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers)
