"""Head measures of the windows that are shown, gathered layer by layer."""

from typing import Any

import torch
from torch import Tensor

from longroute.diagnose.edit import attention
from longroute.diagnose.head_measures import measure_heads
from longroute.diagnose.heads import Heads
from longroute.diagnose.nested import listed

_LONGEST_CHECKED = 1024


class HeadTable:
    """Head measures of the windows that are shown, gathered layer by layer."""

    def __init__(self, near: int):
        self.near = near
        self.layers: list[list[dict[str, Tensor]]] = []
        self.error: float | None = None
        self.biased: list[bool] = []

    def visit(self, layer: int, heads: Heads, output: Tensor) -> None:
        if layer == len(self.layers):
            self.layers.append([])
            self.biased.append(heads.charge is not None or heads.window is not None)
        if heads.time <= _LONGEST_CHECKED:
            error = (attention(heads, lambda rows: rows.scores) - output).abs().amax().item()
            self.error = max(self.error or 0.0, error)
        self.layers[layer].append(measure_heads(heads, near=self.near))

    def summary(self) -> dict[str, Any] | None:
        """{measure: {mean, error}} by (layer head), with bins last; `error` is the standard error over windows.

        `recomputed_within` is how far the recomputed output was from the model's own, None where it wasn't checked;
        `biased` says of each layer whether its scores have a distance bias or a window.
        """
        if not self.layers:
            return None
        tables = {
            name: torch.stack([torch.cat([part[name] for part in parts]) for parts in self.layers])
            for name in self.layers[0][0]
        }
        summary: dict[str, Any] = {
            name: {"mean": listed(table.amax(1) if name == "logit_bound" else table.nanmean(1)), "error": _error(table)}
            for name, table in tables.items()
        }
        windows = next(iter(tables.values())).shape[1]
        return summary | {"windows": windows, "recomputed_within": self.error, "biased": self.biased}


def _error(table: Tensor) -> list[Any] | None:
    """Standard error over windows, (layer window head …) to (layer head …); None for one window."""
    windows = table.shape[1]
    return None if windows < 2 else listed(table.std(1) / windows**0.5)
