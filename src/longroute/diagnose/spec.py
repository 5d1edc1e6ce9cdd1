"""What a diagnosis looks at, and the text that it is made on."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from longroute.data.corpus import Document
from longroute.diagnose.traced import Anatomy, TracedModel
from longroute.errors import InputError

REACH = 4
"""Lengths up to this many times the training length count as short: predictions are made from them alone."""
_USUAL_LONGEST = 8192
_LARGEST_TAIL = 8


@dataclass(frozen=True)
class DiagnoseSpec:
    """The lengths to measure, in tokens, and how much text to measure on."""

    lengths: tuple[int, ...] = ()
    """Context lengths. Default: 1, 2, 4 … times the training length up to 8,192 tokens or twice it."""
    spans: int = 6
    """Stretches of text, each as long as the longest length, at most; spread evenly over the documents."""
    window_tokens: int = 16_384
    """Tokens that go through the model at once, unless one window is longer."""

    def __post_init__(self):
        if any(length < 2 for length in self.lengths) or len(set(self.lengths)) < len(self.lengths):
            raise InputError(f"--lengths must differ from each other and be at least 2: {self.lengths}")
        if self.spans < 1:
            raise InputError(f"--spans must be at least 1, not {self.spans}")
        if self.window_tokens < 1:
            raise InputError(f"window_tokens must be at least 1, not {self.window_tokens}")


@dataclass(frozen=True, eq=False)
class Text:
    """Stretches of text in a model's tokens: (span target + 1) int64, all at least `longest` + 1 long."""

    tokens: Tensor
    names: tuple[str, ...]


def resolve_lengths(spec: DiagnoseSpec, anatomy: Anatomy) -> tuple[int, ...]:
    """The lengths in order, with 1, 2 and 4 times the training length as far as they reach.

    Raises InputError if the model can't read one, or if all are below the training length.
    """
    train = anatomy.train_length
    usual = max(_USUAL_LONGEST, 2 * train)
    doubled = [train << k for k in range(64) if train << k <= usual]
    if anatomy.longest is not None:
        doubled = [length for length in doubled if length <= anatomy.longest]
    asked = spec.lengths or tuple(doubled) or (train,)
    if max(asked) < train:
        raise InputError(
            f"--lengths: the longest, {max(asked):,}, is below {train:,}, the training length of {anatomy.name}; "
            "ask for a longer one, or give --train-length"
        )
    short = {multiple * train for multiple in (1, 2, REACH) if multiple * train <= max(asked)}
    lengths = tuple(sorted({*asked, *short}))
    if anatomy.longest is not None and lengths[-1] > anatomy.longest:
        raise InputError(
            f"--lengths: {anatomy.name} ({anatomy.kind}) can't read more than {anatomy.longest:,} tokens, its learned "
            f"positions end there; asked for {lengths[-1]:,}"
        )
    return lengths


def tail_of(lengths: Sequence[int], train_length: int) -> int:
    """Targets of the fixed tail: 8 training lengths, or half the longest length where that is less."""
    return max(1, min(_LARGEST_TAIL * train_length, lengths[-1] // 2))


def choose_text(model: TracedModel, documents: Sequence[Document], longest: int, spans: int) -> Text:
    """Up to `spans` stretches of `longest` + 1 tokens, none overlapping, spread over the documents that hold one.

    Raises InputError if none does, saying how long they are.
    """
    return choose_stretches({document.name: model.encode(document.text) for document in documents}, longest, spans)


def choose_stretches(documents: Mapping[str, Tensor], longest: int, spans: int) -> Text:
    """As `choose_text`, of documents that are token ids (time) already."""
    size, chosen = longest + 1, []
    long_enough = [(name, tokens) for name, tokens in documents.items() if len(tokens) >= size]
    if not long_enough:
        name, tokens = max(documents.items(), key=lambda pair: len(pair[1]))
        raise InputError(
            f"the text is shorter than asked: a length of {longest:,} needs {size:,} tokens in one document; "
            f"the longest, {name!r}, has {len(tokens):,}. Give a longer text, smaller --lengths, or --train-length"
        )
    rooms = [min(spans, len(tokens) // size) for _, tokens in long_enough]
    counts = _shared_out(rooms, spans)
    for (name, tokens), count in zip(long_enough, counts, strict=True):
        for k in range(count):
            first = k * (len(tokens) // count)
            chosen.append((name, tokens[first : first + size]))
    return Text(torch.stack([tokens for _, tokens in chosen]), tuple(name for name, _ in chosen))


def _shared_out(rooms: Sequence[int], wanted: int) -> list[int]:
    """`wanted` places, or as many as there are, one a document in turn."""
    counts = np.zeros(len(rooms), dtype=int)
    for _ in range(min(wanted, sum(rooms))):
        open_ = [i for i, room in enumerate(rooms) if counts[i] < room]
        counts[min(open_, key=lambda i: (counts[i], i))] += 1
    return counts.tolist()
