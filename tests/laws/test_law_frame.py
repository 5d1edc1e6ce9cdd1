"""Laws of the frame: it keeps norms, it has an inverse, and routes don't depend on where counting begins."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from specimens import (
    CONTROLS,
    ENCODINGS,
    TOLERANCES,
    Sample,
    assert_close,
    build,
    draw_sample,
    named,
    route_of,
    under,
)
from torch import Tensor

from longroute.attention import Encoding, Route, attend
from longroute.attention.blockwise import Block
from longroute.control import Control, LogDistance, PairwiseBias, WindowWithSinks
from longroute.transport import RandomBlockRotation, RandomHouseholder, RandomPaTH, RandomRotation

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.mark.parametrize("encoding", under("orthogonal"))
@pytest.mark.parametrize("dtype", TOLERANCES, ids=str)
@given(time=st.integers(1, 40), seed=st.integers(0, 9))
def test_pull_keeps_norms_and_push_undoes_it(encoding: Encoding, dtype: torch.dtype, time: int, seed: int) -> None:
    sample = draw_sample(time, seed=seed, dtype=dtype)
    frame = route_of(build(encoding, dtype=dtype), sample).frame
    for x in (sample.query, sample.key):
        assert_close(frame.pull(x).norm(dim=-1), x.norm(dim=-1), "norms after pull")
        assert_close(frame.push(x).norm(dim=-1), x.norm(dim=-1), "norms after push")
        assert_close(frame.push(frame.pull(x)), x, "push of pull")
        assert_close(frame.pull(frame.push(x)), x, "pull of push")


def scores(route: Route, sample: Sample) -> Tensor:
    """s_ij of all pairs, (batch head time time), biases included, not masked."""
    group, time = sample.query.shape[1] // sample.key.shape[1], sample.query.shape[2]
    if route.frame.pairs is None:
        query, key = route.frame.pull(sample.query), route.frame.pull(sample.key).repeat_interleave(group, 1)
        content = query @ key.mT
    else:
        content = route.frame.pairs.against(sample.key)(sample.query, 0, time).tril()
    content = content / sample.query.shape[-1] ** 0.5
    if route.pairwise is not None:
        place = torch.arange(time)
        content = content + route.pairwise(torch.arange(route.pairwise.heads)[:, None, None], place[:, None], place)
    if route.charge is None:
        return content
    before_query, before_key = route.charge.columns(sample.query.dtype)
    before_key = before_key.expand(-1, sample.key.shape[1], -1, -1).repeat_interleave(group, 1)
    return content + before_query @ before_key.mT


def carried(route: Route, sample: Sample) -> Tensor:
    """P(j→i) v_j of all pairs, (batch kv_head j i dim)."""
    pulled = route.frame.pull(sample.value)
    return torch.stack(
        [
            route.frame.push(pulled[:, :, j : j + 1].expand_as(sample.value).contiguous())
            for j in range(pulled.shape[2])
        ],
        2,
    )


def shift_error(encoding: Encoding, time: int, dropped: int, seed: int) -> tuple[Tensor, Tensor]:
    """Scores and carried values without the first tokens, minus the same ones with them; 0 where a window cuts both."""
    sample = draw_sample(time, seed=seed, dtype=torch.float64)
    rest = sample.part(dropped, time)
    position = build(encoding, dtype=torch.float64)
    whole, alone = route_of(position, sample), route_of(position, rest)
    without, with_them = scores(alone, rest), scores(whole, sample)[:, :, dropped:, dropped:]
    return (
        torch.where(without == with_them, 0.0, without - with_them),
        carried(alone, rest) - carried(whole, sample)[:, :, dropped:, dropped:],
    )


@pytest.mark.parametrize("encoding", under("shift"))
@given(time=st.integers(2, 24), share=st.floats(0, 1), seed=st.integers(0, 9))
def test_routes_do_not_depend_on_what_came_before_them(encoding: Encoding, time: int, share: float, seed: int) -> None:
    for error in shift_error(encoding, time, round(share * (time - 1)), seed):
        assert_close(error, torch.zeros_like(error), "shift")


@pytest.mark.parametrize("encoding", named([e for e in ENCODINGS if "shift" not in e.transport.laws]))
def test_a_transport_that_does_not_declare_shift_is_random(encoding: Encoding) -> None:
    """Steps that belong to positions break the law; those of token types keep it, though it's undeclared.

    A control that does not declare it breaks it under any transport.
    """
    assert isinstance(encoding.transport, RandomRotation | RandomHouseholder | RandomPaTH | RandomBlockRotation)
    of_scores, of_values = (error.abs().max().item() for error in shift_error(encoding, 24, 5, 0))
    by_position, by_control = encoding.transport.by == "position", "shift" not in encoding.control.laws
    exact = TOLERANCES[torch.float64]
    assert of_scores > 0.1 if by_position or by_control else of_scores < exact
    assert of_values > 0.1 if by_position and "qkv" in encoding.transport.moves else of_values < exact


def pairwise_of(control: Control) -> PairwiseBias | None:
    return route_of(build(Encoding(control=control)), draw_sample(1)).pairwise


WITHOUT_SINKS = WindowWithSinks(window=3, sinks=0)


@pytest.mark.parametrize("control", [one for one in (*CONTROLS, WITHOUT_SINKS) if pairwise_of(one)], ids=repr)
def test_a_pairwise_bias_knows_whether_distance_alone_decides(control: Control) -> None:
    """Sinks are the document's first tokens, and a log-count grows with what lies before."""
    pairwise = pairwise_of(control)
    assert pairwise is not None
    head, row, key = torch.arange(pairwise.heads), torch.tensor(9), torch.tensor(0)
    same = torch.equal(pairwise(head, row, key), pairwise(head, row + 5, key + 5))
    assert pairwise.shift == same == ("shift" in control.laws or control == WITHOUT_SINKS)


@pytest.mark.parametrize("learns", [True, False])
def test_a_bias_of_the_distance_slides_over_the_keys(learns: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """One number a distance or a table of all pairs: the same outputs, and gradients, over several blocks of rows."""
    position = build(Encoding(control=LogDistance()))
    sample = draw_sample(1100)
    query, key, value = (x.requires_grad_() for x in (sample.query, sample.key, sample.value))
    inputs = [query, key, value, *position.parameters()]

    def found() -> list[Tensor]:
        with torch.set_grad_enabled(learns):
            output = attend(query, key, value, route_of(position, sample))
        return [output, *(torch.autograd.grad(output.square().sum(), inputs) if learns else ())]

    slid = found()
    monkeypatch.setattr(Block, "sliding", lambda block, pairwise, dtype: None)
    for one, other in zip(slid, found(), strict=True):
        assert_close(one, other, "slid")
