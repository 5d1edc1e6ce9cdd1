"""Training windows: a batch belongs to its step, an epoch covers the text once, documents stay apart."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longroute.data.shards import TokenShard
from longroute.data.windows import IGNORED, Batch, WindowSampler
from longroute.errors import InputError


def shard(count: int, *edges: int) -> TokenShard:
    """Tokens 0, 1, 2, …, so that a token says where it stands; documents begin at 0 and at `edges`."""
    offsets = np.array([0, *edges, count], dtype=np.int64)
    names = tuple(str(i) for i in range(len(offsets) - 1))
    return TokenShard(np.arange(count, dtype=np.uint16), offsets, names, count, "")


def assert_same_batch(found: Batch, expected: Batch) -> None:
    assert torch.equal(found.inputs, expected.inputs)
    assert torch.equal(found.targets, expected.targets)
    assert (found.packing is None) == (expected.packing is None)
    if found.packing is not None and expected.packing is not None:
        assert torch.equal(found.packing.starts, expected.packing.starts)


@given(steps=st.lists(st.integers(0, 40), max_size=6))
def test_a_step_has_one_batch_whatever_was_drawn_before(steps: list[int]) -> None:
    text = shard(103, 20, 55)
    used = WindowSampler(text, length=10, batch=3, seed=7)
    for step in steps:
        used.draw(step)
    for step in (0, 5, 33):
        assert_same_batch(used.draw(step), WindowSampler(text, length=10, batch=3, seed=7).draw(step))


@pytest.mark.parametrize("count", [21, 30, 31, 103, 110, 111])
@pytest.mark.parametrize("seed", [0, 1])
def test_an_epoch_covers_its_windows_once(count: int, seed: int) -> None:
    sampler = WindowSampler(shard(count), length=10, batch=1, seed=seed)
    offsets = set()
    for epoch in range(20):
        steps = range(epoch * sampler.windows, (epoch + 1) * sampler.windows)
        batches = [sampler.draw(step) for step in steps]
        tokens = torch.cat([batch.inputs.flatten() for batch in batches]).sort().values
        offset = int(tokens[0])
        offsets.add(offset)
        assert 0 <= offset < 10
        assert tokens.tolist() == list(range(offset, offset + 10 * sampler.windows))
        assert all(torch.equal(batch.targets, batch.inputs + 1) for batch in batches)
    assert len(offsets) > 3


def test_seeds_and_epochs_shuffle_differently() -> None:
    firsts = []
    for seed in (0, 1):
        sampler = WindowSampler(shard(1001), length=10, batch=sampler_windows(1001), seed=seed)
        firsts += [sampler.draw(step).inputs[:, 0].tolist() for step in (0, 1)]
    assert len({tuple(order) for order in firsts}) == 4
    assert all(order != sorted(order) for order in firsts)


def sampler_windows(count: int) -> int:
    return WindowSampler(shard(count), length=10, batch=1, seed=0).windows


@given(
    edges=st.lists(st.integers(1, 102), min_size=1, max_size=8, unique=True).map(sorted),
    seed=st.integers(0, 9),
)
def test_documents_stay_apart(edges: list[int], seed: int) -> None:
    sampler = WindowSampler(shard(103, *edges), length=10, batch=4, seed=seed)
    for step in range(6):
        batch = sampler.draw(step)
        after = batch.inputs + 1
        begins = torch.isin(after, torch.tensor(edges))
        assert torch.equal(batch.targets, torch.where(begins, IGNORED, after))
        inside = torch.isin(batch.inputs[:, 1:], torch.tensor(edges))
        assert (batch.packing is None) == (not inside.any())
        if batch.packing is not None:
            first = batch.inputs[:, :1]
            latest = torch.stack([torch.where(batch.inputs >= edge, edge, 0) for edge in edges]).amax(0)
            assert torch.equal(batch.packing.starts, (latest - first).clamp(min=0))


def test_a_document_that_ends_with_the_window_has_no_last_target() -> None:
    sampler = WindowSampler(shard(41, *range(1, 41)), length=10, batch=1, seed=0)
    batch = sampler.draw(0)
    assert batch.targets.tolist() == [[IGNORED] * 10]
    assert batch.packing is not None
    assert batch.packing.groups == ((10, 1),)


@pytest.mark.parametrize("count", [1, 2, 11, 20])
def test_a_text_too_short_is_refused(count: int) -> None:
    with pytest.raises(InputError, match=rf"has {count} tokens; a context of 10 needs at least 21"):
        WindowSampler(shard(count), length=10, batch=1, seed=0)


def test_the_shortest_text_has_one_window() -> None:
    assert WindowSampler(shard(21), length=10, batch=1, seed=0).draw(3).inputs.shape == (1, 10)
