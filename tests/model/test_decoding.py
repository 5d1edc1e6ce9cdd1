"""Decoding = the full forward (cases B1 to B5, D1, K1): any chunks, ragged prompts, taking back, reordering."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from specimens import ENCODINGS, VOCABULARY, assert_close, assert_same_bits, build, draw_sample, named, small_model
from torch import Tensor

from longroute.attention import Encoding, LayerCache, parse_encoding
from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.model import Decoder, Decoding, ModelSpec
from longroute.model.decoder import Attention
from longroute.transport.phase import to_radians

pytestmark = pytest.mark.usefixtures("one_thread")

TIME = 29


def moved(encoding: Encoding, spec: ModelSpec | None = None) -> Decoder:
    """A float64 model whose steps, gates and scores all have something to say: nothing is near its start, or zero."""
    model = Decoder(spec or small_model(), encoding, seed=1)
    with torch.no_grad(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(2)
        for attention in (module for module in model.modules() if isinstance(module, Attention)):
            for parameter in attention.position.parameters():
                parameter.add_(torch.randn(parameter.shape), alpha=0.3)
            attention.project.weight.mul_(25)  # scores of the order of 1
            attention.output.weight.mul_(25)
    return model.double().eval()


def in_chunks(decoding: Decoding, token_ids: Tensor, cuts: list[int]) -> Tensor:
    return torch.cat([decoding.logits(chunk) for chunk in token_ids.tensor_split(cuts, 1) if chunk.shape[1]], 1)


CUTS = st.lists(st.integers(0, TIME), max_size=6).map(sorted)


@pytest.mark.parametrize("encoding", named(ENCODINGS))
@given(cuts=CUTS, seed=st.integers(0, 9))
def test_decoded_in_any_chunks_the_logits_are_those_of_the_whole(
    encoding: Encoding, cuts: list[int], seed: int
) -> None:
    model, token_ids = moved(encoding), draw_sample(TIME, seed=seed).token_ids
    assert_close(in_chunks(Decoding(model), token_ids, cuts), model(token_ids), f"cut at {cuts}")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_token_by_token_after_every_prefill(encoding: Encoding) -> None:
    """Cases B1 and B4: the last token's row, however many tokens came before it at once."""
    model, token_ids = moved(encoding), draw_sample(9).token_ids
    whole = model(token_ids)
    for prefill in range(10):
        cuts = list(range(prefill, 10))
        assert_close(in_chunks(Decoding(model), token_ids, cuts), whole, f"{prefill} tokens, then one by one")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
@given(lengths=st.lists(st.integers(1, TIME), min_size=1, max_size=3), pad=st.integers(0, VOCABULARY - 1), cuts=CUTS)
def test_ragged_prompts_as_if_each_were_alone(
    encoding: Encoding, lengths: list[int], pad: int, cuts: list[int]
) -> None:
    """Cases B5 and D1, and the tokens after the prompts."""
    model, longest = moved(encoding), max(lengths)
    token_ids = draw_sample(longest + 5, batch=len(lengths)).token_ids
    for row, length in enumerate(lengths):
        token_ids[row, : longest - length] = pad
    found = in_chunks(Decoding(model, lengths=lengths), token_ids, cuts)
    for row, length in enumerate(lengths):
        alone = model(token_ids[row : row + 1, longest - length :])
        assert_close(found[row : row + 1, longest - length :], alone, f"row {row} of {length} tokens")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
@given(first=st.integers(1, 9), wrong=st.integers(0, 4), again=st.integers(0, 4), rest=st.integers(1, 9))
def test_tokens_taken_back_leave_no_trace(encoding: Encoding, first: int, wrong: int, again: int, rest: int) -> None:
    model, token_ids = moved(encoding), draw_sample(first + rest).token_ids
    decoding = Decoding(model, rollback=4)
    decoding.logits(token_ids[:, :first])
    for count in (wrong, again):
        if count:
            decoding.logits(draw_sample(count, seed=7).token_ids)
            decoding.roll_back(count)
    assert decoding.length == first
    assert_close(decoding.logits(token_ids[:, first:]), model(token_ids)[:, first:], "after taking back")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_beams_go_on_from_the_rows_that_they_were_taken_from(encoding: Encoding) -> None:
    model, token_ids = moved(encoding), draw_sample(14, batch=3).token_ids
    decoding = Decoding(model, lengths=[7, 9, 4])
    decoding.logits(token_ids[:, :9])
    rows = torch.tensor([2, 0, 0, 1])
    decoding.reorder(rows)
    beams = token_ids[rows].clone()
    beams[:, 9:] = draw_sample(5, batch=4, seed=3).token_ids
    packing = Packing.left_padded([9, 12, 12, 14], 14)
    assert_close(decoding.logits(beams[:, 9:]), model(beams, packing)[:, 9:], "beams")
    decoding.roll_back(5)
    assert_close(decoding.logits(beams[:, 9:]), model(beams, packing)[:, 9:], "beams again")


@pytest.mark.parametrize("encoding", named(ENCODINGS))
def test_nothing_is_left_of_an_earlier_prompt(encoding: Encoding) -> None:
    """Cases B2 and B3: a long prompt, then a short one; offsets 0 and 5 of one module."""
    model, token_ids = moved(encoding), draw_sample(20).token_ids
    Decoding(model).logits(token_ids)
    short = Decoding(model)
    assert_same_bits(short.logits(token_ids[:, :3]), Decoding(moved(encoding)).logits(token_ids[:, :3]), "short prompt")


@pytest.mark.parametrize("name", ["rope-qkv", "random-qk:by=position", "learned-qkv+forget", "alibi"])
@given(cuts=CUTS)
def test_the_same_steps_end_in_the_same_bits(name: str, cuts: list[int]) -> None:
    sample = draw_sample(TIME)
    position = build(parse_encoding(name))
    hidden = torch.ones_like(sample.hidden)  # so that steps don't depend on how a matrix product is cut
    ends = []
    for pieces in (cuts, []):
        cache = LayerCache(position, rollback=8)
        for ids, part in zip(sample.token_ids.tensor_split(pieces, 1), hidden.tensor_split(pieces, 1), strict=True):
            if ids.shape[1]:
                cache.state.extend(part, ids, None)
        ends.append(cache.state.end)
    for found, expected in zip(*ends, strict=True):
        if found is not None and expected is not None:
            assert_same_bits(to_radians(found, torch.float32), to_radians(expected, torch.float32), f"cut at {cuts}")


LONG = ["rope-qk", "learned-qkv+forget", "random-qkv", "householder-qkv", "path-qk", "block-qkv", "log-distance"]


@pytest.mark.parametrize("name", LONG)
def test_a_thousand_tokens_one_by_one(name: str) -> None:
    spec = ModelSpec(layers=1, width=32, heads=2, kv_heads=2, head_dim=16, hidden=32, vocabulary=VOCABULARY)
    model, token_ids = moved(parse_encoding(name), spec).float(), draw_sample(1024, batch=1).token_ids
    decoding = Decoding(model)
    found = [decoding.logits(token_ids[:, :500])]
    found += [decoding.logits(token_ids[:, t : t + 1]) for t in range(500, 1024)]
    with torch.no_grad():
        expected = model(token_ids)
    assert (torch.cat(found, 1) - expected).abs().max() <= 1e-5


@pytest.mark.parametrize(
    ("lengths", "shape", "message"),
    [([2, 3], (1, 3), "of 2 rows"), ([0, 3], (2, 3), "at least one token"), (None, (1, 0), "not (1, 0)")],
)
def test_what_does_not_fit_is_refused(lengths: list[int] | None, shape: tuple[int, int], message: str) -> None:
    with pytest.raises(InputError, match=message.replace("(", r"\(").replace(")", r"\)")):
        Decoding(moved(parse_encoding("rope-qk")), lengths=lengths).logits(torch.zeros(shape, dtype=torch.int64))


def test_rows_are_the_same_from_chunk_to_chunk() -> None:
    decoding = Decoding(moved(parse_encoding("rope-qk")))
    decoding.logits(torch.zeros(1, 3, dtype=torch.int64))
    with pytest.raises(InputError, match="of 1 rows"):
        decoding.logits(torch.zeros(2, 1, dtype=torch.int64))
    with pytest.raises(InputError, match="rows from 0 to 0"):
        decoding.reorder(torch.tensor([1]))


def test_a_route_keeps_no_more_than_its_end() -> None:
    """Its tensors own their memory: none is a view of a whole prompt's frames."""
    for name in ("block-qkv", "learned-qkv+forget", "householder-qk"):
        decoding = Decoding(moved(parse_encoding(name)), rollback=4)
        decoding.logits(draw_sample(400).token_ids)
        for cache in decoding._caches:
            for end in (cache.state.end, cache.state._anchor):
                for x in end:
                    assert x is None or x.untyped_storage().nbytes() == x.nbytes


def test_more_than_remembered_cannot_be_taken_back() -> None:
    decoding = Decoding(moved(parse_encoding("path-qk")), rollback=2)
    decoding.logits(draw_sample(9).token_ids)
    with pytest.raises(InputError, match="2 tokens can be taken back, not 3"):
        decoding.roll_back(3)
    decoding.roll_back(2)
    assert decoding.length == 7
