"""Stopping anywhere and going on gives the bytes of a run that was never stopped."""

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import tiny_training as tiny

from longroute.data.windows import WindowSampler
from longroute.train import RunFolder, TrainSpec, loop
from longroute.train.checkpoint import latest_checkpoint

NURSERY = """
import os, sys, torch, tiny_training as tiny
from pathlib import Path
from longroute.train import loop
torch.set_num_threads(1)
loop.CHECKPOINT_SECONDS = 0.0  # a checkpoint after every record: a kill mostly falls into one
for line in sys.stdin:  # a process forked for each folder, so that torch is imported once
    child = os.fork()
    if not child:
        try:
            tiny.train_in(Path(line.strip()), tiny.run_spec(tokens=300 * 64))
        except BaseException:
            os._exit(1)
        os._exit(0)
    print(child, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
"""


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What twenty steps at once leave."""
    path = tmp_path_factory.mktemp("undisturbed") / "run"
    assert len(tiny.train_in(path, tiny.run_spec())) == 20
    return tiny.files(path)


@pytest.mark.parametrize("stops", [[10], [1], [19], [20], [3, 4, 5]])
def test_ten_stop_resume_ten_is_twenty(tmp_path: Path, undisturbed: dict[str, bytes], stops: list[int]):
    path, done = tmp_path / "run", 0
    for stop in stops:
        records = tiny.train_in(path, tiny.run_spec(), stop_after=stop)
        assert [record["step"] for record in records] == list(range(done + 1, done + stop + 1))
        done += stop
    records = tiny.train_in(path, tiny.run_spec())
    assert [record["step"] for record in records] == list(range(done + 1, 21))
    assert tiny.files(path) == undisturbed


def test_a_finished_run_is_left_alone(tmp_path: Path, undisturbed: dict[str, bytes]):
    path = tmp_path / "run"
    tiny.train_in(path, tiny.run_spec())
    assert tiny.train_in(path, tiny.run_spec()) == []
    assert tiny.files(path) == undisturbed


@pytest.mark.parametrize("encoding", ["rope-qk", "random-qkv:by=position", "alibi"])
def test_every_kind_of_encoding_resumes(tmp_path: Path, encoding: str):
    spec = tiny.run_spec(encoding, accumulate=2, tokens=6 * 128)
    tiny.train_in(tmp_path / "whole", spec)
    tiny.train_in(tmp_path / "parts", spec, stop_after=3)
    tiny.train_in(tmp_path / "parts", spec)
    assert tiny.files(tmp_path / "parts") == tiny.files(tmp_path / "whole")


def test_records_are_means_over_their_steps_wherever_the_run_stopped(tmp_path: Path, undisturbed: dict[str, bytes]):
    spec = tiny.run_spec(record_every=6)
    records = tiny.train_in(tmp_path / "whole", spec)
    assert [record["step"] for record in records] == [6, 12, 18, 20]
    each = [record["loss"] for record in tiny.train_in(tmp_path / "each", tiny.run_spec())]
    assert records[1]["loss"] == pytest.approx(sum(each[6:12]) / 6, rel=1e-12)
    assert records[-1]["loss"] == pytest.approx(sum(each[18:20]) / 2, rel=1e-12)
    tiny.train_in(tmp_path / "parts", spec, stop_after=2)
    tiny.train_in(tmp_path / "parts", spec)
    assert tiny.files(tmp_path / "parts") == tiny.files(tmp_path / "whole")
    model = "checkpoints/step-00000020/model.safetensors"
    assert tiny.files(tmp_path / "whole")[model] == undisturbed[model]


def test_how_often_a_checkpoint_is_written_changes_no_bit(
    tmp_path: Path, undisturbed: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    tiny.train_in(tmp_path / "run", tiny.run_spec())
    assert tiny.files(tmp_path / "run") == undisturbed


def test_leftovers_of_a_kill_are_cleared(tmp_path: Path, undisturbed: dict[str, bytes]):
    path = tmp_path / "run"
    tiny.train_in(path, tiny.run_spec(), stop_after=7)
    checkpoint = path / "checkpoints" / "step-00000007"
    older, partial = path / "checkpoints" / "step-00000003", path / "checkpoints" / "partial"
    older.mkdir()  # its removal was cut short
    (older / "state.json").write_text('{"step": 3}')
    shutil.copytree(checkpoint, partial)  # the next one was being written
    (partial / "model.safetensors").write_bytes(b"\0" * 100)
    (partial / "of an older version").write_text("")
    (path / "records.jsonl.partial").write_text('{"record"')
    with (path / "records.jsonl").open("a") as file:  # recorded after the checkpoint, the last line cut short
        file.write('{"record": "train", "step": 8, "loss": 0.0}\n{"record": "train", "st')
    assert [record["step"] for record in tiny.train_in(path, tiny.run_spec())] == list(range(8, 21))
    assert tiny.files(path) == undisturbed


@pytest.mark.parametrize("lost", ["config.json", "tokenizer.json"])
def test_a_kill_while_the_folder_is_made(tmp_path: Path, undisturbed: dict[str, bytes], lost: str):
    path = tmp_path / "run"
    path.mkdir()
    for name in ("config.json", "tokenizer.json"):
        if name != lost:
            shutil.copyfile(tiny.tokenizer(tmp_path), path / "tokenizer.json")
    tiny.train_in(path, tiny.run_spec())
    assert tiny.files(path) == undisturbed


def test_stopping_right_after_a_checkpoint_keeps_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """A stop must not remove a checkpoint only to write the same again: a kill in between would lose it."""
    monkeypatch.setattr(loop, "CHECKPOINT_SECONDS", 0.0)
    saved = []
    save = loop.save_checkpoint
    monkeypatch.setattr(loop, "save_checkpoint", lambda *args: (saved.append(args[1]), save(*args)))
    tiny.train_in(tmp_path / "run", tiny.run_spec(), stop_after=4)
    assert saved == [1, 2, 3, 4]


def test_a_killed_process_goes_on(tmp_path: Path):
    """SIGKILL at arbitrary moments while nearly all the time goes into checkpoints."""
    path, reference = tmp_path / "killed" / "run", tmp_path / "whole" / "run"
    path.parent.mkdir()
    reference.parent.mkdir()
    environment = os.environ | {"PYTHONPATH": str(Path(tiny.__file__).parent)}
    command, pipe = [sys.executable, "-c", NURSERY], subprocess.PIPE
    with subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, text=True) as nursery:
        assert nursery.stdin is not None
        assert nursery.stdout is not None

        def start(folder: Path) -> int:
            print(folder, file=nursery.stdin, flush=True)
            assert nursery.stdout is not None
            return int(nursery.stdout.readline())

        start(reference)
        assert nursery.stdout.readline() == "0\n"
        for delay in (0.0, 0.013, 0.05, 0.0777):
            child, before = start(path), step_of(path)
            while step_of(path) <= before:
                time.sleep(0.001)
            time.sleep(delay)
            os.kill(child, signal.SIGKILL)
            assert nursery.stdout.readline() == f"{-signal.SIGKILL}\n"
            assert before < step_of(path) < 300
        start(path)
        assert nursery.stdout.readline() == "0\n"
        nursery.stdin.close()
    assert tiny.files(path) == tiny.files(reference)


def step_of(path: Path) -> int:
    checkpoint = latest_checkpoint(path / "checkpoints")
    return 0 if checkpoint is None else checkpoint.step


def test_what_decides_a_run_changes_it(tmp_path: Path, undisturbed: dict[str, bytes]):
    """Seed, data order and every optimisation setting reach the weights: nothing is silently ignored."""
    model = "checkpoints/step-00000020/model.safetensors"
    seen = {undisturbed[model]}
    changes = {"seed": 1, "learning_rate": 1e-3, "warmup": 0.5, "weight_decay": 0.5, "beta2": 0.9, "clip": 0.01}
    for key, value in changes.items():
        spec = tiny.run_spec(**{key: value})
        tiny.train_in(tmp_path / key, spec)
        seen.add(tiny.files(tmp_path / key)[model])
        assert RunFolder(tmp_path / key).spec() == spec
    assert len(seen) == 1 + len(changes)


def test_the_same_windows_in_another_order_with_another_seed():
    firsts = [
        [WindowSampler(tiny.shard(), length=16, batch=4, seed=seed).draw(step).inputs for step in range(5)]
        for seed in (0, 0, 1)
    ]
    assert all((a == b).all() for a, b in zip(firsts[0], firsts[1], strict=True))
    assert not all((a == b).all() for a, b in zip(firsts[0], firsts[2], strict=True))


def test_resume_does_not_replay_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """nanoGPT#467: the same seed on resume drew the first batches again."""
    drawn = []
    draw = WindowSampler.draw
    monkeypatch.setattr(WindowSampler, "draw", lambda self, at: (drawn.append(at), draw(self, at))[1])
    tiny.train_in(tmp_path / "run", tiny.run_spec(accumulate=2, tokens=6 * 128), stop_after=3)
    tiny.train_in(tmp_path / "run", tiny.run_spec(accumulate=2, tokens=6 * 128))
    assert drawn == list(range(12))


@pytest.mark.parametrize(("tokens", "steps"), [(1, 1), (64, 1), (65, 2), (128, 2)])
def test_tokens_are_rounded_up_to_whole_steps(tokens: int, steps: int):
    spec = TrainSpec(length=16, batch=4, tokens=tokens)
    assert (spec.steps, spec.tokens_per_step) == (steps, 64)
