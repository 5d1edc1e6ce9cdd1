"""What the tests of the mathematical core share: every encoding there is, inputs for it, the one table of tolerances.

The unions `Transport` and `Control` are the registry: a spec that joins one of them is tested without a change here.
"""

import dataclasses
import typing
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle

import pytest
import torch
from torch import Tensor

from longroute.attention import Encoding, PositionEncoding, Route, encoding_name
from longroute.control import Control, LogCount, WindowWithSinks
from longroute.data.packing import Packing
from longroute.model import ModelSpec
from longroute.transport import (
    Householder,
    LayerShape,
    LearnedRotation,
    NoTransport,
    PaTH,
    RoPE,
    RotationFrame,
    Transport,
)

TOLERANCES = {torch.float64: 1e-9, torch.float32: 1e-5}
"""Largest error allowed by the dtype computed in, as a share of the largest expected number (at least 1).

float64 is bounded by the unit of accumulated log-decays, 2^-36 nats; float32 by its own rounding, some dozens of it.
"""

LAWS = {
    "causal": ("transport", "control"),
    "packed": ("transport", "control"),
    "shift": ("transport", "control"),
    "orthogonal": ("transport",),
    "exact": ("transport",),
    "summable": ("control",),
    "bounded": ("control",),
}
"""Every law that a spec may declare, and which parts of an encoding must declare it for the encoding to be under it."""

VOCABULARY = 11
WIDTH = 6
HEAD_DIM = 4


def variants(kind: type) -> list:
    """The spec's defaults, and one for every other choice that a Literal field offers."""
    hints = typing.get_type_hints(kind)
    default = kind()
    return [
        dataclasses.replace(default, **{field.name: choice})
        for field in dataclasses.fields(kind)
        if typing.get_origin(hints[field.name]) is typing.Literal
        for choice in typing.get_args(hints[field.name])
        if choice != field.default
    ] + [default]


PARTNERS: list[Transport] = [NoTransport(), RoPE(), Householder(), PaTH()]


def both(transport: Transport | type[Transport]) -> tuple[bool, ...]:
    """What `values` may be for a transport."""
    return (False, True) if "qkv" in transport.moves else (False,)


TRANSPORTS: list[Transport] = [
    *(spec for kind in typing.get_args(Transport) for spec in variants(kind)),
    RoPE(share=0.5),
    LearnedRotation(share=0.5),
]
NARROW = {LogCount: LogCount(near=3), WindowWithSinks: WindowWithSinks(window=3, sinks=1)}
"""Controls whose defaults would do nothing to sequences of a few dozen tokens."""
CONTROLS: list[Control] = [NARROW.get(kind, spec) for kind in typing.get_args(Control) for spec in variants(kind)]
ENCODINGS = list(
    dict.fromkeys(
        [
            *(Encoding(transport, values) for transport in TRANSPORTS for values in both(transport)),
            *(
                Encoding(kind(), values, control)
                for kind in typing.get_args(Transport)
                for values in both(kind)
                for control in CONTROLS
            ),
            *(
                Encoding(transport, False, control, free=1)
                for transport, control in zip(cycle(PARTNERS), CONTROLS[1:], strict=False)
            ),
        ]
    )
)
"""Every transport alone and with a forget gate, every control alone and with partners, some heads free."""


def is_under(encoding: Encoding, law: str) -> bool:
    """Whether the encoding's parts declare `law`."""
    return all(law in getattr(encoding, part).laws for part in LAWS[law])


def under(law: str) -> list:
    """The encodings that `law` holds for, as parameters of a test."""
    return [param for param in named(ENCODINGS) if is_under(param.values[0], law)]


def named(encodings: Sequence[Encoding]) -> list:
    """Encodings as parameters of a test, each under its own name."""
    return [pytest.param(encoding, id=encoding_name(encoding)) for encoding in encodings]


@dataclass(frozen=True, eq=False)
class Sample:
    """One layer's inputs: query (batch head time dim), key, value (batch kv_head time dim), hidden, token ids."""

    query: Tensor
    key: Tensor
    value: Tensor
    hidden: Tensor
    token_ids: Tensor

    def to(self, dtype: torch.dtype) -> "Sample":
        query, key, value = self.query.to(dtype), self.key.to(dtype), self.value.to(dtype)
        return Sample(query, key, value, self.hidden.to(dtype), self.token_ids)

    def part(self, first: int, last: int, rows: slice = slice(None)) -> "Sample":
        """Tokens first … last - 1 of some rows."""
        query, key, value = (x[rows, :, first:last] for x in (self.query, self.key, self.value))
        return Sample(query, key, value, self.hidden[rows, first:last], self.token_ids[rows, first:last])


def draw_sample(
    time: int,
    *,
    seed: int = 0,
    batch: int = 2,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = HEAD_DIM,
    dtype: torch.dtype = torch.float32,
) -> Sample:
    """Standard normal numbers that are exact in float32, and token ids."""
    generator = torch.Generator().manual_seed(seed)
    shapes = [(batch, count, time, head_dim) for count in (heads, kv_heads, kv_heads)] + [(batch, time, WIDTH)]
    query, key, value, hidden = (torch.randn(shape, generator=generator).to(dtype) for shape in shapes)
    return Sample(query, key, value, hidden, torch.randint(VOCABULARY, (batch, time), generator=generator))


def build(
    encoding: Encoding,
    *,
    heads: int = 4,
    kv_heads: int = 2,
    head_dim: int = HEAD_DIM,
    dtype: torch.dtype = torch.float32,
) -> PositionEncoding:
    """The encoding's module with every parameter moved from its start, so that none is zero; the same each time."""
    with torch.random.fork_rng(devices=[]), torch.no_grad():
        torch.manual_seed(5)
        position = encoding.build(LayerShape(WIDTH, heads, kv_heads, head_dim, VOCABULARY, layer=1, seed=3))
        for parameter in position.parameters():
            parameter.add_(torch.randn(parameter.shape), alpha=0.3)
    return position.to(dtype)


def route_of(position: PositionEncoding, sample: Sample, packing: Packing | None = None) -> Route:
    return position(sample.hidden, sample.token_ids, packing)


def small_model(kv_heads: int = 1) -> ModelSpec:
    return ModelSpec(layers=2, width=12, heads=2, kv_heads=kv_heads, head_dim=4, hidden=20, vocabulary=VOCABULARY)


def phase_of(route: Route) -> Tensor:
    """The phases of a rotation's frame; raises for another frame."""
    if not isinstance(route.frame, RotationFrame):
        raise TypeError(f"expected a RotationFrame, not {type(route.frame).__name__}")
    return route.frame.phase


def assert_close(actual: Tensor, expected: Tensor, what: str, dtype: torch.dtype | None = None) -> None:
    """Raises unless the largest error is within the tolerance of `dtype`, or else of actual's own dtype."""
    assert actual.shape == expected.shape, f"{what}: shape {tuple(actual.shape)}, not {tuple(expected.shape)}"
    if not actual.numel():
        return
    allowed = TOLERANCES[dtype or actual.dtype] * max(1.0, expected.abs().max().item())
    error = (actual.double() - expected.double()).abs().max().item()
    assert error <= allowed, f"{what}: off by {error:.2e}, {allowed:.2e} allowed"


def assert_same_bits(actual: Tensor, expected: Tensor, what: str) -> None:
    """Raises unless dtype, shape and every bit agree."""
    assert actual.dtype == expected.dtype, f"{what}: {actual.dtype}, not {expected.dtype}"
    assert torch.equal(actual, expected), f"{what}: bits differ"
