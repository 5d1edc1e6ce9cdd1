"""Householder: every token reflects the head's space in a plane that its hidden state chooses."""

from dataclasses import dataclass
from typing import ClassVar, Literal

from torch import Tensor

from longroute.transport.reflections import HeadVectors, ReflectionSteps
from longroute.transport.step import LayerShape, StepInputs


@dataclass(frozen=True)
class Householder:
    """M_t = Π_r (I - 2 w_r w_rᵀ), w_r(x_t) = W_r x_t / ‖W_r x_t‖ for each key-value head, x the normalised input.

    One reflection flips a direction; two are a rotation in the plane that they span. Steps don't commute. For w spread
    evenly E[M] = (1 - 2/dim)^r I, so a step forgets like one of dim / (2 r) tokens' memory.
    """

    reflections: Literal[1, 2] = 1
    """Reflections of a token."""

    name: ClassVar[str] = "householder"
    source: ClassVar[str] = "Yang et al. 2025 (PaTH), arXiv 2505.16381, at β = 2; values transported: Longroute"
    laws: ClassVar[frozenset[str]] = frozenset({"causal", "packed", "orthogonal", "shift"})
    moves: ClassVar[frozenset[str]] = frozenset({"qk", "qkv"})

    def build(self, shape: LayerShape) -> "HouseholderSteps":
        return HouseholderSteps(self, shape)


class HouseholderSteps(ReflectionSteps):
    """Vectors from the hidden state."""

    def __init__(self, spec: Householder, shape: LayerShape):
        super().__init__()
        self.vectors = HeadVectors(shape.width, shape.kv_heads, (spec.reflections, shape.head_dim))

    def forward(self, inputs: StepInputs) -> Tensor:
        return self.vectors(inputs)
