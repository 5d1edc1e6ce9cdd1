"""Learned rotation: the angles of a token's step are computed from its hidden state."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longroute.errors import InputError
from longroute.transport.rope import rope_frequencies
from longroute.transport.rotation import (
    RotationSteps,
    check_share,
    check_spread,
    geometric_spread,
    plane_count,
    turning_planes,
)
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class LearnedRotation:
    """M_t = ⊕_p R(θ_p(x_t)), θ(x) = η (W x + b) for each key-value head, x the layer's normalised input.

    `start="rope"`: W = 0 and η b = -ω, so that it begins as RoPE, without a gap. `start="mixing"`: b = 0 and W random
    so that θ_p has standard deviation σ_p over tokens (for x of unit mean square), σ_p falling geometrically from
    `fastest` to `slowest`. Neither is assumed to extrapolate: measure.

    η slows learning: an optimiser whose steps have one size (AdamW) moves angles η times as fast as other weights.
    Errors of angles add up along the route, and with η = 1 a short training never recovers from them (LOG.md).
    """

    start: Literal["rope", "mixing"] = "rope"
    """Where the angles begin."""
    fastest: float = 1.0
    """start=mixing: standard deviation of the angle in the fastest plane, radians."""
    slowest: float = 0.1
    """start=mixing: standard deviation of the angle in the slowest plane, radians."""
    theta: float = 10_000.0
    """start=rope: base of the frequencies."""
    share: float = 1.0
    """Share of the planes that turn, the first ones; the rest compare content at any distance alike. In (0, 1]."""
    rate: float = 0.1
    """η: how fast angles learn, relative to other weights."""

    name: ClassVar[str] = "learned"
    source: ClassVar[str] = "arXiv 2606.24975 (learned token-dependent rotations); the starts are Longroute's"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal", "shift", "exact"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk", "qkv"})

    def __post_init__(self):
        check_spread(self.fastest, self.slowest)
        if not self.theta > 1:
            raise InputError(f"learned: theta must be greater than 1, not {self.theta}")
        check_share("learned", self.share)
        if not self.rate > 0:
            raise InputError(f"learned: rate must be positive, not {self.rate}")

    def build(self, shape: LayerShape) -> "LearnedSteps":
        return LearnedSteps(self, shape)


class LearnedSteps(RotationSteps):
    """Angles in float32 at least, whatever the module's dtype or autocast: a phase must not depend on either."""

    def __init__(self, spec: LearnedRotation, shape: LayerShape):
        super().__init__()
        self.spec, self.width = spec, shape.width
        self.heads, self.planes = shape.kv_heads, turning_planes(spec.share, shape.head_dim)
        self.still = plane_count(shape.head_dim) - self.planes
        self.weight = nn.Parameter(torch.empty(self.heads * self.planes, shape.width))
        self.bias = nn.Parameter(torch.empty(self.heads * self.planes))
        self.reset_parameters()

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Back to the start that the spec names; draws from torch's global generator."""
        if self.spec.start == "rope":
            self.weight.zero_()
            frequencies = rope_frequencies(self.spec.theta, self.planes + self.still)[: self.planes]
            self.bias.copy_(-frequencies.repeat(self.heads) / self.spec.rate)
            return
        spread = geometric_spread(self.spec.fastest, self.spec.slowest, self.planes).repeat(self.heads)
        self.weight.normal_().mul_(spread[:, None] / (self.width**0.5 * self.spec.rate))
        self.bias.zero_()

    def forward(self, inputs: StepInputs) -> Tensor:
        dtype = torch.promote_types(inputs.hidden.dtype, torch.float32)
        with torch.autocast(inputs.hidden.device.type, enabled=False):
            angle = F.linear(inputs.hidden.to(dtype), self.weight.to(dtype), self.bias.to(dtype)) * self.spec.rate
        return F.pad(angle.unflatten(-1, (self.heads, self.planes)).transpose(1, 2), (0, self.still))
