"""A diagnosis as read from its JSON: nulls become NaN or None in one place, so that nothing else meets them."""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

Grid = np.ndarray
"""(layer head) or (layer head bin), float64; NaN where there was nothing to measure."""


@dataclass(frozen=True)
class Break:
    """A breaking length and the ends of its 95 % interval, in tokens; None means beyond `searched`."""

    length: float | None
    low: float | None
    high: float | None
    searched: int


@dataclass(frozen=True, eq=False)
class Findings:
    """The JSON of a diagnosis, asked by name."""

    result: Mapping[str, Any]

    @property
    def model(self) -> Mapping[str, Any]:
        """Name, kind, sizes, and why it is untraced if it is."""
        return self.result["model"]

    @property
    def train_length(self) -> int:
        """The training length, tokens."""
        return int(self.model["train_length"])

    @property
    def lengths(self) -> list[int]:
        """Every length that was measured, tokens, shortest first."""
        return sorted(int(length) for length in self.result["lengths"])

    @property
    def longest(self) -> int:
        """The longest length that was measured."""
        return self.lengths[-1]

    @property
    def untraced(self) -> str | None:
        """Why heads can't be looked at; None if they can."""
        return self.model.get("untraced")

    @property
    def threshold(self) -> float:
        """The ratio that a model breaks at."""
        return float(self.result["threshold"])

    @property
    def breaking(self) -> Break:
        """The measured breaking length."""
        return _break(self.result["breaking"])

    @property
    def predicted(self) -> Break | None:
        """The predicted breaking length; None if nothing was predicted."""
        breaking = self.result["prediction"].get("breaking")
        return None if breaking is None else _break(breaking)

    @property
    def read_short(self) -> int:
        """The longest window that the prediction was made from."""
        return max(self.result["prediction"]["from_lengths"], default=self.train_length)

    @property
    def ratios(self) -> dict[int, float]:
        """Tail perplexity over that at the training length, by length."""
        return _numbers(self.result["ratio"])

    @property
    def predicted_ratios(self) -> dict[int, float]:
        """The same as predicted; up to `read_short` it is what was measured."""
        return _numbers(self.result["prediction"].get("ratio") or {})

    @property
    def evidence_length(self) -> int:
        """Where causes and controls were measured, and heads are shown; the longest length if none were."""
        return int(self.result.get("evidence_length") or self.longest)

    @property
    def causes(self) -> list[Mapping[str, Any]]:
        """Suspected causes, the one whose undoing recovers most first."""
        return list(self.result.get("causes") or ())

    @property
    def controls(self) -> list[Mapping[str, Any]]:
        """Controls that have a perplexity before and after."""
        return [one for one in self.result.get("controls") or () if None not in (one["before"], one["after"])]

    @property
    def traced_lengths(self) -> list[int]:
        """The lengths whose heads were looked at."""
        heads = self.result.get("heads") or {}
        return [length for length in self.lengths if heads.get(str(length))]

    def loss(self, length: int) -> float | None:
        """Mean loss of the tail, nats."""
        return self.result["loss"].get(str(length))

    def heads(self, measure: str, length: int) -> Grid | None:
        """A measure of every head at a length; None if it wasn't looked at or nothing there is a number."""
        heads = (self.result.get("heads") or {}).get(str(length))
        table = None if heads is None else (heads.get(measure) or {}).get("mean")
        grid = None if table is None else np.asarray(table, dtype=np.float64)
        return grid if grid is not None and grid.size and np.isfinite(grid).any() else None

    def mean(self, measure: str, length: int) -> float | None:
        """Its mean over all heads for which it is a number."""
        grid = self.heads(measure, length)
        return None if grid is None else float(grid[np.isfinite(grid)].mean())

    def bins(self, length: int) -> list[int]:
        """Lower edges of the bins of distance."""
        return [int(edge) for edge in self.result["bins"][str(length)]]

    def law(self, length: int) -> Grid | None:
        """Far mass of every head as the law has it from short windows."""
        table = ((self.result.get("law") or {}).get("far_mass") or {}).get(str(length))
        return None if table is None else np.asarray(table, dtype=np.float64)

    @property
    def in_range(self) -> Grid | None:
        """Which heads the law of far mass speaks of, (layer head) bool."""
        law = self.result.get("law")
        return None if law is None else np.asarray(law["in_range"], dtype=bool)

    @property
    def transports(self) -> list[tuple[list[int], Mapping[str, Any]]]:
        """What moves: (the layers that share it, its decay); empty if nothing does."""
        groups: list[tuple[list[int], Mapping[str, Any]]] = []
        for number, layer in enumerate(self.result.get("transports") or ()):
            if layer is None:
                continue
            same = next((layers for layers, known in groups if known == layer), None)
            if same is None:
                groups.append(([number], layer))
            else:
                same.append(number)
        return groups


def _break(breaking: Mapping[str, Any]) -> Break:
    return Break(breaking["length"], breaking["low"], breaking["high"], int(breaking["searched"]))


def _numbers(by_length: Mapping[str, float | None]) -> dict[int, float]:
    """By length, the shortest first; without what is no number."""
    found = {int(length): float(value) for length, value in by_length.items() if value is not None}
    return {length: found[length] for length in sorted(found) if math.isfinite(found[length])}
