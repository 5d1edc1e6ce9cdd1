"""Where attention goes by distance, every head a row: at the training length, and at the longest."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.diagnosis.figures.cells import cell_axes, fill_cells
from longroute.report.diagnosis.figures.frame import KEPT, MEASURED
from longroute.report.diagnosis.findings import Findings, Grid
from longroute.report.diagnosis.words import percent
from longroute.report.figures.canvas import TEXT, WIDTH, Panel, add_axes, blank, set_ticks
from longroute.report.figures.ink import INK, MUTED

_LEFT, _BOTTOM, _TOP = 30.0, 44.0, 52.0
_SINKS = 0.5
"""Columns of room between the bins and the sinks."""
_LEAST_LABEL = 13.0
"""Pixels that a layer's number needs."""


def distance_figure(findings: Findings, length: int) -> Figure | None:
    """Head by bin of distance, strength the share of attention, sinks apart, a line at the training length."""
    mass = findings.heads("mass", length)
    if mass is None:
        return None
    layers, heads, bins = mass.shape
    rows, columns = layers * heads, bins + _SINKS + 1
    height = max(120.0, min(820.0, rows * min(18.0, max(3.0, 560.0 / rows))))
    figure = blank(height + _BOTTOM + _TOP)
    axes = add_axes(figure, Panel(_LEFT, _BOTTOM, WIDTH - _LEFT - 6, height), "")
    figure.text(0, 1 - 16 / (height + _BOTTOM + _TOP), f"share of attention at {length:,} tokens", size=TEXT, color=INK)
    cell_axes(axes, rows, columns)
    most = _strongest(findings)
    gap = (0.04, 0.08 if height / rows > 8 else 0.0)
    flat = mass.reshape(rows, bins)
    fill_cells(axes, flat / most, MEASURED, most=0.95, gap=gap)
    _sinks(axes, findings.heads("sink_mass", length), rows, bins, most, gap)
    _bin_labels(axes, findings, length, bins)
    _layer_labels(axes, layers, heads, bins, height / layers)
    words = f"full ink = {percent(most)}"
    figure.text(1 - 6 / WIDTH, 1 - 16 / (height + _BOTTOM + _TOP), words, size=TEXT - 2, color=MEASURED, ha="right")
    return figure


def _strongest(findings: Findings) -> float:
    """The largest share in both maps, so that they can be compared."""
    ends = {findings.train_length, *findings.traced_lengths[-1:]}
    grids = [g for n in ends for name in ("mass", "sink_mass") if (g := findings.heads(name, n)) is not None]
    return max((float(grid[np.isfinite(grid)].max()) for grid in grids), default=0.0) or 1.0


def _sinks(axes: Axes, sinks: Grid | None, rows: int, bins: int, most: float, gap: tuple[float, float]) -> None:
    """A column of its own, at the right."""
    if sinks is None:
        return
    left = bins + _SINKS
    axes.plot(
        [left, left + 1, left + 1, left, left],
        [0, 0, rows, rows, 0],
        color=MUTED,
        linewidth=0.6,
        alpha=0.6,
        clip_on=False,
    )
    fill_cells(axes, sinks.reshape(rows, 1) / most, KEPT, most=0.95, gap=gap, left=left)


def _bin_labels(axes: Axes, findings: Findings, length: int, bins: int) -> None:
    edges = findings.bins(length)
    step = 1 if bins <= 16 else 2
    places = [k + 0.5 for k in range(0, bins, step)] + [bins + _SINKS + 0.5]
    names = [_short(edges[k]) for k in range(0, bins, step)] + ["sinks"]
    words = dict(zip(places, names, strict=True))
    set_ticks(axes, "x", places, lambda place: words[place])
    axes.tick_params(axis="x", labelsize=TEXT - 2.5)
    axes.set_xlabel("tokens back, from", size=TEXT - 1, color=INK, labelpad=2)
    near = findings.train_length
    if edges[-1] < near <= edges[-1] * 2 and length <= near:
        return
    k = max(i for i, edge in enumerate(edges) if edge <= near)
    place = k + (math.log2(near / edges[k]) if edges[k] else 0.0)
    axes.axvline(place - 0.02, color=INK, linewidth=1.2)
    axes.text(place, 0, "trained to here ", size=TEXT - 2, color=INK, ha="right", va="bottom")


def _short(length: int) -> str:
    """`512`, `2K`: columns are narrow."""
    return f"{length // 1024}K" if length and length % 1024 == 0 else str(length)


def _layer_labels(axes: Axes, layers: int, heads: int, bins: int, height: float) -> None:
    """The number of every layer that there is room for, and hairlines between layers."""
    step = max(1, math.ceil(_LEAST_LABEL / height))
    set_ticks(axes, "y", [(k + 0.5) * heads for k in range(0, layers, step)], lambda y: str(int(y // heads)))
    axes.hlines([k * heads for k in range(1, layers)], 0, bins, color=MUTED, linewidth=0.6, alpha=0.6)
    axes.text(-0.2, 0, "layer", size=TEXT - 2, color=MUTED, ha="right", va="bottom")
