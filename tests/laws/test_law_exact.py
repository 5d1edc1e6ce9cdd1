"""Exactness (case A4): sums have the same bits however they are cut in chunks and whatever the number of threads."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from specimens import (
    ENCODINGS,
    Sample,
    assert_same_bits,
    build,
    draw_sample,
    named,
    phase_of,
    route_of,
    under,
)
from torch import Tensor

from longroute.attention import Encoding, PositionEncoding, attend
from longroute.attention.encoding import step_inputs
from longroute.control import ALiBi, ForgetGate
from longroute.control.charge import fixed_point
from longroute.transport.phase import to_radians, to_turns
from longroute.transport.running_sum import running_sum

TIME = 257


def turns_of(position: PositionEncoding, sample: Sample) -> Tensor:
    steps = position.steps(step_inputs(sample.hidden, sample.token_ids, None))
    return steps if steps.dtype == torch.int64 else to_turns(steps)


def in_chunks(x: Tensor, cuts: list[int]) -> Tensor:
    """The running sum of chunks, each begun with the last sum of the one before."""
    carry, sums = None, []
    for chunk in x.tensor_split(cuts, 2):
        if chunk.shape[2]:
            sums.append(running_sum(chunk, None, carry))
            carry = sums[-1][:, :, -1:]
    return torch.cat(sums, 2)


CUTS = st.lists(st.integers(0, TIME), max_size=6).map(sorted)


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("encoding", [p for p in under("exact") if p.values[0].transport.moves])
@given(cuts=CUTS)
def test_phases_in_chunks_have_the_bits_of_the_whole(encoding: Encoding, cuts: list[int]) -> None:
    sample = draw_sample(TIME)
    position = build(encoding)
    phase = to_radians(in_chunks(turns_of(position, sample), cuts), torch.float32)
    assert_same_bits(phase, phase_of(route_of(position, sample)), f"phases cut at {cuts}")


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize(
    "encoding", [p for p in named(ENCODINGS) if isinstance(p.values[0].control, ALiBi | ForgetGate)]
)
@given(cuts=CUTS)
def test_charges_in_chunks_have_the_bits_of_the_whole(encoding: Encoding, cuts: list[int]) -> None:
    charge = route_of(build(encoding), draw_sample(TIME)).charge
    assert charge is not None
    units = fixed_point(charge.log_decay)
    assert units.dtype == torch.int64
    assert_same_bits(in_chunks(units, cuts), running_sum(units), f"charges cut at {cuts}")


def on_threads(count: int, encoding: Encoding) -> list[Tensor]:
    """Output of one layer long enough to be shared out among threads, its gradients, and those of steps and decays.

    What follows from the latter for weights is one matrix product over all tokens: torch's own, which on some
    processors adds up in another order with another number of threads (seen: torch 2.13, AVX-512 without bfloat16).
    """
    torch.set_num_threads(count)
    sample, caught = draw_sample(1031, head_dim=16), []
    position = build(encoding, head_dim=16)
    position.steps.register_forward_hook(lambda module, arguments, steps: caught.append(steps))
    for x in (sample.query, sample.key, sample.value, sample.hidden):
        x.requires_grad_()
    route = route_of(position, sample)
    assert route.charge is not None
    output = attend(sample.query, sample.key, sample.value, route)
    given = [*caught, route.charge.log_decay, sample.query, sample.key, sample.value, sample.hidden]
    leaves = [x for x in given if x.requires_grad]
    return [output, *torch.autograd.grad(output.sum(), leaves, materialize_grads=True)]


@pytest.mark.usefixtures("threads_restored")
@pytest.mark.parametrize(
    "encoding", [p for p in under("exact") if p.values[0].values and p.values[0].control == ForgetGate()]
)
def test_one_thread_and_two_give_the_same_bits(encoding: Encoding) -> None:
    """Of a layer's attention. (A decoder's feed-forward may differ in its last bits: torch's SiLU does, 2.13.)"""
    once, again, shared = on_threads(1, encoding), on_threads(2, encoding), on_threads(2, encoding)
    for i, (a, b, c) in enumerate(zip(once, again, shared, strict=True)):
        assert_same_bits(b, a, f"tensor {i}, on two threads")
        assert_same_bits(c, b, f"tensor {i}, on two threads again")
