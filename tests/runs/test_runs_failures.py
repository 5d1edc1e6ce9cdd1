"""A run that fails is shown; the others go on."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import tiny_comparison as tiny
import torch

from longroute.attention import parse_encoding
from longroute.cli.main import main
from longroute.compare import worker
from longroute.compare.text import TextSpec, prepare_text
from longroute.compare.worker import Run, carry_out
from longroute.evaluate import EvaluateSpec
from longroute.model import ModelSpec
from longroute.task import parse_task
from longroute.train import RunFolder, RunSpec, TrainSpec

NUMBERS = ("perplexity", "ratio", "scored_tokens", "tail_perplexity", "tail_ratio", "tail_scored_tokens")


def test_one_fails_and_the_other_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A run whose folder can't be made fails alone: exit code 1, null numbers, a reason without a path."""
    out = tmp_path / "out"
    (out / "runs").mkdir(parents=True)
    (out / "runs" / "alibi-seed0").write_text("a file is in the way")
    assert main(tiny.arguments(out, tmp_path)) == 1
    failed, ok = json.loads((out / "summary.json").read_text())["rows"]
    assert (failed["encoding"], failed["status"]) == ("alibi", "failed")
    assert (ok["encoding"], ok["status"], ok["reason"]) == ("learned-qkv+forget", "ok", None)
    assert failed["reason"] == "alibi-seed0: can't write to this folder: File exists"
    assert str(tmp_path) not in (out / "summary.json").read_text()
    assert failed["interval"] is None
    assert failed["parameters"] > 0
    for key in NUMBERS:
        assert failed[key] == {"8": None, "16": None, "32": None}
        assert all(value > 0 for value in ok[key].values())
    assert "alibi (seed 0) failed: alibi-seed0: can't write" in capsys.readouterr().err
    assert "File exists" in (out / "report.html").read_text()


def test_all_fail_and_the_report_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """A learning rate that destroys the weights; the same command again does not repeat the failure."""
    out = tmp_path / "out"
    command = tiny.arguments(
        out, tmp_path, "--encodings", "alibi", "--set", "train.learning_rate=1e30", "train.record_every=1"
    )
    assert main(command) == 1
    before = (out / "summary.json").read_bytes()
    for row in json.loads(before)["rows"]:
        assert row["status"] == "failed"
        assert row["reason"].startswith("non-finite at step ")
        assert "learning rate" in row["reason"]
        assert all(value is None for key in NUMBERS for value in row[key].values())
    records = [json.loads(line) for line in (out / "records.jsonl").read_text().splitlines()]
    assert {record["record"] for record in records} == {"train", "failure"}
    assert "non-finite at step" in (out / "report.html").read_text()
    assert main(command) == 1
    assert (out / "summary.json").read_bytes() == before
    assert "non-finite at step" in capsys.readouterr().err


def test_a_failed_task_fails_the_comparison_and_nothing_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    """The text run is whole; the task's failure is in the row, on the page, on the terminal and in the exit code."""
    out = tmp_path / "out"
    wild = ["task_train.learning_rate=1e30", "task_train.tokens=4096", "task_train.length=16"]
    assert main(tiny.arguments(out, tmp_path, "--encodings", "alibi", "--tasks", "mqar", "--set", *wild)) == 1
    (row,) = json.loads((out / "summary.json").read_text())["rows"]
    recall = row["recall"]["mqar"]
    assert (row["status"], recall["status"], recall["solved"]) == ("ok", "failed", False)
    assert recall["reason"].startswith("non-finite at step ")
    assert "alibi, mqar (seed 0) failed: non-finite at step" in " ".join(capsys.readouterr().err.split())
    page = (out / "report.html").read_text()
    assert "1 run failed" in page
    assert "alibi, mqar" in page


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """A run of twenty steps on the tiny text."""
    folder = tmp_path_factory.mktemp("carried")
    train, heldout = tiny.corpus(folder)
    prepared, _ = prepare_text(TextSpec((train,), (heldout,)), 280)
    model = ModelSpec(1, 16, 2, 1, 8, 16, prepared.train.vocab_size)
    train_spec = TrainSpec(length=8, tokens=640, batch=4, record_every=4)
    spec = RunSpec(parse_encoding("rope-qk"), model, train_spec, 0, prepared.train.text_hash)
    return Run.of("rope", folder / "whole", spec, EvaluateSpec(4, spans=4), prepared)


def goes_on_from_everywhere(run: Run, elsewhere: Path, *, written: int, step: int) -> list[tuple[str, int, int]]:
    """Its stages in one go: the same, and the same records, when it is stopped after each of them, and when a kill
    leaves any part, `step` bytes apart, of the last `written` bytes of its records."""
    device = torch.device("cpu")
    whole = [(item.stage, item.done, item.total) for item in carry_out(run, device)]
    expected = RunFolder(run.folder).records.path.read_bytes()
    parts, seen = replace(run, folder=elsewhere), []
    while not seen or seen[-1][0] != "done":
        progress = carry_out(parts, device)
        item = next(progress)
        progress.close()
        seen.append((item.stage, item.done, item.total))
    assert seen == whole
    assert RunFolder(parts.folder).records.path.read_bytes() == expected
    for length in range(len(expected) - written, len(expected), step):
        RunFolder(parts.folder).records.path.write_bytes(expected[:length])
        assert [item.stage for item in carry_out(parts, device)][-1] == "done"
        assert RunFolder(parts.folder).records.path.read_bytes() == expected
    return whole


@pytest.mark.usefixtures("one_thread")
def test_closing_after_any_progress_and_going_on(run: Run, tmp_path: Path):
    """The worker's own loop, stopped at every place that it can be stopped at, and killed in its evaluation."""
    assert goes_on_from_everywhere(run, tmp_path / "parts", written=3000, step=331) == [
        *(("train", n, 20) for n in (4, 8, 12, 16, 20)),
        ("predict", 1, 1),
        *(("evaluate", n, 4) for n in range(1, 5)),
        ("done", 0, 0),
    ]


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("name", ["mqar:pairs=2,queries=1,keys=4,values=4", "needle:keys=1"])
def test_a_tasks_run_goes_on_from_any_place_too(run: Run, tmp_path: Path, name: str):
    """Recall takes the place of prediction and evaluation, a record a length."""
    task = parse_task(name)
    model = replace(run.spec.model, vocabulary=run.spec.model.vocabulary if task.in_text else 24)
    spec = replace(run.spec, task=task, model=model, train=replace(run.spec.train, length=64, tokens=64 * 4 * 8))
    whole = replace(run, folder=tmp_path / "whole", spec=spec)
    assert goes_on_from_everywhere(whole, tmp_path / "parts", written=900, step=131) == [
        *(("train", n, 8) for n in (4, 8)),
        *(("recall", n, 3) for n in (1, 2, 3)),
        ("done", 0, 0),
    ]


def test_a_failure_is_recorded_once(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    wild = replace(
        run, folder=tmp_path / "wild", spec=replace(run.spec, train=replace(run.spec.train, learning_rate=1e30))
    )
    first = list(carry_out(wild, torch.device("cpu")))
    assert first[-1].stage == "failed"
    records = RunFolder(wild.folder).records.read()
    assert [record["record"] for record in records].count("failure") == 1
    assert records[-1]["reason"] == first[-1].reason
    assert all(math.isfinite(record["loss"]) for record in records[:-1])
    monkeypatch.setattr(worker, "train", lambda *_: pytest.fail("the failure was repeated"))
    assert list(carry_out(wild, torch.device("cpu"))) == first[-1:]
    assert RunFolder(wild.folder).records.read() == records
