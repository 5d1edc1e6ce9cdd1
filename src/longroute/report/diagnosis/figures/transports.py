"""How fast a model's own steps forget: by lag, as mixing windows, and what of the loss is norm and what phase."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from longroute.report.diagnosis.figures.frame import KEPT, MEASURED, PREDICTED, framed
from longroute.report.diagnosis.findings import Findings
from longroute.report.diagnosis.mixing import Block, blocks, window_of
from longroute.report.figures.canvas import TEXT, log_ticks, logarithmic, set_ticks
from longroute.report.figures.ink import INK, MUTED
from longroute.report.wording import short_length_text

_NEVER = 1.6
"""Where blocks that never mix are drawn, as a multiple of the largest window."""


def autocorrelation_figure(findings: Findings) -> Figure | None:
    """What is left of the slowest and of the fastest block after n steps, a line a layer, means over heads."""
    groups = _known(findings, "autocorrelation")
    if not groups:
        return None
    legend = [("─ slowest block of a layer", MEASURED), ("─ fastest", KEPT)]
    axes = framed("mean transport over n steps, size of a block", legend, x="steps n")
    lags = _lag_axis(axes, [decay for _, decay in groups])
    axes.set_ylim(-0.03, 1.06)
    set_ticks(axes, "y", [0, 0.25, 0.5, 0.75, 1], lambda y: f"{y:g}")
    for _, decay in groups:
        table = _array(decay["autocorrelation"])
        for block, color, width in ((table[..., 0], MEASURED, 3.2), (table[..., -1], KEPT, 1.4)):
            axes.plot(decay["lags"], _over_heads(block), color=color, linewidth=width, alpha=0.8, marker=_dot(lags))
    return _figure(axes)


def kept_figure(findings: Findings) -> Figure | None:
    """Norm kept, and mean cosine with what set out, against steps; a line a layer, means over heads."""
    groups = _known(findings, "norm")
    if not groups:
        return None
    axes = framed("what n steps keep", [("─ norm", INK), ("─ direction (mean cosine)", PREDICTED)], x="steps n")
    lags = _lag_axis(axes, [decay for _, decay in groups])
    top = 1.06
    for _, decay in groups:
        norm, cosine = _over_heads(_array(decay["norm"])), _over_heads(_array(decay["cosine"]))
        top = max(top, 1.06 * float(np.nanmax(norm, initial=1.0)))
        axes.plot(decay["lags"], norm, color=INK, linewidth=1.6, marker=_dot(lags))
        axes.plot(decay["lags"], cosine, color=PREDICTED, linewidth=1.6, alpha=0.8, marker=_dot(lags))
    low = min(0.0, *(float(np.nanmin(_over_heads(_array(decay["cosine"])), initial=0.0)) for _, decay in groups))
    axes.set_ylim(low - 0.03, top)
    axes.locator_params(axis="y", nbins=6)
    return _figure(axes)


def mixing_figure(findings: Findings) -> Figure | None:
    """The mixing window of every block, a row a layer, heads one below another, each with its standard error."""
    found = [(layers, blocks(decay)) for layers, decay in findings.transports]
    finite = [block.window for _, each in found for block in each if block.window is not None]
    if not finite:
        return None
    train = findings.train_length
    legend = [("● one block, ± standard error", MEASURED), ("○ never mixes", MUTED)]
    axes = framed("mixing window, tokens; heads one below another", legend, left=64, bottom=30)
    top = max(*finite, train) * _NEVER
    axes.set_xscale("log")
    axes.set_xlim(*logarithmic(min(*finite, train), top))
    set_ticks(axes, "x", log_ticks(*axes.get_xlim(), most=7), lambda n: short_length_text(round(n)))
    axes.axvline(train, color=INK, linewidth=1.2)
    axes.text(train, -0.62, " training length", size=TEXT - 2, color=INK, va="bottom", clip_on=False)
    for row, (_, each) in enumerate(found):
        _row_of_blocks(axes, row, each, top)
    axes.set_ylim(len(found) - 0.4, -0.6)
    axes.grid(visible=False)
    step = -(-len(found) // 20)
    set_ticks(axes, "y", range(0, len(found), step), lambda row: _layers_text(found[int(row)][0]))
    return _figure(axes)


def _row_of_blocks(axes: Axes, row: int, each: Sequence[Block], top: float) -> None:
    heads = 1 + max(block.head for block in each)
    places = np.array([row + 0.7 * ((block.head + 0.5) / heads - 0.5) for block in each])
    mixes = np.array([block.window is not None for block in each])
    windows = np.array([block.window or top for block in each])
    ends = np.array([[window_of(block.rate + sign * block.error) or top for block in each] for sign in (-1, 1)])
    axes.hlines(places[mixes], ends[0, mixes], ends[1, mixes], color=MEASURED, linewidth=2, alpha=0.3)
    style = {"markersize": 4.5, "clip_on": False}
    axes.plot(windows[mixes], places[mixes], "o", color=MEASURED, alpha=0.75, markeredgewidth=0, **style)
    axes.plot(windows[~mixes], places[~mixes], "o", color=MUTED, markerfacecolor="none", **style)


def _layers_text(layers: Sequence[int]) -> str:
    """`layer 3`, or `all 4` of those that share their steps."""
    return f"layer {layers[0]}" if len(layers) == 1 else f"{len(layers)} layers"


def _known(findings: Findings, measure: str) -> list[tuple[list[int], Mapping[str, Any]]]:
    """The layers for which any of a measure is a number."""
    return [(layers, decay) for layers, decay in findings.transports if np.isfinite(_array(decay[measure])).any()]


def _lag_axis(axes: Axes, decays: Sequence[Mapping[str, Any]]) -> list[int]:
    lags = max((list(decay["lags"]) for decay in decays), key=len)
    axes.set_xscale("log", base=2)
    axes.set_xlim(*logarithmic(lags[0], lags[-1], least=2.0))
    step = -(-len(lags) // 9)
    set_ticks(axes, "x", lags[::step], lambda n: short_length_text(int(n)))
    return lags


def _array(nested: Any) -> np.ndarray:
    return np.asarray(nested, dtype=np.float64)


def _over_heads(table: np.ndarray) -> np.ndarray:
    """Mean over heads, (head lag) to (lag), of what is a number."""
    known = np.isfinite(table)
    return np.where(known, table, 0).sum(0) / np.where(known.any(0), known.sum(0), np.nan)


def _dot(lags: Sequence[int]) -> str | None:
    return "o" if len(lags) == 1 else None


def _figure(axes: Axes) -> Figure:
    figure = axes.figure
    assert isinstance(figure, Figure)  # no subfigures here
    return figure
