"""Gradients against finite differences in float64: through fixed-point phases and charges, as if real."""

import pytest
import torch
from specimens import build, draw_sample
from torch import Tensor
from torch.func import functional_call

from longroute.attention import attend, parse_encoding
from longroute.data.packing import Packing

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("packed", [False, True], ids=["whole", "packed"])
@pytest.mark.parametrize(
    "name", ["learned-qk", "learned-qkv", "learned-qkv:start=rope", "forget", "learned-qkv+forget"]
)
def test_gradcheck(name: str, packed: bool) -> None:
    position = build(parse_encoding(name), heads=2, kv_heads=1, dtype=torch.float64)
    sample = draw_sample(5, batch=1, heads=2, kv_heads=1, dtype=torch.float64)
    packing = Packing.from_boundaries([[0, 2, 2, 5]], 5) if packed else None
    names = [name for name, _ in position.named_parameters()]

    def layer(query: Tensor, key: Tensor, value: Tensor, hidden: Tensor, *parameters: Tensor) -> Tensor:
        named = dict(zip(names, parameters, strict=True))
        route = functional_call(position, named, (hidden, sample.token_ids, packing))
        return attend(query, key, value, route)

    inputs = (sample.query, sample.key, sample.value, sample.hidden, *position.parameters())
    # A difference of 1e-4 stands well above the unit of log-decays, 2^-36 nats.
    assert torch.autograd.gradcheck(layer, tuple(x.detach().requires_grad_() for x in inputs), eps=1e-4)
