"""Compiled = eager (case F1), forward and backward, at lengths 1, 7 and 129, as one graph.

`aot_eager` traces forward and backward as the full compiler does, in seconds instead of half a minute; one encoding
that uses learned steps, values and a gate also goes through code generation.
"""

from collections.abc import Callable, Iterator

import pytest
import torch
from specimens import ENCODINGS, Sample, assert_close, build, draw_sample
from torch import Tensor

from longroute.attention import PositionEncoding, attend, encoding_name, parse_encoding

NAMES = [
    "none",
    "rope-qk",
    "random-qkv:by=position+alibi",
    "learned-qkv+forget",
    "householder-qkv:reflections=2",
    "random-householder-qk+log-count",
    "path-qk+log-distance",
    "random-path-qk+window",
    "block-qkv",
    "random-block-qk+forget:free=1",
]
GROWS_WHILE_TRACED = ["random-qkv:by=position+alibi"]
"""The table of angles grows as far as asked for, and NumPy's Philox can't be traced (torch 2.13): these are called once
at the longest length before they are compiled."""

pytestmark = [
    # Both are raised inside torch 2.13 while it compiles: autograd.Function is instantiated, torch.jit is imported.
    pytest.mark.filterwarnings("ignore:.*Function'> should not be instantiated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated:DeprecationWarning"),
]


@pytest.fixture(autouse=True)
def nothing_compiled_before() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


def results(layer: Callable[[Sample], Tensor], position: PositionEncoding, time: int) -> list[Tensor]:
    """Output and all gradients."""
    sample = draw_sample(time, dtype=torch.float64)  # in float32 a gate's bias gradient differs by its own rounding
    leaves = [sample.query, sample.key, sample.value, sample.hidden, *position.parameters()]
    for x in leaves:
        x.requires_grad_()
    output = layer(sample)
    cotangent = torch.randn(output.shape, generator=torch.Generator().manual_seed(2))
    return [output, *torch.autograd.grad(output, leaves, cotangent, materialize_grads=True)]


def assert_compiles(name: str, backend: str, lengths: list[int]) -> None:
    position = build(parse_encoding(name), dtype=torch.float64)
    if name in GROWS_WHILE_TRACED:
        results(layer_of(position), position, max(lengths))
    compiled = torch.compile(layer_of(position), fullgraph=True, dynamic=False, backend=backend)
    for time in lengths:
        eager = results(layer_of(position), position, time)
        for i, (found, expected) in enumerate(zip(results(compiled, position, time), eager, strict=True)):
            assert_close(found, expected, f"{name}, {time} tokens, tensor {i}")


def layer_of(position: PositionEncoding) -> Callable[[Sample], Tensor]:
    def layer(sample: Sample) -> Tensor:
        route = position(sample.hidden, sample.token_ids)
        return attend(sample.query, sample.key, sample.value, route)

    return layer


@pytest.mark.parametrize("name", NAMES)
def test_traced_as_one_graph_the_numbers_are_the_same(name: str) -> None:
    assert_compiles(name, "aot_eager", [7, 129, 1])


def test_generated_code_gives_the_same_numbers() -> None:
    assert_compiles("learned-qkv+forget", "inductor", [129])


def test_every_kind_is_traced() -> None:
    traced = [parse_encoding(name) for name in NAMES]
    for part in ("transport", "control"):
        kinds = {type(getattr(encoding, part)) for encoding in ENCODINGS}
        assert {type(getattr(encoding, part)) for encoding in traced} == kinds
    assert [encoding_name(encoding) for encoding in traced] == NAMES
