"""Price and reach: what an encoding costs at the training length, what is left of it at the longest."""

from collections.abc import Mapping

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
from longroute.report.figures.labels import Box, label_points, named
from longroute.report.wording import length_text, multiple_text

Point = tuple[EncodingResult, Estimate, Estimate]


def price_and_reach(comparison: Comparison, looks: Mapping[str, Look]) -> Figure | None:
    """One point an encoding: x perplexity at the training length, y tail ratio at the longest; both log.

    None when nothing was measured beyond the training length.
    """
    points = _points(comparison)
    longest = comparison.longest
    if longest is None or not points:
        return None
    height = max(430.0, 150 + 17.0 * len(points))
    multiple = multiple_text(longest, comparison.train_length)
    title = f"tail ratio at {length_text(longest)} tokens ({multiple})"
    figure = blank(height)
    axes = add_axes(figure, Panel(44, 56, WIDTH - 64, height - 96), title)
    _scale(axes, points)
    axes.set_xlabel(
        f"perplexity at the training length, {length_text(comparison.train_length)} tokens",
        size=TEXT,
        color=INK,
        labelpad=10,
    )
    for encoding, price, reach in points:
        _draw(axes, encoding, looks[encoding.name], price, reach)
    labels = [named(one, looks[one.name], price.value, reach.value) for one, price, reach in points]
    label_points(axes, labels, _obstacles(axes, points))
    return figure


def _points(comparison: Comparison) -> list[Point]:
    found = (
        (one, one.at("perplexity", comparison.train_length), one.at("tail_ratio", comparison.longest))
        for one in comparison.measured
        if comparison.milestones
    )
    return [(one, price, reach) for one, price, reach in found if price and reach]


def _scale(axes: Axes, points: list[Point]) -> None:
    prices = [price.value for _, price, _ in points]
    reaches = [1.0, *(reach.value for _, _, reach in points)]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    axes.set_xlim(*logarithmic(min(prices), max(prices), margin=0.1))
    low, high = logarithmic(min(reaches), max(reaches), margin=0.08)
    # Room below for the names of the many that hold, which lie close together.
    axes.set_ylim(low * (low / high) ** 0.12, high)
    set_ticks(axes, "x", log_ticks(*axes.get_xlim()), plain)
    set_ticks(axes, "y", log_ticks(*axes.get_ylim()), plain)
    axes.axhline(1.0, color=INK, linewidth=1.0, zorder=1.5)
    axes.text(0.0, 0.012, "↙ better", transform=axes.transAxes, size=TEXT, color=MUTED, style="italic")


def _obstacles(axes: Axes, points: list[Point]) -> list[Box]:
    """What names should leave free, in pixels: the line at 1, the word in the corner, the intervals."""
    frame, to_pixels = axes.bbox, axes.transData.transform
    one = float(to_pixels((axes.get_xlim()[0], 1.0))[1])
    boxes = [Box(frame.x0, one - 2, frame.x1, one + 2), Box(frame.x0, frame.y0, frame.x0 + 60, frame.y0 + 16)]
    for _, price, reach in points:
        middle = (price.value, reach.value)
        for ends in (
            [(x, middle[1]) for x in price.interval or ()],
            [(middle[0], y) for y in reach.interval or ()],
        ):
            if ends:
                (left, bottom), (right, top) = (to_pixels(end) for end in ends)
                boxes.append(Box(left - 1.5, bottom - 1.5, right + 1.5, top + 1.5))
    return boxes


def _draw(axes: Axes, encoding: EncodingResult, look: Look, price: Estimate, reach: Estimate) -> None:
    bar = {"color": look.color, "linewidth": 3.0, "alpha": 0.22}
    if reach.interval:
        tag(axes, axes.vlines([price.value], *reach.interval, **bar), encoding.index, "reach")
    if price.interval:
        tag(axes, axes.hlines([reach.value], *price.interval, **bar), encoding.index, "price")
    fill = "none" if look.dashed else look.color
    (mark,) = axes.plot([price.value], [reach.value], look.marker, color=look.color, markersize=7, markerfacecolor=fill)
    tag(axes, mark, encoding.index, "point")
