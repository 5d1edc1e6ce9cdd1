"""Names beside lines and points that never lie on one another."""

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes

from longroute.report.comparison import EncodingResult
from longroute.report.figures.canvas import TEXT, tag
from longroute.report.figures.ink import Look
from longroute.report.wording import printable

LONGEST_NAME = 24
GAP = 15.0
"""Least distance of two labels' middles, in pixels."""
DIRECTIONS = tuple((math.cos(k * math.pi / 6), math.sin(k * math.pi / 6)) for k in range(12))
DISTANCES = (9, 15, 22, 30, 40, 52, 66, 84)


@dataclass(frozen=True)
class Label:
    """A text that belongs to the point (x, y), in data units, of the series of this index."""

    text: str
    index: int
    look: Look
    x: float
    y: float


@dataclass(frozen=True)
class Box:
    """A rectangle in pixels."""

    left: float
    bottom: float
    right: float
    top: float

    def overlap(self, other: "Box") -> float:
        """Area shared with another rectangle."""
        width = min(self.right, other.right) - max(self.left, other.left)
        height = min(self.top, other.top) - max(self.bottom, other.bottom)
        return max(0.0, width) * max(0.0, height)

    @property
    def area(self) -> float:
        """Its whole area."""
        return (self.right - self.left) * (self.top - self.bottom)


def named(encoding: EncodingResult, look: Look, x: float, y: float) -> Label:
    """The label that carries an encoding's name."""
    return Label(shortened(encoding.name), encoding.index, look, x, y)


def shortened(name: str) -> str:
    """A name that fits beside a figure: its beginning and its end, which tell most apart. Tables have it in full."""
    name = printable(name)
    if len(name) <= LONGEST_NAME:
        return name
    end = LONGEST_NAME // 2
    return f"{name[: LONGEST_NAME - end - 1]}…{name[-end:]}"


def text_width(text: str, size: float = TEXT) -> float:
    """Pixels that a label needs, on the generous side: the reader's font is not known here."""
    return 0.58 * size * len(text)


def margin_for(texts: Iterable[str]) -> float:
    """Room to the right of the axes for the longest label and its leader, in pixels."""
    return 30 + max((text_width(text) for text in texts), default=0)


def spread(wanted: Sequence[float], gap: float, low: float, high: float) -> list[float]:
    """Positions at least `gap` apart within [low, high], nearest to the wanted ones by least squares.

    With z_i = y_i - i·gap in sorted order the condition is that z increases: isotonic regression by pooling
    adjacent violators, then clamped. If they can't all fit, the gap shrinks until they do.
    """
    if not wanted:
        return []
    gap = min(gap, (high - low) / max(1, len(wanted) - 1))
    order = sorted(range(len(wanted)), key=lambda i: (wanted[i], i))
    pools: list[tuple[float, int]] = []
    for rank, i in enumerate(order):
        mean, count = wanted[i] - rank * gap, 1
        while pools and pools[-1][0] > mean:
            before, size = pools.pop()
            mean, count = (before * size + mean * count) / (size + count), size + count
        pools.append((mean, count))
    level = itertools.chain.from_iterable([mean] * count for mean, count in pools)
    top = high - (len(wanted) - 1) * gap
    placed = [0.0] * len(wanted)
    for rank, (i, z) in enumerate(zip(order, level, strict=True)):
        placed[i] = min(max(z, low), top) + rank * gap
    return placed


def label_ends(axes: Axes, labels: Sequence[Label]) -> None:
    """Write each label right of the axes, as level with its line's end as can be, joined by a hairline."""
    box = axes.bbox
    pixels = [axes.transData.transform((label.x, label.y)) for label in labels]
    wanted = [min(max(float(y), box.y0), box.y1) for _, y in pixels]
    heights = spread(wanted, GAP, box.y0 + 2, box.y1)
    for label, start, (x, _), y in zip(labels, wanted, pixels, heights, strict=True):
        knee, text = box.x1 + 12, box.x1 + 18
        route = [(x + 5, start), (max(x + 5, box.x1 + 2), start), (knee, y), (text - 2, y)]
        _hairline(axes, route, label)
        _write(axes, (text, y), label)


def label_points(axes: Axes, labels: Sequence[Label], obstacles: Sequence[Box]) -> None:
    """Write each label beside its point where it covers no label, no point and, if it can, no obstacle."""
    bounds = Box(axes.bbox.x0 + 4, axes.bbox.y0 + 2, axes.bbox.x1 + 16, axes.bbox.y1 + 8)
    pixels = [tuple(axes.transData.transform((label.x, label.y))) for label in labels]
    taken = [*obstacles, *(Box(x - 6, y - 6, x + 6, y + 6) for x, y in pixels)]
    for label, (x, y) in zip(labels, pixels, strict=True):
        box, distance = _free_box(x, y, text_width(label.text), bounds, taken)
        taken.append(box)
        middle = (box.bottom + box.top) / 2
        if distance > DISTANCES[0]:
            edge = min(max(x, box.left), box.right)
            side = middle if edge != x else (box.bottom if box.bottom > y else box.top)
            _hairline(axes, [(x, y), (edge, side)], label)
        _write(axes, (box.left, middle), label)


def _free_box(x: float, y: float, width: float, bounds: Box, taken: Sequence[Box]) -> tuple[Box, float]:
    """The nearest place for a label around a point: no overlap if any candidate has none, else the least."""
    candidates = []
    for distance in DISTANCES:
        for cosine, sine in DIRECTIONS:
            left = x + distance * cosine - (width * (1 - cosine) / 2)
            bottom = y + distance * sine - GAP / 2 + sine * GAP / 2
            box = Box(left, bottom, left + width, bottom + GAP)
            covered = sum(box.overlap(other) for other in taken) + 4 * (box.area - box.overlap(bounds))
            candidates.append((round(covered, 3), distance, -cosine, box))
    _, distance, _, box = min(candidates, key=lambda candidate: candidate[:3])
    return box, distance


def _hairline(axes: Axes, pixels: Sequence[tuple[float, float]], label: Label) -> None:
    back = axes.transData.inverted()
    xs, ys = zip(*(back.transform(pixel) for pixel in pixels), strict=True)
    (line,) = axes.plot(xs, ys, color=label.look.color, linewidth=0.7, alpha=0.55, clip_on=False, zorder=1)
    tag(axes, line, label.index, "leader")


def _write(axes: Axes, pixel: tuple[float, float], label: Label) -> None:
    x, y = axes.transData.inverted().transform(pixel)
    text = axes.text(x, y, label.text, size=TEXT, color=label.look.color, va="center_baseline")
    text.set_parse_math(False)
    tag(axes, text, label.index, "label")
