"""The README's code and commands, run as a reader would, the commands at smoke size."""

import re
import shlex
from pathlib import Path

import pytest

from longroute.cli.main import main
from longroute.data.corpus import embedded_books

README = Path(__file__).parents[2] / "README.md"
SMALL = ["train.tokens=5000", "task_train.tokens=5000", "evaluate.reach=4", "evaluate.spans=1", "model.width=32"]


def blocks(language: str) -> list[str]:
    found = re.findall(rf"```{language}\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert found, f"the README has no {language} block"
    return found


def at_smoke_size(arguments: list[str]) -> list[str]:
    """The same command, smaller: training commands take the smoke preset and few tokens."""
    if arguments[0] not in ("compare", "train"):
        return [*arguments, "--reach", "4", "--samples", "8"] if arguments[0] == "evaluate" else arguments
    given = arguments.index("--set") + 1 if "--set" in arguments else None
    kept = [a for a in arguments[given:] if "=" in a] if given is not None else []
    rest = [a for a in arguments if a != "--set" and a not in kept]
    few = ["--encodings", "rope-qk", "log-distance"] if arguments[0] == "compare" and "--encodings" not in rest else []
    small = [one for one in SMALL if "--task" not in rest or not one.startswith(("train.", "model."))]
    return [*rest, *few, "--preset", "smoke", "--set", *kept, *small]


def test_python_blocks_run_in_order():
    names: dict[str, object] = {}
    for block in blocks("python"):
        exec(compile(block, str(README), "exec"), names)
    assert names["output"].shape == names["query"].shape == (1, 8, 300, 64)  # type: ignore[attr-defined]  # tensors


def test_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    books = {book.name: book.text for book in embedded_books("heldout")}
    (tmp_path / "my-books").mkdir()
    (tmp_path / "my-books" / "persuasion.txt").write_text(books["persuasion"], "utf-8")
    (tmp_path / "novel.txt").write_text(books["northanger-abbey"][:60_000], "utf-8")
    lines = "".join(f'{{"text": "Chapter {i}. A short document about nothing."}}\n' for i in range(3000))
    (tmp_path / "train.jsonl").write_text(lines, "utf-8")
    commands = [shlex.split(line) for block in blocks("sh") for line in block.strip().splitlines()]
    for program, *arguments in commands:
        assert program == "longroute"
        assert main(at_smoke_size(arguments)) == 0, arguments
    assert (tmp_path / "runs/mine/report.html").exists()
    assert (tmp_path / "runs/one/evaluations").exists()


def test_the_two_commands_are_those_of_ci_and_the_command_line():
    text = README.read_text("utf-8")
    assert "    bash scripts/check\n" in text
    assert "bash scripts/check" in (README.parent / ".ci/run").read_text("utf-8")
    assert ".venv/bin/longroute compare\n" in text
