"""Training on a task: it is learned, its curriculum grows by what is right, and it goes on bit for bit."""

from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import tiny_training as tiny
import torch

from longroute.attention import parse_encoding
from longroute.data.windows import IGNORED
from longroute.errors import InputError
from longroute.model import ModelSpec
from longroute.model.loss import answer_losses, token_losses
from longroute.task import TaskSampler, draw_split, parse_task
from longroute.task.split import is_heldout
from longroute.train import RunFolder, RunSpec, TrainSpec
from longroute.train.batches import next_context, run_batches
from longroute.train.loop import build_model


def run_spec(task: str = "copy:span=2,marks=1,alphabet=4", **train: Any) -> RunSpec:
    """A small task that a small model learns in a hundred steps."""
    chosen = TrainSpec(length=12, tokens=100 * 96, batch=8, record_every=5, precision="float32", learning_rate=1e-2)
    model = ModelSpec(2, 32, 2, 2, 16, 32, parse_task(task).source(None).vocabulary, initial=0.1)
    return RunSpec(parse_encoding("rope-qk"), model, replace(chosen, **train), 0, "", parse_task(task))


@pytest.mark.usefixtures("one_thread")
def test_a_task_is_learned_and_its_context_grows(tmp_path: Path):
    records = tiny.train_in(tmp_path / "run", run_spec(tokens=400 * 96, learning_rate=5e-3))
    contexts = [record["context"] for record in records]
    assert contexts[0] == 5  # the shortest sample
    assert contexts == sorted(contexts)
    assert (contexts[-1], records[-1]["accuracy"]) == (12, pytest.approx(1, abs=0.1))
    assert not RunFolder(tmp_path / "run").tokenizer.exists()
    for last, record in pairwise(records):
        assert record["context"] == next_context(last, 5, 12)


@pytest.mark.parametrize(
    ("last", "context"),
    [
        (None, 10),
        ({"context": 10, "accuracy": 0.89}, 10),
        ({"context": 10, "accuracy": 0.9}, 12),
        ({"context": 11, "accuracy": 1.0}, 14),
        ({"context": 60, "accuracy": 1.0}, 64),
        ({"context": 64, "accuracy": 0.2}, 64),
        ({"loss": 3.0}, 10),
    ],
)
def test_the_context_follows_from_the_last_record(last: dict[str, Any] | None, context: int):
    assert next_context(last, 10, 64) == context


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("stop_after", [1, 7, 19])
def test_it_goes_on_bit_for_bit(tmp_path: Path, stop_after: int):
    """The curriculum's state is in the records, so there is nothing else to keep."""
    whole = tiny.train_in(tmp_path / "whole", run_spec())
    first = tiny.train_in(tmp_path / "parts", run_spec(), stop_after=stop_after)
    assert first + tiny.train_in(tmp_path / "parts", run_spec()) == whole
    assert tiny.files(tmp_path / "parts") == tiny.files(tmp_path / "whole")


def test_the_recorded_loss_and_accuracy_are_those_of_the_answers(tmp_path: Path):
    """The first step by hand, from whole logits; a loss that counted other tokens would be ln 5 throughout."""
    spec = run_spec(tokens=96, record_every=1)
    record = tiny.train_in(tmp_path / "run", spec)[0]
    batch = run_batches(spec, None, RunFolder(tmp_path / "run")).draw(0, 5)
    model = build_model(spec, tiny.CPU)
    logits, scored = model(batch.inputs).double(), batch.targets != IGNORED
    losses = -logits.log_softmax(-1)[scored].gather(-1, batch.targets[scored][:, None])
    assert record["loss"] == pytest.approx(losses.mean().item(), rel=1e-5)
    assert record["accuracy"] == pytest.approx((logits.argmax(-1) == batch.targets)[scored].double().mean().item())
    hidden = model.hidden_states(batch.inputs)
    found, hits = answer_losses(hidden, model.embedding.weight, batch.targets)
    every = token_losses(hidden, model.embedding.weight, batch.targets)
    torch.testing.assert_close(found, every[scored])
    assert hits.sum() == (logits.argmax(-1) == batch.targets)[scored].sum()


def test_batches_depend_on_the_step_the_context_and_the_seed():
    source = parse_task("mqar").source(None)
    draws = [
        TaskSampler(source, tokens=512, seed=seed).draw(step, 40).inputs
        for seed, step in [(0, 3), (0, 3), (0, 4), (1, 3)]
    ]
    assert torch.equal(draws[0], draws[1])
    assert not any(torch.equal(draws[0], other) for other in draws[2:])
    shapes = [tuple(TaskSampler(source, tokens=512, seed=0).draw(step, 40).inputs.shape) for step in range(60)]
    assert all(rows == 512 // length for rows, length in shapes)
    shorter = sum(length < 40 for _, length in shapes)
    assert 8 <= shorter <= 30  # about three in ten
    assert {length for _, length in shapes} <= set(range(12, 41))


def test_no_batch_has_a_held_out_sample():
    source = parse_task("flip-flop").source(None)
    test = {row.tobytes() for row in draw_split(source, 16, 400, [0], heldout=True).inputs}
    for step in range(30):
        batch = TaskSampler(source, tokens=512, seed=0).draw(step, 16)
        assert not test & {row.numpy().tobytes() for row in batch.inputs}
    raw = source.draw(16, 4000, np.random.default_rng(0), heldout=False)
    assert test & {row.tobytes() for row in raw.inputs}  # without the split there would be some
    assert 0.4 < is_heldout(raw).mean() < 0.6


def test_what_has_no_room_is_an_error(tmp_path: Path):
    with pytest.raises(InputError, match="the task needs 12 tokens; the training length is 10"):
        run_batches(run_spec("mqar", length=10), None, RunFolder(tmp_path))
    small = replace(run_spec("mqar"), model=ModelSpec(vocabulary=20))
    with pytest.raises(InputError, match="the task has 48 types of token, the model 20"):
        run_batches(small, None, RunFolder(tmp_path))
    with pytest.raises(InputError, match="hides needles in text"):
        run_batches(replace(run_spec(), task=parse_task("needle")), None, RunFolder(tmp_path))
