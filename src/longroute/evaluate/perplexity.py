"""Loss at every length on the same targets, over whole windows and over a fixed tail."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from longroute.evaluate.spans import EvaluateSpec, Span

Scorer = Callable[[Tensor, Tensor], Tensor]
"""Inputs and targets (window time) to losses in nats (window time)."""


def evaluate_span(score: Scorer, span: Span, spec: EvaluateSpec, train_length: int) -> Iterator[dict[str, Any]]:
    """Records of one span at every length: summed loss in nats and scored tokens, for both protocols.

    With N = reach · L₀ targets and windows of L inputs that each predict their next token:

    - `whole`: the span is cut into N / L windows, every target is scored once;
    - `tail`: the last 8 L₀ targets (`EvaluateSpec.tail`), windows ending every s = min(L / 2, 8 L₀) targets, each
    scoring
      its last s, so that every scored token sees L - s + 1 to L tokens: at least half of L.

    A window that both protocols ask for runs once.
    """
    targets, tail = spec.reach * train_length, spec.tail(train_length)
    for length in spec.lengths(train_length):
        stride = min(length // 2, tail)
        tail_starts = [end - length for end in range(targets - tail + stride, targets + 1, stride)]
        whole_starts = list(range(0, targets, length))
        losses = _window_losses(score, span.tokens, sorted({*tail_starts, *whole_starts}), length, spec.window_tokens)
        whole = [losses[start] for start in whole_starts]
        ends = [losses[start][-stride:] for start in tail_starts]
        yield _record(span, length, "whole", whole)
        yield _record(span, length, "tail", ends)


def _window_losses(
    score: Scorer, tokens: np.ndarray, starts: list[int], length: int, window_tokens: int
) -> dict[int, Tensor]:
    """Losses of every window by its start, (time), float64."""
    text = torch.from_numpy(tokens.astype(np.int64))
    at_once = max(1, window_tokens // length)
    losses = {}
    for group in (starts[i : i + at_once] for i in range(0, len(starts), at_once)):
        inputs = torch.stack([text[start : start + length] for start in group])
        targets = torch.stack([text[start + 1 : start + length + 1] for start in group])
        losses |= zip(group, score(inputs, targets).double().cpu(), strict=True)
    return losses


def _record(span: Span, length: int, protocol: str, losses: list[Tensor]) -> dict[str, Any]:
    return {
        "record": "evaluation",
        "book": span.book,
        "span": span.index,
        "length": length,
        "protocol": protocol,
        "nats": sum(part.sum().item() for part in losses),
        "tokens": sum(len(part) for part in losses),
    }
