"""Training and held-out samples share none, the seed alone decides, and answers stay with their samples."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longroute.errors import InputError
from longroute.task import TASKS, Hay, Samples, Source, draw_split, parse_task
from longroute.task.split import is_heldout

SMALL = {
    "flip-flop": 16,
    "flip-flop:ignore=0,sparse=0": 17,
    "word-problem:group=S3": 4,
    "word-problem:group=S3,generators=swaps": 6,
    "copy:span=1,marks=1,alphabet=3": 7,
    "mqar:pairs=2,queries=1,keys=2,values=2,filler=1": 8,
    "phone-book:letters=3,name_length=1,digits=1,queries=1": 8,
}
"""Tasks so small that samples often come again, by name, with the length."""


def rows(samples: Samples) -> set[tuple[int, ...]]:
    """Samples by their tokens and their answers."""
    whole = np.concatenate([samples.inputs, samples.targets], axis=1)
    return set(map(tuple, whole.tolist()))


def small(name: str) -> Source:
    return parse_task(name).source(None)


@pytest.mark.parametrize(("name", "length"), SMALL.items())
def test_training_and_heldout_share_no_sample(name: str, length: int):
    """Not even where the generator by itself draws the same ones again and again."""
    source = small(name)
    raw = [source.draw(length, 3_000, np.random.default_rng(seed), heldout=seed > 0) for seed in (0, 1)]
    assert len(rows(raw[0]) & rows(raw[1])) > 20
    training, heldout = (
        [rows(draw_split(source, length, 1_000, [seed], heldout=side)) for seed in range(3)] for side in (False, True)
    )
    assert set.union(*training).isdisjoint(set.union(*heldout))
    assert min(len(set.union(*side)) for side in (training, heldout)) > 20  # there is something to share


@pytest.mark.parametrize("name", TASKS)
def test_half_of_all_samples_are_held_out(name: str, hay: Hay):
    """Whatever the task, and each sample's side is its own, not its place's in the draw."""
    source = TASKS[name]().source(hay)
    samples = source.draw(max(source.shortest, 32), 400, np.random.default_rng(0), heldout=False)
    side = is_heldout(samples)
    assert abs(side.mean() - 0.5) < 4 * 0.5 / 400**0.5
    order = np.random.default_rng(1).permutation(400)
    np.testing.assert_array_equal(is_heldout(samples.take(order)), side[order])


@pytest.mark.parametrize("name", TASKS)
def test_the_seed_the_length_and_the_side_decide_alone(name: str, hay: Hay):
    """Not what was drawn before, nor numpy's own state; and each of them does decide."""
    source = TASKS[name]().source(hay)
    length = max(source.shortest, 32)
    first = draw_split(source, length, 5, [3, 1], heldout=False)
    draw_split(source, length + 1, 9, [5], heldout=True)
    np.random.seed(0)  # noqa: NPY002  # what must not matter
    assert_same(draw_split(TASKS[name]().source(hay), length, 5, [3, 1], heldout=False), first)
    longer = draw_split(source, length + 1, 5, [3, 1], heldout=False)
    assert not np.array_equal(longer.inputs[:, :length], first.inputs)
    for seed, side in (([3, 2], False), ([4, 1], False), ([1, 3], False), ([3, 1], True)):
        assert rows(draw_split(source, length, 5, seed, heldout=side)).isdisjoint(rows(first))


@given(count=st.integers(1, 40), seed=st.integers(0, 99), heldout=st.booleans())
def test_as_many_as_are_asked_for(count: int, seed: int, heldout: bool):
    samples = draw_split(small("mqar"), 20, count, [seed], heldout=heldout)
    assert len(samples) == count
    assert (is_heldout(samples) == heldout).all()
    assert set(samples.row.tolist()) == set(range(count))


@dataclass(frozen=True)
class Few:
    """Draws the samples of another source from a fixed seed: the same few, whatever it is asked for."""

    source: Source
    different: int
    vocabulary: int = 99
    shortest: int = 4

    def draw(self, length: int, count: int, generator: np.random.Generator, *, heldout: bool) -> Samples:
        some = self.source.draw(length, self.different, np.random.default_rng(0), heldout=heldout)
        return some.take(generator.permutation(self.different)[:count])


def test_too_few_different_samples_are_refused():
    """One sample is on one side alone; the other has none. Several rounds are fine."""
    one, heldout = (
        Few(small("mqar"), 1),
        bool(is_heldout(small("mqar").draw(20, 1, np.random.default_rng(0), heldout=False))[0]),
    )
    assert len(draw_split(one, 20, 3, [0], heldout=heldout)) == 3
    with pytest.raises(InputError, match="too few different samples of 20 tokens"):
        draw_split(one, 20, 3, [0], heldout=not heldout)
    few = Few(small("mqar"), 7)
    for side in (False, True):
        assert (is_heldout(draw_split(few, 20, 40, [0], heldout=side)) == side).all()


def assert_same(first: Samples, second: Samples) -> None:
    """Equal in everything, answers in the same order."""
    assert first.slices.keys() == second.slices.keys()
    for name in ("inputs", "targets", "row", "places", "chance"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name))
    for name, values in first.slices.items():
        np.testing.assert_array_equal(values, second.slices[name])


def answers_of(samples: Samples, sample: int) -> list[tuple[object, ...]]:
    """All that is known of a sample's answers, in their order."""
    mine = np.flatnonzero(samples.row == sample)
    columns = [samples.places[mine].tolist(), samples.expected[mine].tolist(), samples.chance[mine].tolist()]
    return list(zip(*columns, *(values[mine].tolist() for values in samples.slices.values()), strict=True))


@pytest.mark.parametrize("name", TASKS)
@given(data=st.data())
def test_answers_stay_with_their_samples(name: str, data: st.DataObject, hay: Hay):
    """Any rows in any order; none at all as well."""
    source = TASKS[name]().source(hay)
    samples = source.draw(max(source.shortest, 20), 9, np.random.default_rng(0), heldout=True)
    chosen = data.draw(st.lists(st.integers(0, 8), unique=True))
    taken = samples.take(np.array(chosen, dtype=np.int64))
    assert len(taken) == len(chosen)
    assert (np.diff(taken.row) >= 0).all()
    for new, old in enumerate(chosen):
        np.testing.assert_array_equal(taken.inputs[new], samples.inputs[old])
        np.testing.assert_array_equal(taken.targets[new], samples.targets[old])
        assert answers_of(taken, new) == answers_of(samples, old)
    assert len(taken.row) == sum(len(answers_of(samples, old)) for old in chosen)


def test_no_samples():
    samples = small("mqar").draw(20, 4, np.random.default_rng(0), heldout=False)
    none = samples.take(np.empty(0, dtype=np.int64))
    assert (len(none), none.inputs.shape, none.expected.shape) == (0, (0, 20), (0, 1))
    assert all(len(values) == 0 for values in none.slices.values())
    whole = samples.take(np.arange(4))
    assert_same(whole.take(np.arange(4)), whole)
    assert_same(replace(whole), whole)
