"""Frozen random numbers for every token type, or for every position: what random transports draw their steps from."""

from collections.abc import Callable
from typing import Literal

import numpy as np
import torch
from torch import Tensor, nn

from longroute.transport.step import LayerShape, StepInputs

Key = Literal["token", "position"]
"""What a frozen step belongs to: the token's type, or its position in the document."""

_ROWS_AT_ONCE = 4096


class FrozenTable(nn.Module):
    """Rows of numbers looked up by token type or position; the latter are drawn as far as they are asked for.

    Row n is a function of (seed, layer, n) alone: `columns` uniform numbers of NumPy's Philox stream, entered at n, put
    through `made`, (row columns) float64 to (row …). No length is too long, and no order of asking matters. Float32
    rows are kept as the integers that their bits are, so that no cast of the module can round them.
    """

    def __init__(self, by: Key, shape: LayerShape, columns: int, made: Callable[[Tensor], Tensor]):
        super().__init__()
        self.by: Key = by
        self.columns, self.made = columns, made
        self.key = np.array([shape.seed, shape.layer], dtype=np.uint64)
        self.floating = made(torch.empty((0, columns), dtype=torch.float64)).is_floating_point()
        rows = shape.vocabulary if by == "token" else 0
        self.register_buffer("rows", self._rows(0, rows), persistent=False)
        self.rows: Tensor

    def forward(self, inputs: StepInputs) -> Tensor:
        """The rows of every token, (batch time …)."""
        if self.by == "position" and inputs.longest > len(self.rows):
            self._grow(inputs.longest)  # type: ignore[reportCallIssue,reportArgumentType]  # disable's types lose self
        rows = self.rows[inputs.token_ids if self.by == "token" else inputs.positions]
        return rows.view(torch.float32) if self.floating else rows

    @torch.compiler.disable  # NumPy's stream can't be traced
    def _grow(self, rows: int) -> None:
        rows = max(rows, 2 * len(self.rows))
        drawn = self._rows(len(self.rows), rows).to(self.rows.device)
        self.rows = torch.cat([self.rows, drawn])

    def _rows(self, first: int, last: int) -> Tensor:
        blocks = [self._draw(at, min(at + _ROWS_AT_ONCE, last)) for at in range(first, last, _ROWS_AT_ONCE)]
        rows = torch.cat([self.made(torch.empty((0, self.columns), dtype=torch.float64)), *blocks])
        return rows.view(torch.int32) if self.floating else rows

    def _draw(self, first: int, last: int) -> Tensor:
        words_a_row = -(-self.columns // 4) * 4  # Philox yields four 64-bit words for each counter
        stream = np.random.Philox(key=self.key).advance(first * (words_a_row // 4))
        words = stream.random_raw((last - first) * words_a_row).reshape(last - first, words_a_row)
        uniform = torch.from_numpy(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
        return self.made(uniform[:, : self.columns])
