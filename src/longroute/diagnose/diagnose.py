"""The order of a diagnosis: measure short, predict, write the prediction down, and only then measure long."""

import json
from collections.abc import Generator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from longroute.diagnose.breaking import breaking_length
from longroute.diagnose.causes import edits
from longroute.diagnose.job import Diagnosis
from longroute.diagnose.result import diagnosis_result, edge_excess, evidence_length, measured_breaking
from longroute.diagnose.spec import REACH
from longroute.diagnose.tail import tail_windows
from longroute.files import write_atomically

HORIZON = 128
"""A prediction looks as far as this many times the training length, or the longest length measured."""
_ENOUGH = 1.25
"""A predicted ratio past which nothing longer is looked at."""
_FLAT = 1.02
"""A predicted ratio below which the next length is four times as long, not twice."""


@dataclass(frozen=True)
class Progress:
    """What is being done, and how much of the work that is known of lies behind, from 0 to 1."""

    stage: str
    done: float


def predict_breaking(diagnosis: Diagnosis) -> Generator[str, None, dict[str, Any]]:
    """Measure at the short lengths and predict from them alone; yields what begins, returns the prediction."""
    for length in diagnosis.short:
        yield f"loss and heads at {length:,} tokens"
        diagnosis.measure_loss(length)
    base, window = diagnosis.train_length, diagnosis.window
    if window is None:
        why = diagnosis.model.anatomy.untraced or (
            f"it needs a length from {2 * base:,} to {REACH * base:,} tokens, and as much text before the last "
            f"{diagnosis.tail:,} tokens"
        )
        return {"from_lengths": list(diagnosis.short), "unpredicted": why, "breaking": None, "ratio": {}}
    kinds = {length: "loss" for length in diagnosis.short if length >= base}
    horizon, length = max(HORIZON * base, diagnosis.lengths[-1]), window
    while (ratio := diagnosis.ratio(kinds[length], length)) < _ENOUGH and 2 * length <= horizon:
        length *= 4 if ratio < _FLAT and 4 * length <= horizon else 2
        yield f"prediction for {length:,} tokens"
        diagnosis.predict(length)
        kinds[length] = "virtual"
    units = {length: diagnosis.units(kind, length) for length, kind in kinds.items()}
    found = {length: values for length, values in units.items() if values is not None}
    return {
        "from_lengths": list(diagnosis.short),
        "unpredicted": None,
        "breaking": asdict(breaking_length(found, base)),
        "ratio": {str(n): diagnosis.ratio(kinds[n], n) for n in found},
    }


def diagnose(diagnosis: Diagnosis, folder: Path) -> Generator[Progress, None, dict[str, Any]]:
    """The whole diagnosis; writes prediction.json before anything long is measured, and diagnosis.json at the end.

    May be closed after any progress and begun again in the same folder: what was measured isn't measured again.
    """
    work = _Work(diagnosis)
    yield work.at("transports", 0.0)
    diagnosis.measure_transports()
    predicting = predict_breaking(diagnosis)
    while True:
        try:
            stage = next(predicting)
        except StopIteration as end:
            prediction = end.value
            break
        yield work.at(stage, work.prediction)
    _write_down(folder / "prediction.json", prediction)
    for length in diagnosis.lengths:
        yield work.at(f"loss and heads at {length:,} tokens", work.loss(length))
        diagnosis.measure_loss(length)
    measured = measured_breaking(diagnosis)
    at = evidence_length(diagnosis, measured["length"])
    chosen = edits(diagnosis.train_length, edge_excess(diagnosis, at)) if at is not None else {}
    for name, edit in chosen.items():
        assert at is not None  # chosen is empty otherwise
        yield work.at(f"{name} at {at:,} tokens", work.edit)
        diagnosis.measure_edit(name, edit, at)
    result = diagnosis_result(diagnosis, prediction, measured, at)
    write_atomically(folder / "diagnosis.json", json.dumps(result, indent=1, allow_nan=False) + "\n")
    yield Progress("done", 1.0)
    return result


def _write_down(file: Path, prediction: dict[str, Any]) -> None:
    """Write a prediction once: going on later finds the same, and its date says when it was made."""
    text = json.dumps(prediction, indent=1, allow_nan=False) + "\n"
    if not file.exists() or file.read_text(encoding="utf-8") != text:
        write_atomically(file, text)


class _Work:
    """About how much there is to do, in scored pairs of tokens, and how much of it is behind."""

    def __init__(self, diagnosis: Diagnosis):
        self.diagnosis = diagnosis
        traced = diagnosis.traced
        self.prediction = 3 * self.loss(diagnosis.window) if diagnosis.window else 0.0
        self.edit = 2 * self.loss(diagnosis.lengths[len(diagnosis.lengths) // 2]) if traced else 0.0
        self.total = sum(map(self.loss, diagnosis.lengths)) + 8 * self.prediction + 6 * self.edit
        self.done, self.now = 0.0, 0.0

    def loss(self, length: int) -> float:
        """A forward over the tail's windows: linear layers weigh as much as attention over 4,096 tokens."""
        diagnosis = self.diagnosis
        windows = len(tail_windows(diagnosis.text.tokens.shape[1] - 1, diagnosis.tail, length))
        return windows * length * (4096.0 + length)

    def at(self, stage: str, cost: float) -> Progress:
        """What begins now, and its cost."""
        self.done, self.now = self.done + self.now, cost
        return Progress(stage, min(0.99, self.done / self.total))
