"""The whole job on a tiny trained run: order, resuming, bad input, and what the command leaves."""

import json
import shutil
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from longroute.cli.main import main
from longroute.data.corpus import Document, embedded_books
from longroute.diagnose import DiagnoseSpec, choose_text, diagnose, load_traced, open_diagnosis, resolve_lengths
from longroute.diagnose.traced import Anatomy
from longroute.errors import InputError

TINY = ["--preset", "smoke", "--set", "train.tokens=4000", "model.layers=1", "train.length=16"]
CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a trained run and two texts."""
    folder = tmp_path_factory.mktemp("diagnose")
    book = embedded_books("heldout")[0].text
    (folder / "train.txt").write_text(book[:60_000], "utf-8")
    (folder / "heldout.txt").write_text(book[60_000:90_000], "utf-8")
    text = ["--text", str(folder / "train.txt"), "--heldout", str(folder / "heldout.txt")]
    assert main(["train", "--encoding", "learned-qkv+forget", *text, "--out", str(folder / "run"), *TINY]) == 0
    return folder


def command(place: Path, out: Path, *more: str) -> list[str]:
    text = ["--text", str(place / "heldout.txt"), "--lengths", "8", "32", "64", "256", "--spans", "3"]
    return ["diagnose", str(place / "run"), *text, "--out", str(out), *more]


@pytest.fixture(scope="module")
def whole(place: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a diagnosis that was left in peace."""
    out = tmp_path_factory.mktemp("whole") / "out"
    assert main(command(place, out)) == 0
    return out


def start(place: Path, out: Path):
    model = load_traced(place / "run", device=CPU)
    spec = DiagnoseSpec((8, 32, 64, 256), 3)
    documents = [Document("heldout.txt", (place / "heldout.txt").read_text("utf-8"))]
    out.mkdir(parents=True, exist_ok=True)
    return open_diagnosis(model, choose_text(model, documents, 256, 3), spec, out)


def test_everything_asked_for_is_there(whole: Path):
    result = json.loads((whole / "diagnosis.json").read_text())
    assert result["lengths"] == [8, 16, 32, 64, 256]
    assert set(result["ratio"]) == {"8", "16", "32", "64", "256"}
    assert result["ratio"]["16"] == 1.0
    assert result["prediction"]["from_lengths"] == [8, 16, 32, 64]
    assert result["heads"]["256"]["far_mass"]["mean"][0][0] is not None
    assert result["heads"]["8"]["far_mass"]["mean"][0][0] is None
    assert result["heads"]["16"]["recomputed_within"] < 1e-5
    assert [control["name"] for control in result["controls"]] == [
        "log-count offset",
        "attention temperature",
        "window with sinks",
    ]
    assert (whole / "diagnosis.html").stat().st_size > 10_000


def test_the_prediction_is_written_before_anything_long_is_measured(place: Path, tmp_path: Path):
    job = diagnose(start(place, tmp_path), tmp_path)
    for progress in job:
        long = [record for record in records(tmp_path) if record["length"] == 256 and record["record"] == "loss"]
        assert not long or (tmp_path / "prediction.json").exists()
        if "256" in progress.stage and progress.stage.startswith("loss"):
            assert (tmp_path / "prediction.json").exists()
            assert not long
            break
    else:
        pytest.fail("nothing long was measured")


def test_stopped_at_any_place_it_ends_the_same(place: Path, whole: Path, tmp_path: Path):
    expected = (whole / "diagnosis.json").read_bytes()
    for stop in range(1, 60):
        job = diagnose(start(place, tmp_path), tmp_path)
        stages = [progress.stage for progress, _ in zip(job, range(stop), strict=False)]
        job.close()
        if stages[-1] == "done":
            break
    assert (tmp_path / "diagnosis.json").read_bytes() == expected
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert len(lines) == len(set(lines)) == len((whole / "records.jsonl").read_text().splitlines())


def test_a_record_cut_short_by_a_kill_is_made_again(place: Path, whole: Path, tmp_path: Path):
    shutil.copytree(whole, tmp_path / "out")
    file = tmp_path / "out" / "records.jsonl"
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:3]) + lines[3][:40])
    for _ in range(2):
        assert main(command(place, tmp_path / "out")) == 0
    assert (tmp_path / "out" / "diagnosis.json").read_bytes() == (whole / "diagnosis.json").read_bytes()


@pytest.mark.parametrize("lengths", [["80", "100"], ["24", "33", "47"], ["7", "65"]])
def test_odd_lengths(place: Path, tmp_path: Path, lengths: list[str]):
    text = ["--text", str(place / "heldout.txt"), "--spans", "1"]
    assert main(["diagnose", str(place / "run"), *text, "--out", str(tmp_path / "out"), "--lengths", *lengths]) == 0


def records(folder: Path) -> list[dict]:
    file = folder / "records.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_a_folder_belongs_to_one_diagnosis(place: Path, whole: Path, capsys: pytest.CaptureFixture[str]):
    before = (whole / "diagnosis.json").read_bytes()
    assert main([*command(place, whole)[:-2], "--out", str(whole), "--spans", "2"]) == 2
    assert "spans" in capsys.readouterr().err
    shutil.copytree(place / "run", place / "other")
    (weights,) = (place / "other" / "checkpoints").rglob("model.safetensors")
    save_file({name: 1.01 * tensor for name, tensor in load_file(weights).items()}, weights)
    other = [str(place / "other") if part == str(place / "run") else part for part in command(place, whole)]
    assert main(other) == 2
    assert "weights" in capsys.readouterr().err
    assert main(["diagnose", str(place / "run"), "--out", str(place / "run")]) == 2
    assert (whole / "diagnosis.json").read_bytes() == before


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (["--lengths", "100000"], "shorter than asked"),
        (["--lengths", "4", "8"], "below"),
        (["--train-length", "1"], "at least 2"),
        (["--lengths", "1"], "at least 2"),
        (["--lengths", "32", "32"], "differ"),
        (["--spans", "0"], "at least 1"),
        (["--tokenizer", "somewhere"], "--tokenizer"),
        (["--text", "nowhere.txt"], "nowhere.txt"),
    ],
)
def test_bad_input_is_refused_before_any_long_work(
    place: Path, tmp_path: Path, more: list[str], says: str, capsys: pytest.CaptureFixture[str]
):
    out = tmp_path / "out"
    assert main([*command(place, out), *more]) == 2
    assert says in capsys.readouterr().err
    assert not (out / "records.jsonl").exists()


def test_a_checkpoint_that_is_not_there_or_not_trained(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert main(["diagnose", str(tmp_path / "none"), "--out", str(tmp_path / "out")]) == 2
    assert "none" in capsys.readouterr().err
    shutil.copytree(place / "run", tmp_path / "run")
    shutil.rmtree(tmp_path / "run" / "checkpoints")
    assert main(["diagnose", str(tmp_path / "run"), "--out", str(tmp_path / "out")]) == 2
    assert "longroute train" in capsys.readouterr().err


def test_weights_that_are_not_numbers_are_named(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    shutil.copytree(place / "run", tmp_path / "run")
    (weights,) = (tmp_path / "run" / "checkpoints").rglob("model.safetensors")
    tensors = load_file(weights)
    tensors["blocks.0.feed_forward.gate.weight"][0, 0] = float("nan")
    save_file(tensors, weights)
    assert (
        main([*command(place, tmp_path / "out")[:1], str(tmp_path / "run"), *command(place, tmp_path / "out")[2:]]) == 2
    )
    assert "blocks.0.feed_forward.gate.weight" in capsys.readouterr().err
    assert not (tmp_path / "out" / "records.jsonl").exists()


def test_lengths_that_a_model_can_not_read_are_refused():
    anatomy = Anatomy("small", "gpt2", 64, 1, 1, 1, 8, longest=64)
    assert resolve_lengths(DiagnoseSpec(), anatomy) == (64,)
    with pytest.raises(InputError, match="can't read more than 64"):
        resolve_lengths(DiagnoseSpec((64, 128)), anatomy)
    assert resolve_lengths(DiagnoseSpec(), Anatomy("run", "longroute", 64, 1, 1, 1, 8))[-1] == 8192


@pytest.mark.parametrize("encoding", ["path-qk", "log-distance", "householder-qkv+window:window=24", "block-qk"])
def test_every_kind_of_encoding_is_diagnosed(encoding: str, place: Path, tmp_path: Path):
    """PaTH has no global frame: its loss and its steps alone, which shrink what they carry. The others in full."""
    text = ["--text", str(place / "train.txt"), "--heldout", str(place / "heldout.txt")]
    assert main(["train", "--encoding", encoding, *text, "--out", str(tmp_path / "run"), *TINY]) == 0
    heldout = ["--text", str(place / "heldout.txt"), "--lengths", "16", "32", "64", "--spans", "1"]
    assert main(["diagnose", str(tmp_path / "run"), *heldout, "--out", str(tmp_path / "out")]) == 0
    result = json.loads((tmp_path / "out" / "diagnosis.json").read_text())
    page = (tmp_path / "out" / "diagnosis.html").read_text("utf-8")
    (layer,) = result["transports"]
    if encoding.startswith("path"):
        assert "no global frame" in result["model"]["untraced"]
        assert min(map(min, layer["norm"])) < 0.9
        assert "How fast the model" in page
    else:
        assert result["model"]["untraced"] is None
        assert result["heads"]["64"]["far_mass"]["mean"][0][0] is not None
        assert layer is None or min(map(min, layer["norm"])) > 1 - 1e-6
