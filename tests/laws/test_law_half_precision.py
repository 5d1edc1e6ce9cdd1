"""Charges keep their precision where a dtype or autocast would take it, and NaN is never lost in an integer."""

import pytest
import torch
from torch import Tensor

from longroute.attention import PositionEncoding, attend, parse_encoding
from longroute.attention.encoding import step_inputs
from longroute.transport import LayerShape

SHAPE = LayerShape(width=32, heads=4, kv_heads=2, head_dim=16, vocabulary=50)


def layer(name: str) -> PositionEncoding:
    torch.manual_seed(0)
    position = parse_encoding(name).build(SHAPE)
    if name.endswith("forget"):
        torch.nn.init.normal_(position.control.weight, std=0.05)  # type: ignore[arg-type]  # a parameter of the gate
    return position


def tensors(time: int) -> tuple[Tensor, ...]:
    torch.manual_seed(1)
    heads = (SHAPE.heads, SHAPE.kv_heads, SHAPE.kv_heads)
    queries = (torch.randn(1, count, time, SHAPE.head_dim) for count in heads)
    return (torch.randn(1, time, SHAPE.width), torch.randint(50, (1, time)), *queries)


@pytest.mark.parametrize("name", ["alibi", "forget", "rope-qk+forget"])
@pytest.mark.parametrize("learning", [True, False])
def test_autocast_keeps_the_charge(name: str, learning: bool):
    hidden, ids, query, key, value = tensors(2048)
    position = layer(name)
    exact = attend(query, key, value, position(hidden, ids))
    with torch.set_grad_enabled(learning), torch.autocast("cpu", torch.bfloat16):
        output = attend(query, key, value, position(hidden, ids))
    assert output.dtype == torch.bfloat16
    assert (output - exact).abs().max() < 0.03  # bfloat16 inputs alone: 0.012; columns rounded by autocast: 2.9


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_a_gate_learns_from_half_precision_attention(dtype: torch.dtype):
    hidden, ids, query, key, value = tensors(2048)
    position = layer("forget")
    grads = []
    for of in (dtype, torch.float64):
        inputs = (x.to(dtype).to(of) for x in (query, key, value))
        output = attend(*inputs, position.to(torch.float32)(hidden, ids))  # type: ignore[misc]  # three tensors
        grads.append(torch.autograd.grad(output.double().square().sum(), tuple(position.parameters())))
    for half, exact in zip(*grads, strict=True):
        assert (half - exact).norm() < 0.02 * exact.norm()  # summed from half-precision columns: 0.34


def test_a_broken_weight_reaches_attention():
    """As NaN in what attention is given: torch 2.13's fused CPU kernel itself turns a row of NaN scores into zeros."""
    hidden, ids, query, *_ = tensors(5)
    for name, part in (("learned-qk", "steps"), ("rope-qk+forget", "control")):
        position = layer(name)
        with torch.no_grad():
            getattr(position, part).bias[0] = torch.nan
        route = position(hidden, ids)
        given = route.frame.pull(query) if route.charge is None else route.charge.columns(torch.float32)[1]
        assert given[:, 0].isnan().any(-1).all()
        assert not given[:, -1].isnan().any()


@pytest.mark.parametrize("name", ["rope-qkv", "learned-qkv", "householder-qkv", "block-qkv", "random-householder-qkv"])
@pytest.mark.parametrize("learning", [True, False])
def test_autocast_keeps_the_frame(name: str, learning: bool):
    hidden, ids, query, *_ = tensors(300)
    position = layer(name)
    expected = position(hidden, ids).frame.pull(query)
    with torch.set_grad_enabled(learning), torch.autocast("cpu", torch.bfloat16):
        inside = position(hidden, ids).frame
        found = inside.pull(query)
    assert found.dtype == torch.float32
    assert (found - expected).abs().max() < 1e-4


@pytest.mark.parametrize(
    "name",
    ["householder-qkv", "random-householder-qk", "block-qk", "path-qk+forget", "log-distance"],
)
def test_autocast_trains(name: str):
    """Gradients of attention under autocast are those without it, to bfloat16's rounding."""
    hidden, ids, query, key, value = tensors(150)
    position = layer(name)
    leaves = [hidden.requires_grad_(), query.requires_grad_(), *position.parameters()]
    grads = []
    for enabled in (False, True):
        with torch.autocast("cpu", torch.bfloat16, enabled=enabled):
            output = attend(query, key, value, position(hidden, ids))
        assert output.dtype == (torch.bfloat16 if enabled else torch.float32)
        grads.append(torch.autograd.grad(output.float().square().sum(), leaves, materialize_grads=True))
    for exact, half in zip(*grads, strict=True):
        assert (half - exact).norm() <= 0.05 * exact.norm()


def test_reflections_keep_their_precision_when_a_gradient_is_asked_for_inside_autocast():
    hidden, ids, query, *_ = tensors(150)
    position = layer("householder-qkv")
    grads = []
    for inside in (False, True):
        pulled = position(hidden, ids).frame.pull(query)
        with torch.autocast("cpu", torch.bfloat16, enabled=inside):
            grads.append(torch.autograd.grad(pulled, list(position.parameters()), query))
    for outside, inside in zip(*grads, strict=True):
        assert (inside - outside).norm() <= 0.02 * outside.norm()  # the projection's own gradient is in bfloat16


@pytest.mark.parametrize("name", ["random-householder", "random-block", "random-path", "random"])
def test_frozen_steps_survive_a_cast(name: str):
    hidden, ids, *_ = tensors(60)
    inputs = step_inputs(hidden, ids, None)
    kept = layer(f"{name}:by=position").steps(inputs)
    position = layer(f"{name}:by=position")
    position.steps(step_inputs(hidden[:, :10], ids[:, :10], None))
    assert torch.equal(position.to(torch.bfloat16).steps(inputs), kept)


def test_a_route_first_used_without_gradients_has_them_later():
    hidden, ids, query, key, value = tensors(70)
    hidden.requires_grad_()
    route = layer("path-qk")(hidden, ids)
    with torch.no_grad():
        attend(query, key, value, route)
    (grad,) = torch.autograd.grad(attend(query, key, value, route).square().sum(), hidden)
    assert grad.norm() > 0.1
