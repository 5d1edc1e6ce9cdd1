"""Held-out text in which every token says where it stands, and scorers whose answers are known."""

from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from longroute.data.shards import TokenShard
from longroute.evaluate.perplexity import Scorer, evaluate_span
from longroute.evaluate.spans import EvaluateSpec, Span

L0 = 16


def shard(*lengths: int, start: int = 1) -> TokenShard:
    """Books of so many tokens and an end of text; tokens count on through the shard from `start`, ends are 0."""
    offsets = np.cumsum([0, *(length + 1 for length in lengths)])
    tokens = np.arange(start, start + offsets[-1])
    tokens[offsets[1:] - 1] = 0
    return TokenShard(tokens, offsets, tuple(f"book {i}" for i in range(len(lengths))), 10**6, "")


def span(reach: int, length: int = L0) -> Span:
    """One span whose token at place i is i."""
    return Span("book", 0, np.arange(reach * length + 1))


def evaluated(score: Scorer, reach: int, *, length: int = L0, window_tokens: int = 100) -> dict[tuple[str, int], dict]:
    """The records of a span by protocol and length."""
    records = list(evaluate_span(score, span(reach, length), EvaluateSpec(reach, window_tokens=window_tokens), length))
    found = {(record["protocol"], record["length"]): record for record in records}
    assert len(found) == len(records)
    return found


class Scored:
    """A scorer of loss 1 that keeps what it was asked: every window's first input and targets, shuffled ones apart."""

    def __init__(self):
        self.windows: list[tuple[int, list[int]]] = []
        self.shuffled: list[list[int]] = []

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        if torch.equal(inputs + 1, targets):
            self.windows += [(int(row[0]) - 1, row.tolist()) for row in targets]
        else:
            self.shuffled += torch.cat([inputs[:, :1], targets], 1).tolist()
        return torch.ones(targets.shape)


class Marked:
    """A scorer of loss 64^k for the k-th target given, 0 elsewhere: sums of nats spell how often each was scored."""

    def __init__(self, targets: Iterable[int], context: bool = False):
        self.weights = {target: 64.0**k for k, target in enumerate(targets)}
        self.context = context

    def __call__(self, inputs: Tensor, targets: Tensor) -> Tensor:
        place = torch.arange(1, targets.shape[1] + 1).expand(targets.shape)
        weight = targets.double().apply_(lambda target: self.weights.get(int(target), 0.0))
        return weight * place if self.context else weight
