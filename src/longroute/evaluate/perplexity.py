"""Loss at every length on the same targets: over whole windows, over a fixed tail, and with far context shuffled."""

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
      scoring its last s, so that every scored token sees L - s + 1 to L tokens: at least half of L;

    - `shuffled`, at `spec.shuffled_lengths`: the tail once more, with all tokens of a window in random order but for
      its last s + L₀. What is lost against `tail` is what the order of far tokens was worth.

    A window that the first two ask for runs once.
    """
    targets, tail = spec.reach * train_length, spec.tail(train_length)
    for length in spec.lengths(train_length):
        stride = min(length // 2, tail)
        tail_starts = [end - length for end in range(targets - tail + stride, targets + 1, stride)]
        whole_starts = list(range(0, targets, length))
        starts = sorted({*tail_starts, *whole_starts})
        losses = _window_losses(score, _windows(span.tokens, starts, length), spec.window_tokens)
        whole = [losses[start] for start in whole_starts]
        ends = [losses[start][-stride:] for start in tail_starts]
        yield _record(span, length, "whole", whole)
        yield _record(span, length, "tail", ends)
        if length in spec.shuffled_lengths(train_length):
            windows = _shuffled(_windows(span.tokens, tail_starts, length), stride + train_length)
            losses = _window_losses(score, windows, spec.window_tokens)
            yield _record(span, length, "shuffled", [part[-stride:] for part in losses.values()])


def _windows(tokens: np.ndarray, starts: list[int], length: int) -> dict[int, np.ndarray]:
    """Windows of `length` inputs and one target more, by their starts."""
    return {start: tokens[start : start + length + 1].astype(np.int64) for start in starts}


def _shuffled(windows: dict[int, np.ndarray], near: int) -> dict[int, np.ndarray]:
    """The windows with their inputs but the last `near` in random order, the same for every model."""
    generator = np.random.default_rng(0)
    return {
        start: np.concatenate([generator.permutation(window[: -near - 1]), window[-near - 1 :]])
        for start, window in windows.items()
    }


def _window_losses(score: Scorer, windows: dict[int, np.ndarray], window_tokens: int) -> dict[int, Tensor]:
    """Losses of every window by its start, (time), float64."""
    losses = {}
    starts = list(windows)
    at_once = max(1, window_tokens // (len(windows[starts[0]]) - 1))
    for group in (starts[i : i + at_once] for i in range(0, len(starts), at_once)):
        text = torch.from_numpy(np.stack([windows[start] for start in group]))
        losses |= zip(group, score(text[:, :-1], text[:, 1:]).double().cpu(), strict=True)
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
