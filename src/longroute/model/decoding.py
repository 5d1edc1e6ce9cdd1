"""Decoding: the same logits as the full forward, chunk by chunk and token by token, with a state per layer."""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from longroute.attention import LayerCache
from longroute.errors import InputError
from longroute.model.decoder import Block, Decoder


class Decoding:
    """Sequences that a model is decoding: what it remembers of them, a LayerCache per layer.

    `lengths` are the real tokens in each row of the first prompt, padded on the left to the longest; None: no padding.
    The last `rollback` tokens can be taken back, as speculative decoding does.
    """

    def __init__(self, model: Decoder, *, lengths: Sequence[int] | None = None, rollback: int = 64):
        if rollback < 0:
            raise InputError(f"rollback must be at least 0 tokens, not {rollback}")
        if lengths is not None and (not lengths or min(lengths) < 1):
            raise InputError(f"every prompt needs at least one token, not {list(lengths)}")
        self.model = model
        self.length = 0
        self._rows = None if lengths is None else len(lengths)
        self._blocks = [block for block in model.blocks if isinstance(block, Block)]
        self._caches = [LayerCache(block.attention.position, rollback) for block in self._blocks]
        device = model.embedding.weight.device
        pads = None if lengths is None else [max(lengths) - length for length in lengths]
        self._pads = torch.tensor(pads, device=device) if pads and any(pads) else None

    @torch.no_grad()
    def extend(self, token_ids: Tensor) -> Tensor:
        """Hidden states (batch time width) of tokens (batch time) that follow those before; see `logits`."""
        rows = self._rows if self._rows is not None else len(token_ids)
        if token_ids.ndim != 2 or not token_ids.shape[1] or len(token_ids) != rows:
            raise InputError(f"decoding needs token ids (batch time) of {rows} rows, not {tuple(token_ids.shape)}")
        self._rows = rows
        x = self.model.embedding(token_ids)
        for block, cache in zip(self._blocks, self._caches, strict=True):
            x = block.extend(x, token_ids, cache, self._pads)
        self.length += token_ids.shape[1]
        return self.model.norm(x)

    @torch.no_grad()
    def logits(self, token_ids: Tensor) -> Tensor:
        """Logits (batch time vocabulary) of tokens that follow those before."""
        return F.linear(self.extend(token_ids), self.model.embedding.weight)

    @torch.no_grad()
    def next_logits(self, token_ids: Tensor) -> Tensor:
        """Logits (batch vocabulary) of the token after these."""
        return F.linear(self.extend(token_ids)[:, -1], self.model.embedding.weight)

    def roll_back(self, count: int) -> None:
        """Forget the last `count` tokens. Raises InputError for more than `rollback` promised."""
        for cache in self._caches:
            cache.roll_back(count)
        self.length -= count

    def reorder(self, rows: Tensor) -> None:
        """Row i becomes what row rows[i] was; there may be fewer or more than before. InputError if out of range."""
        if self._rows is None or rows.ndim != 1 or not len(rows) or not (rows.min() >= 0 and rows.max() < self._rows):
            raise InputError(f"reorder needs rows from 0 to {(self._rows or 0) - 1}, not {rows.tolist()}")
        self._rows = len(rows)
        for cache in self._caches:
            cache.reorder(rows)
        self._pads = None if self._pads is None else self._pads[rows]
