"""No answer can be guessed from its place, from frequency or from the near end, and `chance` is what it says."""

from collections import Counter
from dataclasses import replace
from itertools import permutations, product
from typing import Literal

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from longroute.task import (
    MQAR,
    TASKS,
    WINDOW,
    Copy,
    FlipFlop,
    Hay,
    Needle,
    PhoneBook,
    Samples,
    Task,
    WordProblem,
    draw_split,
    parse_task,
    task_name,
)
from longroute.task.samples import without_binding

pytestmark = pytest.mark.usefixtures("one_thread")

TYPES = {
    "mqar": 16,
    "flip-flop": 2,
    "flip-flop:ignore=0.95": 2,
    "copy": 16,
    "copy:marks=1,span=2": 16,
    "phone-book:name_length=2,digits=3": 10,  # smaller: drawing the default's 17,576 names takes minutes and memory
    "word-problem:group=S3": 6,
    "word-problem:group=S3,generators=swaps": 3,  # every second product is even
    "word-problem": 60,
    "passkey:digits=2": 10,
    "needle:keys=2": 10,
}
"""How many tokens an answer may begin with, all as likely to who sees nothing of what gives it away."""


def test_every_task_is_guessed_at():
    assert {parse_task(name).name for name in TYPES} == TASKS.keys()


def drawn(name: str, hay: Hay) -> tuple[Samples, Samples]:
    """2,000 training and 1,000 held-out samples of 64 tokens or the fewest there are, if more.

    Of a flip-flop 4,000: it asks less often from afar, and for the same bit more than once.
    """
    task = parse_task(name)
    source = task.source(hay)
    length, most = max(64, source.shortest), 4_000 if isinstance(task, FlipFlop) else 1_000
    training = draw_split(source, length, 2_000, [7], heldout=False)
    return beyond_window(training), beyond_window(draw_split(source, length, most, [7], heldout=True))


def beyond_window(samples: Samples) -> Samples:
    """The same with the answers alone that are more than WINDOW away."""
    far = samples.slices["distance"] > WINDOW
    assert far.sum() > 200
    return replace(
        samples,
        row=samples.row[far],
        places=samples.places[far],
        chance=samples.chance[far],
        slices={name: values[far] for name, values in samples.slices.items()},
    )


def surplus(right: np.ndarray, chance: np.ndarray | float, row: np.ndarray) -> float:
    """By how many standard errors there are more right answers than by chance.

    Samples are independent, their answers needn't be: the binomial error of answers, or that of samples if larger.
    """
    expected = np.broadcast_to(chance, right.shape)
    excess = np.bincount(row, right - expected)
    error = max((expected * (1 - expected)).sum(), excess.var() * len(excess)) ** 0.5
    return float(excess.sum() / max(error, 1.0))


def assert_blind(told: np.ndarray, samples: Samples, types: int) -> None:
    """Tokens told for each answer, (answer width), are right no more often than a guess.

    The whole answer against `chance`, the first token against one of the tokens that it may be: `chance` is that of
    one who knows all the sample but what belongs where, and a leak might hide below it.
    """
    right = told == samples.expected
    assert surplus(right.all(1), samples.chance, samples.row) < 4
    assert surplus(right[:, 0], 1 / types, samples.row) < 4


def commonest(answers: np.ndarray, groups: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """For each group asked for, the commonest of its answers; of all answers if there are none."""
    everywhere = Counter(answers.tolist()).most_common(1)[0][0]
    by_group: dict[int, Counter[int]] = {}
    for group, answer in zip(groups.tolist(), answers.tolist(), strict=True):
        by_group.setdefault(group, Counter())[answer] += 1
    return np.array([by_group.get(g, Counter([everywhere])).most_common(1)[0][0] for g in asked.tolist()])


@pytest.mark.parametrize("name", TYPES)
def test_neither_place_nor_frequency_tells_the_answer(name: str, hay: Hay):
    """The commonest target of training, overall and at each place, on held-out answers."""
    training, heldout = drawn(name, hay)
    assert len(np.unique(heldout.expected[:, 0])) >= TYPES[name]
    overall, here = np.zeros_like(heldout.expected), np.zeros_like(heldout.expected)
    for token in range(heldout.places.shape[1]):
        answers, places = training.expected[:, token], training.places[:, token]
        overall[:, token] = commonest(answers, np.zeros_like(places), np.zeros(len(here), dtype=int))
        here[:, token] = commonest(answers, places, heldout.places[:, token])
    for told in (overall, here):
        assert_blind(told, heldout, TYPES[name])


def windows(samples: Samples) -> torch.Tensor:
    """The last WINDOW tokens up to each target's place, its own included, (answer·width WINDOW)."""
    places = samples.places.reshape(-1, 1) - np.arange(WINDOW)
    assert places.min() >= 0
    row = samples.row.repeat(samples.places.shape[1])
    return torch.from_numpy(samples.inputs[row[:, None], places])


def near_end_classifier(samples: Samples, vocabulary: int, examples: int = 8_000) -> torch.Tensor:
    """Weights, (WINDOW·vocabulary token): softmax of their sums over a window's one-hot tokens, by Adam."""
    seen, target = windows(samples)[:examples], torch.from_numpy(samples.expected.reshape(-1))[:examples]
    index = seen + vocabulary * torch.arange(WINDOW)
    weight = torch.zeros(WINDOW * vocabulary, vocabulary, requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=0.05)
    for _ in range(60):
        optimizer.zero_grad()
        F.cross_entropy(F.embedding_bag(index, weight, mode="sum"), target).backward()
        optimizer.step()
    return weight.detach()


def told_from_near_end(samples: Samples, weight: torch.Tensor) -> np.ndarray:
    vocabulary = weight.shape[1]
    index = windows(samples) + vocabulary * torch.arange(WINDOW)
    return F.embedding_bag(index, weight, mode="sum").argmax(1).numpy().reshape(samples.places.shape)


@pytest.mark.parametrize("name", TYPES)
def test_the_near_end_does_not_tell_the_answer(name: str, hay: Hay):
    """A linear classifier of the last tokens, fitted on training answers beyond the window, on held-out ones.

    Answers of several tokens are told as `Samples` has models tell them: each token with the ones before it given, all
    to be right. For a guesser who does not see what gives the answer away that is a fixed guess of the whole answer,
    token by token, so that `chance` bounds it.
    """
    training, heldout = drawn(name, hay)
    # Ids that occur, so that a text's vocabulary is no larger than what is near its ends.
    ids = np.unique(np.concatenate([training.inputs, heldout.inputs, training.targets, heldout.targets]))
    training, heldout = (
        replace(s, inputs=np.searchsorted(ids, s.inputs), targets=np.searchsorted(ids, s.targets))
        for s in (training, heldout)
    )
    weight = near_end_classifier(training, len(ids))
    assert_blind(told_from_near_end(heldout, weight), heldout, TYPES[name])


def test_the_near_end_tells_an_answer_that_stands_there():
    """The classifier can do it: bits of a flip-flop that has just been read, were they taken for far ones."""
    samples = draw_split(FlipFlop(ignore=0.0), 64, 500, [7], heldout=False)
    near = samples.places[:, 0] >= WINDOW
    samples = replace(samples, row=samples.row[near], places=samples.places[near], chance=samples.chance[near])
    told = told_from_near_end(samples, near_end_classifier(samples, 5))
    assert surplus((told == samples.expected).all(1), samples.chance, samples.row) > 20


Option = tuple[int, ...]


def options(task: Task, tokens: list[int], hay: Hay) -> list[Option]:
    """What may be the answer for one who doesn't bind, in the order in which the sample tells it."""
    if isinstance(task, MQAR):
        # Keys never are filler: the second time one stands there it is asked for.
        first = {token: i for i, token in reversed(list(enumerate(tokens))) if token < task.keys}
        gone = {token for i, token in enumerate(tokens[:-1]) if token < task.keys and first[token] < i}
        return [(tokens[i + 1],) for token, i in sorted(first.items(), key=lambda one: one[1]) if token not in gone]
    if isinstance(task, Copy):
        return [span(tokens, i, task.span) for i, token in enumerate(tokens[:-1]) if token >= task.alphabet]
    if isinstance(task, PhoneBook):
        last = [i for i, token in enumerate(tokens[:-1]) if token < task.letters <= tokens[i + 1]]
        times = Counter(span(tokens, i, task.digits) for i in last)
        return [number for number in times if times[number] == 1]
    assert isinstance(task, Needle)
    digits = {hay.tokenizer.encode(str(digit)).ids[0] for digit in range(10)}
    last = [i for i, token in enumerate(tokens[:-1]) if token not in digits and tokens[i + 1] in digits]
    word = {i: hay.tokenizer.decode(tokens[: i + 1]).split(" ")[-1] for i in last}
    times = Counter(word.values())
    return [span(tokens, i, task.digits) for i in last if times[word[i]] == 1]


def span(tokens: list[int], place: int, width: int) -> Option:
    """The tokens after a place."""
    return tuple(tokens[place + 1 : place + 1 + width])


BOUND = [
    MQAR(),
    MQAR(values=2),
    MQAR(pairs=6, queries=9),
    Copy(marks=3),
    Copy(marks=3, alphabet=2, span=2),
    PhoneBook(name_length=2, digits=3, queries=3),
    Needle(keys=4),
    Needle(keys=3, queries=1, digits=1),
    Needle(keys=3, queries=2, digits=1),
]
"""Tasks that ask what belongs to what."""


def with_options(task: Task, hay: Hay) -> tuple[Samples, list[list[Option]], list[Option]]:
    """Held-out samples, and of each answer what it may be and what it is."""
    source = task.source(hay)
    samples = draw_split(source, max(64, source.shortest + 9), 1_500, [8], heldout=True)
    rows = samples.inputs.tolist()
    asked = zip(samples.row.tolist(), samples.places[:, 0].tolist(), strict=True)
    told = [options(task, rows[row][: place + 1], hay) for row, place in asked]
    return samples, told, [tuple(answer) for answer in samples.expected.tolist()]


@pytest.mark.parametrize("task", BOUND, ids=task_name)
def test_chance_is_that_of_the_commonest_option_that_is_still_to_come(task: Task, hay: Hay):
    """A guesser that knows them all but not which belongs here is right as often, within four standard errors."""
    samples, told, answers = with_options(task, hay)
    guesses = [Counter(some).most_common(1)[0] for some in told]
    right = np.array([guess == answer for (guess, _), answer in zip(guesses, answers, strict=True)])
    assert abs(surplus(right, samples.chance, samples.row)) < 4
    shares = [times / len(some) for (_, times), some in zip(guesses, told, strict=True)]
    assert samples.chance == pytest.approx(shares)


@pytest.mark.parametrize("task", BOUND, ids=task_name)
def test_where_an_option_is_told_does_not_make_it_the_answer(task: Task, hay: Hay):
    """Neither the first, the second, …, nor the last: which one is asked for is as likely any of them."""
    samples, told, answers = with_options(task, hay)
    most = max(map(len, told))
    for place in range(-most, most):
        there = np.array([-len(some) <= place < len(some) for some in told])
        guesses = [some[place] if known else None for some, known in zip(told, there, strict=True)]
        right = np.array([guess == answer for guess, answer in zip(guesses, answers, strict=True)])
        assert surplus(right[there], samples.chance[there], samples.row[there]) < 4, place


@pytest.mark.parametrize("group", ["S3", "S5"])
@pytest.mark.parametrize("generators", ["all", "swaps"])
def test_chance_of_the_word_problem_is_the_likeliest_product_of_what_is_not_seen(
    group: Literal["S3", "S5"], generators: Literal["all", "swaps"]
):
    """All unseen beginnings, counted; what is seen turns their products into answers one by one."""
    task = WordProblem(group=group, generators=generators)
    length = 10 if group == "S5" and generators == "all" else 11
    samples = draw_split(task, length, 20, [9], heldout=True)
    every = list(permutations(range(int(group[1]))))
    steps = [one for one in every if generators == "all" or sum(a != b for a, b in enumerate(one)) == 2]
    for time in range(length):
        found: Counter[tuple[int, ...]] = Counter()
        for unseen in product(steps, repeat=max(0, time + 1 - WINDOW)):
            state = every[0]
            for step in unseen:
                state = tuple(step[thing] for thing in state)
            found[state] += 1
        chance = found.most_common(1)[0][1] / found.total()
        assert samples.chance[samples.places[:, 0] == time] == pytest.approx(chance, rel=1e-12)


def test_chance_of_the_word_problem_far_out_is_one_of_the_group_or_of_its_half():
    for task, types in ((WordProblem("S5"), 120), (WordProblem("S5", "swaps"), 60)):
        samples = task.draw(300, 1, np.random.default_rng(0), heldout=False)
        assert samples.chance[-1] == pytest.approx(1 / types, rel=1e-6)
        assert (np.diff(samples.chance[WINDOW:]) < 1e-12).all()


def test_elimination_is_chance():
    """Four pairs asked for one after another: by elimination 1/4, 1/3, 1/2 and all are right, which binds nothing."""
    options = np.array([[3, 1, 4, 2]])
    still = np.array([[True, True, True, True], [True, False, True, True], [True, False, False, True], [1, 0, 0, 0]])
    chances = np.concatenate([without_binding(options, one[None].astype(bool)) for one in still])
    assert chances.tolist() == [1 / 4, 1 / 3, 1 / 2, 1]
    assert without_binding(np.array([[5, 5, 1, 5]]), np.array([[True, True, True, False]])).item() == 2 / 3


def test_who_only_eliminates_binds_nothing():
    """The same in samples that ask for every pair, of different values: 52 % right, and above elimination nothing."""
    task = MQAR()
    samples = draw_split(task, 64, 8_000, [10], heldout=True)
    generator = np.random.default_rng(0)
    right, chance = [], []
    for row in np.flatnonzero(np.bincount(samples.row) == task.pairs):
        mine = np.flatnonzero(samples.row == row)
        mine = mine[np.argsort(samples.places[mine, 0])]
        left = samples.expected[mine, 0].tolist()
        if len(set(left)) < task.pairs:
            continue
        chance += samples.chance[mine].tolist()
        for value in samples.expected[mine, 0].tolist():
            right.append(left[generator.integers(len(left))] == value)
            left.remove(value)
    assert len(right) > 1_000
    assert np.mean(chance) == pytest.approx((1 / 4 + 1 / 3 + 1 / 2 + 1) / 4)
    assert abs(surplus(np.array(right), np.array(chance), np.arange(len(right)) // task.pairs)) < 4
    binding = (np.mean(right) - np.mean(chance)) / (1 - np.mean(chance))
    assert abs(binding) < 0.1
