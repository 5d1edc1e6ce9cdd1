"""Where a route stands: what later tokens go on from, and how the last tokens are taken back."""

from dataclasses import replace
from typing import NamedTuple

import torch
from torch import Tensor

from longroute.attention.attend import Route
from longroute.attention.encoding import PositionEncoding
from longroute.control.charge import Charge
from longroute.errors import InputError
from longroute.transport import Frame, StepInputs


class End(NamedTuple):
    """The ends of frame and charge after some token."""

    frame: Tensor | None = None
    charge: Tensor | None = None


class RouteState:
    """The end of one layer's route, and the steps since an earlier point of it, `rollback` of them at least.

    Its size doesn't depend on the number of tokens so far.
    """

    def __init__(self, position: PositionEncoding, rollback: int):
        self.position, self.rollback, self.length = position, rollback, 0
        self.end = self._anchor = End()
        self._dtype = torch.float32
        self._steps: Tensor | None = None
        self._charge: Charge | None = None

    @property
    def recent(self) -> int:
        """Tokens that can be taken back."""
        return 0 if self._steps is None else self._steps.shape[2]

    def extend(self, hidden: Tensor, token_ids: Tensor, pads: Tensor | None) -> Route:
        """The route on through hidden (batch time width); the first `pads` (batch) of all tokens stand still."""
        time = token_ids.shape[1]
        index = torch.arange(self.length, self.length + time, device=token_ids.device).expand(token_ids.shape)
        positions = index if pads is None else (index - pads[:, None]).clamp(min=0)
        inputs = StepInputs(hidden, token_ids, positions, self.length + time)
        steps = self.position.steps(inputs)
        penalty = self.position.control(inputs, None, self.end.charge).sparing(self.position.spec.free)
        charge = penalty.charge
        if pads is not None:
            real = index >= pads[:, None]
            steps = steps * real.view(len(real), 1, time, *[1] * (steps.ndim - 3)).to(steps.dtype)
            charge = charge and replace(charge, log_decay=charge.log_decay * real[:, None])
        self._dtype = torch.promote_types(hidden.dtype, torch.float32)
        with torch.autocast(hidden.device.type, enabled=False):
            frame = self.position.steps.frame(steps, self._dtype, before=self.end.frame)
        self.end = End(_owned(frame.end), charge and charge.end())
        self._steps = _appended(self._steps, steps)
        if charge is not None:
            known = None if self._charge is None else self._charge.log_decay
            self._charge = replace(charge, log_decay=_appended(known, charge.log_decay), before=None)
        self.length += time
        return Route(frame, self.position.spec.values, charge, penalty.pairwise)

    def fold(self) -> Frame | None:
        """Forget the steps that needn't be taken back, once there are many; returns the frame of the forgotten ones."""
        if self._steps is None or self.recent <= 2 * self.rollback:
            return None
        frame, self._anchor = self._walk(self.recent - self.rollback)
        self._steps = self._steps[:, :, -self.rollback :] if self.rollback else None
        if self._charge is not None:
            kept = self._charge.log_decay.shape[2] - self.rollback
            self._charge = replace(self._charge, log_decay=self._charge.log_decay[:, :, kept:])
        return frame

    def roll_back(self, count: int) -> Frame | None:
        """Take the last `count` tokens back; returns the frame of the remaining steps that could be, if any.

        Raises InputError for more than are remembered one by one.
        """
        if not 0 <= count <= self.recent:
            raise InputError(f"{self.recent} tokens can be taken back, not {count}; begin with a larger rollback")
        self.length -= count
        left = self.recent - count
        frame = None
        self.end = self._anchor
        if self._steps is not None and left:
            frame, self.end = self._walk(left)
        self._steps = None if self._steps is None else self._steps[:, :, :left]
        if self._charge is not None:
            self._charge = replace(self._charge, log_decay=self._charge.log_decay[:, :, :left])
        return frame

    def reorder(self, rows: Tensor, batch: int) -> None:
        """Row i of `batch` becomes what row rows[i] was."""
        self.end = End(reordered(self.end.frame, rows, batch), reordered(self.end.charge, rows, batch))
        self._anchor = End(reordered(self._anchor.frame, rows, batch), reordered(self._anchor.charge, rows, batch))
        self._steps = reordered(self._steps, rows, batch)
        if self._charge is not None:
            decay = reordered(self._charge.log_decay, rows, batch)
            assert decay is not None
            self._charge = replace(self._charge, log_decay=decay)

    def _walk(self, count: int) -> tuple[Frame, End]:
        """The frame of the first `count` remembered steps, and the route's end after them."""
        assert self._steps is not None
        frame = self.position.steps.frame(self._steps[:, :, :count], self._dtype, before=self._anchor.frame)
        charge = None
        if self._charge is not None:
            decay = self._charge.log_decay[:, :, :count]
            charge = replace(self._charge, log_decay=decay, before=self._anchor.charge).end()
        return frame, End(_owned(frame.end), charge)


def reordered(x: Tensor | None, rows: Tensor, batch: int) -> Tensor | None:
    """x with row i what row rows[i] was; as it is if all rows share it."""
    return x if x is None or len(x) != batch else x.index_select(0, rows)


def _owned(x: Tensor | None) -> Tensor | None:
    """A copy, which doesn't hold all tokens' frames in memory for the last one's sake."""
    return None if x is None else x.clone()


def _appended(before: Tensor | None, x: Tensor) -> Tensor:
    if before is None:
        return x
    batch = max(len(before), len(x))
    return torch.cat([before.expand(batch, *before.shape[1:]), x.expand(batch, *x.shape[1:])], 2)
