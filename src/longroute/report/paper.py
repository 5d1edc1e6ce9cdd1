"""The paper's figures beside ours, and what makes them differ."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from longroute.report.comparison import Comparison
from longroute.report.wording import ABSENT, interval_text, length_text, ratio_text

PUBLISHED = (
    ("rope-qk", "RoPE", 16, 16.2),
    ("random-qk", "random rotation, queries and keys", 16, 1.60),
    ("random-qk", "random rotation, queries and keys", 128, 7.49),
    ("random-qkv", "random rotation, values too", 128, 1.59),
    ("alibi", "ALiBi", 128, 0.96),
)
"""Our encoding, the paper's words for it, the multiple of the training length, the ratio."""


@dataclass(frozen=True)
class Beside:
    """One published ratio and ours at the same multiple of the training length."""

    encoding: str
    words: str
    multiple: int
    published: str
    ratio: str
    ratio_interval: str
    tail_ratio: str
    tail_interval: str


def beside_the_paper(comparison: Comparison) -> list[Beside]:
    """The published figures in the paper's order, a dash where we have no such encoding or length."""
    return [_beside(comparison, *published) for published in PUBLISHED]


def differences(summary: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """What differs, as (what, the paper's, ours); ours is a dash where the summary doesn't say."""
    model, corpus = summary.get("model") or {}, summary.get("corpus") or {}
    rows = summary.get("rows") or [{}]
    layers, width = model.get("layers"), model.get("width")
    vocabulary = corpus.get("vocabulary")
    length = rows[0].get("train_length")
    tokens = rows[0].get("train_tokens")
    return [
        ("model", "16 layers × 768", f"{layers} layers × {width}" if layers and width else ABSENT),
        ("corpus", "OpenWebText", str(corpus.get("name") or ABSENT)),
        ("training tokens", "not stated in its summary", _tokens(tokens)),
        ("context in training", "512 tokens", f"{length_text(int(length))} tokens" if length else ABSENT),
        ("tokenizer", "GPT-2 BPE, presumably", _vocabulary(vocabulary)),
    ]


def _beside(comparison: Comparison, name: str, words: str, multiple: int, published: float) -> Beside:
    encoding, length = comparison.find(name), multiple * comparison.train_length
    whole = encoding.at("ratio", length) if encoding else None
    tail = encoding.at("tail_ratio", length) if encoding else None
    return Beside(
        encoding=name,
        words=words,
        multiple=multiple,
        published=ratio_text(published),
        ratio=ratio_text(whole.value if whole else None),
        ratio_interval=interval_text("ratio", whole),
        tail_ratio=ratio_text(tail.value if tail else None),
        tail_interval=interval_text("tail_ratio", tail),
    )


def _tokens(tokens: Any) -> str:
    return f"{tokens:,}" if isinstance(tokens, int | float) else ABSENT


def _vocabulary(vocabulary: Any) -> str:
    return f"{vocabulary:,} entries" if isinstance(vocabulary, int | float) else ABSENT
