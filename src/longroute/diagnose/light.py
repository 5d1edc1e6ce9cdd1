"""The light form of a diagnosis that every run of a comparison gets: a prediction from short windows, in seconds."""

from collections.abc import Sequence
from typing import Any

import torch

from longroute.diagnose.breaking import breaking_length
from longroute.diagnose.diagnose import predict_breaking
from longroute.diagnose.job import Diagnosis
from longroute.diagnose.nested import mean_or_none, tensor
from longroute.diagnose.spec import DiagnoseSpec, Text
from longroute.diagnose.traced import TracedModel
from longroute.evaluate.spans import Span

_STRETCHES = 2


def light_diagnosis(model: TracedModel, spans: Sequence[Span], lengths: Sequence[int]) -> dict[str, Any]:
    """The record "prediction": where the model will break, from windows of at most 4 training lengths.

    Measured on one span a book, two at most. Beside it the mean far mass of all heads at each short length.
    """
    chosen = [span for span in spans if span.index == 0][:_STRETCHES]
    tokens = torch.stack([torch.from_numpy(span.tokens.astype("int64")) for span in chosen])
    text = Text(tokens, tuple(span.book for span in chosen))
    diagnosis = Diagnosis(model, text, DiagnoseSpec(), tuple(lengths))
    predicting = predict_breaking(diagnosis)
    while True:
        try:
            next(predicting)
        except StopIteration as end:
            prediction = end.value
            break
    heads = {length: diagnosis.records["loss", length, None]["heads"] for length in diagnosis.short}
    far = {str(n): mean_or_none(tensor(table["far_mass"]["mean"])) for n, table in heads.items() if table}
    return {"record": "prediction", **prediction, "far_mass": far}


def span_breaking(records: Sequence[dict[str, Any]], train_length: int) -> dict[str, Any]:
    """The measured breaking length from a run's evaluation records, over its fixed tails; spans are drawn again."""
    units: dict[int, list[float]] = {}
    for record in records:
        if record["record"] == "evaluation" and record["protocol"] == "tail":
            units.setdefault(record["length"], []).append(record["nats"] / record["tokens"])
    return vars(breaking_length(units, train_length)).copy()
