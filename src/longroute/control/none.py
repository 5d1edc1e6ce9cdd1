"""No far-mass control: b_ij = 0."""

from dataclasses import dataclass
from typing import ClassVar

from torch import Tensor, nn

from longroute.control.penalty import Penalty
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class NoControl:
    """b_ij = 0: the far mass tends to 1 as the context grows (arXiv 2606.24975, far-mass lower bound)."""

    name: ClassVar[str] = "none"
    source: ClassVar[str] = "-"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "shift"})

    def build(self, shape: LayerShape) -> "NoCharge":
        return NoCharge()


class NoCharge(nn.Module):
    """No charge at all."""

    def forward(self, inputs: StepInputs, starts: Tensor | None, before: Tensor | None = None) -> Penalty:
        return Penalty()
