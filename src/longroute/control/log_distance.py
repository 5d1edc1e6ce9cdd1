"""Log-distance (KERPLE): a token's weight falls with a power of its distance, so far ones stay within recall."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor, nn

from longroute.control.penalty import Penalty
from longroute.errors import InputError
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class LogDistance:
    """b_ij = -κ_h ln(1 + (i - j) / w_h), κ > 1 by construction, both learned for each query head.

    κ = 1 + e^a and w = e^b tokens. Σ_n (1 + n/w)^(-κ) < ∞ exactly for κ > 1, so the far mass stays bounded, and yet a
    token at distance n needs only κ ln(1 + n/w) more logit to be recalled. κ starts at `power`, w geometrically spread
    over heads from `shortest` to `longest`.
    """

    power: float = 1.5
    """κ at the start, > 1."""
    shortest: float = 4.0
    """w of the first head at the start, tokens."""
    longest: float = 64.0
    """w of the last head at the start, tokens."""

    name: ClassVar[str] = "log-distance"
    source: ClassVar[str] = "Chi et al. 2022 (KERPLE, logarithmic), arXiv 2205.09921; κ > 1 is Longroute's"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "shift", "summable"})

    def __post_init__(self):
        if not self.power > 1:
            raise InputError(f"log-distance: power must be greater than 1, or the far mass grows, not {self.power}")
        if not 0 < self.shortest <= self.longest:
            raise InputError(
                f"log-distance: needs 0 < shortest <= longest (tokens), not shortest={self.shortest}, "
                f"longest={self.longest}"
            )

    def build(self, shape: LayerShape) -> "LogDistanceBias":
        return LogDistanceBias(self, shape)


class LogDistanceBias(nn.Module):
    """κ and w of every query head, learned as a and b."""

    def __init__(self, spec: LogDistance, shape: LayerShape):
        super().__init__()
        self.spec, self.heads = spec, shape.heads
        self.log_excess = nn.Parameter(torch.empty(shape.heads))
        self.log_width = nn.Parameter(torch.empty(shape.heads))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Back to the start that the spec names."""
        self.log_excess.fill_(self.spec.power - 1).log_()
        ends = torch.tensor([self.spec.shortest, self.spec.longest], dtype=torch.float64).log()
        self.log_width.copy_(torch.linspace(0, 1, self.heads, dtype=torch.float64) * (ends[1] - ends[0]) + ends[0])

    def forward(self, inputs: StepInputs, starts: Tensor | None, before: Tensor | None = None) -> Penalty:
        dtype = torch.promote_types(self.log_width.dtype, torch.float32)
        power, width = 1 + self.log_excess.to(dtype).exp(), self.log_width.to(dtype).exp()
        return Penalty(pairwise=_Falling(power, width))


class _Falling:
    shift = True

    def __init__(self, power: Tensor, width: Tensor):
        self.power, self.width, self.heads = power, width, len(power)

    def __call__(self, head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        return -self.power[head] * ((row - key).clamp(min=0) / self.width[head]).log1p()
