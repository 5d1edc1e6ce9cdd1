"""Causality (case H1): what happens at token j leaves every output before j as it was, to the bit."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from specimens import VOCABULARY, Sample, assert_same_bits, build, draw_sample, route_of, small_model, under

from longroute.attention import Encoding, attend
from longroute.data.packing import Packing
from longroute.model import Decoder

pytestmark = pytest.mark.usefixtures("one_thread")


def with_token_changed(sample: Sample, j: int) -> Sample:
    query, key, value = sample.query.clone(), sample.key.clone(), sample.value.clone()
    for x in (query, key, value):
        x[:, :, j] = 10 - 3 * x[:, :, j]
    hidden, token_ids = sample.hidden.clone(), sample.token_ids.clone()
    hidden[:, j] = 2 - 3 * hidden[:, j]
    token_ids[:, j] = (token_ids[:, j] + 1) % VOCABULARY
    return Sample(query, key, value, hidden, token_ids)


@pytest.mark.parametrize("encoding", under("causal"))
@given(time=st.integers(1, 40), share=st.floats(0, 1), packed=st.booleans(), half=st.booleans())
def test_outputs_before_a_changed_token_keep_their_bits(
    encoding: Encoding, time: int, share: float, packed: bool, half: bool
) -> None:
    j = round(share * (time - 1))
    packing = Packing.from_boundaries([[0, time // 3, time]] * 2, time) if packed else None
    sample = draw_sample(time).to(torch.bfloat16 if half else torch.float32)
    changed = with_token_changed(sample, j)
    position = build(encoding)
    before, after = (attend(s.query, s.key, s.value, route_of(position, s, packing)) for s in (sample, changed))
    assert_same_bits(after[:, :, :j], before[:, :, :j], f"outputs before token {j}")
    assert (after[:, :, j] != before[:, :, j]).any(), "the changed token itself must notice"


@pytest.mark.parametrize("encoding", under("causal"))
@given(time=st.integers(2, 40), share=st.floats(0, 1))
def test_logits_before_a_changed_token_keep_their_bits(encoding: Encoding, time: int, share: float) -> None:
    j = round(share * (time - 1))
    model = Decoder(small_model(), encoding, seed=1)
    token_ids = draw_sample(time).token_ids
    changed = token_ids.clone()
    changed[:, j] = (changed[:, j] + 1) % VOCABULARY
    before, after = model(token_ids), model(changed)
    assert_same_bits(after[:, :j], before[:, :j], f"logits before token {j}")
    assert (after[:, j] != before[:, j]).any()
