"""What the figures of a diagnosis share: their colours, a line of legend, an axis of lengths."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.figures.canvas import TEXT, WIDTH, Panel, add_axes, blank, logarithmic, set_ticks
from longroute.report.figures.ink import INK, TRANSPORTS
from longroute.report.wording import multiple_text, short_length_text

MEASURED, PREDICTED, KEPT = (TRANSPORTS[name][0] for name in ("random", "rope", "learned"))
"""What was measured, what was predicted, and what sinks or controls keep."""
HEIGHT = 360.0
_MOST_TICKS = 8
_LEGEND_GAP = 22.0

Entry = tuple[str, str]
"""Words of a legend, its sign first, and their colour."""


def framed(title: str, legend: Sequence[Entry], *, x: str = "", left: float = 46, bottom: float = 58) -> Axes:
    """Axes of a figure of the usual size, below its title and a line of legend; `x` names the horizontal axis."""
    figure = blank(HEIGHT)
    axes = add_axes(figure, Panel(left, bottom, WIDTH - left - 14, HEIGHT - bottom - 62), "")
    figure.text(0, (HEIGHT - 16) / HEIGHT, title, size=TEXT, color=INK)
    write_legend(figure, legend, HEIGHT - 38)
    if x:
        axes.set_xlabel(x, size=TEXT - 1, color=INK, labelpad=4)
    return axes


def write_legend(figure: Figure, entries: Sequence[Entry], y: float) -> None:
    """The entries side by side at a height in pixels. The reader's font is unknown, so room is left for a wide one."""
    height, x = figure.get_figheight() * 72, 0.0
    for words, color in entries:
        figure.text(x / WIDTH, y / height, words, size=TEXT - 1, color=color)
        x += 6.7 * len(words) + _LEGEND_GAP


def length_axis(axes: Axes, lengths: Sequence[int], train_length: int) -> None:
    """A logarithmic axis whose ticks say tokens and multiples of the training length."""
    axes.set_xscale("log", base=2)
    axes.set_xlim(*logarithmic(lengths[0], lengths[-1], least=2.0))
    step = -(-len(lengths) // _MOST_TICKS)
    # Counted from the longest, so that it always has its tick.
    ticks = lengths[::-1][::step][::-1]
    set_ticks(axes, "x", ticks, lambda n: f"{short_length_text(int(n))}\n{multiple_text(int(n), train_length)}")
