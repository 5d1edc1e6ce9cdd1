"""`longroute theory`: every formula beside its exact law and a simulation."""

import dataclasses
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import torch
import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from longroute.configuration import to_json
from longroute.data.corpus import Document, corpus_hash, embedded_books, read_documents, short_names
from longroute.data.shards import write_shard
from longroute.data.tokenizer import load_tokenizer
from longroute.errors import InputError
from longroute.evaluate import load_run
from longroute.files import claim, locked, refuse_other, write_atomically
from longroute.report.theory import write_theory_page
from longroute.theory import Statement
from longroute.theory.evidence import EVIDENCE, theory_statements
from longroute.theory.evidence.text import text_statements
from longroute.theory.text_steps import angle_sequence, text_windows
from longroute.train import RunFolder

CONFIG = "theory-config.json"


@dataclass(frozen=True)
class Theory:
    """Check every formula of the theory against its exact law and a simulation; writes theory.json and theory.html.

    Exit code 0 when every formula holds, 1 when one doesn't. With --run it also shows whether a trained model's steps
    on text are independent, as the theory assumes; that they aren't is a finding and leaves the exit code alone.
    """

    out: Path = Path("runs/theory")
    """Where to write."""
    seed: int = 0
    """Of the simulations."""
    trained: Annotated[Path | None, tyro.conf.arg(name="run")] = None
    """Folder of a trained run whose rotations are followed over held-out text."""
    text: tuple[Path, ...] = ()
    """Text for --run: files or folders of txt, md, jsonl, parquet. Default: the held-out books of longroute."""
    text_key: str = "text"
    """Key or column of the text in jsonl and parquet files."""
    json: bool = False
    """Print {"statements": […]} too."""

    def run(self, console: Console) -> int:
        if self.seed < 0:
            raise InputError(f"--seed must not be negative, not {self.seed}")
        if self.text and self.trained is None:
            raise InputError("--text is the text for --run; give a run too")
        documents = self._documents()
        asked = {"seed": self.seed, "run": None, "text": corpus_hash(documents) if documents else None}
        if self.trained is not None:
            asked["run"] = to_json(RunFolder(self.trained).spec())
        with locked(self.out):
            refuse_other(self.out / CONFIG, asked)
            on_text = list(self._on_text(documents))
            claim(self.out / CONFIG, asked)
            statements = [*_shown(console, theory_statements(self.seed), len(EVIDENCE)), *on_text]
            records = {"statements": [dataclasses.asdict(statement) for statement in statements]}
            text = json.dumps(records, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
            write_atomically(self.out / "theory.json", text)
            page = write_theory_page(statements, self.out, seed=self.seed)
        if self.json:
            print(text, end="")
        _print_result(console, statements, on_text, page)
        return 0 if all(statement.holds for statement in statements[: len(EVIDENCE)]) else 1

    def _documents(self) -> Sequence[Document]:
        if self.trained is None:
            return []
        return short_names(
            read_documents(self.text, text_key=self.text_key) if self.text else embedded_books("heldout")
        )

    def _on_text(self, documents: Sequence[Document]) -> Iterator[Statement]:
        if self.trained is None:
            return
        run = RunFolder(self.trained)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        model = load_run(run, device)
        shard = write_shard(documents, load_tokenizer(run.tokenizer), self.out / "heldout")
        yield from text_statements(angle_sequence(model, text_windows(shard, run.spec().train.length)))


def _shown(console: Console, statements: Iterator[Statement], total: int) -> Iterator[Statement]:
    """The same statements, counted on the terminal as they come."""
    with _progress(console, total) as show:
        for done, statement in enumerate(statements, 1):
            show(done, statement)
            yield statement


@contextmanager
def _progress(console: Console, total: int) -> Iterator[Callable[[int, Statement], None]]:
    """A bar with an estimate of what remains; without a terminal a line for every tenth."""
    if not console.is_terminal:
        yield lambda done, statement: _print_line(console, done, total)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console) as bar:
        task = bar.add_task("theory", total=total)
        yield lambda done, statement: bar.update(task, completed=done, description=f"theory {statement.section}")


def _print_line(console: Console, done: int, total: int) -> None:
    if 10 * done // total != 10 * (done - 1) // total:
        console.print(f"theory: {done}/{total}", highlight=False)


def _print_result(console: Console, statements: list[Statement], on_text: list[Statement], page: Path) -> None:
    formulas: list[Any] = statements[: len(statements) - len(on_text)]
    for statement in formulas:
        if not statement.holds:
            console.print(f"DOES NOT HOLD: {statement.name} ({statement.section})", style="red", highlight=False)
    for statement in on_text:
        verdict = "as independent steps would" if statement.holds else "not as independent steps would"
        console.print(f"{statement.name}: decays {verdict}", highlight=False)
    held = sum(statement.holds for statement in formulas)
    console.print(f"{held} of {len(formulas)} statements hold", highlight=False)
    console.print(f"written: {page}", markup=False, soft_wrap=True, highlight=False)
