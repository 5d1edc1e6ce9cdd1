"""What specs declare: only laws that are known, each of them tested; and the law of the controls, summability."""

import pytest
import torch
from specimens import CONTROLS, LAWS, TRANSPORTS, WIDTH, build

from longroute.attention import Encoding
from longroute.control import Control, LogDistance
from longroute.transport import StepInputs, Transport


@pytest.mark.parametrize("spec", [*TRANSPORTS, *CONTROLS], ids=repr)
def test_declared_laws_are_known(spec: Transport | Control) -> None:
    part = "transport" if spec in TRANSPORTS else "control"
    assert spec.laws <= {law for law, parts in LAWS.items() if part in parts}


def test_every_law_is_declared_by_someone() -> None:
    assert set(LAWS) == set().union(*(spec.laws for spec in [*TRANSPORTS, *CONTROLS]))


def weight_beyond(control: Control, near: int, length: int) -> torch.Tensor:
    """Σ_{n > near} e^{b(n)} / Σ_{n ≤ near} e^{b(n)} over routes to a row's last token, (head)."""
    hidden = torch.zeros(1, length, WIDTH, dtype=torch.float64)
    token_ids = torch.zeros(1, length, dtype=torch.int64)
    position = build(Encoding(control=control), dtype=torch.float64)
    penalty = position.control(StepInputs(hidden, token_ids, token_ids, length), None)
    bias = torch.zeros(1, length)
    if penalty.pairwise is not None:
        head, key = torch.arange(penalty.pairwise.heads)[:, None], torch.arange(length)
        bias = penalty.pairwise(head, key[-1:], key).flip(1)
    elif penalty.charge is not None:
        group = len(penalty.charge.slope) // penalty.charge.log_decay.shape[1]
        decay = penalty.charge.log_decay[0].repeat_interleave(group, 0) * penalty.charge.slope[:, None]
        bias = decay.flip(1).cumsum(1)
    weights = bias.double().exp()
    return weights[:, near:].sum(1) / weights[:, :near].sum(1)


@pytest.mark.parametrize("control", CONTROLS, ids=repr)
def test_summable_is_declared_where_far_weight_stays_bounded(control: Control) -> None:
    near, far = weight_beyond(control, 512, 2**13), weight_beyond(control, 512, 2**17)
    if isinstance(control, LogDistance):  # a power law, whose rest after L tokens falls as L^(1 - κ)
        power = 1 + build(Encoding(control=control), dtype=torch.float64).get_parameter("control.log_excess").exp()
        growth = (weight_beyond(control, 512, 2**21) - far) / (far - near)
        assert torch.allclose(growth, 16 ** (1 - power), rtol=0.05)
    elif "summable" in control.laws:
        assert torch.allclose(near, far, rtol=1e-6, atol=0)
    elif "bounded" in control.laws:  # its rest falls as 1 / L
        growth = (weight_beyond(control, 512, 2**21) - far) / (far - near)
        assert torch.allclose(growth, torch.tensor(1 / 16).double(), rtol=0.05)
    else:
        assert (far > 10 * near).all()
