"""Checkpoints that are whole or absent: safetensors and JSON in a folder that appears by one rename."""

import json
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from longroute.errors import InputError


@dataclass(frozen=True)
class Checkpoint:
    """A folder `step-00000123` with the weights, and the optimiser's state while training goes on."""

    folder: Path
    step: int


def save_checkpoint(folder: Path, step: int, model: nn.Module, optimizer: torch.optim.Optimizer) -> None:
    """Write the state after `step` steps and drop older checkpoints. A kill at any moment leaves one that is whole."""
    target = folder / f"step-{step:08d}"
    partial = folder / "partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    save_file(model.state_dict(), partial / "model.safetensors")
    save_file(_optimizer_tensors(optimizer), partial / "optimizer.safetensors")
    (partial / "state.json").write_text(json.dumps({"step": step}), "utf-8")
    for file in partial.iterdir():
        with file.open("rb") as handle:
            os.fsync(handle.fileno())
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    for old in _checkpoints(folder):
        if old.step != step:
            shutil.rmtree(old.folder, ignore_errors=True)


def latest_checkpoint(folder: Path) -> Checkpoint | None:
    """The checkpoint with the most steps, if there is one."""
    return max(_checkpoints(folder), key=lambda checkpoint: checkpoint.step, default=None)


def load_model(checkpoint: Checkpoint, model: nn.Module) -> None:
    """The checkpoint's weights into `model`. Raises InputError naming the file that doesn't fit."""
    file = checkpoint.folder / "model.safetensors"
    try:
        model.load_state_dict(_read(file))
    except RuntimeError as error:
        raise InputError(f"{file}: {error}") from error


def load_optimizer(checkpoint: Checkpoint, optimizer: torch.optim.Optimizer) -> None:
    """The checkpoint's optimiser state into `optimizer`, over the same parameters in the same order.

    Raises InputError naming the file if it holds anything else than AdamW's state of these parameters.
    """
    file = checkpoint.folder / "optimizer.safetensors"
    tensors = _read(file)
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    expected = {
        f"{index}.{name}": shape
        for index, parameter in enumerate(parameters)
        for name, shape in (("step", ()), ("exp_avg", parameter.shape), ("exp_avg_sq", parameter.shape))
    }
    if {key: tuple(tensor.shape) for key, tensor in tensors.items()} != {k: tuple(s) for k, s in expected.items()}:
        raise InputError(f"{file}: not the state of an optimiser over these {len(parameters)} parameters")
    state: dict[int, dict[str, Tensor]] = {}
    for key, tensor in tensors.items():
        index, _, name = key.partition(".")
        state.setdefault(int(index), {})[name] = tensor
    optimizer.load_state_dict({"state": state, "param_groups": optimizer.state_dict()["param_groups"]})


def _optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    state = optimizer.state_dict()["state"]
    return {f"{index}.{name}": tensor for index, entry in state.items() for name, tensor in entry.items()}


def _checkpoints(folder: Path) -> list[Checkpoint]:
    return [Checkpoint(path, int(path.name.removeprefix("step-"))) for path in folder.glob("step-" + "[0-9]" * 8)]


def _read(file: Path) -> dict[str, Tensor]:
    try:
        return load_file(file)
    except (OSError, SafetensorError) as error:
        raise InputError(f"{file}: not a readable safetensors file: {error}") from error
