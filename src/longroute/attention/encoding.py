"""A position encoding: a transport, whether values ride in it, and a far-mass control."""

from dataclasses import dataclass, field

import torch
from torch import Tensor, nn

from longroute.attention.attend import Route
from longroute.control import Control, NoControl
from longroute.data.packing import Packing
from longroute.errors import InputError
from longroute.transport import LayerShape, NoTransport, StepInputs, Transport


@dataclass(frozen=True)
class Encoding:
    """Transport × far-mass control; `values=True` transports values too ("qkv"), else scores only ("qk")."""

    transport: Transport = field(default_factory=NoTransport)
    """What a token's step does to queries and keys that pass it."""
    values: bool = False
    """Whether values are transported as well."""
    control: Control = field(default_factory=NoControl)
    """What keeps the far mass from growing."""
    free: int = 0
    """Query heads, the last ones, that the control leaves free."""

    def __post_init__(self):
        moves = self.transport.moves
        if self.values and "qkv" not in moves:
            can = f"moves {' and '.join(sorted(moves))} only" if moves else "moves nothing"
            raise InputError(f"transport {self.transport.name!r} {can}, so values can't be transported with it")

        if self.free < 0 or (self.free and isinstance(self.control, NoControl)):
            raise InputError(f"free heads need a control to be free of, and can't be fewer than 0: free={self.free}")

    def build(self, shape: LayerShape) -> "PositionEncoding":
        """The module for one attention layer."""
        return PositionEncoding(self, shape)


class PositionEncoding(nn.Module):
    """Steps and charges of one layer: hidden states and token ids in, a Route for `attend` out."""

    def __init__(self, spec: Encoding, shape: LayerShape):
        super().__init__()
        self.spec = spec
        self.steps = spec.transport.build(shape)
        self.control = spec.control.build(shape)
        if spec.free > shape.heads:
            raise InputError(f"free={spec.free} heads are more than the layer's {shape.heads}")

    def forward(self, hidden: Tensor, token_ids: Tensor, packing: Packing | None = None) -> Route:
        """The route through `hidden` (batch time width) and `token_ids` (batch time).

        Phases are float32 (float64 for float64 hidden states), whatever the dtype of the model.
        """
        inputs = step_inputs(hidden, token_ids, packing)
        starts = None if packing is None else packing.starts
        dtype = torch.promote_types(hidden.dtype, torch.float32)
        steps = self.steps(inputs)
        with torch.autocast(hidden.device.type, enabled=False):
            frame = self.steps.frame(steps, dtype, packing=packing)
        penalty = self.control(inputs, starts).sparing(self.spec.free)
        return Route(frame, self.spec.values, penalty.charge, penalty.pairwise, packing)


def step_inputs(hidden: Tensor, token_ids: Tensor, packing: Packing | None) -> StepInputs:
    """What steps and gates may see, with positions counted within each document."""
    if hidden.shape[:2] != token_ids.shape:
        raise InputError(f"hidden states are {tuple(hidden.shape)}, but token ids are {tuple(token_ids.shape)}")
    time = token_ids.shape[1]
    if packing is None:
        positions = torch.arange(time, device=token_ids.device).expand(token_ids.shape)
    else:
        positions = packing.positions
    return StepInputs(hidden, token_ids, positions, time)
