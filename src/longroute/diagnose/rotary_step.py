"""The step of a model with rotary embeddings: read from its frequencies, confirmed by shifting its positions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from longroute.diagnose.heads import Heads
from longroute.transport.rotation import rotation_matrix

if TYPE_CHECKING:
    from transformers import PreTrainedModel

SHIFT = 1000
"""By how many tokens positions are shifted to see what rotates."""
_LASTING_ROPES = {"default", "linear", "llama3", "yarn"}  # the others' frequencies depend on the window's length


@dataclass(frozen=True, eq=False)
class FixedSteps:
    """A_t = M^t for the same step M (dim dim) of every token, as positions count from 0."""

    step: Tensor

    def at(self, index: Tensor) -> Tensor:
        return torch.stack([torch.linalg.matrix_power(self.step, t) for t in index.tolist()])[None, None]


def rotary_frequencies(model: PreTrainedModel) -> list[Tensor]:
    """Radians a token of the model's rotations, (plane) each, without those that depend on the window's length."""
    frequencies = []
    for module in model.modules():
        kinds = getattr(module, "rope_type", "default")
        lasting = set(kinds.values() if isinstance(kinds, dict) else [kinds]) <= _LASTING_ROPES
        buffers = module.named_buffers(recurse=False)
        frequencies += [b for name, b in buffers if lasting and name.endswith("inv_freq") and "original" not in name]
    return frequencies


def step_matrix(here: Heads, there: Heads, frequencies: list[Tensor]) -> Tensor | None:
    """The step, (dim dim) float64, under which all positions `SHIFT` further on give these other queries and keys."""
    dim = here.key.shape[3]
    for frequency in frequencies:
        angle = frequency.double()
        if 2 * len(angle) > dim:
            continue
        turn = _embedded(rotation_matrix(SHIFT * angle), dim)
        pairs = [(here.query, there.query), (here.key, there.key)]
        if all(_turned(before, after, turn) for before, after in pairs):
            return _embedded(rotation_matrix(-angle), dim)
    return None


def _turned(before: Tensor, after: Tensor, turn: Tensor) -> bool:
    """Whether `turn` takes the one to the other, up to 1 % of the largest entry (5 % in half precision)."""
    error = (before.double() @ turn.T - after.double()).abs().max()
    half = before.dtype in (torch.float16, torch.bfloat16)
    return bool(error <= (0.05 if half else 0.01) * after.double().abs().max())


def _embedded(matrix: Tensor, dim: int) -> Tensor:
    """The matrix on the first dimensions and the identity on the others, (dim dim)."""
    whole = torch.eye(dim, dtype=matrix.dtype, device=matrix.device)
    whole[: len(matrix), : len(matrix)] = matrix
    return whole
