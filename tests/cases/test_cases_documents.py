"""Rows C1 to C3, D1, F1, K1 and H1 of the cases, by name, and refusals of what doesn't fit. (E1: tests/papers.)"""

import dataclasses
import inspect
import re

import pytest
import torch
from specimens import (
    ENCODINGS,
    VOCABULARY,
    Sample,
    assert_close,
    assert_same_bits,
    build,
    draw_sample,
    named,
    route_of,
    small_model,
)

from longroute.attention import Encoding, Route, attend
from longroute.control import Charge
from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.model import Decoder

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_c1_documents_of_3_and_9_tokens(encoding: Encoding) -> None:
    model = Decoder(small_model(), encoding, seed=1)
    packing = Packing.from_boundaries([[0, 3, 12]], 12)
    token_ids = draw_sample(12, batch=1).token_ids
    edited = token_ids.clone()
    edited[:, :3] = (edited[:, :3] + 1) % VOCABULARY
    before, after = model(token_ids, packing), model(edited, packing)
    assert_same_bits(after[:, 3:], before[:, 3:], "logits of the second document")
    assert_close(before[:, 3:], model(token_ids[:, 3:]), "the second document alone")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
@pytest.mark.parametrize("boundaries", [[0, 0, 4], [0, 3, 3, 7], [0, 4, 4]], ids=str)
def test_c2_an_empty_document_contributes_nothing(encoding: Encoding, boundaries: list[int]) -> None:
    time = boundaries[-1]
    sample = draw_sample(time, batch=1)
    position = build(encoding)
    leaves = [sample.query, sample.key, sample.value, *position.parameters()]
    results = []
    for edges in (boundaries, sorted(set(boundaries))):
        for x in leaves:
            x.requires_grad_()
        route = route_of(position, sample, Packing.from_boundaries([edges], time))
        output = attend(sample.query, sample.key, sample.value, route)
        results.append([output, *torch.autograd.grad(output.square().sum(), leaves)])
    for found, expected in zip(*results, strict=True):
        assert found.isfinite().all()
        assert_same_bits(found, expected, "with the empty document")


def test_c3_there_is_one_way_to_keep_documents_apart() -> None:
    """A mask beside the packing can't be given, so neither can silently overwrite the other."""
    assert list(inspect.signature(attend).parameters) == ["query", "key", "value", "route", "pruning"]
    assert {field.name for field in dataclasses.fields(Route)} == {"frame", "values", "charge", "pairwise", "packing"}


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_d1_x_and_pad_pad_x(encoding: Encoding) -> None:
    model = Decoder(small_model(), encoding, seed=1)
    token_ids = draw_sample(7, batch=2).token_ids
    one = model(token_ids[:1], Packing.left_padded([5], 7))
    two = model(token_ids, Packing.left_padded([5, 7], 7))
    alone = model(token_ids[:1, 2:])
    assert_close(one[:, 2:], alone, "batch 1")
    assert_close(two[:1, 2:], alone, "batch 2")
    assert_close(two[1:], model(token_ids[1:]), "the row without padding")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
@pytest.mark.parametrize("time", [1, 7, 129, 257])
def test_f1_any_length_forward_and_backward(encoding: Encoding, time: int) -> None:
    model = Decoder(small_model(), encoding, seed=1)
    logits = model(draw_sample(time).token_ids)
    gradients = torch.autograd.grad(logits.logsumexp(-1).sum(), list(model.parameters()), materialize_grads=True)
    for tensor in (logits, *gradients):
        assert tensor.isfinite().all()


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_k1_a_token_sees_itself_untransported_and_undecayed(encoding: Encoding) -> None:
    sample = draw_sample(1, heads=2, kv_heads=2)
    route = route_of(build(encoding, heads=2), sample)
    assert_close(attend(sample.query, sample.key, sample.value, route), sample.value, "the only value")
    score = (route.frame.pull(sample.query) * route.frame.pull(sample.key)).sum(-1)
    assert_close(score, (sample.query * sample.key).sum(-1), "the diagonal's score")
    if route.charge is not None:
        before_query, before_key = route.charge.columns(torch.float32)
        assert_close((before_query * before_key).sum(-1), torch.zeros_like(before_query[..., 0]), "the decay")


def test_k1_the_decay_of_a_token_is_inside_routes_that_end_there() -> None:
    decay = -torch.tensor([[[5.0, 1.0, 2.0]]], dtype=torch.float64)
    query, key = Charge(decay, torch.tensor([0.5], dtype=torch.float64), None).columns(torch.float64)
    expected = torch.tensor([[0, 0, 0], [-0.5, 0, 0], [-1.5, -1, 0]], dtype=torch.float64)
    assert_close((query @ key.mT)[0, 0].tril(), expected, "b_ij")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_h1_the_last_token_does_not_leak(encoding: Encoding) -> None:
    model = Decoder(small_model(), encoding, seed=1)
    token_ids = draw_sample(65).token_ids
    changed = token_ids.clone()
    changed[:, -1] = (changed[:, -1] + 1) % VOCABULARY
    assert_same_bits(model(changed)[:, :-1], model(token_ids)[:, :-1], "logits before the last token")


SHAPES = {
    "three dimensions": ((4, 5, 4), (4, 5, 4), (4, 5, 4)),
    "another time": ((2, 4, 5, 4), (2, 4, 6, 4), (2, 4, 6, 4)),
    "another batch": ((2, 4, 5, 4), (1, 4, 5, 4), (1, 4, 5, 4)),
    "another head_dim": ((2, 4, 5, 4), (2, 4, 5, 2), (2, 4, 5, 2)),
    "heads that don't divide": ((2, 4, 5, 4), (2, 3, 5, 4), (2, 3, 5, 4)),
    "key unlike value": ((2, 4, 5, 4), (2, 4, 5, 4), (2, 2, 5, 4)),
}


@pytest.mark.parametrize("shapes", SHAPES.values(), ids=SHAPES)
def test_attend_refuses_shapes_that_do_not_fit(shapes: tuple[tuple[int, ...], ...]) -> None:
    query, key, value = (torch.zeros(shape) for shape in shapes)
    message = rf"query \(batch head time dim\).*multiple of kv_head; got query {re.escape(str(shapes[0]))}"
    with pytest.raises(InputError, match=message):
        attend(query, key, value, Route())


def test_attend_refuses_a_packing_of_another_shape() -> None:
    sample = draw_sample(5)
    for rows, time in ((2, 6), (1, 5)):
        packing = Packing.from_boundaries([[0, time]] * rows, time)
        with pytest.raises(InputError, match=rf"\(batch time\) \({rows}, {time}\), but query is \(2, 4, 5, 4\)"):
            attend(sample.query, sample.key, sample.value, Route(packing=packing))


def test_hidden_states_and_token_ids_must_agree() -> None:
    sample = draw_sample(5)
    with pytest.raises(InputError, match=r"hidden states are \(2, 5, 6\), but token ids are \(2, 4\)"):
        build(ENCODINGS[0])(sample.hidden, sample.token_ids[:, :4])


@pytest.mark.parametrize("edges", [[], [0], [0, 3], [1, 5], [0, 6], [0, 3, 2, 5], [-1, 5], [0, 7, 5]], ids=str)
def test_boundaries_that_are_none_are_refused(edges: list[int]) -> None:
    with pytest.raises(InputError, match=r"boundaries of row 1 must rise from 0 to 5, the number of tokens, not"):
        Packing.from_boundaries([[0, 5], edges], 5)


@pytest.mark.parametrize(("boundaries", "time"), [([], 5), ([[0, 0]], 0)], ids=["no rows", "no tokens"])
def test_a_packing_of_nothing_is_refused(boundaries: list[list[int]], time: int) -> None:
    with pytest.raises(InputError, match="at least one row of at least one token"):
        Packing.from_boundaries(boundaries, time)


@pytest.mark.parametrize("length", [-1, 8])
def test_left_padding_of_impossible_lengths_is_refused(length: int) -> None:
    with pytest.raises(InputError, match="boundaries of row 0 must rise from 0 to 7"):
        Packing.left_padded([length], 7)


def test_packing_counts_positions_within_documents() -> None:
    packing = Packing.from_boundaries([[0, 0, 3, 7], [0, 7, 7]], 7)
    assert packing.starts.tolist() == [[0, 0, 0, 3, 3, 3, 3], [0] * 7]
    assert packing.positions.tolist() == [[0, 1, 2, 0, 1, 2, 3], [0, 1, 2, 3, 4, 5, 6]]
    assert packing.groups == ((1, 3), (1, 4), (1, 7))
    assert packing.order.tolist() == [0, 1, 2, 3, 4, 5, 6, *range(7, 14)]


def test_documents_of_one_length_are_attended_to_together() -> None:
    """Order must survive: rows of equal documents are told apart."""
    sample = draw_sample(6)
    packing = Packing.from_boundaries([[0, 2, 4, 6], [0, 2, 6]], 6)
    assert packing.groups == ((4, 2), (1, 4))
    output = attend(sample.query, sample.key, sample.value, Route(packing=packing))
    for row, first, last in ((0, 0, 2), (0, 2, 4), (0, 4, 6), (1, 0, 2), (1, 2, 6)):
        own: Sample = sample.part(first, last, slice(row, row + 1))
        alone = attend(own.query, own.key, own.value, Route())
        assert_close(output[row : row + 1, :, first:last], alone, f"row {row}, {first} to {last}")
