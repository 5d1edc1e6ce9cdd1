"""Both protocols against their definitions: which targets are scored, how often, and how much context each sees."""

import math
from itertools import pairwise

import numpy as np
import planted_text as planted
import pytest
import torch
from planted_text import L0
from torch import Tensor

from longroute.errors import InputError
from longroute.evaluate.perplexity import evaluate_span
from longroute.evaluate.run import complete_spans
from longroute.evaluate.spans import EvaluateSpec, choose_spans

SHUFFLED = {
    2: [],
    4: [4 * L0],
    8: [8 * L0],
    16: [4 * L0, 16 * L0],
    64: [4 * L0, 16 * L0, 64 * L0],
    128: [8 * L0, 32 * L0, 128 * L0],
}
"""From the longest length down by factors of four, as long as there is something far, by reach."""
REACHES = tuple(SHUFFLED)


@pytest.mark.parametrize("reach", REACHES)
def test_a_uniform_model_scores_ln_v_on_every_token_once(reach: int):
    """G2: exactly ln V, and the count that the definition says."""
    records = planted.evaluated(lambda inputs, targets: torch.full(targets.shape, math.log(50_257)).double(), reach)
    lengths = [L0 * 2**k for k in range(int(math.log2(reach)) + 1)]
    both = {(protocol, length) for protocol in ("whole", "tail") for length in lengths}
    assert set(records) == both | {("shuffled", length) for length in SHUFFLED[reach]}
    for (protocol, _), record in records.items():
        assert record["tokens"] == L0 * (reach if protocol == "whole" else min(8, reach // 2))
        assert record["nats"] / record["tokens"] == pytest.approx(math.log(50_257), rel=1e-7)


@pytest.mark.parametrize("reach", REACHES)
@pytest.mark.parametrize("window_tokens", [1, 100, 10**6])
def test_the_windows_are_those_of_the_definition(reach: int, window_tokens: int):
    """Every window of every length: whole ones tile the span, tail ones end on their grid, none runs twice."""
    scored = planted.Scored()
    spec = EvaluateSpec(reach, window_tokens=window_tokens)
    for _ in evaluate_span(scored, planted.span(reach), spec, L0):
        pass
    targets, tail = reach * L0, min(8, reach // 2) * L0
    expected = []
    for length in spec.lengths(L0):
        stride = min(length // 2, tail)
        ends = range(targets - tail + stride, targets + 1, stride)
        starts = sorted({end - length for end in ends} | set(range(0, targets, length)))
        expected += [(start, list(range(start + 1, start + length + 1))) for start in starts]
    assert scored.windows == expected


@pytest.mark.parametrize("reach", [4, 16, 128])
def test_only_what_is_far_is_shuffled(reach: int):
    """Each tail window once more: the same tokens, the last s + L₀ and the target in place, others moved."""
    scored = planted.Scored()
    for _ in evaluate_span(scored, planted.span(reach), EvaluateSpec(reach, window_tokens=10**6), L0):
        pass
    targets, tail = reach * L0, min(8, reach // 2) * L0
    starts = []
    for tokens in scored.shuffled:
        length = len(tokens) - 1
        stride = min(length // 2, tail)
        near = stride + L0
        start = min(tokens)
        starts.append((length, start))
        assert sorted(tokens) == list(range(start, start + length + 1))
        assert tokens[-near - 1 :] == list(range(start + length - near, start + length + 1))
        far = tokens[: -near - 1]
        assert sum(place == token - start for place, token in enumerate(far)) < len(far) / 2
    expected = [
        (length, end - length)
        for length in SHUFFLED[reach]
        for end in range(targets - tail + min(length // 2, tail), targets + 1, min(length // 2, tail))
    ]
    assert starts == expected


@pytest.mark.parametrize("reach", [2, 4, 16])
@pytest.mark.parametrize("length", [2, 6, L0])
def test_the_same_targets_are_scored_at_every_length(reach: int, length: int):
    """G4, target by target: each is scored once in `whole`, and once in `tail` if it lies there, at every length."""
    targets, tail = reach * length, min(8, reach // 2) * length
    for group in (range(first, min(first + 8, targets + 2)) for first in range(0, targets + 2, 8)):
        records = planted.evaluated(planted.Marked(group), reach, length=length)
        for (protocol, _), record in records.items():
            first = 1 if protocol == "whole" else targets - tail + 1
            once = sum(64.0**k for k, target in enumerate(group) if first <= target <= targets)  # shuffled: as in tail
            assert record["nats"] == once


@pytest.mark.parametrize("reach", [2, 4, 16])
def test_every_scored_token_sees_its_share_of_context(reach: int):
    """Tail: more than L - s tokens, at least half of L; whole windows: the first target of each sees one token."""
    targets, tail = reach * L0, min(8, reach // 2) * L0
    for target in range(targets - tail + 1, targets + 1):
        records = planted.evaluated(planted.Marked([target], context=True), reach)
        for (protocol, length), record in records.items():
            seen, stride = record["nats"], min(length // 2, tail)
            if protocol == "whole":
                assert seen == (target - 1) % length + 1
            else:
                assert length - stride + 1 <= seen <= length
                assert seen > length / 2
                assert seen == length - stride + 1 + (target - 1 - (targets - tail)) % stride


def sees_eight_back(inputs: Tensor, targets: Tensor) -> Tensor:
    """A model whose loss falls with context up to 8 tokens, and differs by target, but knows nothing further back."""
    context = torch.arange(1, targets.shape[1] + 1).clamp(max=8)
    return (8 - context) * 0.25 + 1 + torch.sin(targets.double())


def test_a_model_that_sees_eight_tokens_has_a_flat_tail():
    """G3: whole windows improve with length although context is unused; the fixed tail shows that nothing is gained."""
    records = planted.evaluated(sees_eight_back, 128)
    loss = {key: record["nats"] / record["tokens"] for key, record in records.items()}
    lengths = [L0 << k for k in range(8)]
    assert all(loss["whole", a] > loss["whole", b] + 1e-4 for a, b in pairwise(lengths))
    assert loss["whole", L0] > loss["whole", lengths[-1]] + 0.4
    for length in lengths:
        assert loss["tail", length] == pytest.approx(loss["tail", L0], abs=1e-12)


def test_loss_is_summed_in_float64():
    """A window of 65,536 float32 losses: their float32 sum would be off in the eighth digit."""
    spec, length = EvaluateSpec(2, window_tokens=1), 2**15
    found = evaluate_span(lambda _, targets: torch.full(targets.shape, 0.1), planted.span(2, length), spec, length)
    for record in found:
        assert record["nats"] == pytest.approx(float(np.float32(0.1)) * record["tokens"], rel=1e-12)


@pytest.mark.parametrize(
    ("lengths", "spans", "firsts"),
    [
        ([65], 2, {"book 0": [0]}),
        ([129, 64, 130], 2, {"book 0": [0], "book 2": [0, 65]}),
        ([1000], 3, {"book 0": [0, 333, 666]}),
        ([194], 9, {"book 0": [0]}),
        ([195], 9, {"book 0": [0, 65, 130]}),
    ],
)
def test_spans_lie_within_books_and_never_overlap(lengths: list[int], spans: int, firsts: dict[str, list[int]]):
    shard = planted.shard(*lengths)
    if lengths == [194]:
        firsts = {"book 0": [0, 97]}
    chosen = choose_spans(shard, EvaluateSpec(reach=4, spans=spans), L0)
    found: dict[str, list[int]] = {}
    taken: set[int] = set()
    for span in chosen:
        assert len(span.tokens) == 65
        assert 0 not in span.tokens
        assert taken.isdisjoint(span.tokens.tolist())
        taken.update(span.tokens.tolist())
        book = shard.names.index(span.book)
        found.setdefault(span.book, []).append(int(span.tokens[0] - 1 - shard.offsets[book]))
        assert span.index == len(found[span.book]) - 1
    assert found == firsts


def test_too_short_text_is_refused_with_the_lengths():
    with pytest.raises(InputError, match=r"128 × 16 needs 2049 tokens.*'book 1', has 2048"):
        choose_spans(planted.shard(30, 2048, 7), EvaluateSpec(), L0)
    assert len(choose_spans(planted.shard(30, 2049, 7), EvaluateSpec(), L0)) == 1


@pytest.mark.parametrize("wrong", [{"reach": 3}, {"reach": 1}, {"reach": 0}, {"spans": 0}, {"window_tokens": 0}])
def test_impossible_settings_are_refused(wrong: dict[str, int]):
    with pytest.raises(InputError, match=next(iter(wrong))):
        EvaluateSpec(**wrong)


def test_an_odd_training_length_is_refused():
    with pytest.raises(InputError, match="must be even, not 15"):
        EvaluateSpec().lengths(15)


def test_a_span_that_a_kill_cut_short_does_not_count():
    spec = EvaluateSpec(2)
    score = lambda _, targets: torch.ones(targets.shape)  # noqa: E731  # the shortest scorer
    records = [record for _ in range(1) for record in evaluate_span(score, planted.span(2), spec, L0)]
    assert len(records) == 4
    second = [record | {"span": 1} for record in records]
    train = {"record": "train", "step": 1}
    assert complete_spans([train, *records, *second[:3]], spec, L0) == [records]
    assert complete_spans([train, *records, *second], spec, L0) == [records, second]
