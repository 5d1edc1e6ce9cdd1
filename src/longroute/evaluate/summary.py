"""Perplexities and their ratios from evaluation records, with paired bootstrap intervals."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

LEVEL = 0.95
RESAMPLES = 2000
PREFIXES = {"whole": "", "tail": "tail_"}


def summarise(records: Sequence[dict[str, Any]], train_length: int) -> dict[str, Any]:
    """Perplexity exp(Σ nats / Σ tokens) by length, its ratio to that at the training length, and intervals of both.

    Keys: `perplexity`, `ratio`, `scored_tokens` from whole windows, the same with `tail_` from the fixed tail,
    `interval`, `skipped` (share of attention that was pruned; empty where none could be), `worth` (see `_worth`).
    Weighted by tokens.
    Intervals: spans are drawn again with replacement within each book, the same for every length, so that a ratio's
    numerator and denominator come from the same text; `interval` is None where no book has two spans.
    """
    summary: dict[str, Any] = {}
    interval: dict[str, Any] = {"level": LEVEL, "resamples": RESAMPLES}
    for protocol, prefix in PREFIXES.items():
        chosen = [record for record in records if record["protocol"] == protocol]
        lengths = sorted({record["length"] for record in chosen})
        books = sorted({(record["book"], record["span"]) for record in chosen})
        nats, tokens = _table(chosen, books, lengths, "nats"), _table(chosen, books, lengths, "tokens")
        ones = np.ones((1, len(books)))
        perplexity, ratio = _perplexity_and_ratio(ones, nats, tokens, lengths.index(train_length))
        summary[f"{prefix}perplexity"] = _by_length(lengths, perplexity[0].tolist())
        summary[f"{prefix}ratio"] = _by_length(lengths, ratio[0].tolist())
        summary[f"{prefix}scored_tokens"] = _by_length(lengths, [int(n) for n in tokens.sum(0)])
        counts = _resampled_counts([book for book, _ in books])
        interval |= {"spans": len(books), "books": len({book for book, _ in books})}
        if counts is not None:
            drawn = _perplexity_and_ratio(counts, nats, tokens, lengths.index(train_length))
            interval |= {
                f"{prefix}{name}": _by_length(lengths, _percentiles(values))
                for name, values in zip(("perplexity", "ratio"), drawn, strict=True)
            }
    return (
        summary
        | {"interval": interval if "ratio" in interval else None, "skipped": _skipped(records)}
        | {"worth": _worth(records, train_length)}
    )


def _worth(records: Sequence[dict[str, Any]], train_length: int) -> dict[str, dict[str, list[float | None]]]:
    """What context is worth to the fixed tail in nats a token, by length: [mean, low, high] over resampled spans.

    `context`: loss with L₀ tokens of context minus that with L. `order`: loss with the far tokens shuffled minus that
    with them as they are. A model that ignores what is far has 0 in both, one that is upset by it is below 0.
    """
    nats: dict[tuple[str, int], dict[tuple[str, int], float]] = {}
    tokens: dict[tuple[str, int], float] = {}
    for record in records:
        span = (record["book"], record["span"])
        nats.setdefault((record["protocol"], record["length"]), {})[span] = record["nats"]
        if record["protocol"] == "tail":
            tokens[span] = record["tokens"]
    spans = sorted(tokens)
    counts = _resampled_counts([book for book, _ in spans])
    lengths = sorted({length for protocol, length in nats if protocol == "tail" and length > train_length})

    def difference(worse: tuple[str, int], better: tuple[str, int]) -> list[float | None]:
        lost = np.array([nats[worse][span] - nats[better][span] for span in spans])
        sizes = np.array([tokens[span] for span in spans])
        ends = [None, None] if counts is None else _percentiles((counts @ lost / (counts @ sizes))[:, None])[0]
        return [finite_or_none(float(lost.sum() / sizes.sum())), *ends]

    return {
        "context": {str(n): difference(("tail", train_length), ("tail", n)) for n in lengths},
        "order": {str(n): difference(("shuffled", n), ("tail", n)) for n in lengths if ("shuffled", n) in nats},
    }


def _skipped(records: Sequence[dict[str, Any]]) -> dict[str, float]:
    """Share of pairs of query and key that certified pruning skipped, at each length where any could be."""
    counted = [record for record in records if "pairs" in record]
    lengths = sorted({record["length"] for record in counted})
    sums = [[sum(r[key] for r in counted if r["length"] == n) for key in ("skipped", "pairs")] for n in lengths]
    return {str(length): skipped / pairs for length, (skipped, pairs) in zip(lengths, sums, strict=True)}


def finite_or_none(value: float) -> float | None:
    """JSON has no infinities: a number that isn't finite is unavailable."""
    return value if math.isfinite(value) else None


def _table(records: Sequence[dict[str, Any]], spans: list[tuple[str, int]], lengths: list[int], key: str) -> np.ndarray:
    table = np.full((len(spans), len(lengths)), np.nan)
    for record in records:
        table[spans.index((record["book"], record["span"])), lengths.index(record["length"])] = record[key]
    return table


def _perplexity_and_ratio(
    counts: np.ndarray, nats: np.ndarray, tokens: np.ndarray, base: int
) -> tuple[np.ndarray, np.ndarray]:
    """(draw length) from how often each span was drawn, (draw span)."""
    with np.errstate(over="ignore"):
        loss = (counts @ nats) / (counts @ tokens)
        return np.exp(loss), np.exp(loss - loss[:, [base]])


def _resampled_counts(books: list[str]) -> np.ndarray | None:
    """How often each span is drawn in each resample, spans drawn within their book; None if no book has two."""
    if len(set(books)) == len(books):
        return None
    generator = np.random.default_rng(0)
    counts = np.zeros((RESAMPLES, len(books)))
    for book in sorted(set(books)):
        of_book = [i for i, name in enumerate(books) if name == book]
        drawn = generator.integers(len(of_book), size=(RESAMPLES, len(of_book)))
        for place, span in enumerate(of_book):
            counts[:, span] = (drawn == place).sum(1)
    return counts


def _percentiles(values: np.ndarray) -> list[list[float | None]]:
    tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
    with np.errstate(invalid="ignore"):  # between two infinities
        low, high = np.quantile(values, tails, axis=0)
    return [[finite_or_none(a), finite_or_none(b)] for a, b in zip(low.tolist(), high.tolist(), strict=True)]


def _by_length(lengths: list[int], values: list[Any]) -> dict[str, Any]:
    return {
        str(length): finite_or_none(value) if isinstance(value, float) else value
        for length, value in zip(lengths, values, strict=True)
    }
