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
from longroute.train.loop import NonFiniteError, autocast
from longroute.train.records import RecordFile
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

    `cells` are columns of equal length: `sample`; `distance`, the power of two at or below it; `depth`, how many tenths
    of the context lie before what gives the answer away; the task's own slices; and of the answers that share all
    these how many there are, how many were right, and the sum of their chances.
    Memory is O(length): logits are made at answers alone.
    """
    for length in spec.lengths(train.length):
        if length not in done:
            samples = draw_split(source, length, spec.samples_at(length), [TEST_SEED], heldout=True)
            right = _right(model, train, samples, spec.window_tokens // length, device)
            yield {"record": "recall", "task": name, "length": length, "cells": _cells(samples, right)}


def lengths_recorded(file: RecordFile, name: str) -> list[int]:
    """The lengths at which a file has a task's recall."""
    return [record["length"] for record in file.read() if record["record"] == "recall" and record["task"] == name]


def record_recall(
    file: RecordFile,
    model: Decoder,
    train: TrainSpec,
    name: str,
    source: Source,
    spec: EvaluateSpec,
    device: torch.device,
) -> Iterator[int]:
    """Add the records that a file lacks of a task, one by one; yields how many lengths it then has."""
    done = lengths_recorded(file, name)
    for count, record in enumerate(evaluate_recall(model, train, name, source, spec, device=device, done=done), 1):
        file.add(record)
        yield len(done) + count


@torch.inference_mode()
def _right(model: Decoder, train: TrainSpec, samples: Samples, at_once: int, device: torch.device) -> np.ndarray:
    """Whether each answer is right in all its tokens, (answer)."""
    parts = []
    for rows in np.array_split(np.arange(len(samples)), math.ceil(len(samples) / max(1, at_once))):
        part = samples.take(rows)
        row, places = torch.from_numpy(part.row)[:, None], torch.from_numpy(part.places)
        with autocast(train, device):
            hidden = model.hidden_states(torch.from_numpy(part.inputs).to(device))
        asked = hidden[row.to(device), places.to(device)].float()
        if not torch.isfinite(asked).all():
            raise NonFiniteError(train.steps, f"recall at length {samples.inputs.shape[1]}: hidden states")
        told = F.linear(asked, model.embedding.weight.float()).argmax(-1)
        parts.append((told.cpu().numpy() == part.expected).all(1))
    return np.concatenate(parts)


def _cells(samples: Samples, right: np.ndarray) -> dict[str, list[float]]:
    distance = samples.slices["distance"]
    octave = np.where(distance > WINDOW, 2 ** np.log2(np.maximum(distance, 1)).astype(np.int64), 0)
    depth = 10 * (samples.places[:, 0] - distance) // samples.inputs.shape[1]
    slices = {"sample": samples.row} | dict(samples.slices) | {"distance": octave, "depth": depth}
    keys, cell = np.unique(np.stack(list(slices.values()), 1), axis=0, return_inverse=True)
    columns = {name: column.tolist() for name, column in zip(slices, keys.T, strict=True)}
    sums = {"answers": np.ones(len(right)), "right": right, "chance": samples.chance}
    return columns | {name: np.bincount(cell.ravel(), values, len(keys)).tolist() for name, values in sums.items()}


def summarise_recall(records: Sequence[dict[str, Any]], train_length: int) -> dict[str, Any]:
    """What recall records come to, by length and by slice.

    `accuracy` and `binding` = (accuracy - chance) / (1 - chance), with `chance` that of a guesser who knows everything
    in the sample but what belongs to what: 0 is knowing the set, 1 is knowing every pair. Answers within the last
    WINDOW tokens prove no memory, and `shifted` samples are not what was trained: both are counted in `slices` alone.
    `interval`: Wilson's, for as many independent answers as these, clustered in samples, are worth (Kish's design
    effect). `solved`: whether accuracy at the training length is at least SOLVED.
    """
    far = {str(record["length"]): _counted(record["cells"]) for record in records}
    summary: dict[str, Any] = {name: {} for name in ("answers", "accuracy", "binding", "chance")}
    summary["interval"] = {"level": LEVEL, "accuracy": {}, "binding": {}}
    for length, cells in far.items():
        scores = _scores(cells)
        for name in ("answers", "accuracy", "binding", "chance"):
            summary[name][length] = scores[name]
        if scores["answers"]:
            summary["interval"]["accuracy"][length] = scores["interval_accuracy"]
            summary["interval"]["binding"][length] = scores["interval_binding"]
    at_training = summary["accuracy"].get(str(train_length))
    others = {"sample", "shifted", "answers", "right", "chance"}
    slices = sorted({name for record in records for name in record["cells"]} - others)
    return summary | {
        "solved": at_training is not None and at_training >= SOLVED,
        "slices": {name: _by_slice(records, name) for name in slices},
    }


def _by_slice(records: Sequence[dict[str, Any]], name: str) -> dict[str, Any]:
    """Scores of all answers by the values of a slice, all lengths together."""
    found: dict[int, list[dict[str, np.ndarray]]] = {}
    for record in records:
        cells = {key: np.asarray(column) for key, column in record["cells"].items()}
        cells["sample"] = cells["sample"] + (record["length"] << 32)  # another length, another sample
        for value in np.unique(cells.get(name, [])):
            same = cells[name] == value
            found.setdefault(int(value), []).append({key: column[same] for key, column in cells.items()})
    return {str(value): _scores(_pooled(parts)) for value, parts in sorted(found.items())}


def _pooled(parts: list[dict[str, np.ndarray]]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([part[name] for part in parts]) for name in ("sample", "answers", "right", "chance")}


def _counted(cells: dict[str, Any]) -> dict[str, np.ndarray]:
    """The cells that count: beyond the window, in samples as trained."""
    columns = {name: np.asarray(column) for name, column in cells.items()}
    kept = (columns["distance"] > 0) & (columns.get("shifted", np.zeros(len(columns["distance"]))) == 0)
    return {name: column[kept] for name, column in columns.items()}


def _scores(cells: dict[str, np.ndarray]) -> dict[str, Any]:
    """Counts and shares of some cells; no shares where there are no answers, no binding where chance is 1."""
    answers, right, sure = (float(cells[name].sum()) for name in ("answers", "right", "chance"))
    if not answers:
        return {"answers": 0, "accuracy": None, "binding": None, "chance": None}
    chance, accuracy = sure / answers, right / answers
    ends = _wilson(accuracy, _independent(cells, accuracy))
    binding, *binding_ends = [(x - chance) / (1 - chance) for x in (accuracy, *ends)] if chance < 1 else [None] * 3
    return {
        "answers": round(answers),
        "accuracy": accuracy,
        "binding": binding,
        "chance": chance,
        "interval_accuracy": ends,
        "interval_binding": binding_ends,
    }


def _independent(cells: dict[str, np.ndarray], accuracy: float) -> float:
    """As how many independent answers these count, those of a sample together: n / design effect.

    The design effect is the variance of a ratio over samples to p (1 - p) / n, at least 1; where nothing varies, every
    sample counts as one answer.
    """
    _, sample = np.unique(cells["sample"], return_inverse=True)
    answers, right = (np.bincount(sample, cells[name]) for name in ("answers", "right"))
    count, samples = answers.sum(), len(answers)
    if accuracy in (0.0, 1.0) or samples < 2:
        return float(samples)
    variance = ((right - accuracy * answers) ** 2).sum() / count**2 * samples / (samples - 1)
    return float(count / max(1.0, variance * count / (accuracy * (1 - accuracy))))


def _wilson(share: float, count: float) -> list[float]:
    """Wilson's score interval of a share that was seen in `count` independent answers."""
    z = float(stats.norm.ppf((1 + LEVEL) / 2))
    middle = (share + z**2 / (2 * count)) / (1 + z**2 / count)
    half = z / (1 + z**2 / count) * math.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    return [0.0 if share == 0 else middle - half, 1.0 if share == 1 else middle + half]
