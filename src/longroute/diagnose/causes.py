"""Why a model breaks: each suspected cause is undone at test time, and how much of the lost nats that recovers."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from longroute.diagnose.breaking import FEWEST, LEVEL, RESAMPLES
from longroute.diagnose.edit import Edit, Exact, FarShift, LogCount, Temperature, WindowWithSinks, WithoutFarMean

CAUSES = {
    "dilution": "the far tokens grow in number and take attention from the near ones",
    "untrained positions": "far tokens score higher than any did within the training length",
    "coherent far values": "what far tokens have in common adds up and drowns the near signal",
    "precision": "rounding in attention's scores, softmax and sums",
    "contraction": "transports shrink what they carry",
}
"""Suspected causes, in words."""

CONTROLS = {
    "log-count offset": "far scores lowered by ln(context / training length)",
    "attention temperature": "scores sharpened by ln(context) / ln(training length)",
    "window with sinks": "only the training length is seen, and the first tokens",
}
"""What a user may switch on at test time, in words."""


def edits(near: int, edge_excess: torch.Tensor | None) -> dict[str, Edit]:
    """Every edit that undoes a cause or is a control, by name.

    `edge_excess` (layer head) is by how much the far free energy is above that of the last trained distances, nats.
    """
    chosen: dict[str, Edit] = {
        "log-count offset": LogCount(near),
        "attention temperature": Temperature(near),
        "window with sinks": WindowWithSinks(near),
        "without far mean": WithoutFarMean(near),
        "exact": Exact(),
    }
    if edge_excess is not None:
        chosen["far scores as at the edge"] = FarShift(near, -edge_excess.nan_to_num(0).clamp(min=0))
    return chosen


UNDOES = {
    "dilution": "log-count offset",
    "untrained positions": "far scores as at the edge",
    "coherent far values": "without far mean",
    "precision": "exact",
}
"""The edit that undoes a cause."""


@dataclass(frozen=True)
class Cause:
    """A cause, the share of the lost nats that undoing it recovers, a 95 % interval of that, and its evidence."""

    name: str
    meaning: str
    recovered: float | None
    low: float | None
    high: float | None
    undone_by: str | None
    evidence: Mapping[str, float | None]


def rank_causes(
    trained: Sequence[float],
    broken: Sequence[float],
    undone: Mapping[str, Sequence[float]],
    evidence: Mapping[str, Mapping[str, float | None]],
) -> list[Cause]:
    """Causes by the share of (loss at length - loss at the training length) that undoing each recovers, largest first.

    All losses are mean nats of the same units; the interval is a bootstrap over units. A cause without an edit of its
    own (contraction) stands last, with its evidence alone.
    """
    causes = []
    for name, meaning in CAUSES.items():
        edit = UNDOES.get(name)
        share = None if edit is None or edit not in undone else _share(trained, broken, undone[edit])
        recovered, low, high = share or (None, None, None)
        causes.append(Cause(name, meaning, recovered, low, high, edit if share else None, evidence.get(name, {})))
    return sorted(causes, key=lambda cause: -np.inf if cause.recovered is None else cause.recovered, reverse=True)


def _share(
    trained: Sequence[float], broken: Sequence[float], undone: Sequence[float]
) -> tuple[float, float, float] | None:
    """The recovered share and its interval; None where it isn't plain that anything was lost."""
    table = np.array([trained, broken, undone])
    drawn = np.random.default_rng(0).integers(table.shape[1], size=(RESAMPLES, table.shape[1]))
    means = np.concatenate([table.mean(1, keepdims=True), table[:, drawn].mean(2)], 1)
    lost = means[1] - means[0]
    if table.shape[1] < FEWEST or np.quantile(lost, (1 - LEVEL) / 2) <= 0:
        return None
    shares = (means[1] - means[2]) / np.maximum(lost, 1e-9)
    low, high = np.quantile(shares[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(shares[0]), float(low), float(high)
