"""Bad input: exit code 2 with one clear line, before anything is trained and without claiming the folder."""

import json
from pathlib import Path

import pytest

from longroute.cli.main import main
from longroute.compare import pool

WORDS = "the cat sat on the mat and a dog came by " * 100
TINY = ["model.vocabulary=280", "train.length=8", "train.batch=2", "train.tokens=16", "evaluate.reach=2"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A working directory with a good text, a short one, and files that are wrong."""
    (tmp_path / "good.txt").write_text(WORDS)
    (tmp_path / "short.txt").write_text("few words")
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "broken.jsonl").write_text('{"text": "one"}\n{"text": ')
    (tmp_path / "bytes.txt").write_bytes(b"good\xff")
    (tmp_path / "texts").mkdir()
    configs = {
        "misspelt": {"train": {"lenght": 8}},
        "type": {"train": {"length": "8"}},
        "encoding": {"encodings": ["roep-qk"]},
        "preset": {"preset": "smok"},
        "number": {"preset": 5},
        "list": [],
        "inner": {"comparison": []},
    }
    for name, data in configs.items():
        (tmp_path / f"{name}.json").write_text(json.dumps(data))
    (tmp_path / "syntax.json").write_text("{'preset': 1}")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pool.multiprocessing, "get_context", lambda _: pytest.fail("something was trained"))
    return tmp_path


TEXT = ["--text", "good.txt"]
CASES = {
    "unknown preset": (["--preset", "minni"], "unknown preset 'minni'; did you mean 'mini'?"),
    "misspelt encoding": (["--encodings", "roep-qk"], "unknown transport 'roep'; did you mean 'rope'?"),
    "misspelt field": (["--encodings", "rope-qk:thera=5"], "unknown key 'thera'; did you mean 'theta'?"),
    "encoding twice": (["--encodings", "alibi", "alibi"], "encodings must differ"),
    "seed twice": (["--seeds", "1", "1"], "seeds must differ"),
    "negative seed": ([*TEXT, "--seeds", "-1"], "seed must be"),
    "no workers": ([*TEXT, "--workers", "0"], "--workers must be at least 1"),
    "missing text": (["--text", "gone.txt"], "gone.txt: no such file or folder"),
    "empty text": (["--text", "empty.txt"], "empty.txt: the file is empty"),
    "empty folder": (["--text", "texts"], "texts: no file to read in this folder"),
    "broken line": (["--text", "broken.jsonl"], "broken.jsonl, line 2: not JSON"),
    "missing key": ([*TEXT, "--heldout", "broken.jsonl", "--text-key", "txt"], "no key 'txt'; did you mean 'text'?"),
    "not utf-8": (["--text", "bytes.txt"], "bytes.txt: invalid UTF-8 at byte 4"),
    "unknown suffix": (["--text", "good.json"], "good.json: "),
    "held out without text": (["--heldout", "good.txt"], "--heldout needs --text"),
    "missing held-out text": ([*TEXT, "--heldout", "gone.txt"], "gone.txt: no such file or folder"),
    "held-out text too short": ([*TEXT, "--heldout", "short.txt"], "2 × 8 needs 17 tokens in one document"),
    "training text too short": (["--text", "short.txt", "--heldout", "good.txt"], "a context of 8 needs at least 17"),
    "nothing to cut": (["--text", "short.txt"], "nothing to hold out"),
    "misspelt setting": (
        ["--set", "train.lenght=8"],
        "--set train.lenght=8: unknown key 'lenght'; did you mean 'length'?",
    ),
    "misspelt group": (["--set", "trian.length=8"], "unknown key 'trian'; did you mean 'train'?"),
    "setting too deep": (["--set", "train.length.x=8"], "unknown key 'x'"),
    "setting without value": (["--set", "train.length"], "--set train.length: expected KEY=VALUE"),
    "setting of a wrong type": (["--set", "train.length=x"], "train.length: expected int, got 'x'"),
    "setting out of range": (["--set", "train.tokens=0"], "tokens must be at least 1"),
    "infinite setting": (["--set", "train.learning_rate=1e999"], "expected a finite number"),
    "odd length": (["--set", "train.length=7"], "must be even"),
    "reach no power": (["--set", "evaluate.reach=3"], "reach must be a power of two"),
    "heads don't divide": (["--set", "model.heads=3", "model.kv_heads=2"], "must be a multiple of kv_heads"),
    "odd head_dim": ([*TEXT, "--encodings", "rope-qk", "--set", "model.head_dim=15"], "head_dim must be even"),
    "small vocabulary": ([*TEXT, "--set", "model.vocabulary=100"], "it must be at least 257"),
    "missing config": (["--config", "gone.json"], "gone.json: No such file"),
    "config no JSON": (["--config", "syntax.json"], "syntax.json: not JSON"),
    "config misspelt": (
        ["--config", "misspelt.json"],
        "misspelt.json: train: unknown key 'lenght'; did you mean 'length'?",
    ),
    "config type": (["--config", "type.json"], "type.json: train.length: expected int, got '8'"),
    "config encoding": (["--config", "encoding.json"], "unknown transport 'roep'; did you mean 'rope'?"),
    "config preset": (["--config", "preset.json"], "unknown preset 'smok'; did you mean 'smoke'?"),
    "config list": (["--config", "list.json"], "list.json: expected an object"),
    "out is a file": ([*TEXT, "--out", "good.txt"], "good.txt: "),
    "out below a file": ([*TEXT, "--out", "good.txt/out"], "good.txt/out: "),
}


@pytest.mark.parametrize("case", CASES)
def test_one_line_and_exit_code_2(folder: Path, capsys: pytest.CaptureFixture[str], case: str):
    given, message = CASES[case]
    command = ["compare", "--preset", "smoke"] if "--preset" not in given else ["compare"]
    command += [] if "--out" in given else ["--out", "out"]
    settings = ["--set", *TINY, *given[given.index("--set") + 1 :]] if "--set" in given else ["--set", *TINY]
    before = given[: given.index("--set")] if "--set" in given else given
    assert main([*command, *before, *settings]) == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("longroute: ")
    assert message in output.err
    assert output.err.count("\n") == 1
    assert not (folder / "out" / "comparison.json").exists()
    assert not (folder / "out" / "runs").exists()


def test_a_summary_that_is_not_one(folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "out").mkdir()
    (folder / "out" / "comparison.json").write_text("{")
    assert main(["compare", "--preset", "smoke", "--out", "out", *TEXT, "--set", *TINY]) == 2
    assert "comparison.json: not JSON" in capsys.readouterr().err
