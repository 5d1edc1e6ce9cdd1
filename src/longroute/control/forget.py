"""Forget gate (FoX): every token's hidden state says how much of what came before is kept."""

from dataclasses import dataclass
from typing import ClassVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longroute.control.charge import Charge
from longroute.control.penalty import Penalty
from longroute.errors import InputError
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class ForgetGate:
    """b_ij = Σ_{t=j+1}^{i} a_t,  a_t = ln σ(w·x_t + β) for each key-value head, x the layer's normalised input.

    β starts so that the gate's memory -1/a is spread geometrically over heads from `shortest` to `longest` tokens; w =
    0.
    """

    shortest: float = 4.0
    """Memory of the first head at the start, tokens."""
    longest: float = 256.0
    """Memory of the last head at the start, tokens."""

    name: ClassVar[str] = "forget"
    source: ClassVar[str] = "Lin et al. 2025 (Forgetting Transformer), arXiv 2503.02130; the start is Longroute's"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "shift", "summable"})

    def __post_init__(self):
        if not 0 < self.shortest <= self.longest:
            raise InputError(
                f"forget: needs 0 < shortest <= longest (tokens), not shortest={self.shortest}, longest={self.longest}"
            )

    def build(self, shape: LayerShape) -> "ForgetCharge":
        return ForgetCharge(self, shape)


class ForgetCharge(nn.Module):
    """Log-decays in float32 at least, whatever the module's dtype or autocast."""

    def __init__(self, spec: ForgetGate, shape: LayerShape):
        super().__init__()
        self.spec, self.heads = spec, shape.kv_heads
        self.weight = nn.Parameter(torch.empty(shape.kv_heads, shape.width))
        self.bias = nn.Parameter(torch.empty(shape.kv_heads))
        self.slope = torch.ones(shape.heads, dtype=torch.float64)
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Back to the start that the spec names: ln σ(β) = -1/memory."""
        ends = torch.tensor([self.spec.shortest, self.spec.longest], dtype=torch.float64).log()
        memory = torch.linspace(0, 1, self.heads, dtype=torch.float64).mul(ends[1] - ends[0]).add(ends[0]).exp()
        self.bias.copy_(-torch.expm1(1 / memory).log())
        self.weight.zero_()

    def forward(self, inputs: StepInputs, starts: Tensor | None, before: Tensor | None = None) -> Penalty:
        dtype = torch.promote_types(inputs.hidden.dtype, torch.float32)
        with torch.autocast(inputs.hidden.device.type, enabled=False):
            gate = F.linear(inputs.hidden.to(dtype), self.weight.to(dtype), self.bias.to(dtype))
        decay = F.logsigmoid(gate).transpose(1, 2)
        return Penalty(charge=Charge(decay, self.slope.to(gate.device), starts, before))
