"""ALiBi: every token of distance costs a fixed amount of logit, by head."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from longroute.control.charge import Charge
from longroute.control.penalty import Penalty
from longroute.transport.step import LayerShape, StepInputs


def alibi_slopes(heads: int) -> Tensor:
    """m_h = 2^(-8 h / n), h = 1 … n, for n a power of two; else those of the power below, then every other one of 2n.

    float64. Press et al. 2022, §3 and their reference rule for other numbers of heads.
    """
    power = 2 ** math.floor(math.log2(heads))
    slopes = _geometric(power)
    if power < heads:
        slopes = torch.cat([slopes, _geometric(2 * power)[0::2][: heads - power]])
    return slopes


def _geometric(heads: int) -> Tensor:
    return 2.0 ** (-8.0 * torch.arange(1, heads + 1, dtype=torch.float64) / heads)


@dataclass(frozen=True)
class ALiBi:
    """b_ij = -m_h (i - j), with the published slopes. Σ_n e^{-m n} < ∞, so the far mass stays bounded."""

    name: ClassVar[str] = "alibi"
    source: ClassVar[str] = "Press et al. 2022 (ALiBi), arXiv 2108.12409"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "shift", "summable"})

    def build(self, shape: LayerShape) -> "ALiBiCharge":
        return ALiBiCharge(shape.heads)


class ALiBiCharge(nn.Module):
    """One nat a token, times the head's slope; the slopes stay float64 through any cast of the module."""

    def __init__(self, heads: int):
        super().__init__()
        self.slope = alibi_slopes(heads)

    def forward(self, inputs: StepInputs, starts: Tensor | None, before: Tensor | None = None) -> Penalty:
        device = inputs.token_ids.device
        decay = torch.full((1, 1, inputs.token_ids.shape[1]), -1.0, dtype=torch.float64, device=device)
        return Penalty(charge=Charge(decay, self.slope.to(device), starts, before))
