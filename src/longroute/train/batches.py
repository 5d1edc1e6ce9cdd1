"""Where a run's batches come from: windows of text, or samples of a task whose length a curriculum raises."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from longroute.data.shards import TokenShard
from longroute.data.tokenizer import load_tokenizer
from longroute.data.windows import Batch, WindowSampler
from longroute.errors import InputError
from longroute.task import Hay, Source, TaskSampler
from longroute.train.folder import RunFolder
from longroute.train.spec import RunSpec

LEARNED, GROWTH = 0.9, 1.2
"""Accuracy that raises the context of a task's samples, and by how much."""


@dataclass(frozen=True)
class Batches:
    """`draw(step, context)` gives a batch; contexts go from `shortest` to the training length."""

    draw: Callable[[int, int], Batch]
    shortest: int


def run_batches(spec: RunSpec, shard: TokenShard | None, folder: RunFolder) -> Batches:
    """The batches of a run. `shard` is its text, which tasks on made-up tokens don't need. Raises InputError."""
    if shard is not None and shard.vocab_size > spec.model.vocabulary:
        raise InputError(
            f"the tokenizer has {shard.vocab_size} types, the model a vocabulary of {spec.model.vocabulary}"
        )
    if spec.task is None:
        assert shard is not None  # a run without a task is one on text
        windows = WindowSampler(shard, length=spec.train.length, batch=spec.train.batch, seed=spec.seed)
        return Batches(lambda step, _: windows.draw(step), spec.train.length)
    source = spec.task.source(None if shard is None else Hay(shard, load_tokenizer(folder.tokenizer)))
    check_fits(source, spec)
    sampler = TaskSampler(source, tokens=spec.train.length * spec.train.batch, seed=spec.seed)
    return Batches(sampler.draw, source.shortest)


def check_fits(source: Source, spec: RunSpec) -> None:
    """Raises InputError for a task that the run's model or training length has no room for."""
    if source.vocabulary > spec.model.vocabulary:
        raise InputError(f"the task has {source.vocabulary} types of token, the model {spec.model.vocabulary}")
    if source.shortest > spec.train.length:
        raise InputError(f"the task needs {source.shortest} tokens; the training length is {spec.train.length}")


def next_context(last: Mapping[str, Any] | None, shortest: int, length: int) -> int:
    """The context after a training record, or at the start: it grows wherever most answers were right.

    A task learned in a few tokens is soon learned in more; begun at the full length it is not learned at all in a
    short training (LOG.md). What the context is depends on the last record alone, so that a run can go on from it.
    """
    if last is None or "accuracy" not in last:
        return shortest
    grown = math.ceil(last["context"] * GROWTH) if last["accuracy"] >= LEARNED else last["context"]
    return min(length, grown)
