"""Recall: how many of a task's answers a model gets right, at the same lengths as perplexity."""

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from scipy import stats

from longroute.data.shards import TokenShard
from longroute.data.tokenizer import load_tokenizer
from longroute.evaluate.spans import EvaluateSpec
from longroute.evaluate.summary import LEVEL
from longroute.model import Decoder
from longroute.task import WINDOW, Hay, Samples, Source, draw_split
from longroute.train.folder import RunFolder
from longroute.train.loop import autocast
from longroute.train.spec import TrainSpec

SOLVED = 0.95
"""Accuracy at the training length from which a task counts as learned: only then do longer lengths say anything."""
TEST_SEED = 0
"""Every run is asked the same."""


def hay_of(folder: RunFolder, shard: TokenShard | None) -> Hay | None:
    """Held-out text to hide needles in, in the run's own tokens."""
    return None if shard is None else Hay(shard, load_tokenizer(folder.tokenizer))


def evaluate_recall(
    model: Decoder,
    train: TrainSpec,
    name: str,
    source: Source,
    spec: EvaluateSpec,
    *,
    device: torch.device,
    done: Sequence[int] = (),
) -> Iterator[dict[str, Any]]:
    """A record for every length but those `done`: answers asked and right, by sample and slice.

    `cells` are columns of equal length: `sample`; `distance`, the power of two at or below it; the task's own slices;
    and of the answers that share all these how many there are, how many were right, and the sum of their chances.
    Memory is O(length): logits are made at answers alone.
    """
    for length in spec.lengths(train.length):
        if length not in done:
            samples = draw_split(source, length, spec.samples_at(length), [TEST_SEED], heldout=True)
            right = _right(model, train, samples, spec.window_tokens // length, device)
            yield {"record": "recall", "task": name, "length": length, "cells": _cells(samples, right)}


@torch.inference_mode()
def _right(model: Decoder, train: TrainSpec, samples: Samples, at_once: int, device: torch.device) -> np.ndarray:
    """Whether each answer is right in all its tokens, (answer)."""
    parts = []
    for rows in np.array_split(np.arange(len(samples)), math.ceil(len(samples) / max(1, at_once))):
        part = samples.take(rows)
        row, places = torch.from_numpy(part.row)[:, None], torch.from_numpy(part.places)
        with autocast(train, device):
            hidden = model.hidden_states(torch.from_numpy(part.inputs).to(device))
            told = F.linear(hidden[row.to(device), places.to(device)], model.embedding.weight).argmax(-1)
        parts.append((told.cpu().numpy() == part.expected).all(1))
    return np.concatenate(parts)


def _cells(samples: Samples, right: np.ndarray) -> dict[str, list[float]]:
    distance = samples.slices["distance"]
    octave = np.where(distance > WINDOW, 2 ** np.log2(np.maximum(distance, 1)).astype(np.int64), 0)
    slices = {"sample": samples.row} | dict(samples.slices) | {"distance": octave}
    keys, cell = np.unique(np.stack(list(slices.values()), 1), axis=0, return_inverse=True)
    columns = {name: column.tolist() for name, column in zip(slices, keys.T, strict=True)}
    sums = {"answers": np.ones(len(right)), "right": right, "chance": samples.chance}
    return columns | {name: np.bincount(cell.ravel(), values, len(keys)).tolist() for name, values in sums.items()}


def summarise_recall(records: Sequence[dict[str, Any]], train_length: int) -> dict[str, Any]:
    """What recall records come to, by length and by slice.

    `accuracy` and `binding` = (accuracy - chance) / (1 - chance), with `chance` that of a guesser who knows everything
    in the sample but what belongs to what: 0 is knowing the set, 1 is knowing every pair. Answers within the last
    WINDOW tokens prove no memory; they are counted under distance 0 of `slices` alone. `interval`: Wilson's, answers
    taken as independent. `solved`: whether accuracy at the training length is at least SOLVED.
    """
    far = {str(record["length"]): _select(record["cells"], "distance", above=0) for record in records}
    summary: dict[str, Any] = {name: {} for name in ("answers", "accuracy", "binding", "chance")}
    summary["interval"] = {"level": LEVEL, "accuracy": {}, "binding": {}}
    for length, cells in far.items():
        for name, value in _scores(cells).items():
            (summary["interval"][name[9:]] if name.startswith("interval_") else summary[name])[length] = value
    at_training = summary["accuracy"].get(str(train_length))
    slices = sorted({name for record in records for name in record["cells"]} - {"sample", "answers", "right", "chance"})
    return summary | {
        "solved": at_training is not None and at_training >= SOLVED,
        "slices": {name: _by_slice(records, name) for name in slices},
    }


def _by_slice(records: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Scores by the values of a slice, all lengths together; but for distances, of answers beyond the window alone."""
    found: dict[int, list[dict[str, np.ndarray]]] = {}
    for record in records:
        cells = record["cells"] if name == "distance" else _select(record["cells"], "distance", above=0)
        for value in np.unique(cells.get(name, [])):
            found.setdefault(int(value), []).append(_select(cells, name, equal=value))
    pooled = {value: _pooled(parts) for value, parts in sorted(found.items())}
    return {str(value): _scores(cells) for value, cells in pooled.items()}


def _pooled(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in ("answers", "right", "chance")}


def _select(
    cells: dict[str, Any], name: str, *, above: float = -1, equal: float | None = None
) -> dict[str, np.ndarray]:
    column = np.asarray(cells[name])
    kept = column > above if equal is None else column == equal
    return {key: np.asarray(values)[kept] for key, values in cells.items()}


def _scores(cells: dict[str, np.ndarray]) -> dict[str, Any]:
    """Counts and shares of some cells; no shares where there are no answers, no binding where chance is 1."""
    answers, right, sure = (float(cells[name].sum()) for name in ("answers", "right", "chance"))
    if not answers:
        return {"answers": 0, "accuracy": None, "binding": None, "chance": None}
    chance = sure / answers
    test = stats.binomtest(round(right), round(answers)).proportion_ci(LEVEL, method="wilson")
    interval = (right / answers, float(test.low), float(test.high))
    accuracy, *ends = interval
    binding, *binding_ends = [(x - chance) / (1 - chance) for x in interval] if chance < 1 else [None, None, None]
    return {
        "answers": round(answers),
        "accuracy": accuracy,
        "binding": binding,
        "chance": chance,
        "interval_accuracy": ends,
        "interval_binding": binding_ends,
    }
