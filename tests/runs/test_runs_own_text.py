"""A comparison on the user's own files."""

import json
from pathlib import Path

import tiny_comparison as tiny

from longroute.cli.main import main


def test_short_documents_to_train_on_and_a_long_text_to_measure_on(tmp_path: Path):
    """Documents shorter than a window are packed into it; txt and jsonl under a key of its own, read from a folder."""
    out, folder = tmp_path / "out", tmp_path / "texts"
    folder.mkdir()
    lines = [json.dumps({"body": tiny.words(1 + n % 4, seed=n)}) for n in range(400)]
    (folder / "short.jsonl").write_text("\n".join(lines))
    (folder / "note.txt").write_text(tiny.words(40))
    command = tiny.arguments(out, tmp_path, "--encodings", "learned-qkv+forget", "--text-key", "body")
    command[command.index("--text") + 1] = str(folder)
    assert main(command) == 0
    summary = json.loads((out / "summary.json").read_text())
    assert summary["corpus"]["heldout"] == ["heldout.txt"]
    assert len(summary["corpus"]["train"]) == 101  # the first hundred names, and how many more
    assert summary["rows"][0]["status"] == "ok"
    assert str(tmp_path) not in json.dumps(summary)


def test_one_text_is_cut_in_two_and_seeds_are_rows(tmp_path: Path):
    command = tiny.arguments(tmp_path / "out", tmp_path, "--encodings", "none", "--seeds", "0", "1")
    place = command.index("--heldout")
    assert main([*command[:place], *command[place + 2 :]]) == 0
    summary = json.loads((tmp_path / "out" / "summary.json").read_text())
    assert summary["corpus"]["name"] == "own text, the last tenth of each document held out"
    assert summary["corpus"]["train"] == ["train.txt"]
    first, second = summary["rows"]
    assert (first["seed"], second["seed"]) == (0, 1)
    assert first["control"] == "none"
    assert first["perplexity"] != second["perplexity"]
