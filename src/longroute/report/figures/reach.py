"""Price and reach: what an encoding costs at the training length, what is left of it at the longest."""

from collections.abc import Mapping

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.comparison import Comparison
from longroute.report.figures.canvas import log_ticks, logarithmic, plain, set_ticks
from longroute.report.figures.ink import Look
from longroute.report.figures.plane import reach_plane
from longroute.report.wording import length_text


def price_and_reach(comparison: Comparison, looks: Mapping[str, Look]) -> Figure | None:
    """One point an encoding: x perplexity at the training length, y tail ratio at the longest; both log.

    None when nothing was measured beyond the training length.
    """
    start = comparison.train_length
    found = (
        (one, one.at("perplexity", start), one.at("tail_ratio", comparison.longest)) for one in comparison.measured
    )
    points = [(one, price, reach) for one, price, reach in found if price and reach]

    def scale(axes: Axes) -> None:
        prices = [price.value for _, price, _ in points]
        axes.set_xscale("log")
        axes.set_xlim(*logarithmic(min(prices), max(prices), margin=0.1))
        set_ticks(axes, "x", log_ticks(*axes.get_xlim()), plain)

    label = f"perplexity at the training length, {length_text(start)} tokens"
    return reach_plane(comparison, looks, points, label, scale, better="left")
