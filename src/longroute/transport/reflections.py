"""What transports of reflections share: their frame, a step as a matrix, and where their vectors come from."""

from functools import partial

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longroute.data.packing import Packing
from longroute.transport.compact_wy import reflection_matrix
from longroute.transport.document_frame import DocumentFrame
from longroute.transport.reflection_frame import ReflectionFrame
from longroute.transport.step import StepInputs


class ReflectionSteps(nn.Module):
    """Steps Π_r (I - 2 w_r w_rᵀ / ‖w_r‖²) as vectors w, (batch|1 kv_head|1 time r dim), first factor rightmost."""

    def frame(
        self, steps: Tensor, dtype: torch.dtype, *, packing: Packing | None = None, before: Tensor | None = None
    ) -> ReflectionFrame | DocumentFrame:
        if packing is None:
            return ReflectionFrame(steps, dtype, before)
        return DocumentFrame(steps, packing, partial(ReflectionFrame, dtype=dtype))

    def matrix(self, steps: Tensor) -> Tensor:
        return reflection_matrix(steps.double())


class HeadVectors(nn.Module):
    """Vectors for every key-value head from the hidden state, W x, in float32 at least, whatever the module's dtype.

    W starts normal, so that vectors of a hidden state of unit mean square point anywhere. `rank` makes W a product of
    two matrices of that inner width.
    """

    def __init__(self, width: int, heads: int, shape: tuple[int, ...], rank: int | None = None):
        super().__init__()
        self.shape = (heads, *shape)
        rows = heads * torch.Size(shape).numel()
        self.weight = nn.Parameter(torch.empty(rows, rank or width))
        self.narrow = nn.Parameter(torch.empty(rank, width)) if rank else None
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Back to the start; draws from torch's global generator."""
        for weight in self.parameters():
            weight.normal_(std=weight.shape[1] ** -0.5)

    def forward(self, inputs: StepInputs) -> Tensor:
        """(batch kv_head time …)."""
        dtype = torch.promote_types(inputs.hidden.dtype, torch.float32)
        with torch.autocast(inputs.hidden.device.type, enabled=False):
            hidden = inputs.hidden.to(dtype)
            if self.narrow is not None:
                hidden = F.linear(hidden, self.narrow.to(dtype))
            return F.linear(hidden, self.weight.to(dtype)).unflatten(-1, self.shape).transpose(1, 2)
