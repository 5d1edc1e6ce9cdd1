"""Small multiples of layer by head: what each head does with far tokens, at one length."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.diagnosis.figures.cells import cell_axes, fill_cells
from longroute.report.diagnosis.figures.frame import MEASURED, PREDICTED
from longroute.report.diagnosis.findings import Findings, Grid
from longroute.report.diagnosis.words import short
from longroute.report.figures.canvas import TEXT, WIDTH, Panel, add_axes, blank, set_ticks
from longroute.report.figures.ink import INK, MUTED

_LEFT, _BETWEEN, _TOP, _BOTTOM = 26.0, 38.0, 34.0, 36.0
_WIDEST, _TALLEST = 64.0, 30.0
_NUMBER = (27.0, 14.0)
"""Least cell that holds a number, pixels."""
_MOST = 0.6
"""Strongest ink under a number: more would hide it."""


@dataclass(frozen=True)
class Map:
    """One of the small multiples. `center` is drawn blank, what is above in one colour and what is below in another;
    with `full` a value so far from the center has full ink, else the largest that occurs."""

    title: str
    values: Callable[[Findings, int], Grid | None]
    center: float = 0.0
    full: float | None = None


def coherence(findings: Findings, length: int) -> Grid | None:
    """Norm of the far sum over what it would be if its values had nothing in common, (layer head)."""
    far, apart = findings.heads("far_norm", length), findings.heads("incoherent_norm", length)
    if far is None or apart is None:
        return None
    return np.sqrt(np.divide(far, apart, out=np.full_like(far, np.nan), where=apart > 0))


def edge_excess(findings: Findings, length: int) -> Grid | None:
    """Far free energy less that of the last trained distances, nats, (layer head)."""
    far, edge = findings.heads("far_free_energy", length), findings.heads("edge_free_energy", length)
    return None if far is None or edge is None else far - edge


def _measure(name: str) -> Callable[[Findings, int], Grid | None]:
    return lambda findings, length: findings.heads(name, length)


MAPS = (
    Map("far mass", _measure("far_mass"), full=1.0),
    Map("entropy, nats", _measure("entropy")),
    Map("score gap, nats", _measure("score_gap")),
    Map("logit spread, nats", _measure("logit_spread")),
    Map("value coherence", coherence, center=1.0),
    Map("far − edge free energy, nats", edge_excess),
)


def head_maps_figure(findings: Findings) -> Figure | None:
    """The maps that have a number anywhere, two a row, at the length of the evidence; None if none has."""
    length = findings.evidence_length
    found = [(one, grid) for one in MAPS if (grid := one.values(findings, length)) is not None]
    shown = [(one, grid) for one, grid in found if np.isfinite(grid).any()]
    if not shown:
        return None
    layers, heads = shown[0][1].shape
    width = (WIDTH - 2 * _LEFT - _BETWEEN) / 2
    cell = (min(_WIDEST, width / heads), min(_TALLEST, max(7.0, 240.0 / layers)))
    row_height = cell[1] * layers + _TOP + _BOTTOM
    rows = -(-len(shown) // 2)
    figure = blank(rows * row_height)
    for number, (one, grid) in enumerate(shown):
        left = _LEFT + (number % 2) * (width + _LEFT + _BETWEEN)
        bottom = (rows - 1 - number // 2) * row_height + _BOTTOM
        axes = add_axes(figure, Panel(left, bottom, cell[0] * heads, cell[1] * layers), "")
        axes.text(0, -12 / cell[1], one.title, size=TEXT, color=INK)
        _draw(axes, one, grid, cell)
    return figure


def _draw(axes: Axes, one: Map, grid: Grid, cell: tuple[float, float]) -> None:
    layers, heads = grid.shape
    cell_axes(axes, layers, heads)
    off = grid - one.center
    full = one.full or float(np.abs(off[np.isfinite(off)]).max()) or 1.0
    gap = (1.5 / cell[0], 1.5 / cell[1])
    fill_cells(axes, off / full, MEASURED, most=_MOST, gap=gap)
    fill_cells(axes, -off / full, PREDICTED, most=_MOST, gap=gap)
    if cell[0] >= _NUMBER[0] and cell[1] >= _NUMBER[1]:
        for (layer, head), value in np.ndenumerate(grid):
            place = (head + 0.5 - gap[0] / 2, layer + 0.5)
            axes.text(*place, short(float(value)), size=TEXT - 2, color=INK, ha="center", va="center_baseline")
    else:
        known = grid[np.isfinite(grid)]
        words = f"{short(float(known.min()))} to {short(float(known.max()))}"
        axes.text(heads, layers + 27 / cell[1], words, size=TEXT - 2, color=MUTED, ha="right", va="center")
    for which, count, size, need in (("x", heads, cell[0], 16.0), ("y", layers, cell[1], 13.0)):
        step = max(1, int(-(-need // size)))
        set_ticks(axes, which, [k + 0.5 for k in range(0, count, step)], lambda place: str(int(place)))
    axes.tick_params(labelsize=TEXT - 2.5)
