"""Perplexities, ratios and intervals from planted records."""

import json
import math
from typing import Any

import numpy as np
import pytest

from longroute.evaluate.summary import LEVEL, RESAMPLES, summarise

LENGTHS = (16, 32, 64)


def records(losses: dict[tuple[str, int], dict[int, float]], tokens: int = 100) -> list[dict[str, Any]]:
    """Evaluation records from mean losses by (book, span) and length; the tail has half the tokens and nats."""
    return [
        {"record": "evaluation", "book": book, "span": span, "length": length, "protocol": protocol}
        | {"nats": loss * tokens * share, "tokens": int(tokens * share)}
        for (book, span), by_length in losses.items()
        for length, loss in by_length.items()
        for protocol, share in (("whole", 1), ("tail", 0.5))
    ]


def random_losses(books: int = 3, spans: int = 4, seed: int = 0) -> dict[tuple[str, int], dict[int, float]]:
    generator = np.random.default_rng(seed)
    return {
        (f"book {b}", s): {length: float(generator.normal(4, 0.3)) for length in LENGTHS}
        for b in range(books)
        for s in range(spans)
    }


def test_weighted_by_tokens():
    """G1: windows of 100 tokens at loss 1 and of 1 token at loss 5: (100 + 5) / 101, not 3."""
    shared = {"record": "evaluation", "length": 16, "span": 0}
    planted = [
        shared | {"book": book, "protocol": protocol, "nats": nats, "tokens": tokens}
        for book, nats, tokens in (("a", 100.0, 100), ("b", 5.0, 1))
        for protocol in ("whole", "tail")
    ]
    summary = summarise(planted, 16)
    assert summary["perplexity"] == {"16": pytest.approx(math.exp(105 / 101), rel=1e-12)}
    assert summary["scored_tokens"] == {"16": 101}
    assert summary["ratio"] == {"16": 1.0}


def test_ratio_is_of_perplexities():
    losses = {("a", 0): {16: 3.0, 32: 3.5, 64: 2.0}, ("b", 0): {16: 5.0, 32: 3.5, 64: 4.0}}
    summary = summarise(records(losses), 16)
    for prefix, scored in (("", 200), ("tail_", 100)):
        assert summary[f"{prefix}perplexity"] == {
            "16": pytest.approx(math.exp(4.0)),
            "32": pytest.approx(math.exp(3.5)),
            "64": pytest.approx(math.exp(3.0)),
        }
        assert summary[f"{prefix}ratio"] == {
            "16": 1.0,
            "32": pytest.approx(math.exp(-0.5)),
            "64": pytest.approx(math.exp(-1)),
        }
        assert summary[f"{prefix}scored_tokens"] == dict.fromkeys(("16", "32", "64"), scored)


def test_protocols_are_kept_apart():
    planted = [r if r["protocol"] == "whole" else r | {"nats": 2 * r["nats"]} for r in records(random_losses())]
    summary = summarise(planted, 16)
    for length in map(str, LENGTHS):
        assert summary["tail_perplexity"][length] == pytest.approx(summary["perplexity"][length] ** 2)
        tail, whole = summary["interval"]["tail_perplexity"][length], summary["interval"]["perplexity"][length]
        assert tail == pytest.approx([end**2 for end in whole])


def test_order_of_records_does_not_matter():
    planted = records(random_losses())
    assert json.dumps(summarise(planted, 16)) == json.dumps(summarise(planted[::-1], 16))


def test_intervals_by_brute_force():
    """Every one of the resamples redone by hand: within each book, as many spans as it has, drawn with replacement."""
    losses = random_losses(books=2, spans=3) | {("single", 0): {16: 4.0, 32: 5.0, 64: 4.5}}
    tokens = {key: 50 + 10 * i for i, key in enumerate(losses)}
    planted = [row for key in losses for row in records({key: losses[key]}, tokens[key])]
    summary = summarise(planted, 16)["interval"]
    assert (summary["spans"], summary["books"]) == (7, 3)
    assert (summary["level"], summary["resamples"]) == (LEVEL, RESAMPLES)
    generator = np.random.default_rng(12345)
    ratios = []
    for _ in range(20_000):
        drawn = [(book, int(s)) for book in ("book 0", "book 1") for s in generator.integers(3, size=3)] + [
            ("single", 0)
        ]
        total = sum(tokens[key] for key in drawn)
        mean = {length: sum(losses[key][length] * tokens[key] for key in drawn) / total for length in LENGTHS}
        ratios.append([math.exp(mean[length] - mean[16]) for length in LENGTHS])
    for column, length in enumerate(LENGTHS):
        expected = np.quantile([ratio[column] for ratio in ratios], [0.025, 0.975])
        assert summary["ratio"][str(length)] == pytest.approx(expected.tolist(), rel=0.02)
    assert summary["ratio"]["16"] == [1.0, 1.0]


def test_resampling_is_paired_over_lengths():
    """A span that is harder by the same amount at every length widens perplexities' intervals, never the ratios'."""
    losses = random_losses()
    hard = {key: {n: loss + 3.0 * (key[1] == 0) for n, loss in by.items()} for key, by in losses.items()}
    constant = {key: {16: 4.0 + 3.0 * (key[1] == 0), 32: 4.2 + 3.0 * (key[1] == 0)} for key in losses}
    easy_interval, hard_interval = (summarise(records(x), 16)["interval"] for x in (losses, hard))
    for length in map(str, LENGTHS):
        assert hard_interval["ratio"][length] == pytest.approx(easy_interval["ratio"][length], rel=1e-9)
        (low, high), (a, b) = hard_interval["perplexity"][length], easy_interval["perplexity"][length]
        assert high / low > 2 * b / a
    interval = summarise(records(constant), 16)["interval"]
    assert interval["ratio"]["32"] == pytest.approx([math.exp(0.2)] * 2, rel=1e-9)


def test_spans_are_drawn_within_their_book():
    """Books that differ among each other but not within themselves leave nothing to be uncertain about."""
    losses = {(f"book {b}", s): {16: 3.0 + b, 32: 3.1 + 1.5 * b} for b in range(3) for s in range(4)}
    summary = summarise(records(losses), 16)
    for name in ("perplexity", "ratio", "tail_perplexity", "tail_ratio"):
        for length, value in summary[name].items():
            assert summary["interval"][name][length] == pytest.approx([value, value], rel=1e-9)


def test_intervals_hold_the_estimate_and_are_deterministic():
    planted = records(random_losses(books=2, spans=8))
    summary = summarise(planted, 16)
    assert summary == summarise(planted, 16)
    for name in ("perplexity", "ratio", "tail_perplexity", "tail_ratio"):
        for length, value in summary[name].items():
            low, high = summary["interval"][name][length]
            assert low <= value <= high
            assert low < high or (name.endswith("ratio") and length == "16")


def test_the_interval_covers_the_truth_about_as_often_as_it_says():
    """200 texts of 24 spans around a true ratio of e^0.1: bootstrap intervals of so few are a little short of 95 %."""
    generator, covered = np.random.default_rng(1), 0
    for _ in range(200):
        noise = generator.normal(0, 0.2, (24, 2))
        losses = {("book", s): {16: 4 + noise[s, 0], 32: 4.1 + noise[s, 1]} for s in range(24)}
        low, high = summarise(records(losses), 16)["interval"]["ratio"]["32"]
        covered += low <= math.exp(0.1) <= high
    assert 0.87 <= covered / 200 <= 0.99


def test_books_of_one_span_give_no_interval():
    losses = {(f"book {b}", 0): {16: 3.0 + b, 32: 4.0} for b in range(5)}
    assert summarise(records(losses), 16)["interval"] is None


@pytest.mark.parametrize("loss", [800.0, 1e30])
def test_nothing_that_json_lacks(loss: float):
    """A perplexity beyond the largest float is unavailable, not infinite."""
    losses = {("a", s): {16: 3.0, 32: loss, 64: 4.0} for s in range(2)}
    summary = summarise(records(losses), 16)
    text = json.dumps(summary, allow_nan=False)
    assert summary["perplexity"]["32"] is None
    assert summary["ratio"]["32"] is None
    assert summary["interval"]["ratio"]["32"] == [None, None]
    assert summary["ratio"]["64"] == pytest.approx(math.e)
    assert json.loads(text) == summary


def test_worth_of_context_in_nats():
    """By hand: two spans of 50 scored tokens, losses in nats; `order` only where windows were shuffled."""
    losses = {("a", 0): {16: 3.0, 32: 2.5, 64: 2.0}, ("a", 1): {16: 4.0, 32: 3.5, 64: 3.6}}
    shuffled = [
        {
            "record": "evaluation",
            "book": "a",
            "span": span,
            "length": 64,
            "protocol": "shuffled",
            "tokens": 50,
            "nats": n,
        }
        for span, n in ((0, 50 * 2.75), (1, 50 * 3.85))
    ]
    worth = summarise([*records(losses), *shuffled], 16)["worth"]
    assert worth["context"]["32"] == pytest.approx([0.5, 0.5, 0.5])
    assert worth["context"]["64"] == pytest.approx([0.7, 0.4, 1.0])  # either span twice is not rare
    assert list(worth["order"]) == ["64"]
    assert worth["order"]["64"] == pytest.approx([0.5, 0.25, 0.75])
    assert summarise(records(losses), 16)["worth"]["order"] == {}


def test_context_that_is_ignored_is_worth_nothing():
    losses: dict[tuple[str, int], dict[int, float]] = {}
    losses |= {("a", s): dict.fromkeys((16, 32, 64), 2.0 + s) for s in range(3)}
    assert summarise(records(losses), 16)["worth"]["context"] == {"32": [0.0, 0.0, 0.0], "64": [0.0, 0.0, 0.0]}
