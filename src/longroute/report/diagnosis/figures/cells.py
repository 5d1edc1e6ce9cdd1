"""Cells of a heat map as ink of a certain strength: readable on light and on dark paper alike."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

LEVELS = 24
"""Strengths that are told apart; cells of one strength are one path, which keeps large maps small."""


def fill_cells(
    axes: Axes, strength: np.ndarray, color: str, *, most: float, gap: tuple[float, float], left: float = 0.0
) -> None:
    """Fill the cell of row i and column j, the unit square at (left + j, i), with opacity `most` · strength[i, j].

    `gap` (x, y) is left free between cells, in cells. Strengths are cut to [0, 1]; NaN stays blank.
    """
    levels = np.round(np.nan_to_num(strength, nan=0.0).clip(0, 1) * LEVELS).astype(int)
    for level in range(1, LEVELS + 1):
        rows, columns = np.nonzero(levels == level)
        if rows.size:
            path = Path.make_compound_path(
                *(_cell(left + float(j), float(i), gap) for i, j in zip(rows, columns, strict=True))
            )
            patch = PathPatch(path, facecolor=color, edgecolor="none", alpha=most * level / LEVELS)
            patch.set_gid(f"cells-{len(axes.figure.axes)}-{len(axes.patches)}")
            axes.add_patch(patch)


def _cell(x: float, y: float, gap: tuple[float, float]) -> Path:
    right, top = x + 1 - gap[0], y + 1 - gap[1]
    return Path([(x, y), (right, y), (right, top), (x, top), (x, y)], closed=True)


def cell_axes(axes: Axes, rows: int, columns: float) -> None:
    """Limits of a map with the first row on top, and nothing of the usual axes."""
    axes.set_xlim(0, columns)
    axes.set_ylim(rows, 0)
    axes.grid(visible=False)
    axes.spines["bottom"].set_visible(False)
    axes.tick_params(length=0, pad=4)
