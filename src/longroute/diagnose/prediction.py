"""The breaking length predicted from short windows: a longer context put together from windows that were read alone.

In a context of L tokens, row i of a window of W ≪ L would see i (L / W - 1) tokens more, all far. The windows
right before it in the text stand in for them, each read alone. A key of such a window reaches row i by way of

    A_i · X · A'_end A'_j⁻¹,    bias m (c_i + x + c'_end - c'_j):

to its window's end, over a stretch X of routes that were measured in these windows, and in from this window's start.
Where the windows at hand are fewer than the tokens wanted, each counts for several. Scores, weights and values are the
model's own, layer by layer, and the loss is *measured*. Nothing longer than W is ever read. What this leaves out: what
the hidden states of tokens deep in a long context would be.
"""

from dataclasses import dataclass, replace
from itertools import pairwise

import torch
from torch import Tensor

from longroute.diagnose.edit import attention
from longroute.diagnose.heads import Heads, bias, content_scores, pairwise_bias, row_blocks, weighted_values
from longroute.diagnose.spec import Text
from longroute.diagnose.tail import keep_scored, tail_windows
from longroute.diagnose.traced import TracedModel

MOST_COPIES = 4
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
        key, value, charge, place = self._far_tokens(heads, generator)
        more, far = heads.time * (self.factor - 1), key.shape[2]
        blocks = []
        for rows in row_blocks(heads, more_keys=far):
            beyond = content_scores(heads, rows.index, key)
            if charge is not None and heads.charge is not None:
                beyond = beyond + bias(heads, heads.charge[:, :, rows.index, None] + charge[:, :, None]).to(
                    beyond.dtype
                )
            if heads.pairwise is not None:
                beyond = beyond + pairwise_bias(heads.pairwise, rows.index + round(more), place).to(beyond.dtype)
            count = rows.index.to(beyond.dtype) / heads.time * (more / far)
            beyond = beyond + count.log()[:, None]
            weights = torch.cat([rows.scores, beyond], -1).softmax(-1)
            own, others = weights.split([rows.scores.shape[-1], far], -1)
            blocks.append(weighted_values(own, heads.value) + weighted_values(others, value))
        return torch.cat(blocks, 2)

    def _far_tokens(self, heads: Heads, generator: torch.Generator) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
        """Keys and values of the stand-ins in this window's frame, (batch kv_head key dim), and x + c'_end - c'_j.

        The latter is (batch kv_head|1 key), None without a charge. Last, the keys' positions in the context, (key).
        """
        batch, time = len(heads.query), heads.time
        route = _Stretch.of(heads, batch)
        keys, values, charges, places = [], [], [], []
        begin = round(time * (self.factor - 1))
        for copy, more in zip(self.stand_ins, self._halves(heads.time), strict=True):
            begin -= more * time // 2
            places.append(torch.arange(self.near, time) - time + begin)
            for _ in range(more):
                route = route.longer(torch.randint(batch, (batch,), generator=generator))
            key, value = heads.key[copy, :, self.near :], heads.value[copy, :, self.near :]
            keys.append(route.carry(key, copy))
            values.append(route.carry(value, copy) if heads.values_ride else value)
            if heads.charge is not None and route.charge is not None:
                own = heads.charge.expand(batch, -1, -1)[copy]
                charges.append(route.charge[..., None] + own[:, :, -1:] - own[:, :, self.near :])
        charge = torch.cat(charges, 2) if charges else None
        return torch.cat(keys, 2), torch.cat(values, 2), charge, torch.cat(places).clamp(min=0)

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


def stand_ins(past: int, scored: int, copies: int) -> Tensor:
    """(copy window) for a batch of `past` windows, nearest first, and the `scored` ones that all of them precede.

    Past windows stand in for the scored ones, and for each other; a single one for itself. Nothing that is scored, or
    comes after, ever stands in.
    """
    chosen = [[other for other in range(past) if other != window] or [0] for window in range(past)]
    chosen += [list(range(past))] * scored
    return torch.tensor([[others[copy % len(others)] for others in chosen] for copy in range(copies)])


def longer_losses(
    model: TracedModel, text: Text, factor: float, *, window: int, near: int, tail: int, window_tokens: int
) -> Tensor:
    """Loss of every tail target, (span tail) float64, through windows that feel `factor` times as long as they are.

    The windows right before a stretch's tail, which don't overlap it or each other, are read beside its scored ones
    and stand in for far tokens; `past_windows` says whether there are any.
    """
    targets = text.tokens.shape[1] - 1
    tails = tail_windows(targets, tail, window)
    copies = min(
        copies_for(factor, window, near), past_windows(text, window, tail), max(1, window_tokens // window - 1)
    )
    past = [tails[0][0] - window * (copy + 1) for copy in range(copies)]
    losses = torch.empty(len(text.tokens), tail, dtype=torch.float64)
    at_once = max(1, window_tokens // window - copies)
    for span, tokens in enumerate(text.tokens):
        for group in (tails[at : at + at_once] for at in range(0, len(tails), at_once)):
            starts = [*past, *(start for start, _, _ in group)]
            inputs = torch.stack([tokens[start : start + window] for start in starts])
            wanted = torch.stack([tokens[start + 1 : start + window + 1] for start in starts])
            edit = LongerContext(near, factor, stand_ins(copies, len(group), copies))
            got = model.losses(inputs, wanted, edit=edit).double().cpu()[copies:]
            keep_scored(losses[span], got, group, targets - tail)
    return losses


def past_windows(text: Text, window: int, tail: int) -> int:
    """How many windows fit between the start of a stretch and the first window of its tail."""
    return tail_windows(text.tokens.shape[1] - 1, tail, window)[0][0] // window


def copies_for(factor: float, time: int, near: int) -> int:
    """How many windows stand in for the rest of a context `factor` times as long: as many as fill it, up to 4."""
    return min(MOST_COPIES, max(1, round(time * (factor - 1) / (time - near))))
