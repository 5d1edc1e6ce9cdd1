"""`longroute theory`: its files, its exit code, the same bytes for the same seed, and a trained model's own steps."""

import json
from pathlib import Path

import numpy as np
import pytest

from longroute.cli.main import main
from longroute.data.corpus import embedded_books
from longroute.theory import evidence, far_mass, simulate
from longroute.theory.evidence.text import text_statements

FEW = [one for one in evidence.EVIDENCE if one.__name__ in ("far_mass_attained", "levy_tail", "forget_gate_sum")]
TINY = ["--preset", "smoke", "--set", "train.tokens=2000", "train.length=32", "evaluate.reach=2", "evaluate.spans=1"]


@pytest.fixture(autouse=True)
def few_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "EVIDENCE", FEW)
    monkeypatch.setattr("longroute.cli.theory.EVIDENCE", FEW)


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("text") / "book.txt"
    path.write_text(embedded_books("heldout")[0].text[:60_000], "utf-8")
    return path


def trained(folder: Path, encoding: str, text: Path) -> Path:
    command = ["train", "--encoding", encoding, "--text", str(text), "--out", str(folder / encoding), *TINY]
    assert main(command) == 0
    return folder / encoding


def statements(folder: Path) -> dict[str, dict]:
    return {one["name"]: one for one in json.loads((folder / "theory.json").read_text("utf-8"))["statements"]}


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    for name in ("one", "two"):
        assert main(["theory", "--out", str(tmp_path / name), "--seed", "3"]) == 0
    for file in ("theory.json", "theory.html"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()
    assert list(statements(tmp_path / "one")) == ["levy-tail", "far-mass-attained", "forget-gate-sum"]
    assert main(["theory", "--out", str(tmp_path / "one"), "--seed", "3"]) == 0
    assert main(["theory", "--out", str(tmp_path / "one"), "--seed", "4"]) == 2


def test_json_is_what_the_file_holds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["theory", "--out", str(tmp_path), "--json"]) == 0
    captured = capsys.readouterr()
    assert captured.out == (tmp_path / "theory.json").read_text("utf-8")
    assert "3 of 3 statements hold" in captured.err


def test_a_statement_that_does_not_hold_is_exit_code_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(far_mass, "far_mass_lower_bound", lambda far, near, bound: np.ones(len(far)))
    assert main(["theory", "--out", str(tmp_path)]) == 1
    assert "DOES NOT HOLD: far-mass-attained" in capsys.readouterr().err
    assert not statements(tmp_path)["far-mass-attained"]["holds"]


def test_a_trained_models_steps_are_followed(tmp_path: Path, text: Path) -> None:
    run = trained(tmp_path, "random-qk", text)
    out = tmp_path / "theory"
    assert main(["theory", "--out", str(out), "--run", str(run), "--text", str(text)]) == 0
    found = statements(out)
    for name in ("text-steps-slowest", "text-steps-median", "text-steps-fastest"):
        parameters = found[name]["parameters"]
        assert 0 < parameters["r of one step"] < 1
        assert parameters["windows"] >= 2
        assert found[name]["simulated"][0] == pytest.approx(found[name]["exact"][0], abs=0.02)
    page = (out / "theory.html").read_text("utf-8")
    assert "Your model: its slowest plane." in page
    assert "All 3 statements hold. Your model's steps" in page.replace("&#39;", "'")


def test_what_cannot_be_followed_is_refused(tmp_path: Path, text: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = trained(tmp_path, "alibi", text)
    assert main(["theory", "--out", str(tmp_path / "a"), "--run", str(run), "--text", str(text)]) == 2
    assert "aren't rotations" in capsys.readouterr().err
    (tmp_path / "short.txt").write_text("Too short.", "utf-8")
    short = ["--text", str(tmp_path / "short.txt")]
    assert main(["theory", "--out", str(tmp_path / "b"), "--run", str(run), *short]) == 2
    assert main(["theory", "--out", str(tmp_path / "c"), "--text", str(text)]) == 2
    assert main(["theory", "--out", str(tmp_path / "d"), "--run", str(tmp_path / "none")]) == 2
    assert main(["theory", "--out", str(tmp_path / "e"), "--seed", "-1"]) == 2
    assert main(["theory", "--out", str(run)]) == 2
    assert not list(tmp_path.glob("?/theory-config.json"))


@pytest.mark.parametrize(("repeated", "independent"), [(1, True), (4, False)])
def test_dependent_steps_are_told_from_independent_ones(repeated: int, independent: bool) -> None:
    """Steps that come in runs of four the same decay faster than |φ|^n: the statement says so."""
    rng = simulate.generator(0, "angles")
    angles = np.repeat(simulate.step_angles(rng, (1, 40, 1, 256 // repeated), [0.4, 0.5, 0.6]), repeated, axis=3)
    for statement in text_statements(angles):
        assert statement.holds == independent, statement.name
        radius = float(np.exp(-((statement.parameters["plane"] + 4) ** 2) / 200))
        assert statement.parameters["r of one step"] == pytest.approx(radius, abs=0.02)
        if independent:
            assert statement.parameters["r fitted"] == pytest.approx(radius, abs=0.02)
            assert statement.parameters["fit error, nats"] < 0.2
