"""Evaluate a trained run on held-out text, span by span, going on where an earlier evaluation stopped."""

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
from longroute.train.loop import autocast, build_model
from longroute.train.spec import TrainSpec


def load_run(folder: RunFolder, device: torch.device) -> Decoder:
    """The trained model of a run's folder. Raises InputError if it isn't one, or isn't trained to the end."""
    spec = folder.spec()
    checkpoint = latest_checkpoint(folder.checkpoints)
    if checkpoint is None or checkpoint.step < spec.train.steps:
        done = 0 if checkpoint is None else checkpoint.step
        raise InputError(f"{folder.path}: trained for {done} of {spec.train.steps} steps; finish it with `longroute train`")
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


def evaluate_run(
    model: Decoder,
    train: TrainSpec,
    shard: TokenShard,
    spec: EvaluateSpec,
    *,
    done: list[dict[str, Any]],
    device: torch.device,
) -> Iterator[dict[str, Any]]:
    """The evaluation records that `done` lacks, a whole span at a time: a list of records a yield.

    `done` are records of earlier evaluations of the same model, text and spec.
    """
    score = model_scorer(model, train, device)
    finished = {(record["book"], record["span"]) for record in done}
    for span in choose_spans(shard, spec, train.length):
        if (span.book, span.index) not in finished:
            yield from evaluate_span(score, span, spec, train.length)
