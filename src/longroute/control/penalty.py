"""What a control adds to the scores of one layer."""

from dataclasses import dataclass, replace

import torch
from torch import Tensor

from longroute.control.charge import Charge
from longroute.control.pairwise import PairwiseBias


@dataclass(frozen=True, eq=False)
class Penalty:
    """b_ij = m (c_i - c_j) of a separable `charge`, or b_ij of a `pairwise` bias, or 0. Never both."""

    charge: Charge | None = None
    pairwise: PairwiseBias | None = None

    def sparing(self, free: int) -> "Penalty":
        """The same without effect on the last `free` query heads."""
        if free and self.charge is not None:
            controlled = torch.arange(len(self.charge.slope), device=self.charge.slope.device)
            kept = controlled < len(self.charge.slope) - free
            return Penalty(charge=replace(self.charge, slope=self.charge.slope * kept))
        if free and self.pairwise is not None:
            return Penalty(pairwise=_Sparing(self.pairwise, free))
        return self


@dataclass(frozen=True, eq=False)
class _Sparing:
    bias: PairwiseBias
    free: int

    @property
    def heads(self) -> int:
        return self.bias.heads

    @property
    def shift(self) -> bool:
        return self.bias.shift

    def __call__(self, head: Tensor, row: Tensor, key: Tensor) -> Tensor:
        bias = self.bias(head, row, key)
        return torch.where(head < self.heads - self.free, bias, 0.0)
