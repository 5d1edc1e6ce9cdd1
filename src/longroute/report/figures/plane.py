"""One point an encoding in a plane whose height is what is left of its fit at the longest length."""

from collections.abc import Callable, Mapping, Sequence

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
"""An encoding, where it stands, and its tail ratio at the longest length."""
BETTER = {"left": "↙ better", "right": "better ↘"}


def reach_plane(
    comparison: Comparison,
    looks: Mapping[str, Look],
    points: Sequence[Point],
    label: str,
    scale: Callable[[Axes], None],
    *,
    better: str,
) -> Figure | None:
    """The points with their intervals and names, the horizontal axis as `scale` sets it; better is low and `better`.

    None when nothing was measured beyond the training length.
    """
    longest = comparison.longest
    if longest is None or not comparison.milestones or not points:
        return None
    height = max(430.0, 150 + 17.0 * len(points))
    figure = blank(height)
    title = f"tail ratio at {length_text(longest)} tokens ({multiple_text(longest, comparison.train_length)})"
    axes = add_axes(figure, Panel(44, 56, WIDTH - 64, height - 96), title)
    reaches = [1.0, *(reach.value for _, _, reach in points)]
    scale(axes)
    axes.set_yscale("log")
    axes.grid(axis="x", color=RULE, linewidth=0.8)
    low, high = logarithmic(min(reaches), max(reaches), margin=0.08)
    # Room below for the names of the many that hold, which lie close together.
    axes.set_ylim(low * (low / high) ** 0.12, high)
    set_ticks(axes, "y", log_ticks(*axes.get_ylim()), plain)
    axes.axhline(1.0, color=INK, linewidth=1.0, zorder=1.5)
    corner = 0.0 if better == "left" else 1.0
    word = {"size": TEXT, "color": MUTED, "style": "italic", "ha": better}
    axes.text(corner, 0.012, BETTER[better], transform=axes.transAxes, **word)
    axes.set_xlabel(label, size=TEXT, color=INK, labelpad=10).set_parse_math(False)
    for encoding, place, reach in points:
        _draw(axes, encoding, looks[encoding.name], place, reach)
    labels = [named(one, looks[one.name], place.value, reach.value) for one, place, reach in points]
    label_points(axes, labels, _obstacles(axes, points, better))
    return figure


def _obstacles(axes: Axes, points: Sequence[Point], better: str) -> list[Box]:
    """What names should leave free, in pixels: the line at 1, the word in the corner, the intervals."""
    frame, to_pixels = axes.bbox, axes.transData.transform
    one = float(to_pixels((axes.get_xlim()[0], 1.0))[1])
    left = frame.x0 if better == "left" else frame.x1 - 60
    boxes = [Box(frame.x0, one - 2, frame.x1, one + 2), Box(left, frame.y0, left + 60, frame.y0 + 16)]
    for _, place, reach in points:
        middle = (place.value, reach.value)
        for ends in (
            [(x, middle[1]) for x in place.interval or ()],
            [(middle[0], y) for y in reach.interval or ()],
        ):
            if ends:
                (left, bottom), (right, top) = (to_pixels(end) for end in ends)
                boxes.append(Box(left - 1.5, bottom - 1.5, right + 1.5, top + 1.5))
    return boxes


def _draw(axes: Axes, encoding: EncodingResult, look: Look, place: Estimate, reach: Estimate) -> None:
    bar = {"color": look.color, "linewidth": 3.0, "alpha": 0.22}
    if reach.interval:
        tag(axes, axes.vlines([place.value], *reach.interval, **bar), encoding.index, "reach")
    if place.interval:
        tag(axes, axes.hlines([reach.value], *place.interval, **bar), encoding.index, "place")
    fill = "none" if look.dashed else look.color
    (mark,) = axes.plot([place.value], [reach.value], look.marker, color=look.color, markersize=7, markerfacecolor=fill)
    tag(axes, mark, encoding.index, "point")
