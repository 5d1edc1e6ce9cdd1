"""Evaluate a trained run on held-out text, span by span, going on where an earlier evaluation stopped."""

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from longroute.data.shards import TokenShard
from longroute.errors import InputError
from longroute.evaluate.perplexity import Scorer, evaluate_span
from longroute.evaluate.spans import EvaluateSpec, choose_spans
from longroute.model import Decoder, token_losses
from longroute.train.checkpoint import latest_checkpoint, load_model
from longroute.train.folder import RunFolder
from longroute.train.loop import NonFiniteError, autocast, build_model
from longroute.train.spec import TrainSpec


def load_run(folder: RunFolder, device: torch.device) -> Decoder:
    """The trained model of a run's folder. Raises InputError if it isn't one, or isn't trained to the end."""
    spec = folder.spec()
    checkpoint = latest_checkpoint(folder.checkpoints)
    if checkpoint is None or checkpoint.step < spec.train.steps:
        done = 0 if checkpoint is None else checkpoint.step
        raise InputError(
            f"{folder.path}: trained for {done} of {spec.train.steps} steps; finish it with `longroute train`"
        )
    model = build_model(spec, device)
    load_model(checkpoint, model)
    return model.eval()


def model_scorer(model: Decoder, train: TrainSpec, device: torch.device) -> Scorer:
    """Losses of windows under the model, in the precision that it was trained in and O(time) memory."""

    @torch.inference_mode()
    def score(inputs: Tensor, targets: Tensor) -> Tensor:
        with autocast(train, device):
            hidden = model.hidden_states(inputs.to(device))
            return token_losses(hidden, model.embedding.weight, targets.to(device))

    return score


def complete_spans(records: list[dict[str, Any]], spec: EvaluateSpec, train_length: int) -> list[list[dict[str, Any]]]:
    """Evaluation records span by span, without those of a span that a kill cut short."""
    spans: dict[tuple[str, int], list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        if record["record"] == "evaluation":
            spans[record["book"], record["span"]].append(record)
    expected = 2 * len(spec.lengths(train_length)) + len(spec.shuffled_lengths(train_length))
    return [span for span in spans.values() if len(span) == expected]


def evaluate_run(
    model: Decoder,
    train: TrainSpec,
    shard: TokenShard,
    spec: EvaluateSpec,
    *,
    device: torch.device,
    done: int = 0,
) -> Iterator[list[dict[str, Any]]]:
    """The evaluation records of every span but the first `done`, a list a span. Raises NonFiniteError.

    Those of whole windows also have `pairs` of query and key and how many of them were `skipped`, if any could be.
    """
    score = model_scorer(model, train, device)
    pruning = model.prune(spec.prune or None)
    for span in choose_spans(shard, spec, train.length)[done:]:
        records = []
        for record in evaluate_span(score, span, spec, train.length):
            records.append(record)
            if pruning is not None and pruning.pairs:
                if record["protocol"] == "whole":  # what ran for `shuffled` is forgotten
                    record |= {"pairs": pruning.pairs, "skipped": pruning.skipped}
                pruning.pairs = pruning.skipped = 0
            if not math.isfinite(record["nats"]):
                where = f"evaluation of {span.book!r}, span {span.index}, at length {record['length']}"
                raise NonFiniteError(train.steps, f"{where}: loss {record['nats']:g}")
        yield records
