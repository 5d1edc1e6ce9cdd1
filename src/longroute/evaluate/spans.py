"""Where perplexity is measured: the same spans of held-out text at every length."""

from dataclasses import dataclass

import numpy as np

from longroute.data.shards import TokenShard
from longroute.errors import InputError


@dataclass(frozen=True)
class EvaluateSpec:
    """Lengths from the training length L₀ to `reach` · L₀ by factors of two, on spans of `reach` · L₀ targets."""

    reach: int = 128
    """Longest length as a multiple of the training length; a power of two."""
    spans: int = 2
    """Spans a book, at most; spread evenly over it."""
    window_tokens: int = 16_384
    """Tokens that go through the model at once, unless one window is longer."""
    prune: float = 1e-6
    """Largest share of a row's attention that long windows may skip, with a certificate; 0 for none."""
    samples: int = 64
    """Samples of a task at each length, at most."""
    sample_tokens: int = 65_536
    """Tokens of them together, but for eight samples that there always are."""

    def __post_init__(self):
        if self.reach < 2 or self.reach & (self.reach - 1):
            raise InputError(f"evaluate: reach must be a power of two from 2, not {self.reach}")
        if min(self.spans, self.window_tokens, self.samples, self.sample_tokens) < 1:
            raise InputError(f"evaluate: spans, samples and their tokens must be at least 1: {self}")
        if not 0 <= self.prune < 1:
            raise InputError(f"evaluate: prune must be a share of attention, 0 <= prune < 1, not {self.prune}")

    def lengths(self, train_length: int) -> tuple[int, ...]:
        """L₀, 2 L₀, … reach · L₀. Raises InputError for an odd L₀, whose windows can't step by half."""
        if train_length % 2:
            raise InputError(f"evaluate: the training length must be even, not {train_length}")
        return tuple(train_length << k for k in range(self.reach.bit_length()))

    def shuffled_lengths(self, train_length: int) -> tuple[int, ...]:
        """Lengths at which the tail is scored with far context shuffled too: the longest, a quarter of it, … ≥ 4 L₀."""
        return self.lengths(train_length)[:1:-2][::-1]

    def samples_at(self, length: int) -> int:
        """Samples of a task at a length."""
        return min(self.samples, max(8, self.sample_tokens // length))

    def tail(self, train_length: int) -> int:
        """Targets of the fixed tail: 8 L₀, or half a span where that is less."""
        return train_length * min(8, self.reach // 2)


@dataclass(frozen=True, eq=False)
class Span:
    """`tokens` of one book: the inputs and, one further, their targets."""

    book: str
    index: int
    tokens: np.ndarray


def choose_spans(shard: TokenShard, spec: EvaluateSpec, train_length: int) -> list[Span]:
    """Up to `spec.spans` spans of reach · L₀ + 1 tokens from every book that holds one, none overlapping.

    Span k of n in a book begins at k / n of it. Raises InputError if no book is long enough, saying how long they are.
    """
    size = spec.reach * train_length + 1
    spans = []
    for index, book in enumerate(shard.names):
        text = shard.document(index)[:-1]
        count = min(spec.spans, len(text) // size)
        for k in range(count):
            first = k * (len(text) // count)
            spans.append(Span(book, k, text[first : first + size]))
    if not spans:
        longest = max(range(len(shard.names)), key=lambda i: len(shard.document(i)))
        raise InputError(
            f"no held-out text is long enough: {spec.reach} × {train_length} needs {size} tokens in one document; the "
            f"longest, {shard.names[longest]!r}, has {len(shard.document(longest)) - 1}. "
            "Give a longer text, a shorter context or a smaller reach"
        )
    return spans
