"""What one layer remembers of the tokens so far, so that later ones can attend to them."""

import torch
from torch import Tensor

from longroute.attention.attend import Route, causal_attention, charge_columns, charged
from longroute.attention.blockwise import masked_attention, pair_attention
from longroute.attention.encoding import PositionEncoding
from longroute.attention.route_state import RouteState, reordered


class LayerCache:
    """Pulled keys and values of one layer, and where its route stands.

    A token is pulled into the frame once and then stays as it is. PaTH alone has no frame: its keys are carried on, all
    of them, with every chunk, and kept a second time as they were before the tokens that can be taken back.
    """

    def __init__(self, position: PositionEncoding, rollback: int):
        self.state = RouteState(position, rollback)
        self.key, self.value, self.columns = Grown(), Grown(), Grown()
        self.carried: Tensor | None = None

    @torch.no_grad()
    def attend(self, query: Tensor, key: Tensor, value: Tensor, route: Route, pads: Tensor | None) -> Tensor:
        """`longroute.attention.attend` for tokens that follow all those before; `route` is what `state.extend` gave.

        The first `pads` (batch) tokens of each row are seen by nobody. Afterwards the tokens are remembered.
        """
        result = query.dtype
        query, key = route.frame.pull(query), route.frame.pull(key)
        if route.values:
            value = route.frame.pull(value)
        with torch.autocast(query.device.type, enabled=False):
            attend = self._attend if route.frame.pairs is None else self._attend_pairs
            output = attend(query, key, value, route, pads).to(result)
        folded = self.state.fold()
        if folded is not None and folded.pairs is not None:
            self.key.replace(folded.pairs.carry(self.key.tensor[:, :, : self.key.length - self.state.recent]))
        return route.frame.push(output) if route.values else output

    def roll_back(self, count: int) -> None:
        """Forget the last `count` tokens. Raises InputError for more than `rollback` promised."""
        frame = self.state.roll_back(count)
        for grown in (self.key, self.value, self.columns):
            grown.keep(self.state.length)
        if self.carried is not None:
            pairs = None if frame is None else frame.pairs
            self.carried = self.key.tensor if pairs is None else pairs.carry(self.key.tensor)

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was, as in a beam search."""
        batch = len(self.key.tensor)
        self.state.reorder(rows, batch)
        self.carried = reordered(self.carried, rows, batch)
        for grown in (self.key, self.value, self.columns):
            grown.reorder(rows)

    def _attend(self, query: Tensor, key: Tensor, value: Tensor, route: Route, pads: Tensor | None) -> Tensor:
        dim, scale = value.shape[-1], value.shape[-1] ** -0.5
        if route.charge is not None:
            query, key, value = charged(query, key, value, route.charge)
            scale = 1.0
        first = not self.key.length
        self.key.append(key)
        self.value.append(value)
        if first and pads is None and route.pairwise is None:
            return causal_attention(query, key, value, scale)[..., :dim]
        keys, values = self.key.tensor, self.value.tensor
        return masked_attention(query, keys, values, scale, pairwise=route.pairwise, pads=pads)[..., :dim]

    def _attend_pairs(self, query: Tensor, key: Tensor, value: Tensor, route: Route, pads: Tensor | None) -> Tensor:
        pairs = route.frame.pairs
        assert pairs is not None
        self.value.append(value)
        columns = None
        if route.charge is not None:
            before_query, before_key = charge_columns(query, key, route.charge)
            self.columns.append(before_key)
            columns = (before_query, self.columns.tensor)
        keys = key if self.carried is None else torch.cat([self.carried, key], 2)
        scale = value.shape[-1] ** -0.5
        output = pair_attention(
            query, keys, self.value.tensor, scale, pairs, columns=columns, pairwise=route.pairwise, pads=pads
        )
        self.carried = pairs.carry(keys)
        self.key.append(key)
        return output


class Grown:
    """A tensor that tokens are appended to, (batch head time dim). Its room doubles: a token costs O(1) copies."""

    def __init__(self) -> None:
        self._room = torch.empty(0, 0, 0, 0)
        self.length = 0

    @property
    def tensor(self) -> Tensor:
        return self._room[:, :, : self.length]

    def append(self, x: Tensor) -> None:
        needed = self.length + x.shape[2]
        if needed > self._room.shape[2]:
            room = x.new_empty(*x.shape[:2], max(needed, 2 * self.length), x.shape[3])
            if self.length:
                room[:, :, : self.length] = self.tensor
            self._room = room
        self._room[:, :, self.length : needed] = x
        self.length = needed

    def keep(self, length: int) -> None:
        """Forget all tokens from `length` on."""
        self.length = min(length, self.length)

    def replace(self, x: Tensor) -> None:
        """Put x in the place of the first tokens."""
        self._room[:, :, : x.shape[2]] = x

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was."""
        if self.length:
            self._room = self._room.index_select(0, rows)
