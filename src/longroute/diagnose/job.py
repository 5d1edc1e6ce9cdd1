"""One diagnosis in progress: every measurement is a record, and none is made twice."""

import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from longroute.diagnose.edit import Edit
from longroute.diagnose.head_table import HeadTable
from longroute.diagnose.heads import Heads
from longroute.diagnose.nested import listed
from longroute.diagnose.prediction import LongerContext, copies_for, stand_ins
from longroute.diagnose.spec import REACH, DiagnoseSpec, Text, resolve_lengths, tail_of
from longroute.diagnose.tail import tail_losses, tail_windows, unit_means
from longroute.diagnose.traced import TracedModel
from longroute.diagnose.transports import transport_decay
from longroute.theory import mixing_window
from longroute.train.records import RecordFile

EPSILON = 0.05
"""Mixing windows are given to within this."""
_NEVER = 1 - 1e-9
"""A rate from which on a block never mixes: rounding alone gives that much."""
_STEPS_OF = 512
_EDITED_PAIRS = 1 << 26  # of a model of 16 heads in all: an edited window of 8,192 tokens takes seconds


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
        """The windows that a prediction is made from; None if no short length is twice the training length."""
        longest = max(self.short)
        return longest if longest >= 2 * self.train_length and self.traced else None

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
        if ("transports", 0, None) in self.records or not self.traced:
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
        targets = self.text.tokens.shape[1] - 1
        per_stretch = len(tail_windows(targets, self.tail, self.window))
        groups = [name for name in self.text.names for _ in range(per_stretch)]
        at_once = max(1, self.spec.window_tokens // self.window)
        factor = length / self.window
        copies = copies_for(factor, self.window, self.train_length)
        edit = _Batched(
            [
                LongerContext(self.train_length, factor, stand_ins(groups[at : at + at_once], copies))
                for at in range(0, len(groups), at_once)
            ],
            self.model.anatomy.layers,
        )
        losses = self._losses(self.window, edit=edit)
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


def open_diagnosis(model: TracedModel, text: Text, spec: DiagnoseSpec, folder: Path | None = None) -> Diagnosis:
    """A diagnosis with nothing measured, or what an earlier one left in the folder's records."""
    file = None if folder is None else RecordFile(folder / "records.jsonl")
    return Diagnosis(model, text, spec, resolve_lengths(spec, model.anatomy), file)


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


class _Batched:
    """A list of edits, one a batch of windows, taken in turn as the layers come round."""

    def __init__(self, each: list[LongerContext], layers: int):
        self.each, self.layers, self.calls = each, layers, 0

    def __call__(self, layer: int, heads: Heads) -> Tensor:
        edit = self.each[self.calls // self.layers % len(self.each)]
        self.calls += 1
        return edit(layer, heads)


def _key(record: dict[str, Any]) -> tuple[str, int, str | None]:
    return record["record"], record["length"], record.get("edit")


def mean_loss(values: list[float]) -> float:
    """Mean of the units of a record, nats."""
    return math.fsum(values) / len(values)
