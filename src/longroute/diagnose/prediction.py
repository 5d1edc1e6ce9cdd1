"""The breaking length predicted from short windows: a longer context put together from windows that were read alone.

In a context of L tokens, row i of a window of W ≪ L would see i (L / W - 1) tokens more, all far. Other windows of the
same text stand in for them. A key of window w that was read alone reaches row i by way of

    A_i · X · A'_end A'_j⁻¹,    bias m (c_i + x + c'_end - c'_j):

to its window's end, over a stretch X of routes that were measured in these windows, and in from this window's start.
Where the windows at hand are fewer than the tokens wanted, each counts for several. Scores, weights and values are the
model's own, layer by layer, and the loss is *measured*. Nothing longer than W is ever read. What this leaves out: what
the hidden states of tokens deep in a long context would be.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from longroute.diagnose.edit import attention
from longroute.diagnose.heads import Heads, bias, content_scores, row_blocks, weighted_values

MOST_COPIES = 8
"""Windows that stand in for far tokens, at most."""


@dataclass(frozen=True, eq=False)
class LongerContext:
    """The edit that makes every window of a batch feel `factor` times as long.

    `stand_ins` (copy window) says which windows of the batch are far for which. Of each, the tokens after its first
    `near` are taken, which had a full context.
    """

    near: int
    factor: float
    stand_ins: Tensor

    def __call__(self, layer: int, heads: Heads) -> Tensor:
        if heads.window is not None and heads.window <= self.near:  # a sliding window sees nothing far
            return attention(heads, lambda rows: rows.scores)
        generator = torch.Generator().manual_seed(layer)
        key, value, charge = self._far_tokens(heads, generator)
        more, far = heads.time * (self.factor - 1), key.shape[2]
        blocks = []
        for rows in row_blocks(heads, more_keys=far):
            beyond = content_scores(heads, rows.index, key)
            if charge is not None and heads.charge is not None:
                beyond = beyond + bias(heads, heads.charge[:, :, rows.index, None] + charge[:, :, None]).to(
                    beyond.dtype
                )
            count = rows.index.to(beyond.dtype) / heads.time * (more / far)
            beyond = beyond + count.log()[:, None]
            weights = torch.cat([rows.scores, beyond], -1).softmax(-1)
            own, others = weights.split([rows.scores.shape[-1], far], -1)
            blocks.append(weighted_values(own, heads.value) + weighted_values(others, value))
        return torch.cat(blocks, 2)

    def _far_tokens(self, heads: Heads, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor | None]:
        """Keys and values of the stand-ins in this window's frame, (batch kv_head key dim), and x + c'_end - c'_j.

        The last is (batch kv_head|1 key), None without a charge.
        """
        batch = len(heads.query)
        route = _Stretch.of(heads, batch)
        keys, values, charges = [], [], []
        for copy, more in zip(self.stand_ins, self._halves(heads.time), strict=True):
            for _ in range(more):
                route = route.longer(torch.randint(batch, (batch,), generator=generator))
            key, value = heads.key[copy, :, self.near :], heads.value[copy, :, self.near :]
            keys.append(route.carry(key, copy))
            values.append(route.carry(value, copy) if heads.values_ride else value)
            if heads.charge is not None and route.charge is not None:
                own = heads.charge.expand(batch, -1, -1)[copy]
                charges.append(route.charge[..., None] + own[:, :, -1:] - own[:, :, self.near :])
        return torch.cat(keys, 2), torch.cat(values, 2), torch.cat(charges, 2) if charges else None

    def _halves(self, time: int) -> list[int]:
        """By how many half windows each copy is further off than the one before it: spread evenly over the context."""
        copies, halves = len(self.stand_ins), 2 * (self.factor - 1)
        at = [round((copy + 0.5) / copies * halves) for copy in range(copies)]
        return [max(1, at[0]), *(b - a for a, b in pairwise(at))]


@dataclass(frozen=True, eq=False)
class _Stretch:
    """A stretch X of route, its transport (batch kv_head|1 dim dim) and charge (batch kv_head|1), per window, with the
    halves of windows that it is made of and the whole windows' transports."""

    transport: Tensor | None
    charge: Tensor | None
    half: tuple[Tensor | None, Tensor | None]
    whole: Tensor | None

    @staticmethod
    def of(heads: Heads, batch: int) -> "_Stretch":
        """The empty stretch, for heads whose windows' last halves are its material."""
        ends = torch.tensor([heads.time // 2 - 1, heads.time - 1])
        transport = charge = half = fall = whole = None
        matrices = None if heads.frame is None else heads.frame.at(ends)
        if matrices is not None:
            matrices = matrices.to(torch.promote_types(heads.key.dtype, torch.float32)).expand(batch, -1, -1, -1, -1)
            whole = matrices[:, :, 1]
            half = whole @ matrices[:, :, 0].mT
            transport = torch.eye(half.shape[-1], dtype=half.dtype).expand_as(half)
        if heads.charge is not None:
            fall = heads.charge[:, :, ends[1]] - heads.charge[:, :, ends[0]]
            fall = fall.expand(batch, -1)
            charge = torch.zeros_like(fall)
        return _Stretch(transport, charge, (half, fall), whole)

    def longer(self, drawn: Tensor) -> "_Stretch":
        """With one half window more, `drawn` (batch) saying whose."""
        half, fall = self.half
        transport = None if half is None or self.transport is None else half[drawn] @ self.transport
        charge = None if fall is None or self.charge is None else self.charge + fall[drawn]
        return replace(self, transport=transport, charge=charge)

    def carry(self, x: Tensor, copy: Tensor) -> Tensor:
        """X A'_end x̃ for keys or values x̃ of the windows `copy`, (batch kv_head key dim)."""
        if self.transport is None or self.whole is None:
            return x
        return (x.to(self.transport.dtype) @ (self.transport @ self.whole[copy]).mT).to(x.dtype)


def stand_ins(groups: Sequence[str], wanted: int) -> Tensor:
    """(copy window): for each window of a batch up to `wanted` others, those of its own group (document) first.

    A window alone in its batch stands in for itself.
    """
    size = len(groups)
    chosen = []
    for window in range(size):
        others = [(window + k) % size for k in range(1, size)] or [window]
        others.sort(key=lambda other: groups[other] != groups[window])
        chosen.append(others[:wanted])
    return torch.tensor(chosen).T


def copies_for(factor: float, time: int, near: int) -> int:
    """How many windows stand in for the rest of a context `factor` times as long: as many as fill it, up to 8."""
    return min(MOST_COPIES, max(1, round(time * (factor - 1) / (time - near))))
