"""One diagnosis in progress: every measurement is a record, and none is made twice."""

import hashlib
import math
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from longroute.configuration import to_json
from longroute.diagnose.edit import Edit
from longroute.diagnose.head_table import HeadTable
from longroute.diagnose.nested import listed
from longroute.diagnose.prediction import longer_losses, past_windows
from longroute.diagnose.spec import REACH, DiagnoseSpec, Text, resolve_lengths, tail_of
from longroute.diagnose.tail import tail_losses, tail_windows, unit_means
from longroute.diagnose.traced import TracedModel
from longroute.diagnose.transports import transport_decay
from longroute.files import claim
from longroute.theory import mixing_window
from longroute.train.records import RecordFile

SCHEMA = 1
"""Raised when records come to mean something else."""
CONFIG = "diagnosis-config.json"
"""The file that says whose a folder is."""
EPSILON = 0.05
"""Mixing windows are given to within this."""
_NEVER = 1 - 1e-9
"""A rate from which on a block never mixes: rounding alone gives that much."""
_STEPS_OF = 512
_EDITED_PAIRS = 1 << 23  # of a model of 16 heads in all: an edited window of 8,192 tokens takes seconds


@dataclass
class Diagnosis:
    """One diagnosis in progress: a model, its text, what was measured so far, and where that is kept.

    `records` are keyed by (kind, length, edit). Losses in them are means of the same units of text at every length.
    """

    model: TracedModel
    text: Text
    spec: DiagnoseSpec
    lengths: tuple[int, ...]
    file: RecordFile | None = None

    def __post_init__(self):
        self.records = {_key(record): record for record in (self.file.read() if self.file else [])}
        self.train_length = self.model.anatomy.train_length
        self.tail = tail_of(self.lengths, self.train_length)
        self.traced = self.model.anatomy.untraced is None

    @property
    def short(self) -> tuple[int, ...]:
        """The lengths that a prediction may be made from."""
        return tuple(length for length in self.lengths if length <= REACH * self.train_length)

    @property
    def window(self) -> int | None:
        """The windows that a prediction is made from: the longest short length with as much text before the tail.

        None if none is twice the training length.
        """
        return max((length for length in self.short if self._predicts(length)), default=None)

    def _predicts(self, length: int) -> bool:
        long_enough = length >= 2 * self.train_length and self.traced
        return long_enough and past_windows(self.text, length, self.tail) > 0

    def identity(self) -> dict[str, Any]:
        """What its records depend on: weights, tokens, lengths, and how records are made."""
        tokens = hashlib.sha256(self.text.tokens.numpy().tobytes()).hexdigest()
        settings = to_json(replace(self.spec, lengths=self.lengths))
        return {"schema": SCHEMA, "model": asdict(self.model.anatomy), "diagnose": settings, "tokens": tokens}

    def units(self, kind: str, length: int, edit: str | None = None) -> list[float] | None:
        """Mean losses of the units of text of a record, in nats; None if it isn't there."""
        record = self.records.get((kind, length, edit))
        return None if record is None else record["units"]

    def measure_loss(self, length: int) -> None:
        """Loss and heads at one length."""
        if ("loss", length, None) in self.records:
            return
        heads = HeadTable(self.train_length)
        losses = self._losses(length, visit=heads.visit if self.traced else None)
        self._add({"record": "loss", "length": length, "units": unit_means(losses).tolist(), "heads": heads.summary()})

    def measure_transports(self) -> None:
        """How fast each layer's steps forget, on one stretch of text."""
        if ("transports", 0, None) in self.records:
            return
        time = min(_STEPS_OF, REACH * self.train_length, self.text.tokens.shape[1] - 1)
        layers, known = [], {}
        for steps in self.model.steps(self.text.tokens[:1, :time]):
            if steps is not None and id(steps) not in known:
                known[id(steps)] = decay_facts(steps)
            layers.append(None if steps is None else known[id(steps)])
        self._add({"record": "transports", "length": 0, "layers": layers})

    def predict(self, length: int) -> None:
        """Loss of windows that are made to feel as long as `length`."""
        assert self.window is not None  # asked before
        if ("virtual", length, None) in self.records:
            return
        losses = longer_losses(
            self.model,
            self.text,
            length / self.window,
            window=self.window,
            near=self.train_length,
            tail=self.tail,
            window_tokens=self.spec.window_tokens,
        )
        self._add({"record": "virtual", "length": length, "units": unit_means(losses).tolist()})

    def measure_edit(self, name: str, edit: Edit, length: int) -> None:
        """Loss under an edit, on as many stretches of text as its cost allows; at least one."""
        if ("edit", length, name) in self.records:
            return
        losses = self._losses(length, edit=edit, stretches=self._affordable(length))
        self._add({"record": "edit", "edit": name, "length": length, "units": unit_means(losses).tolist()})

    def ratio(self, kind: str, length: int) -> float:
        """Tail perplexity at a length over that at the training length."""
        units, base = self.units(kind, length), self.units("loss", self.train_length)
        assert units is not None  # measured before it is asked for
        assert base is not None  # likewise
        return math.exp(min(mean_loss(units) - mean_loss(base), 700.0))

    def _affordable(self, length: int) -> int:
        windows = len(tail_windows(self.text.tokens.shape[1] - 1, self.tail, length))
        anatomy = self.model.anatomy
        pairs = windows * length**2 * anatomy.heads * anatomy.layers / 16
        return max(1, min(len(self.text.tokens), int(_EDITED_PAIRS / pairs)))

    def _losses(self, length: int, *, stretches: int | None = None, **looking: Any) -> Tensor:
        text = self.text if stretches is None else Text(self.text.tokens[:stretches], self.text.names[:stretches])
        return tail_losses(self.model, text, length, tail=self.tail, window_tokens=self.spec.window_tokens, **looking)

    def _add(self, record: dict[str, Any]) -> None:
        if self.file is not None:
            self.file.add(record)
        self.records[_key(record)] = record


def open_diagnosis(model: TracedModel, text: Text, spec: DiagnoseSpec, folder: Path) -> Diagnosis:
    """A diagnosis with what an earlier one left in its folder, which is made its own.

    Raises InputError if the folder is something else's, or a diagnosis's of other weights, text or lengths.
    """
    lengths = resolve_lengths(spec, model.anatomy)
    claim(folder / CONFIG, Diagnosis(model, text, spec, lengths).identity())
    return Diagnosis(model, text, spec, lengths, RecordFile(folder / "records.jsonl"))


def decay_facts(steps: Tensor) -> dict[str, Any]:
    """A TransportDecay as JSON data, with each block's mixing window in tokens; null for one that never mixes."""
    decay = transport_decay(steps)
    rate = decay.rate.clamp(max=1.0)
    mixes = rate < _NEVER
    windows = torch.as_tensor(mixing_window(rate.clamp(max=_NEVER).numpy(), EPSILON)).double()
    windows = torch.where(mixes, windows, math.nan)
    return {
        "lags": decay.lags.tolist(),
        "autocorrelation": listed(decay.autocorrelation),
        "rate": listed(rate),
        "rate_error": listed(decay.rate_error),
        "gap": listed(decay.gap),
        "mixing_window": listed(windows),
        "norm": listed(decay.norm),
        "cosine": listed(decay.cosine),
    }


def _key(record: dict[str, Any]) -> tuple[str, int, str | None]:
    return record["record"], record["length"], record.get("edit")


def mean_loss(values: list[float]) -> float:
    """Mean of the units of a record, nats."""
    return math.fsum(values) / len(values)
