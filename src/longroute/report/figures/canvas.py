"""A blank figure measured in pixels, logarithmic axes with readable ticks, and the way to SVG text."""

import io
import math
import re
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, MaxNLocator, NullLocator

from longroute.report.figures.ink import INK, MUTED, PAPER, RULE, colors

WIDTH = 560
TEXT = 13.0
"""Size of the text in pixels of a figure 560 wide: still 9 on a phone."""
FONTS = "system-ui, -apple-system, 'Segoe UI', Roboto, Helvetica, Arial, sans-serif"
STEPS = ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7))
"""Mantissas of ticks on a logarithmic axis, coarse to fine."""
NARROW = 2.8
"""A logarithmic axis that spans less than this factor takes evenly stepped ticks: 65, 70, 75."""


@dataclass(frozen=True)
class Panel:
    """A rectangle for axes within a figure, in pixels from the lower left."""

    left: float
    bottom: float
    width: float
    height: float


def blank(height: float) -> Figure:
    """A figure 560 pixels wide: at 72 dots an inch a point is a pixel of the SVG."""
    figure = Figure(figsize=(WIDTH / 72, height / 72), dpi=72)
    figure.patch.set_visible(False)
    return figure


def add_axes(figure: Figure, panel: Panel, title: str) -> Axes:
    """Axes with hairlines and no box; the title, flush left above, says what the vertical axis is."""
    height = figure.get_figheight() * 72
    place = (panel.left / WIDTH, panel.bottom / height, panel.width / WIDTH, panel.height / height)
    axes = figure.add_axes(place)
    axes.patch.set_visible(False)
    for side in ("top", "left", "right"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(MUTED)
    axes.grid(axis="y", color=RULE, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.tick_params(colors=MUTED, labelsize=TEXT - 1, length=0, pad=6)
    axes.tick_params(axis="x", length=4)
    figure.text(0, (panel.bottom + panel.height + 14) / height, title, size=TEXT, color=INK)
    return axes


def logarithmic(low: float, high: float, *, least: float = 1.12, margin: float = 0.04) -> tuple[float, float]:
    """Limits around [low, high] on a logarithmic axis: a share `margin` beyond, a factor `least` apart."""
    spread = max(math.log(high / low), math.log(least))
    middle, half = math.log(low * high) / 2, (0.5 + margin) * spread
    return math.exp(max(-700.0, middle - half)), math.exp(min(700.0, middle + half))


def log_ticks(low: float, high: float, most: int = 8) -> list[float]:
    """Round numbers in [low, high]: the coarsest steps that give four ticks, thinned evenly to `most`."""
    if high < NARROW * low:
        even = MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]).tick_values(low, high)
        return [float(tick) for tick in even if low <= tick <= high]
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in STEPS:
        ticks = [s * 10.0**d for d in decades for s in steps if low <= s * 10.0**d <= high]
        if len(ticks) >= 4:
            break
    return ticks[:: math.ceil(len(ticks) / most)] if ticks else []


def set_ticks(axes: Axes, which: str, ticks: Sequence[float], write: Callable[[float], str]) -> None:
    """Put exactly these ticks on axis `x` or `y`, written by `write`."""
    axis = axes.xaxis if which == "x" else axes.yaxis
    axis.set_major_locator(FixedLocator(list(ticks)))
    axis.set_major_formatter(FixedFormatter([write(tick) for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def tag(axes: Axes, artist: Artist, index: int, part: str) -> None:
    """Give an artist an id that says its series, unique within the figure: the page highlights by it."""
    panel = axes.figure.axes.index(axes)
    artist.set_gid(f"series-{index}-{part}-{panel}-{len(axes.get_children())}")


def plain(value: float) -> str:
    """A tick as people write it: `0.9`, `60`, `2,000`."""
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"


def svg_text(figure: Figure, salt: str) -> str:
    """The figure as SVG whose bytes depend on its content alone: no date, no random id, text kept as text."""
    stream = io.StringIO()
    settings: dict[Any, Any] = {"svg.hashsalt": salt, "svg.fonttype": "none", "font.family": ["DejaVu Sans"]}
    nothing = dict.fromkeys(("Creator", "Date", "Format", "Type"))
    with matplotlib.rc_context(settings), warnings.catch_warnings():
        # The reader's own fonts draw the text; that ours lacks a glyph for measuring it is no matter.
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        figure.savefig(stream, format="svg", metadata=nothing)
    svg = stream.getvalue()
    return re.sub(r"'DejaVu Sans'(, [^;\"]*)?", FONTS, svg[svg.index("<svg") :])


def inline(svg: str, prefix: str) -> str:
    """The SVG for use within a page: ids made unique, size left to the page, colours to its variables."""
    svg = re.sub(r'(\bid="|href="#|url\(#)', rf"\g<1>{prefix}-", svg)
    svg = re.sub(r'^<svg ([^>]*?)height="[^"]*" ', r"<svg \1", svg)
    svg = re.sub(r'^<svg ([^>]*?)width="[^"]*" ', r'<svg aria-hidden="true" \1', svg)
    for name, (light, _) in colors().items():
        if light != PAPER:
            svg = svg.replace(f": {light}", f": var(--{name})")
    return svg.replace(f": {PAPER}", ": var(--paper)")
