"""FlexAttention (forward only on a CPU, torch 2.13) = the blockwise fallback, for every pairwise control."""

from collections.abc import Iterator

import pytest
import torch
from specimens import CONTROLS, assert_close, build, draw_sample, route_of

from longroute.attention import Encoding
from longroute.attention.blockwise import masked_attention
from longroute.attention.flex import flex_biased_attention
from longroute.control import ALiBi, Control, ForgetGate, NoControl

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*torch.jit.*is deprecated:DeprecationWarning"),
    pytest.mark.filterwarnings("ignore:.*Function'> should not be instantiated:DeprecationWarning"),
]
PAIRWISE = [control for control in CONTROLS if not isinstance(control, NoControl | ALiBi | ForgetGate)]


@pytest.fixture(autouse=True)
def nothing_compiled_before() -> Iterator[None]:
    torch.compiler.reset()
    yield
    torch.compiler.reset()


@pytest.mark.parametrize("control", PAIRWISE, ids=lambda control: control.name)
def test_flex_attention_is_blockwise_attention(control: Control) -> None:
    sample = draw_sample(129, head_dim=16)
    with torch.no_grad():
        pairwise = route_of(build(Encoding(control=control), head_dim=16), sample).pairwise
        assert pairwise is not None
        found = flex_biased_attention(sample.query, sample.key, sample.value, 0.25, pairwise)
        expected = masked_attention(sample.query, sample.key, sample.value, 0.25, pairwise=pairwise)
    assert_close(found, expected, control.name)
