"""Packed = alone (case C1) and left-padded = unpadded (case D1)."""

from itertools import pairwise

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from specimens import (
    VOCABULARY,
    Sample,
    assert_close,
    assert_same_bits,
    build,
    draw_sample,
    phase_of,
    route_of,
    small_model,
    under,
)
from torch import Tensor

from longroute.attention import Encoding, PositionEncoding, Route, attend
from longroute.attention.encoding import step_inputs
from longroute.control import Charge
from longroute.data.packing import Packing
from longroute.model import Decoder
from longroute.transport import RotationFrame

pytestmark = pytest.mark.usefixtures("one_thread")

ROWS = st.lists(st.lists(st.integers(0, 29), max_size=4).map(sorted), min_size=1, max_size=2)
TIME = 29


def boundaries(inner: list[list[int]]) -> list[list[int]]:
    return [[0, *edges, TIME] for edges in inner]


def documents(edges: list[int]) -> list[tuple[int, int]]:
    return [(first, last) for first, last in pairwise(edges) if first < last]


@pytest.mark.parametrize("encoding", under("packed"))
@given(inner=ROWS)
def test_a_packed_document_is_the_document_alone(encoding: Encoding, inner: list[list[int]]) -> None:
    edges = boundaries(inner)
    sample = draw_sample(TIME, batch=len(edges))
    position = build(encoding)
    packed = attend(
        sample.query,
        sample.key,
        sample.value,
        route_of(position, sample, Packing.from_boundaries(edges, TIME)),
    )
    for row in range(len(edges)):
        for first, last in documents(edges[row]):
            own = sample.part(first, last, slice(row, row + 1))
            alone = attend(own.query, own.key, own.value, route_of(position, own))
            assert_close(packed[row : row + 1, :, first:last], alone, f"row {row}, tokens {first} to {last}")


@pytest.mark.parametrize("encoding", under("packed"))
@given(inner=ROWS)
def test_the_same_steps_packed_have_the_same_bits(encoding: Encoding, inner: list[list[int]]) -> None:
    edges = boundaries(inner)
    packing = Packing.from_boundaries(edges, TIME)
    sample = draw_sample(TIME, batch=len(edges))
    position = build(encoding)
    route = route_of(position, sample, packing)
    for row in range(len(edges)):
        for first, last in documents(edges[row]):
            own, rows = sample.part(first, last, slice(row, row + 1)), slice(row, row + 1)
            if isinstance(route.frame, RotationFrame):
                alone = position.steps.frame(steps_of(position, sample, packing)[rows, :, first:last], torch.float32)
                phase = route.frame.phase.expand(len(edges), -1, -1, -1)[rows, :, first:last]
                assert_same_bits(phase, phase_of(Route(alone)), "phases")
                assert_same_bits(route.frame.pull(sample.key)[rows, :, first:last], alone.pull(own.key), "keys")
            if route.charge is not None:
                decay = route.charge.log_decay.expand(len(edges), -1, -1)[rows, :, first:last]
                columns = Charge(decay, route.charge.slope, None).columns(torch.float32)
                for side, here, there in zip(
                    ("query", "key"), route.charge.columns(torch.float32), columns, strict=True
                ):
                    cut = here.expand(len(edges), -1, -1, -1)[rows, :, first:last]
                    assert_same_bits(cut, there, f"columns of the {side}")


def steps_of(position: PositionEncoding, sample: Sample, packing: Packing) -> Tensor:
    steps = position.steps(step_inputs(sample.hidden, sample.token_ids, packing))
    return steps.expand(len(sample.hidden), -1, -1, -1)


@pytest.mark.parametrize("encoding", under("packed"))
@given(cut=st.integers(1, TIME - 1), seed=st.integers(0, 9))
def test_editing_a_document_leaves_the_next_ones_logits(encoding: Encoding, cut: int, seed: int) -> None:
    packing = Packing.from_boundaries([[0, cut, TIME]] * 2, TIME)
    model = Decoder(small_model(), encoding, seed=1)
    token_ids = draw_sample(TIME, seed=seed).token_ids
    edited = token_ids.clone()
    edited[:, :cut] = (edited[:, :cut] + 1) % VOCABULARY
    before, after = model(token_ids, packing), model(edited, packing)
    assert_same_bits(after[:, cut:], before[:, cut:], "the second document's logits")
    assert (after[:, :cut] != before[:, :cut]).any()


@pytest.mark.parametrize("encoding", under("packed"))
@given(lengths=st.lists(st.integers(1, TIME), min_size=1, max_size=2), pad=st.integers(0, VOCABULARY - 1))
def test_left_padding_changes_nothing(encoding: Encoding, lengths: list[int], pad: int) -> None:
    model = Decoder(small_model(), encoding, seed=1)
    token_ids = draw_sample(TIME, batch=len(lengths)).token_ids
    for row, length in enumerate(lengths):
        token_ids[row, : TIME - length] = pad
    padded = model(token_ids, Packing.left_padded(lengths, TIME))
    for row, length in enumerate(lengths):
        alone = model(token_ids[row : row + 1, TIME - length :])
        assert_close(padded[row : row + 1, TIME - length :], alone, f"row {row} of {length} tokens")
