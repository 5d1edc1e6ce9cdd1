"""RoPE: every token turns every plane by the same fixed angle."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from torch import Tensor

from longroute.errors import InputError
from longroute.transport.phase import to_turns
from longroute.transport.rotation import RotationSteps, check_share, plane_count, turning_planes
from longroute.transport.step import LayerShape, StepInputs


def rope_frequencies(theta: float, planes: int) -> Tensor:
    """ω_p = theta^(-p / planes), p = 0 … planes - 1, radians a token, float64 (Su et al. 2021, §3.2.2)."""
    return theta ** (-torch.arange(planes, dtype=torch.float64) / planes)


@dataclass(frozen=True)
class RoPE:
    """M_t = ⊕_p R(-ω_p), ω_p = theta^(-2p/dim): the score depends on content and the distance i - j alone.

    With `share` below 1 the slowest planes stand still (p-RoPE, Barbero et al. 2024, arXiv 2410.06205): what no window
    of the training length turns through once is not there to be met untrained.
    """

    theta: float = 10_000.0
    """Base of the frequencies; larger is slower. > 1."""
    share: float = 1.0
    """Share of the planes that turn, the fastest first; the rest compare content at any distance alike. In (0, 1]."""

    name: ClassVar[str] = "rope"
    source: ClassVar[str] = "Su et al. 2021 (RoFormer), arXiv 2104.09864"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal", "shift", "exact"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk", "qkv"})

    def __post_init__(self):
        if not self.theta > 1:
            raise InputError(f"rope: theta must be greater than 1, not {self.theta}")
        check_share("rope", self.share)

    def build(self, shape: LayerShape) -> "RoPESteps":
        frequencies = rope_frequencies(self.theta, plane_count(shape.head_dim))
        frequencies[turning_planes(self.share, shape.head_dim) :] = 0
        return RoPESteps(-frequencies)


class RoPESteps(RotationSteps):
    """The same step for every token. The buffer is of integers, so no cast of the module can touch it."""

    def __init__(self, angle: Tensor):
        super().__init__()
        self.register_buffer("turns", to_turns(angle), persistent=False)
        self.turns: Tensor

    def forward(self, inputs: StepInputs) -> Tensor:
        return self.turns.expand(1, 1, inputs.token_ids.shape[1], -1)
