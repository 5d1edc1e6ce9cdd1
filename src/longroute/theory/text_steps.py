"""Angle sequences from real text: the steps that a trained model's rotations take, token by token."""

import numpy as np
import torch
from torch import Tensor, nn

from longroute.data.shards import TokenShard
from longroute.errors import InputError
from longroute.evaluate import EvaluateSpec, choose_spans
from longroute.model import Decoder
from longroute.model.decoder import Block
from longroute.theory.ranges import Array, ComplexArray, Integers
from longroute.transport.phase import to_radians
from longroute.transport.rotation import RotationSteps

REACH = 8
"""A window of text, as a multiple of the training length."""
WINDOWS = 48
"""Windows that are read, at most."""


def text_windows(shard: TokenShard, train_length: int) -> Tensor:
    """Up to WINDOWS windows of REACH · L₀ tokens, spread evenly over the documents, (window time).

    Raises InputError if no document holds one.
    """
    spec = EvaluateSpec(REACH, spans=max(2, -(-WINDOWS // len(shard.names))))
    spans = choose_spans(shard, spec, train_length)
    chosen = [spans[k * len(spans) // WINDOWS] for k in range(WINDOWS)] if len(spans) > WINDOWS else spans
    return torch.from_numpy(np.stack([span.tokens[:-1].astype(np.int64) for span in chosen]))


@torch.inference_mode()
def angle_sequence(model: Decoder, windows: Tensor) -> Array:
    """The angle of every token's step, radians, float64: (layer window head time plane), read as the model runs.

    Raises InputError if the model's steps aren't rotations, or there are fewer than two windows.
    """
    if len(windows) < 2:
        raise InputError("steps from text need two windows at least; give a longer text")
    steps = [_steps(block) for block in model.blocks]
    taken: list[Tensor] = []

    def take(module: nn.Module, inputs: object, output: Tensor) -> None:
        taken.append(output)

    hooks = [one.register_forward_hook(take) for one in steps]  # type: ignore[arg-type]  # the stub's union of hooks
    try:
        model.hidden_states(windows.to(model.embedding.weight.device))
    finally:
        for hook in hooks:
            hook.remove()
    return np.stack([_radians(angle, len(windows)) for angle in taken])


def coherences(angles: Array, distances: Integers) -> ComplexArray:
    """Mean of e^{i(Θ_{t+n} - Θ_t)} over t within each window, (window, distance), from angles (window time)."""
    phase = np.cumsum(angles, axis=1)
    turned = [np.exp(1j * (phase[:, n:] - phase[:, :-n])).mean(axis=1) for n in distances.tolist()]
    return np.stack(turned, axis=1)


def fitted_radius(distances: Integers, coherence: Array, stderr: Array) -> tuple[float, float] | None:
    """r of ln C(n) = n ln r by least squares, and the root mean square of what is left of ln C, nats.

    Only where C(n) stands out of its noise; None if that is nowhere.
    """
    clear = coherence > np.maximum(4 * stderr, 1e-3)
    if not np.any(clear):
        return None
    n, log = distances[clear], np.log(coherence[clear])
    slope = float(np.sum(n * log) / np.sum(n**2))
    return float(np.exp(slope)), float(np.sqrt(np.mean((log - slope * n) ** 2)))


def _steps(block: nn.Module) -> RotationSteps:
    assert isinstance(block, Block)  # ModuleList forgets its items' type
    steps = block.attention.position.steps
    if not isinstance(steps, RotationSteps):
        raise InputError("this run's steps aren't rotations, so there are no angles to read; give a run that rotates")
    return steps


def _radians(steps: Tensor, windows: int) -> Array:
    angle = to_radians(steps, torch.float64) if steps.dtype == torch.int64 else steps.double()
    return angle.expand(windows, *angle.shape[1:]).cpu().numpy()
