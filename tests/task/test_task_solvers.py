"""Every answer follows from the tokens before it: solvers that read these alone are always right."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longroute.data.windows import IGNORED
from longroute.task import (
    MQAR,
    TASKS,
    Copy,
    FlipFlop,
    Hay,
    Needle,
    Passkey,
    PhoneBook,
    Samples,
    Source,
    Task,
    WordProblem,
    draw_split,
)


@dataclass
class Solution:
    """An answer, and the index of the token that completes what gives it away (the nearest, if several do)."""

    answer: list[int]
    given_by: int


Solver = Callable[[Any, list[int], Hay], Solution]


def solve_mqar(task: MQAR, tokens: list[int], hay: Hay) -> Solution:
    """Some token before is the same key; the value follows it."""
    *before, asked = tokens
    assert asked < task.keys
    found = max(i for i, token in enumerate(before) if token == asked)
    return Solution([before[found + 1]], found + 1)


def solve_flip_flop(task: FlipFlop, tokens: list[int], hay: Hay) -> Solution:
    """The bit after the last write; a later read has shown it too."""
    write, read, ignore = range(3)
    bit, shown = -1, -1
    *pairs, asked = tokens
    assert asked == read
    for i in range(0, len(pairs), 2):
        if pairs[i] == write:
            bit = pairs[i + 1]
        if pairs[i] == read:
            assert pairs[i + 1] == bit
        if pairs[i] != ignore:
            shown = i + 1
    return Solution([bit], shown)


def solve_copy(task: Copy, tokens: list[int], hay: Hay) -> Solution:
    """The span after the same marker."""
    *before, marker = tokens
    assert marker >= task.alphabet
    (found,) = (i for i, token in enumerate(before) if token == marker)
    return Solution(before[found + 1 : found + 1 + task.span], found + task.span)


def solve_phone_book(task: PhoneBook, tokens: list[int], hay: Hay) -> Solution:
    """The number on the line that begins with the name."""
    lines, line = [], []
    for i, token in enumerate(tokens):
        if token == task.letters + 10:
            lines.append(line)
            line = []
        else:
            line.append((i, token))
    asked = [token for _, token in line]
    assert len(asked) == task.name_length
    assert max(asked) < task.letters
    (found,) = (one for one in lines if [token for _, token in one][: len(asked)] == asked)
    return Solution([token for _, token in found[len(asked) :]], found[-1][0])


def solve_word_problem(task: WordProblem, tokens: list[int], hay: Hay) -> Solution:
    """Where things stand after all permutations so far; the first of these is as much needed as the others."""
    group = permutations_of(task.group)
    size = len(group[0])
    product = tuple(range(size))
    for token in tokens:
        if task.generators == "swaps":
            assert sorted(a == b for a, b in enumerate(group[token])) == [False, False] + [True] * (size - 2)
        product = tuple(group[token][thing] for thing in product)
    return Solution([group.index(product)], 0)


@cache
def permutations_of(group: str) -> list[tuple[int, ...]]:
    """All of a symmetric group, the even ones of an alternating group, in lexicographic order."""
    size = int(group[1])
    every = list(permutations(range(size)))
    return [one for one in every if group[0] == "S" or np.linalg.det(np.eye(size)[list(one)]) > 0]


def solve_needle(task: Needle | Passkey, tokens: list[int], hay: Hay) -> Solution:
    """The number that the text gives to the word it ends by asking for."""
    pieces = [hay.tokenizer.decode([token]) for token in tokens]
    text = "".join(pieces)
    question = re.search(r" ([a-z]+)$", text)
    assert question
    found = set(re.findall(r" ([a-z]+)\d", text))
    most = task.keys if isinstance(task, Needle) else 1
    asked = task.queries if isinstance(task, Needle) else 1
    assert (
        (most if len(pieces) > 20 * (most + asked) else min(most, 2)) <= len(found) <= most
    )  # fewer where it is short
    needle, *_ = re.finditer(rf" {question[1]}(\d{{{task.digits}}})", text)
    *_, nearest = re.finditer(rf" {question[1]}(\d{{{task.digits}}})", text)
    answer = [hay.tokenizer.encode(digit).ids[0] for digit in needle[1]]
    ends = np.cumsum([len(piece) for piece in pieces]).tolist()
    return Solution(answer, ends.index(nearest.end(1)))


SOLVERS: dict[str, Solver] = {
    "mqar": solve_mqar,
    "flip-flop": solve_flip_flop,
    "copy": solve_copy,
    "phone-book": solve_phone_book,
    "word-problem": solve_word_problem,
    "passkey": solve_needle,
    "needle": solve_needle,
}


def assert_solved(task: Task, source: Source, samples: Samples, hay: Hay) -> None:
    """All answers are what the solver says, stand where their targets do, and are as far as they say."""
    solve, rows = SOLVERS[task.name], samples.inputs.tolist()
    for answer, (row, places) in enumerate(zip(samples.row.tolist(), samples.places.tolist(), strict=True)):
        solution = solve(task, rows[row][: places[0] + 1], hay)
        assert places == list(range(places[0], places[0] + len(solution.answer)))
        assert samples.expected[answer].tolist() == solution.answer
        assert samples.targets[row, places].tolist() == solution.answer
        # All but the last token of an answer are inputs too: what came before is given.
        assert rows[row][places[0] + 1 : places[0] + len(places)] == solution.answer[:-1]


def assert_well_formed(samples: Samples, source: Source, length: int, count: int) -> None:
    """Shapes, dtypes and ranges as `Samples` has them."""
    answers, width = samples.places.shape
    assert len(samples) == count
    assert samples.inputs.shape == samples.targets.shape == (count, length)
    assert samples.row.shape == samples.chance.shape == (answers,)
    assert samples.expected.shape == (answers, width)
    for ids in (samples.inputs, samples.targets, samples.row, samples.places, *samples.slices.values()):
        assert ids.dtype == np.int64
    assert all(values.shape == (answers,) for values in samples.slices.values())
    assert samples.inputs.min() >= 0
    assert samples.inputs.max() < source.vocabulary
    learned = samples.targets[samples.targets != IGNORED]
    assert learned.min() >= 0
    assert learned.max() < source.vocabulary
    assert 0 < samples.chance.min() <= samples.chance.max() <= 1
    assert set(samples.row.tolist()) == set(range(count))  # every sample asks something
    asked = {(row, place) for row, places in zip(samples.row, samples.places, strict=True) for place in places}
    assert len(asked) == answers * width  # and nothing twice


def lengths(source: Source) -> dict[int, int]:
    """The shortest, the next, and 63, 64 and 1000 where samples may be so short, with how many samples to look at."""
    chosen = {source.shortest, source.shortest + 1} | {n for n in (63, 64, 1000) if n > source.shortest}
    return {length: 9 if length < 500 else 2 for length in chosen}


@pytest.mark.parametrize("heldout", [False, True], ids=["training", "heldout"])
@pytest.mark.parametrize("name", TASKS)
def test_a_solver_that_reads_the_tokens_answers_everything(name: str, heldout: bool, hay: Hay):
    task = TASKS[name]()
    source = task.source(hay)
    for length, count in lengths(source).items():
        samples = draw_split(source, length, count, [3], heldout=heldout)
        assert_well_formed(samples, source, length, count)
        assert_solved(task, source, samples, hay)


@pytest.mark.parametrize("name", TASKS)
def test_distance_is_from_what_gives_the_answer_away_to_where_it_is_asked(name: str, hay: Hay):
    """As `Samples.slices` has it. Nothing nearer does: the solver takes the nearest, and needs the whole of it."""
    task = TASKS[name]()
    source = task.source(hay)
    for length, count in lengths(source).items():
        samples = draw_split(source, length, count, [4], heldout=True)
        rows, places = samples.inputs.tolist(), samples.places[:, 0].tolist()
        nearest = [
            SOLVERS[name](task, rows[row][: place + 1], hay).given_by
            for row, place in zip(samples.row, places, strict=True)
        ]
        assert samples.slices["distance"].tolist() == [at - by for at, by in zip(places, nearest, strict=True)]


SHARE = st.floats(0, 0.99)
SIZES: dict[str, st.SearchStrategy[Any]] = {
    "mqar": st.builds(
        MQAR,
        pairs=st.integers(2, 9),
        queries=st.integers(1, 9),
        keys=st.integers(9, 20),
        values=st.integers(2, 20),
        filler=st.integers(1, 9),
    ),
    "flip-flop": st.builds(FlipFlop, ignore=SHARE, sparse=SHARE, dense=SHARE),
    "copy": st.builds(Copy, span=st.integers(1, 9), marks=st.integers(1, 9), alphabet=st.integers(2, 20)),
    "phone-book": st.builds(
        PhoneBook,
        letters=st.integers(6, 9),  # names for 1,000 tokens
        name_length=st.just(3),
        digits=st.integers(3, 4),
        queries=st.integers(1, 5),
    ),
    "word-problem": st.builds(
        WordProblem, group=st.sampled_from(["S3", "S4", "S5"]), generators=st.sampled_from(["all", "swaps"])
    ),
    "passkey": st.builds(Passkey, digits=st.integers(1, 9)),
    "needle": st.builds(Needle, keys=st.integers(1, 16), queries=st.integers(1, 16), digits=st.integers(1, 3)),
}


@pytest.mark.parametrize("name", TASKS)
@settings(max_examples=15)
@given(data=st.data())
def test_at_any_size_and_length(name: str, data: st.DataObject, hay: Hay):
    task = data.draw(SIZES[name])
    source = task.source(hay)
    length = source.shortest + data.draw(st.integers(0, 200))
    generator = np.random.default_rng(data.draw(st.integers(0, 99)))
    samples = source.draw(length, 5, generator, heldout=data.draw(st.booleans()))
    assert_well_formed(samples, source, length, 5)
    assert_solved(task, source, samples, hay)


def learned_elsewhere(task: Task, samples: Samples, hay: Hay) -> dict[tuple[int, int], int]:
    """Places that are learned but not measured, and the answer's token there: keys that are asked for again."""
    if not isinstance(task, MQAR | Needle):
        return {}
    width = samples.places.shape[1]
    found = {}
    for row, (tokens, targets) in enumerate(zip(samples.inputs.tolist(), samples.targets.tolist(), strict=True)):
        places = [place for place, target in enumerate(targets) if target != IGNORED][::width]
        asked = [tokens[place] for place in places]
        if isinstance(task, Needle):
            asked = [hay.tokenizer.decode(tokens[: place + 1]).split(" ")[-1] for place in places]
        again = [place for i, place in enumerate(places) if asked[i] in asked[:i]]
        found |= {(row, place + token): token for place in again for token in range(width)}
    return found


@pytest.mark.parametrize("name", TASKS)
def test_targets_are_what_follows_and_are_ignored_where_nothing_is_to_be_learned(name: str, hay: Hay):
    """Exactly the answers are learned; of keys that are asked for again, too."""
    task = TASKS[name]()
    source = task.source(hay)
    samples = draw_split(source, max(source.shortest, 64), 50, [5], heldout=True)
    asked = {(int(r), int(p)) for r, places in zip(samples.row, samples.places, strict=True) for p in places}
    again = learned_elsewhere(task, samples, hay)
    assert not asked & again.keys()
    learned = {(int(r), int(p)) for r, p in zip(*np.nonzero(samples.targets != IGNORED), strict=True)}
    assert learned == asked | again.keys()
    for (row, place), token in again.items():
        solution = SOLVERS[name](task, samples.inputs[row, : place + 1 - token].tolist(), hay)
        assert samples.targets[row, place] == solution.answer[token]
    if task.name != "word-problem":  # whose answers aren't tokens of the sample
        row, place = np.nonzero(samples.targets[:, :-1] != IGNORED)
        np.testing.assert_array_equal(samples.targets[row, place], samples.inputs[row, place + 1])


def same(first: Samples, second: Samples) -> bool:
    arrays = [[s.inputs, s.targets, s.row, s.places, s.chance, *s.slices.values()] for s in (first, second)]
    return first.slices.keys() == second.slices.keys() and all(map(np.array_equal, *arrays))


@pytest.mark.parametrize("name", TASKS)
def test_the_seed_decides(name: str, hay: Hay):
    source = TASKS[name]().source(hay)
    length = max(source.shortest, 20)
    for heldout in (False, True):
        first, again, other = (draw_split(source, length, 5, [seed], heldout=heldout) for seed in (1, 1, 2))
        assert same(first, again)
        assert not np.array_equal(first.inputs, other.inputs)
        drawn = [source.draw(length, 5, np.random.default_rng(seed), heldout=heldout) for seed in (1, 1, 2)]
        assert same(drawn[0], drawn[1])
        assert not np.array_equal(drawn[0].inputs, drawn[2].inputs)


def test_every_task_has_a_solver_and_sizes():
    assert SOLVERS.keys() == SIZES.keys() == TASKS.keys()
