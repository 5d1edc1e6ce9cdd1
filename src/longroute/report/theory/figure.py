"""One picture a statement: what grows, what bounds it, and where they meet."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
    svg_text,
)
from longroute.report.figures.ink import INK, TRANSPORTS
from longroute.report.theory.captions import Caption
from longroute.report.wording import short_length_text
from longroute.theory import Statement
from longroute.theory.evidence.text import PREFIX
from longroute.theory.statement import Values

BOUND, SIMULATED, EXACT = TRANSPORTS["rope"][0], TRANSPORTS["random"][0], INK
HEIGHT = 360.0
PANEL = Panel(54, 52, WIDTH - 66, HEIGHT - 124)
LEGEND_GAP = 26.0
"""Pixels between two entries of the legend."""


def statement_svg(statement: Statement, caption: Caption) -> str:
    """The statement's picture as SVG text; the same statement gives the same bytes."""
    return svg_text(statement_figure(statement, caption), statement.name)


def statement_figure(statement: Statement, caption: Caption) -> Figure:
    """Bound and exact value as lines, the simulation as dots with bars of one standard error, rings where they meet."""
    figure = blank(HEIGHT)
    axes = add_axes(figure, PANEL, "")
    figure.text(0, (HEIGHT - 18) / HEIGHT, caption.y, size=TEXT, color=INK)
    axes.set_xlabel(caption.x, size=TEXT, color=INK, labelpad=6)
    x = _sweep(statement)
    horizontal, vertical = caption.scale.split()
    _scale_x(axes, x, horizontal)
    _draw(axes, statement, x)
    _scale_y(axes, statement, vertical)
    _legend(figure, statement)
    return figure


def _sweep(statement: Statement) -> np.ndarray:
    return np.zeros(1) if statement.sweep is None else np.asarray(statement.sweep[1], dtype=np.float64)


def _draw(axes: Axes, statement: Statement, x: np.ndarray) -> None:
    markers = "o" if x.size == 1 else None
    if statement.bound is not None:
        bound = _along(statement.bound, x)
        axes.plot(x, bound, color=BOUND, linewidth=3.2, marker=markers)
        places = statement.parameters.get("meets", [])
        axes.plot(
            x[places], bound[places], "o", color=BOUND, markersize=11, markerfacecolor="none", markeredgewidth=1.2
        )
    if statement.exact is not None:
        axes.plot(x, _along(statement.exact, x), color=EXACT, linewidth=1.3, marker=markers)
    if statement.simulated is not None:
        simulated = _along(statement.simulated, x)
        stderr = _along(statement.stderr or 0.0, x)
        axes.vlines(x, simulated - stderr, simulated + stderr, color=SIMULATED, linewidth=2.0, alpha=0.5, zorder=3)
        axes.plot(x, simulated, "o", color=SIMULATED, markersize=5, zorder=4)


def _along(values: Values, x: np.ndarray) -> np.ndarray:
    """The values at every place of the sweep; NaN, which isn't drawn, where there is no number."""
    return np.broadcast_to(np.asarray(values, dtype=np.float64), x.shape)


def _scale_x(axes: Axes, x: np.ndarray, scale: str) -> None:
    if scale == "log":
        axes.set_xscale("log")
        axes.set_xlim(*logarithmic(float(x.min()), float(x.max())))
        set_ticks(axes, "x", log_ticks(*axes.get_xlim(), most=6), _tick)
    elif scale == "log1":
        axes.set_xscale("symlog", linthresh=1.0, linscale=0.4)
        set_ticks(axes, "x", _few(x), _tick)
    else:
        margin = 0.04 * (float(np.ptp(x)) or 1.0)
        axes.set_xlim(float(x.min()) - margin, float(x.max()) + margin)


def _scale_y(axes: Axes, statement: Statement, scale: str) -> None:
    given = [v for v in (statement.bound, statement.exact, statement.simulated) if v is not None]
    values = np.concatenate([np.atleast_1d(np.asarray(v, dtype=np.float64)) for v in given])
    values = values[np.isfinite(values)]
    if not values.size or (scale == "log" and not np.any(values > 0)):
        return
    if scale == "log":
        shown = values[values > 0]
        axes.set_yscale("log")
        axes.set_ylim(*logarithmic(float(shown.min()), float(shown.max()), least=1.5, margin=0.08))
        set_ticks(axes, "y", log_ticks(*axes.get_ylim(), most=6), _tick)
        return
    low, high = float(values.min()), float(values.max())
    if scale == "zero":
        low = 0.0
    margin = 0.1 * max(high - low, 0.05 * max(abs(low), abs(high)), 1e-6)
    axes.set_ylim(low - margin, high + margin)
    axes.locator_params(axis="y", nbins=6)


def _few(x: np.ndarray) -> list[float]:
    return [float(value) for value in x[:: math.ceil(x.size / 8)]]


def _tick(value: float) -> str:
    """A tick that stays short: `0.03`, `1,000`, `10⁸`."""
    power = math.log10(value) if value > 0 else 0.0
    if abs(power) >= 4 and abs(power - round(power)) < 1e-9:
        return f"10{superscript(round(power))}"
    if value >= 10_000 or 0 < value < 1e-3:
        mantissa, exponent = f"{value:.0e}".split("e")
        return f"{mantissa}·10{superscript(int(exponent))}"
    return short_length_text(int(value)) if value >= 1000 else plain(value)


def is_drawn(statement: Statement) -> bool:
    """Whether its second value comes from random draws, rather than from another way to compute it."""
    return bool(np.nanmax(np.asarray(statement.stderr or 0.0, dtype=np.float64)) > 1e-7)


def superscript(number: int) -> str:
    """`-12` as `⁻¹²`."""
    return str(number).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))


def _legend(figure: Figure, statement: Statement) -> None:
    """The entries that occur, in their colours, on the line under the vertical axis's name."""
    lower = statement.parameters.get("side", "upper") == "lower"
    entries: Sequence[tuple[str, str, bool]] = (
        ("━ at least" if lower else "━ at most", BOUND, statement.bound is not None),
        ("○ they meet", BOUND, bool(statement.parameters.get("meets"))),
        (f"─ {exact_name(statement)}", EXACT, statement.exact is not None),
        (f"● {simulated_name(statement)}", SIMULATED, statement.simulated is not None),
    )
    x = 0.0
    for words, color, shown in entries:
        if shown:
            figure.text(x / WIDTH, (HEIGHT - 40) / HEIGHT, words, size=TEXT - 1, color=color)
            # The reader's font is unknown, so room is left for a wide one.
            x += 7.0 * len(words) + LEGEND_GAP


def is_on_text(statement: Statement) -> bool:
    """Whether it says something about a trained model's steps, rather than about a formula."""
    return statement.name.startswith(PREFIX)


def exact_name(statement: Statement) -> str:
    """What the thin line is."""
    return "independent steps" if is_on_text(statement) else "exact"


def simulated_name(statement: Statement) -> str:
    """What the dots are."""
    if is_on_text(statement):
        return "measured"
    return "simulated" if is_drawn(statement) else "computed otherwise"
