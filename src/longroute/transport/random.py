"""Random rotation: a frozen random angle for every token type, or for every position. The theorem's own assumption."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import torch
from torch import Tensor

from longroute.transport.phase import to_turns
from longroute.transport.rotation import RotationSteps, check_spread, geometric_spread, plane_count
from longroute.transport.step import LayerShape, StepInputs

_ROWS_AT_ONCE = 4096


@dataclass(frozen=True)
class RandomRotation:
    """M_t = ⊕_p R(θ_p(key)), θ_p drawn once with mean 0 and standard deviation σ_p for each key, layer and head.

    The key is the token's type or its position in the document. σ_p falls geometrically from `fastest` to `slowest`.
    With r_p = |E e^{iθ_p}| (normal: e^{-σ_p²/2}) plane p forgets within ln(1/ε) / ln(1/r_p) steps, whatever the length.
    """

    by: Literal["token", "position"] = "token"
    """What the angle belongs to: the token's type, or its position in the document."""
    distribution: Literal["normal", "uniform"] = "normal"
    """Law of the angle in a plane; `uniform` has the same standard deviation."""
    fastest: float = 1.0
    """Standard deviation of the angle in the fastest plane, radians."""
    slowest: float = 0.1
    """Standard deviation of the angle in the slowest plane, radians."""

    name: ClassVar[str] = "random"
    source: ClassVar[str] = "arXiv 2606.24975 (random accumulated rotations)"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal", "exact"})
    moves: ClassVar[bool] = True

    def __post_init__(self):
        check_spread(self.fastest, self.slowest)

    def build(self, shape: LayerShape) -> "RandomSteps":
        return RandomSteps(self, shape)


class RandomSteps(RotationSteps):
    """Looks the frozen angles up; position angles are drawn as far as they are asked for, so no length is too long.

    Row n of the table is a function of (seed, layer, n) alone: NumPy's Philox stream, entered at n. Kept as 32-bit
    binary angles (a frozen random angle is *defined* at that resolution), so that a vocabulary of 50,000 stays small.
    """

    def __init__(self, spec: RandomRotation, shape: LayerShape):
        super().__init__()
        self.spec = spec
        self.heads, self.planes = shape.kv_heads, plane_count(shape.head_dim)
        self.key = np.array([shape.seed, shape.layer], dtype=np.uint64)
        rows = shape.vocabulary if spec.by == "token" else 0
        self.register_buffer("table", self._rows(0, rows), persistent=False)
        self.table: Tensor

    def forward(self, inputs: StepInputs) -> Tensor:
        keys = inputs.token_ids if self.spec.by == "token" else inputs.positions
        if self.spec.by == "position" and inputs.longest > len(self.table):
            self._grow(inputs.longest)  # type: ignore[reportCallIssue,reportArgumentType]  # disable's types lose self
        return self.table[keys].to(torch.int64).movedim(2, 1) << 32

    @torch.compiler.disable  # NumPy's stream can't be traced
    def _grow(self, rows: int) -> None:
        rows = max(rows, 2 * len(self.table))
        drawn = self._rows(len(self.table), rows).to(self.table.device)
        self.table = torch.cat([self.table, drawn])

    def _rows(self, first: int, last: int) -> Tensor:
        """Rows first … last - 1 of the table, (row head plane) int32."""
        blocks = [self._draw(at, min(at + _ROWS_AT_ONCE, last)) for at in range(first, last, _ROWS_AT_ONCE)]
        empty = torch.empty((0, self.heads, self.planes), dtype=torch.int32)
        return torch.cat([empty, *blocks])

    def _draw(self, first: int, last: int) -> Tensor:
        words_a_row = -(-self.heads * self.planes // 4) * 4  # Philox yields four 64-bit words for each counter
        stream = np.random.Philox(key=self.key).advance(first * (words_a_row // 4))
        words = stream.random_raw((last - first) * words_a_row).reshape(last - first, words_a_row)
        uniform = torch.from_numpy(((words >> np.uint64(11)).astype(np.float64) + 0.5) * 2.0**-53)
        uniform = uniform[:, : self.heads * self.planes].unflatten(1, (self.heads, self.planes))
        standard = torch.special.ndtri(uniform) if self.spec.distribution == "normal" else (uniform - 0.5) * 12**0.5
        spread = geometric_spread(self.spec.fastest, self.spec.slowest, self.planes)
        return (to_turns(standard * spread) >> 32).to(torch.int32)
