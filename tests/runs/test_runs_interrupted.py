"""Ctrl-C or kill at any moment, then the same command: the same bytes as if nothing had happened."""

import os
import random
import signal
import subprocess
import time
from pathlib import Path

import pytest
import tiny_comparison as tiny
import torch
from tiny_comparison import Finished

from longroute.cli.main import main


def test_killed_three_times_then_finished(tmp_path: Path, undisturbed: Finished):
    """While workers start, while they train, and later still; no worker outlives its parent."""
    assert undisturbed.code == 0
    command, moments = tiny.arguments(tmp_path / "out", tmp_path, steps=500), random.Random(os.getpid())
    for milestone in ("", "train", "train"):
        process = tiny.start(tmp_path, command)
        while not (workers := tiny.workers_of(process)):
            assert process.poll() is None
            time.sleep(0.01)
        if milestone:
            tiny.wait_for(process, milestone)
        delay = moments.uniform(0, 0.5 if milestone else 1.5)
        time.sleep(delay)
        tiny.kill(process, tiny.workers_of(process) or workers)
    assert main(command) == 0
    assert (tmp_path / "out" / "summary.json").read_bytes() == undisturbed.bytes(), f"killed after {delay} s"
    records = (tmp_path / "out" / "records.jsonl").read_bytes()
    assert records == (undisturbed.out / "records.jsonl").read_bytes()


def test_ctrl_c_stops_with_130_and_the_same_command_goes_on(tmp_path: Path, undisturbed: Finished):
    command = tiny.arguments(tmp_path / "out", tmp_path, steps=500)
    process = tiny.start(tmp_path, command)
    tiny.wait_for(process, "train")
    workers = tiny.workers_of(process)
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to parent and workers
    output = process.communicate()[1]
    assert process.returncode == 130, output
    assert "the same command goes on from here" in output
    assert "Traceback" not in output
    tiny.wait_until_gone(workers)
    assert not (tmp_path / "out" / "summary.json").exists()
    assert list((tmp_path / "out" / "runs").glob("*/checkpoints/step-*"))
    assert main(command) == 0
    assert (tmp_path / "out" / "summary.json").read_bytes() == undisturbed.bytes()


def test_the_same_command_again_is_quick_and_changes_nothing(
    tmp_path: Path, undisturbed: Finished, monkeypatch: pytest.MonkeyPatch
):
    """A finished folder needs no training and no evaluation: its weights may even be gone."""
    monkeypatch.chdir(tmp_path)
    before = undisturbed.bytes(), (undisturbed.out / "records.jsonl").read_bytes()
    for weights in undisturbed.out.rglob("model.safetensors"):
        weights.rename(weights.with_suffix(".away"))
    try:
        assert main(tiny.arguments(undisturbed.out, undisturbed.out.parent.parent, steps=500)) == 0
    finally:
        for weights in undisturbed.out.rglob("model.away"):
            weights.rename(weights.with_suffix(".safetensors"))
    assert (undisturbed.bytes(), (undisturbed.out / "records.jsonl").read_bytes()) == before


@pytest.mark.parametrize(
    ("more", "key"),
    [
        (["--set", "train.learning_rate=0.1"], "comparison.train.learning_rate is"),
        (["--set", "evaluate.spans=1"], "comparison.evaluate.spans is"),
        (["--encodings", "alibi"], "comparison.encodings is"),
        (["--seeds", "3"], "comparison.seeds is"),
    ],
)
def test_another_configuration_is_refused(
    undisturbed: Finished, capsys: pytest.CaptureFixture[str], more: list[str], key: str
):
    before = undisturbed.bytes()
    assert main(tiny.arguments(undisturbed.out, undisturbed.out.parent.parent, *more, steps=500)) == 2
    error = capsys.readouterr().err
    assert "comparison.json: this folder holds another configuration" in error
    assert key in error
    assert undisturbed.bytes() == before


def test_another_text_is_refused(undisturbed: Finished, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command = tiny.arguments(undisturbed.out, tmp_path, steps=500)
    (tmp_path / "train.txt").write_text(tiny.words(2999))
    assert main(command) == 2
    assert "another configuration: corpus is" in capsys.readouterr().err


def test_two_at_once_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    command = tiny.arguments(tmp_path / "out", tmp_path, "--set", "train.record_every=50000", steps=100_000)
    first = tiny.start(tmp_path, command)
    try:
        while not (tmp_path / "out" / "comparison.json").exists():
            assert first.poll() is None
            time.sleep(0.05)
        assert main(command) == 2
        assert "another process is running here" in capsys.readouterr().err
        while len(list((tmp_path / "out").glob("runs/*/records.jsonl"))) < min(2, torch.get_num_threads()):
            assert first.poll() is None
            time.sleep(0.05)
        # all workers train now, and will not look at their parent for minutes
    finally:
        tiny.kill(first, tiny.workers_of(first))


def test_a_worker_that_dies_is_a_failed_run_and_then_goes_on(tmp_path: Path, undisturbed: Finished):
    """As when memory runs out: the other run is finished and reported, the same command mends the rest."""
    command = tiny.arguments(tmp_path / "out", tmp_path, steps=500)
    process = tiny.start(tmp_path, command)
    tiny.wait_for(process, "alibi-seed0: train")
    name = "alibi-seed0"
    for pid in tiny.workers_of(process):
        if name in os.readlink(f"/proc/{pid}/cwd") or holds(pid, tmp_path / "out" / "runs" / name):
            os.kill(pid, signal.SIGKILL)
    output = process.communicate()[1]
    assert process.returncode == 1, output
    assert "alibi (seed 0) failed: its process ended with exit code -9" in " ".join(output.split())
    assert (tmp_path / "out" / "report.html").exists()
    assert main(command) == 0
    assert (tmp_path / "out" / "summary.json").read_bytes() == undisturbed.bytes()


def holds(pid: int, folder: Path) -> bool:
    """Whether a process has a run's lock open."""
    lock = str(folder / ".lock")
    return any(os.readlink(handle) == lock for handle in Path(f"/proc/{pid}/fd").iterdir() if handle.is_symlink())


def test_bad_input_is_an_exit_code(tmp_path: Path):
    """In a process of its own: one line on stderr, nothing on stdout, no traceback."""
    process = tiny.start(tmp_path, ["compare", "--preset", "smok", "--out", "out"])
    output = process.communicate()[1]
    assert process.returncode == 2
    assert output.startswith("longroute: unknown preset 'smok'; did you mean 'smoke'?")
    assert output.count("\n") == 1
    assert isinstance(process, subprocess.Popen)
