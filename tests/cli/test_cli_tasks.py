"""Tasks from the command line: listed, trained, measured on runs of tasks and of text, refused where they don't fit."""

import json
from pathlib import Path
from typing import Any

import pytest

from longroute.cli.main import main
from longroute.data.corpus import embedded_books
from longroute.task import TASKS, parse_task

SMALL = ["train.batch=4", "train.tokens=4000"]
SMALL_TASK = [f"task_{setting}" for setting in SMALL]
NEEDLE = "needle:keys=1"


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A text, and runs: on mqar, on needles in the text, and on the text."""
    folder = tmp_path_factory.mktemp("tasks")
    book = embedded_books("heldout")[0].text
    (folder / "train.txt").write_text(book[:60_000], "utf-8")
    (folder / "heldout.txt").write_text(book[60_000:200_000], "utf-8")
    for name, task in (("mqar", ["--task", "mqar"]), ("needle", ["--task", NEEDLE]), ("text", [])):
        small = SMALL_TASK if task else SMALL
        assert main(["train", "--encoding", "alibi", "--out", str(folder / name), *task, *text(folder), *small]) == 0
    return folder


def text(folder: Path) -> list[str]:
    files = ["--text", str(folder / "train.txt"), "--heldout", str(folder / "heldout.txt")]
    return [*files, "--preset", "smoke", "--set"]


def evaluation(folder: Path) -> dict[str, Any]:
    (path,) = folder.glob("evaluations/*/evaluation.json")
    return json.loads(path.read_text())


def test_every_task_is_listed(capsys: pytest.CaptureFixture[str]):
    assert main(["tasks", "--json"]) == 0
    entries = json.loads(capsys.readouterr().out)
    assert [entry["name"] for entry in entries] == list(TASKS)
    for entry in entries:
        assert entry["summary"]
        assert entry["source"] == TASKS[entry["name"]].origin
        assert all(field["doc"] for field in entry["fields"])
        defaults = {field["name"]: field["default"] for field in entry["fields"]}
        name = ",".join(f"{key}={value}" for key, value in defaults.items())
        assert parse_task(f"{entry['name']}:{name}") == TASKS[entry["name"]]()
    assert main(["tasks"]) == 0
    shown = capsys.readouterr().err
    assert all(entry["name"] in shown and entry["source"] in shown for entry in entries)


def test_a_tasks_run_is_asked_its_own_task(places: Path, capsys: pytest.CaptureFixture[str]):
    command = ["evaluate", str(places / "mqar"), "--reach", "4", "--samples", "8"]
    assert main(command) == 0
    result = evaluation(places / "mqar")
    assert list(result["recall"]) == ["mqar"]
    assert list(result["recall"]["mqar"]["accuracy"]) == ["64", "128", "256"]
    assert not (places / "mqar" / "tokenizer.json").exists()
    assert "not learned at the training length" in capsys.readouterr().err
    records = next((places / "mqar").glob("evaluations/*/records.jsonl"))
    whole = records.read_text()
    records.write_text("".join(whole.splitlines(keepends=True)[:1]))
    assert main(command) == 0  # goes on where it was
    assert records.read_text() == whole
    assert evaluation(places / "mqar") == result


def test_needles_are_hidden_in_held_out_text(places: Path):
    command = ["evaluate", str(places / "needle"), "--reach", "4", "--samples", "8"]
    assert main([*command, "--text", str(places / "heldout.txt")]) == 0
    recall = evaluation(places / "needle")["recall"][NEEDLE]
    assert recall["chance"]["64"] == pytest.approx(0.1)
    assert recall["answers"]["256"] > 0


def test_a_run_on_text_is_asked_for_needles(places: Path):
    command = ["evaluate", str(places / "text"), "--reach", "4", "--samples", "8"]
    command += ["--text", str(places / "heldout.txt")]
    assert main([*command, "--tasks", NEEDLE, "passkey:digits=1"]) == 0
    assert list(evaluation(places / "text")["recall"]) == [NEEDLE, "passkey:digits=1"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["evaluate", "{mqar}", "--tasks", "mqar:keys=99"], "the task has 131 types of token, the model 48"),
        (["evaluate", "{mqar}", "--tasks", "mqar:keys=8"], "the run's own tokens are those of mqar"),
        (["evaluate", "{mqar}", "--tasks", "copy"], "the run's own tokens are those of mqar"),
        (["evaluate", "{mqar}", "--text", "x.txt"], "these tasks are of made-up tokens"),
        (["evaluate", "{text}", "--tasks", "mqar"], "the run was trained on text"),
        (["evaluate", "{needle}", "--tasks", "needle", "--reach", "65536"], "no text is long enough"),
        (["train", "--encoding", "alibi", "--task", "mqar", "--out", "{new}", "--set", "model.width=8"], "task_model"),
        (["evaluate", "{mqar}", "--tasks", "needle"], "tokenizer.json: no such tokenizer file"),
        (["evaluate", "{mqar}", "--tasks", "mqra"], "unknown 'mqra'; did you mean 'mqar'?"),
        (["generate", "{mqar}", "--prompt", "Once"], "tokenizer.json: no such tokenizer file"),
        (["train", "--encoding", "alibi", "--task", "mqar:piars=2", "--out", "{new}"], "did you mean 'pairs'?"),
        (["train", "--encoding", "alibi", "--task", "mqar:queries=40", "--out", "{new}"], "the task needs 84 tokens"),
        (["compare", "--tasks", "phone-book:digits=1", "--out", "{new}"], "10 numbers; give longer names and numbers"),
    ],
)
def test_what_does_not_fit_is_refused(
    places: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
):
    named = [one.format(**{name: places / name for name in ("mqar", "needle", "text", "new")}) for one in arguments]
    assert main(named + (text(places)[:-1] if "{new}" in arguments and "--set" not in arguments else [])) == 2
    assert said in " ".join(capsys.readouterr().err.split())
    assert not (places / "new" / "config.json").exists()
    assert not (places / "new" / "comparison.json").exists()
