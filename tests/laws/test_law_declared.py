"""What specs declare: only laws that are known, each of them tested; and the law of the controls, summability."""

import pytest
import torch
from specimens import CONTROLS, LAWS, TRANSPORTS, WIDTH, build

from longroute.attention import Encoding
from longroute.control import Control
from longroute.transport import StepInputs, Transport


@pytest.mark.parametrize("spec", [*TRANSPORTS, *CONTROLS], ids=repr)
def test_declared_laws_are_known(spec: Transport | Control) -> None:
    part = "transport" if spec in TRANSPORTS else "control"
    assert spec.laws <= {law for law, parts in LAWS.items() if part in parts}


def test_every_law_is_declared_by_someone() -> None:
    assert set(LAWS) == set().union(*(spec.laws for spec in [*TRANSPORTS, *CONTROLS]))


def weight_beyond(control: Control, near: int, length: int) -> float:
    """The least over heads of Σ_{n > near} e^{b(n)} / Σ_{n ≤ near} e^{b(n)} over routes to a row's last token."""
    hidden = torch.zeros(1, length, WIDTH, dtype=torch.float64)
    token_ids = torch.zeros(1, length, dtype=torch.int64)
    position = build(Encoding(control=control), dtype=torch.float64)
    penalty = position.control(StepInputs(hidden, token_ids, token_ids, length), None)
    charge = penalty.charge
    if penalty.pairwise is not None:
        head, key = torch.arange(penalty.pairwise.heads)[:, None], torch.arange(length)
        weights = penalty.pairwise(head, key[-1:], key).flip(1).double().exp()
        return (weights[:, near:].sum(1) / weights[:, :near].sum(1)).max().item()
    if charge is None:
        return (length - near) / near
    group = len(charge.slope) // charge.log_decay.shape[1]
    decay = charge.log_decay.repeat_interleave(group, 1) * charge.slope[:, None]
    weights = decay.flip(2).cumsum(2).exp()
    return (weights[..., near:].sum(2) / weights[..., :near].sum(2)).max().item()


@pytest.mark.parametrize("control", CONTROLS, ids=repr)
def test_summable_is_declared_where_far_weight_stays_bounded(control: Control) -> None:
    near, far, farther = (weight_beyond(control, 512, 2**power) for power in (13, 17, 21))
    if "summable" in control.laws or "bounded" in control.laws:
        assert farther - far <= 0.7 * (far - near) + 1e-6 * far  # harmonic sums, which diverge, have 1
    else:
        assert far > 10 * near
