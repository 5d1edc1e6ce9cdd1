"""The fast path against the definition, outputs and all gradients; the definition against numbers worked by hand."""

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import pytest
import torch
from specimens import ENCODINGS, TOLERANCES, WIDTH, Sample, assert_close, build, draw_sample, named
from torch import Tensor

from longroute.attention import Encoding, PositionEncoding, attend, parse_encoding, walk_attention
from longroute.control import ForgetGate
from longroute.data.packing import Packing
from longroute.transport import LayerShape, LearnedRotation
from longroute.transport.compact_wy import CHUNK

pytestmark = pytest.mark.usefixtures("one_thread")


@dataclass(frozen=True)
class Case:
    """A shape to compare at, of one row, or of as many as there are `boundaries` (as in Packing.from_boundaries)."""

    time: int
    kv_heads: int
    boundaries: tuple[tuple[int, ...], ...] | None = None

    @property
    def packing(self) -> Packing | None:
        return None if self.boundaries is None else Packing.from_boundaries(self.boundaries, self.time)

    @property
    def batch(self) -> int:
        return 1 if self.boundaries is None else len(self.boundaries)

    def __str__(self) -> str:
        return f"{self.time}x{self.kv_heads}{'' if self.boundaries is None else '-packed'}"


CASES = [
    Case(1, 2),
    Case(7, 4),
    Case(13, 2),
    Case(1, 4, ((0, 1), (0, 0, 1))),
    Case(7, 2, ((0, 0, 4, 7), (0, 3, 3, 7))),
    Case(13, 4, ((0, 0, 6, 13),)),
]


def assembled(encoding: Encoding, case: Case, dtype: torch.dtype) -> tuple[PositionEncoding, Sample, Tensor]:
    position = build(encoding, kv_heads=case.kv_heads, dtype=dtype)
    sample = draw_sample(case.time, batch=case.batch, kv_heads=case.kv_heads, dtype=dtype)
    cotangent = torch.randn(sample.query.shape, generator=torch.Generator().manual_seed(9)).to(dtype)
    for x in (sample.query, sample.key, sample.value, sample.hidden):
        x.requires_grad_()
    return position, sample, cotangent


def with_gradients(output: Tensor, position: PositionEncoding, sample: Sample, cotangent: Tensor) -> dict[str, Tensor]:
    inputs = {name: getattr(sample, name) for name in ("query", "key", "value", "hidden")}
    inputs |= dict(position.named_parameters())
    gradients = torch.autograd.grad(output, list(inputs.values()), cotangent, materialize_grads=True)
    return {"output": output} | {f"gradient of {name}": grad for name, grad in zip(inputs, gradients, strict=True)}


@cache
def walked(encoding: Encoding, case: Case) -> dict[str, Tensor]:
    """Output and gradients of the definition."""
    position, sample, cotangent = assembled(encoding, case, torch.float64)
    output = walk_attention(
        sample.query,
        sample.key,
        sample.value,
        position,
        hidden=sample.hidden,
        token_ids=sample.token_ids,
        packing=case.packing,
    )
    return with_gradients(output, position, sample, cotangent)


@pytest.mark.parametrize("encoding", named(ENCODINGS))
@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
def test_attend_equals_every_route_walked(encoding: Encoding, case: Case, dtype: torch.dtype) -> None:
    position, sample, cotangent = assembled(encoding, case, dtype)
    route = position(sample.hidden, sample.token_ids, case.packing)
    found = with_gradients(attend(sample.query, sample.key, sample.value, route), position, sample, cotangent)
    expected = walked(encoding, case)
    assert found.keys() == expected.keys()
    for what, tensor in found.items():
        assert tensor.dtype == dtype
        assert_close(tensor, expected[what], what)


@pytest.mark.parametrize(
    "name",
    ["householder-qkv", "householder-qk:reflections=2", "path-qk+forget", "block-qkv", "learned-qk+log-distance"],
)
def test_attend_equals_every_route_walked_across_chunks(name: str) -> None:
    """More tokens than a chunk of reflections, or a block of PaTH, holds; one head, or the walk takes minutes."""
    encoding, time = parse_encoding(name), 2 * CHUNK + 3
    position = build(encoding, heads=1, kv_heads=1, dtype=torch.float64)
    sample = draw_sample(time, batch=1, heads=1, kv_heads=1, dtype=torch.float64)
    for x in (sample.query, sample.key, sample.value, sample.hidden):
        x.requires_grad_()
    cotangent = torch.randn(sample.query.shape, generator=torch.Generator().manual_seed(9)).double()
    tensors = (sample.query, sample.key, sample.value)
    walk = walk_attention(*tensors, position, hidden=sample.hidden, token_ids=sample.token_ids)
    expected = with_gradients(walk, position, sample, cotangent)
    route = position(sample.hidden, sample.token_ids)
    for what, tensor in with_gradients(attend(*tensors, route), position, sample, cotangent).items():
        assert_close(tensor, expected[what], what)


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_all_parameters_have_a_say(encoding: Encoding) -> None:
    """What is compared above isn't zero against zero: every parameter of every encoding moves the output."""
    for what, tensor in walked(encoding, CASES[2]).items():
        if what != "gradient of hidden" or any(p.shape[-1] == WIDTH for p in build(encoding).parameters()):
            assert tensor.abs().max() > 1e-4, what


# One head of two dimensions, three tokens. Angles and log-decays are read off the hidden state; those of the first
# token are inside no route, so they must not matter.
ANGLES = np.array([0.7, math.pi / 2, math.pi])
KEPT = np.array([0.1, 1 / 2, 1 / 4])
QUERIES = np.array([[1.0, 2.0], [3.0, -1.0], [1.0, 0.0]])
KEYS = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
VALUES = np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 0.0]])
# P(0→1) = R(π/2) takes k_0 to (0, 1), so both scores of row 1 are -1/√2, the farther with a decay of ln ½: its weights
# are 1/3 and 2/3.
# P(0→2) = R(3π/2) takes k_0 to (0, -1) and P(1→2) = R(π) takes k_1 to (0, -1), so all scores of row 2 are 0 but for the
# decays ln ½ + ln ¼ and ln ¼: weights 1/11, 2/11, 8/11.
WEIGHTS = np.array([[1, 0, 0], [1 / 3, 2 / 3, 0], [1 / 11, 2 / 11, 8 / 11]])
BY_HAND = {
    False: WEIGHTS @ VALUES,
    True: np.array([[1, 0], [0, 1 / 3 + 4 / 3], [24 / 11, -1 / 11 - 4 / 11]]),
}


def by_hand(values: bool) -> tuple[PositionEncoding, Sample]:
    encoding = Encoding(LearnedRotation(rate=1.0), values, ForgetGate())
    position = encoding.build(LayerShape(width=2, heads=1, kv_heads=1, head_dim=2, vocabulary=1)).double()
    parameters = dict(position.named_parameters())
    rows = {
        "steps.weight": [[1.0, 0.0]],
        "steps.bias": [0.0],
        "control.weight": [[0.0, 1.0]],
        "control.bias": [0.0],
    }
    assert parameters.keys() == rows.keys()
    with torch.no_grad():
        for name, parameter in parameters.items():
            parameter.copy_(torch.tensor(rows[name]))
    hidden = torch.from_numpy(np.stack([ANGLES, np.log(KEPT / (1 - KEPT))], -1))[None]
    query, key, value = (torch.from_numpy(x)[None, None] for x in (QUERIES, KEYS, VALUES))
    return position, Sample(query, key, value, hidden, torch.zeros(1, 3, dtype=torch.int64))


@pytest.mark.parametrize("values", [False, True], ids=["qk", "qkv"])
def test_three_tokens_by_hand(values: bool) -> None:
    """The step is inside routes that end at its token, outside those that begin there: P(j→i) = M_i … M_{j+1}."""
    position, sample = by_hand(values)
    tensors = (sample.query, sample.key, sample.value)
    expected = torch.from_numpy(BY_HAND[values])[None, None]
    walk = walk_attention(*tensors, position, hidden=sample.hidden, token_ids=sample.token_ids)
    assert_close(walk, expected, "the definition")
    assert_close(attend(*tensors, position(sample.hidden, sample.token_ids)), expected, "attend")
