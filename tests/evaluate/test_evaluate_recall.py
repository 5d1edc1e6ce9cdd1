"""Recall against models whose answers are known: one that is always right, one that knows the set, one that guesses."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import torch
from scipy.stats import binomtest
from torch import Tensor

from longroute.attention import parse_encoding
from longroute.evaluate import SOLVED, TEST_SEED, EvaluateSpec, evaluate_recall, summarise_recall
from longroute.model import Decoder, ModelSpec
from longroute.task import TASKS, WINDOW, Samples, draw_split, parse_task
from longroute.train import TrainSpec

CPU = torch.device("cpu")
TRAIN = TrainSpec(length=64, precision="float32")
MADE_UP = [name for name, kind in TASKS.items() if not kind.in_text]


class Told(torch.nn.Module):
    """A decoder whose likeliest next token is what `tell(inputs)` says, (batch time) to (batch time)."""

    def __init__(self, vocabulary: int, tell: Callable[[Tensor], Tensor]):
        super().__init__()
        self.embedding = SimpleNamespace(weight=torch.eye(vocabulary))
        self.vocabulary, self.tell = vocabulary, tell

    def hidden_states(self, inputs: Tensor) -> Tensor:
        return torch.nn.functional.one_hot(self.tell(inputs), self.vocabulary).float()


def asked(task: str, tell: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """What four lengths' records come to."""
    source = parse_task(task).source(None)
    model = cast(Decoder, Told(source.vocabulary, tell))
    records = list(evaluate_recall(model, TRAIN, task, source, EvaluateSpec(4), device=CPU))
    assert [record["length"] for record in records] == [64, 128, 256]
    return summarise_recall(records, 64)


def held_out(task: str, length: int) -> Samples:
    count = EvaluateSpec(4).samples_at(length)
    return draw_split(parse_task(task).source(None), length, count, [TEST_SEED], heldout=True)


def right(task: str, wrong: float = 0.0) -> Callable[[Tensor], Tensor]:
    """Looks every sample up among the held-out ones; for a share `wrong` of them it tells the first token always."""
    known = {}
    for length in EvaluateSpec(4).lengths(64):
        samples = held_out(task, length)
        for index, (inputs, targets) in enumerate(zip(samples.inputs, samples.targets, strict=True)):
            known[inputs.tobytes()] = np.zeros_like(targets) if index < wrong * len(samples) else np.maximum(targets, 0)
    return lambda inputs: torch.from_numpy(np.stack([known[row.tobytes()] for row in inputs.numpy()]))


@pytest.mark.parametrize("task", MADE_UP)
def test_one_that_is_always_right(task: str):
    summary = asked(task, right(task))
    assert summary["solved"]
    assert set(summary["accuracy"].values()) == set(summary["binding"].values()) == {1.0}
    for length, count in summary["answers"].items():
        samples = held_out(task, int(length))
        far = (samples.slices["distance"] > WINDOW) & (samples.slices.get("shifted", 0) == 0)
        assert count == far.sum()
        assert summary["chance"][length] == pytest.approx(samples.chance[far].mean())
        low, high = summary["interval"]["accuracy"][length]
        assert 0.8 < low < high == 1.0  # twenty samples that are all right


def test_a_share_of_right_answers_is_the_accuracy():
    summary = asked("copy:marks=1,span=2", right("copy:marks=1,span=2", wrong=0.25))
    assert summary["accuracy"]["256"] == pytest.approx(0.75, abs=0.03)
    assert not summary["solved"]
    assert SOLVED > 0.8


def test_one_that_knows_the_set_and_no_binding_has_none():
    """A guess among the values that were written and not yet asked for: far above a blind one's 1 in 16, no binding."""
    generator = np.random.default_rng(0)

    def tell(inputs: Tensor) -> Tensor:
        told = torch.zeros_like(inputs)
        for row, out in zip(inputs.tolist(), told, strict=True):
            body, asks = row[:-7], range(len(row) - 7, len(row), 2)
            for place in asks:
                answered = {row[p] for p in asks if p < place and row[p] != row[place]}
                pairs = [(row[p], row[p + 1]) for p in range(len(body) - 1) if row[p] < 16]
                left = [value for key, value in pairs if key not in answered]
                out[place] = max(left, key=lambda value: (left.count(value), generator.random()))
        return told

    summary = asked("mqar", tell)
    for length, (low, high) in summary["interval"]["binding"].items():
        assert summary["accuracy"][length] > 0.3
        assert low < 0.0 < high


def test_near_and_shifted_answers_are_counted_apart():
    """Distances up to the window stand under 0 in the slices, flip-flop's tails under their own: in nothing else."""
    summary = asked("flip-flop", right("flip-flop"))
    samples = [held_out("flip-flop", length) for length in EvaluateSpec(4).lengths(64)]
    total = sum(len(one.row) for one in samples)
    by_distance = {place: one["answers"] for place, one in summary["slices"]["distance"].items()}
    assert by_distance["0"] == sum((one.slices["distance"] <= WINDOW).sum() for one in samples) > 0
    assert sum(by_distance.values()) == total
    assert set(summary["slices"]["ignore"]) == {"10", "80", "98"}
    assert sum(one["answers"] for one in summary["slices"]["ignore"].values()) == total
    counted = [(one.slices["distance"] > WINDOW) & (one.slices["ignore"] == 80) for one in samples]
    assert sum(summary["answers"].values()) == sum(each.sum() for each in counted)


def test_depth_is_where_in_the_context_the_answer_was_told():
    """Needles' heat map: tenths of the context before a pair, which lie in any of them but among the questions."""
    summary = asked("mqar", right("mqar"))
    found = np.zeros(10, dtype=int)
    for length in EvaluateSpec(4).lengths(64):
        samples = held_out("mqar", length)
        for row, place in zip(samples.row, samples.places[:, 0], strict=True):
            tokens = samples.inputs[row, : place + 1].tolist()
            found[10 * (tokens.index(tokens[-1]) + 1) // length] += 1
    assert {int(depth): one["answers"] for depth, one in summary["slices"]["depth"].items()} == dict(enumerate(found))


@pytest.mark.parametrize("answers", [1, 30])
def test_intervals_know_that_answers_of_a_sample_fail_together(answers: int):
    """Samples that are wholly right or wholly wrong count as one answer each, however many answers they have."""
    wrong = [index % 4 == 0 for index in range(40)]
    shared = {"sample": list(range(40)), "distance": [64] * 40, "chance": [0.0] * 40, "answers": [answers] * 40}
    cells = shared | {"right": [0 if one else answers for one in wrong]}
    low, high = summarise_recall([{"length": 64, "cells": cells}], 64)["interval"]["accuracy"]["64"]
    expected = binomtest(30, 40).proportion_ci(0.95, method="wilson")
    assert low == pytest.approx(expected.low, abs=0.004)
    assert high == pytest.approx(expected.high, abs=0.004)


def test_intervals_of_answers_that_fail_alone_are_of_all_of_them():
    """Half of each sample's answers: nothing varies between samples, so all count."""
    cells = {"sample": list(range(20)), "distance": [64] * 20, "chance": [0.0] * 20}
    cells |= {"answers": [10] * 20, "right": [5] * 20}
    low, high = summarise_recall([{"length": 64, "cells": cells}], 64)["interval"]["accuracy"]["64"]
    expected = binomtest(100, 200).proportion_ci(0.95, method="wilson")
    assert (low, high) == (pytest.approx(expected.low), pytest.approx(expected.high))


def test_an_answer_of_several_tokens_is_right_when_all_are():
    """Of two numbers the second has its last digit wrong."""
    whole = right("phone-book")

    def last_digit_wrong(inputs: Tensor) -> Tensor:
        told = whole(inputs)
        told[:, -2] = 0
        return told

    samples = held_out("phone-book", 64)
    last = samples.places[samples.slices["distance"] > WINDOW, -1]
    expected = (last < last.max()).mean()
    assert 0.3 < expected < 0.7
    assert asked("phone-book", last_digit_wrong)["accuracy"]["64"] == pytest.approx(expected)


@pytest.mark.parametrize("encoding", ["rope-qk", "learned-qkv+forget", "log-distance"])
def test_a_models_answers_are_its_logits(encoding: str):
    """Against the whole forward of each sample alone; how many go through at once and what is done change nothing."""
    source = parse_task("mqar").source(None)
    model = Decoder(ModelSpec(1, 16, 2, 1, 8, 16, source.vocabulary, initial=0.3), parse_encoding(encoding)).eval()
    spec = EvaluateSpec(4, samples=12)
    records = list(evaluate_recall(model, TRAIN, "mqar", source, spec, device=CPU))
    for record in records:
        samples = draw_split(source, record["length"], 12, [TEST_SEED], heldout=True)
        hits = 0
        for row, place, expected in zip(samples.row, samples.places[:, 0], samples.expected[:, 0], strict=True):
            with torch.no_grad():
                hits += int(model(torch.from_numpy(samples.inputs[[row]]))[0, place].argmax() == expected)
        assert sum(record["cells"]["right"]) == hits
    narrow = EvaluateSpec(4, samples=12, window_tokens=1)
    assert list(evaluate_recall(model, TRAIN, "mqar", source, narrow, device=CPU)) == records
    assert list(evaluate_recall(model, TRAIN, "mqar", source, spec, device=CPU, done=[64, 256])) == records[1:2]


def test_no_answers_are_no_numbers():
    assert summarise_recall([], 64)["solved"] is False
    cells = {name: [] for name in ("sample", "distance", "answers", "right", "chance")}
    empty = summarise_recall([{"length": 64, "cells": cells}], 64)
    assert empty["accuracy"] == {"64": None}
    assert empty["solved"] is False
