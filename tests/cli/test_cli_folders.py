"""A folder belongs to what it holds, and a refused command takes none."""

from pathlib import Path

import pytest

from longroute.cli.main import main
from longroute.data.corpus import embedded_books

TINY = ["--preset", "smoke", "--set", "train.tokens=2000", "evaluate.reach=2", "evaluate.spans=1"]


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a text, a text that is too short, a trained run and a comparison."""
    folder = tmp_path_factory.mktemp("places")
    book = embedded_books("heldout")[0].text
    (folder / "long.txt").write_text(book[:60_000], "utf-8")
    (folder / "other.txt").write_text(book[60_000:120_000], "utf-8")
    (folder / "short.txt").write_text("Too short.", "utf-8")
    text = ["--text", str(folder / "long.txt"), "--heldout", str(folder / "other.txt")]
    assert main(["train", "--encoding", "rope-qk", *text, "--out", str(folder / "run"), *TINY]) == 0
    assert main(["compare", "--encodings", "alibi", *text, "--out", str(folder / "comparison"), *TINY]) == 0
    return folder


def test_one_verb_does_not_take_the_folder_of_another(places: Path):
    text = ["--text", str(places / "long.txt")]
    run, comparison = str(places / "run"), str(places / "comparison")
    before = {path: path.read_bytes() for path in places.glob("*/*.jsonl")}
    assert main(["train", "--encoding", "rope-qk", *text, "--out", comparison, *TINY]) == 2
    assert main(["compare", "--encodings", "alibi", *text, "--out", run, *TINY]) == 2
    assert main(["evaluate", run, *text, "--reach", "2", "--out", comparison]) == 2
    assert main(["evaluate", run, *text, "--reach", "2", "--out", run]) == 2
    assert before == {path: path.read_bytes() for path in before}


def test_a_refused_command_takes_no_folder(places: Path):
    out = str(places / "new run")
    command = ["train", "--encoding", "rope-qk", "--out", out, *TINY]
    assert main([*command[:5], "--text", str(places / "short.txt"), *TINY]) == 2
    assert main([*command, "model.head_dim=15", "--text", str(places / "long.txt")]) == 2
    assert main([*command, "--text", str(places / "long.txt")]) == 0


def test_evaluate_takes_any_number_of_texts(places: Path):
    command = ["evaluate", str(places / "run"), "--reach", "2", "--text"]
    assert main([*command, str(places / "short.txt")]) == 2
    assert main([*command, str(places / "long.txt")]) == 0
    assert main([*command, str(places / "other.txt")]) == 0
    assert len(list((places / "run" / "evaluations").glob("*/evaluation.json"))) == 2


def test_a_text_given_twice_is_refused(places: Path, capsys: pytest.CaptureFixture[str]):
    twice = [str(places / "other.txt"), str(places / ".." / "places0" / "other.txt")]
    command = ["compare", "--encodings", "alibi", "--text", str(places / "long.txt"), "--heldout", *twice]
    assert main([*command, "--out", str(places / "twice"), *TINY]) == 2
    assert "given 2 times" in capsys.readouterr().err


@pytest.mark.parametrize("out", ["long.txt", "long.txt/below"])
def test_a_file_is_no_folder(places: Path, out: str):
    text = ["--text", str(places / "long.txt")]
    assert main(["train", "--encoding", "rope-qk", *text, "--out", str(places / out), *TINY]) == 2
    assert main(["evaluate", str(places / "run"), *text, "--reach", "2", "--out", str(places / out)]) == 2
