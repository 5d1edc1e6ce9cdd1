"""Pruned attention: what is skipped has at most ε of a row's mass, for every summable control."""

import pytest
import torch
from specimens import CONTROLS, HEAD_DIM, assert_close, build, draw_sample, route_of
from torch import Tensor

from longroute.attention import Encoding, Pruning, Route, attend
from longroute.attention.blockwise import unneeded_keys
from longroute.attention.fused import fused_block, fused_block_gradient, matrix_block, matrix_block_gradient
from longroute.attention.pruning import KEYS, ROWS, first_keys
from longroute.control import ALiBi, Charge, Control, ForgetGate, LogCount, LogDistance, NoControl, WindowWithSinks
from longroute.errors import InputError
from longroute.transport import Householder, NoTransport, RoPE, Transport

pytestmark = pytest.mark.usefixtures("one_thread")

TIME = 3 * ROWS + 77
STEEP: list[Control] = [ALiBi(), ForgetGate(shortest=2.0, longest=9.0), WindowWithSinks(50), LogDistance(power=40.0)]
"""Every summable control, strong enough to skip something here."""


def masses(route: Route, query: Tensor, key: Tensor) -> Tensor:
    """All attention weights, (batch head row key), float64."""
    group, scale = query.shape[1] // key.shape[1], query.shape[-1] ** -0.5
    query, key = route.frame.pull(query).double(), route.frame.pull(key).double().repeat_interleave(group, 1)
    scores = query @ key.mT * scale
    place = torch.arange(TIME)
    if route.charge is not None:
        total = route.charge.accumulated().expand(-1, key.shape[1] // group, -1).repeat_interleave(group, 1)
        total = total * route.charge.slope[:, None]
        scores = scores + total[..., None] - total[..., None, :]
    if route.pairwise is not None:
        scores = scores + route.pairwise(torch.arange(route.pairwise.heads)[:, None, None], place[:, None], place)
    return scores.masked_fill(place > place[:, None], -torch.inf).softmax(-1)


def skipped(route: Route, query: Tensor, key: Tensor, pruning: Pruning) -> Tensor:
    """Which pairs are skipped, (head row key) bool."""
    query, key, scale = route.frame.pull(query), route.frame.pull(key), query.shape[-1] ** -0.5
    block, place = torch.arange(TIME) // ROWS, torch.arange(TIME)
    if route.charge is not None:
        first = first_keys(query, key, scale, route.charge, pruning.epsilon)
        return place < first[:, block, None]
    assert route.pairwise is not None
    certified = unneeded_keys(query, key, scale, route.pairwise, pruning)
    padded = torch.cat([certified, torch.zeros(len(certified), 1, dtype=torch.bool)], 1)
    return padded[block][:, place // KEYS].expand(query.shape[1], -1, -1)


@pytest.mark.parametrize("control", STEEP, ids=lambda control: control.name)
@pytest.mark.parametrize("transport", [NoTransport(), RoPE(), Householder()], ids=lambda one: one.name)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-2])
def test_no_row_loses_more_than_epsilon(transport: Transport, control: Control, epsilon: float) -> None:
    encoding = Encoding(transport, False, control)
    sample = draw_sample(TIME, batch=2)
    with torch.no_grad():
        position = build(encoding)
        route = route_of(position, sample)
        lost = masses(route, sample.query, sample.key) * skipped(route, sample.query, sample.key, Pruning(epsilon))
    assert lost.sum(-1).max() <= epsilon
    assert skipped(route, sample.query, sample.key, Pruning(epsilon)).any(), "nothing was skipped"


@pytest.mark.parametrize("control", STEEP, ids=lambda control: control.name)
@pytest.mark.parametrize("values", [False, True])
def test_pruned_attention_is_attention_to_within_epsilon(control: Control, values: bool) -> None:
    encoding = Encoding(Householder(), values, control)
    sample, position = draw_sample(TIME, dtype=torch.float64), build(encoding, dtype=torch.float64)
    for x in (sample.query, sample.key, sample.value, sample.hidden):
        x.requires_grad_()
    leaves = [sample.query, sample.key, sample.value, sample.hidden, *position.parameters()]
    pruning, results = Pruning(1e-12), []
    for one in (None, pruning):
        route = route_of(position, sample)
        output = attend(sample.query, sample.key, sample.value, route, pruning=one)
        results.append([output, *torch.autograd.grad(output.square().sum(), leaves, materialize_grads=True)])
    for i, (plain, pruned) in enumerate(zip(*results, strict=True)):
        assert_close(pruned, plain, f"{encoding}, tensor {i}")
    assert 0 < pruning.share < 1


@pytest.mark.parametrize("control", [NoControl(), LogCount()], ids=lambda control: control.name)
def test_without_a_summable_control_nothing_is_certified(control: Control) -> None:
    sample = draw_sample(TIME)
    pruning = Pruning(0.5)
    route = route_of(build(Encoding(RoPE(), False, control)), sample)
    attend(sample.query, sample.key, sample.value, route, pruning=pruning)
    assert pruning.skipped == 0


def test_every_summable_control_is_here() -> None:
    summable = {type(control) for control in CONTROLS if "summable" in control.laws}
    assert {type(control) for control in STEEP} == summable


def test_a_free_head_looks_at_everything() -> None:
    sample = draw_sample(TIME)
    route = route_of(build(Encoding(RoPE(), False, ALiBi(), free=1)), sample)
    assert route.charge is not None
    first = first_keys(sample.query, sample.key, HEAD_DIM**-0.5, route.charge, 0.5)
    assert first[:-1].any()
    assert not first[-1].any()


@pytest.mark.parametrize("causal", [True, False])
def test_the_fused_block_is_the_matrix_block(causal: bool) -> None:
    query, key, value, grad = torch.randn(4, 2, 3, 40, 8, generator=torch.Generator().manual_seed(0)).unbind(0)
    more = torch.randn(2, 3, 40, generator=torch.Generator().manual_seed(1))
    fused, plain = fused_block(query, key, value, causal=causal), matrix_block(query, key, value, causal=causal)
    for found, expected in zip(fused, plain, strict=True):
        assert_close(found, expected, "forward")
    total = torch.logaddexp(fused[1], more)  # as if there were other blocks
    given = (grad, query, fused[0], total, key, value)
    for found, expected in zip(
        fused_block_gradient(*given, causal=causal), matrix_block_gradient(*given, causal=causal), strict=True
    ):
        assert_close(found, expected, "gradient")


def test_charges_of_batches_with_few_heads_are_certified_together() -> None:
    """One decay for all heads and rows, as ALiBi has, and per-row queries: the least certified row counts."""
    sample = draw_sample(TIME)
    charge = Charge(torch.full((1, 1, TIME), -1.0, dtype=torch.float64), torch.full((4,), 0.2), None)
    both = first_keys(sample.query, sample.key, 0.5, charge, 1e-6)
    alone = [first_keys(sample.query[i : i + 1], sample.key[i : i + 1], 0.5, charge, 1e-6) for i in range(2)]
    assert torch.equal(both, torch.minimum(*alone))


@pytest.mark.parametrize("epsilon", [0.0, 1.0, -1e-6, float("nan")])
def test_epsilon_is_a_share(epsilon: float) -> None:
    with pytest.raises(InputError, match="epsilon"):
        Pruning(epsilon)


def test_a_certificate_in_half_precision_is_one() -> None:
    """Large norms, all along one direction: rounding of the self score alone would break the bound."""
    time = 2 * ROWS + 76
    direction = torch.tensor([0.5, -0.5, 0.5, 0.5])
    query = key = (100 * direction).expand(1, 1, time, 4).bfloat16() + torch.randn(1, 1, time, 4).bfloat16()
    charge = Charge(torch.full((1, 1, time), -1.0, dtype=torch.float64), torch.tensor([1.0]), None)
    first = first_keys(query, key, 0.5, charge, 1e-6)
    place = torch.arange(time)
    scores = query.double() @ key.double().mT * 0.5 - (place[:, None] - place).double()
    weights = scores.masked_fill(place > place[:, None], -torch.inf).softmax(-1)
    assert (weights * (place < first[:, place // ROWS, None])).sum(-1).max() <= 1e-6
