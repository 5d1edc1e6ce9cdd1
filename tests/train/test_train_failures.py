"""A loss that stops being a number stops the run and says where; a broken checkpoint is named."""

import json
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import tiny_training as tiny
import torch
from safetensors.torch import load_file, save_file

from longroute.errors import InputError
from longroute.train import NonFiniteError, RunFolder, loop


def test_a_learning_rate_that_destroys_the_weights(tmp_path: Path):
    spec = tiny.run_spec(learning_rate=1e30)
    with pytest.raises(NonFiniteError, match=r"non-finite at step \d+: loss .*gradient norm .*learning rate") as error:
        tiny.train_in(tmp_path / "run", spec)
    records = RunFolder(tmp_path / "run").records.read()
    assert [record["step"] for record in records] == list(range(1, error.value.step))
    assert 0 < error.value.step < 20
    assert f"step {error.value.step}:" in str(error.value)
    assert all(math.isfinite(record["loss"]) for record in records)


@pytest.mark.parametrize("poisoned", ["blocks.0.attention_norm.weight", "blocks.1.feed_forward.gate.weight"])
def test_the_cause_names_the_first_weight(tmp_path: Path, poisoned: str):
    path = tmp_path / "run"
    tiny.train_in(path, tiny.run_spec(), stop_after=6)
    file = path / "checkpoints" / "step-00000006" / "model.safetensors"
    weights = load_file(file)
    weights[poisoned].view(-1)[0] = math.nan
    save_file(weights, file)
    with pytest.raises(NonFiniteError, match=f"step 7: loss nan.*first not finite: weights of {poisoned}") as error:
        tiny.train_in(path, tiny.run_spec())
    assert error.value.step == 7
    assert [record["step"] for record in RunFolder(path).records.read()] == list(range(1, 7))


def test_a_gradient_alone_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A finite loss with an infinite gradient would ruin the weights one step later."""

    def infinite_gradient(hidden: torch.Tensor, *_: Any) -> torch.Tensor:
        return (hidden * 0).abs().sqrt().sum().reshape(1, 1)

    monkeypatch.setattr(loop, "token_losses", infinite_gradient)
    with pytest.raises(NonFiniteError, match=r"step 1: loss 0, gradient norm nan.*gradient of"):
        tiny.train_in(tmp_path / "run", tiny.run_spec())


def spoil_bytes(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-5])


def spoil_shape(file: Path) -> None:
    tensors = load_file(file)
    name = max(tensors, key=lambda key: tensors[key].numel())
    save_file(tensors | {name: tensors[name][:-1].contiguous()}, file)


def spoil_names(file: Path) -> None:
    tensors = load_file(file)
    save_file({f"x{name}": tensor for name, tensor in tensors.items()}, file)


def spoil_count(file: Path) -> None:
    tensors = load_file(file)
    tensors.pop(max(tensors))
    save_file(tensors, file)


@pytest.mark.parametrize("spoil", [Path.unlink, spoil_bytes, spoil_shape, spoil_names, spoil_count])
@pytest.mark.parametrize("name", ["model.safetensors", "optimizer.safetensors"])
def test_a_broken_checkpoint_is_named(tmp_path: Path, spoil: Any, name: str):
    path = tmp_path / "run"
    tiny.train_in(path, tiny.run_spec(), stop_after=2)
    file = path / "checkpoints" / "step-00000002" / name
    spoil(file)
    with pytest.raises(InputError) as error:
        tiny.train_in(path, tiny.run_spec())
    assert str(error.value).startswith(f"{file}: ")
    assert len(RunFolder(path).records.read()) == 2


def test_a_checkpoint_holds_no_code(tmp_path: Path):
    """Only safetensors and JSON, so that a folder from elsewhere can be opened."""
    tiny.train_in(tmp_path / "run", tiny.run_spec(), stop_after=2)
    checkpoint = tmp_path / "run" / "checkpoints" / "step-00000002"
    assert {file.name for file in checkpoint.iterdir()} == {"model.safetensors", "optimizer.safetensors", "state.json"}
    assert json.loads((checkpoint / "state.json").read_text()) == {"step": 2}


def test_only_the_newest_checkpoint_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    tiny.train_in(tmp_path / "run", tiny.run_spec(), stop_after=5)
    assert [folder.name for folder in (tmp_path / "run" / "checkpoints").iterdir()] == ["step-00000005"]


def test_a_run_without_its_checkpoint_begins_again(tmp_path: Path):
    path = tmp_path / "run"
    tiny.train_in(path, tiny.run_spec(tokens=4 * 64), stop_after=2)
    shutil.rmtree(path / "checkpoints")
    assert [record["step"] for record in tiny.train_in(path, tiny.run_spec(tokens=4 * 64))] == [1, 2, 3, 4]
    assert [record["step"] for record in RunFolder(path).records.read()] == [1, 2, 3, 4]
