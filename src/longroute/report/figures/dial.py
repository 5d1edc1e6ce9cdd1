"""The dial: the spread of a rotation's angles against fit at the training length and reach beyond it."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.comparison import Comparison, EncodingResult
from longroute.report.estimate import finite
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
from longroute.report.figures.ink import INK, Look
from longroute.report.figures.labels import Label, label_ends, margin_for, shortened
from longroute.report.wording import length_text, multiple_text

AXIS = {
    "slowest": "spread of the slowest pair's angle, radians a token",
    "fastest": "spread of the fastest pair's angle, radians a token",
    "start": "spread of the angles at the start, radians a token",
}
"""Fields of a transport that spread its angles, in the order of preference, and their axis in words."""
FEWEST = 3


@dataclass(frozen=True)
class Dial:
    """Encodings alike but for one field of their transport, in increasing order of it."""

    field: str
    points: tuple[tuple[float, EncodingResult], ...]

    @property
    def title(self) -> str:
        """What all of them share: `random qk + forget`."""
        one = self.points[0][1]
        control = "" if one.control == "none" else f" + {one.control}"
        return shortened(f"{one.transport} {'qkv' if one.values else 'qk'}{control}")


def find_dials(comparison: Comparison) -> list[Dial]:
    """Every family of three or more measured encodings that differ in the spread of their angles alone."""
    families: dict[str, list[EncodingResult]] = {}
    for encoding in comparison.measured:
        transport = _transport(encoding)
        rest = {key: value for key, value in transport.items() if key not in AXIS or finite(value) is None}
        alike = [encoding.transport, encoding.values, encoding.control, rest]
        families.setdefault(json.dumps(alike, sort_keys=True, default=str), []).append(encoding)
    dials = (_dial(family) for family in families.values())
    return [dial for dial in dials if dial is not None]


def dial_figure(comparison: Comparison, looks: Mapping[str, Look]) -> Figure | None:
    """Two panels over one axis: perplexity at the training length, tail ratio at the longest.

    None when there is no dial, or nothing was measured beyond the training length.
    """
    dials, longest = find_dials(comparison), comparison.longest
    if not dials or longest is None or not comparison.milestones:
        return None
    dials = [dial for dial in dials if dial.field == dials[0].field]
    figure = blank(470)
    width = WIDTH - 44 - margin_for(dial.title for dial in dials)
    multiple = multiple_text(longest, comparison.train_length)
    upper = add_axes(
        figure,
        Panel(44, 280, width, 150),
        f"fit: perplexity at {length_text(comparison.train_length)} tokens, the training length",
    )
    lower = add_axes(
        figure, Panel(44, 56, width, 150), f"reach: tail ratio at {length_text(longest)} tokens ({multiple})"
    )
    _panel(upper, dials, looks, "perplexity", comparison.train_length)
    _panel(lower, dials, looks, "tail_ratio", longest)
    lower.set_xlabel(AXIS[dials[0].field], size=TEXT, color=INK, labelpad=10)
    return figure


def _dial(family: list[EncodingResult]) -> Dial | None:
    for field in AXIS:
        angles = [(finite(_transport(one).get(field)), one) for one in family]
        points = [(angle, one) for angle, one in angles if angle is not None]
        if len({angle for angle, _ in points}) >= FEWEST:
            return Dial(field, tuple(sorted(points, key=lambda point: (point[0], point[1].name))))
    return None


def _transport(encoding: EncodingResult) -> Mapping[str, object]:
    transport = encoding.spec.get("transport")
    return transport if isinstance(transport, Mapping) else {}


def _panel(axes: Axes, dials: Sequence[Dial], looks: Mapping[str, Look], measure: str, length: int) -> None:
    angles = [angle for dial in dials for angle, _ in dial.points]
    values = [one.value(measure, length) for dial in dials for _, one in dial.points]
    known = [value for value in values if value is not None] or [1.0]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*logarithmic(min(angles), max(angles)))
    axes.set_ylim(*logarithmic(min(known), max(known)))
    set_ticks(axes, "x", log_ticks(*axes.get_xlim()), plain)
    set_ticks(axes, "y", log_ticks(*axes.get_ylim(), most=5), plain)
    label_ends(axes, [end for dial in dials if (end := _line(axes, dial, looks, measure, length))])


def _line(axes: Axes, dial: Dial, looks: Mapping[str, Look], measure: str, length: int) -> Label | None:
    """Draw one family's line; returns the label for its end, or None when this measure is missing."""
    values = [(angle, one.value(measure, length), one) for angle, one in dial.points]
    known = [(angle, value, one) for angle, value, one in values if value is not None]
    if not known:
        return None
    angle, value, last = known[-1]
    look = looks[last.name]
    bars = {angle: estimate.interval for angle, one in dial.points if (estimate := one.at(measure, length))}
    for angle_of_bar, interval in bars.items():
        if interval is not None:
            axes.vlines([angle_of_bar], *interval, color=look.color, linewidth=3.0, alpha=0.22)
    (line,) = axes.plot(
        [angle for angle, _, _ in known],
        [value for _, value, _ in known],
        color=look.color,
        linestyle=look.linestyle,
        linewidth=look.width,
        marker=look.marker,
        markersize=5,
    )
    tag(axes, line, last.index, "dial")
    return Label(dial.title, last.index, look, angle, value)
