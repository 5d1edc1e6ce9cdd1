"""`longroute evaluate`: a trained run on any text, at every length."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from longroute.cli.progress import run_progress
from longroute.compare.compare import run_facts
from longroute.compare.worker import Progress
from longroute.configuration import to_json
from longroute.data.corpus import corpus_hash, embedded_books, read_documents, short_names
from longroute.data.shards import TokenShard, write_shard
from longroute.data.tokenizer import load_tokenizer
from longroute.errors import InputError
from longroute.evaluate import (
    TEST_SEED,
    EvaluateSpec,
    choose_spans,
    complete_spans,
    evaluate_run,
    hay_of,
    load_run,
    record_recall,
    summarise,
    summarise_recall,
)
from longroute.files import claim, locked, refuse_other, write_atomically
from longroute.model import Decoder
from longroute.report.wording import share_text
from longroute.task import Source, Task, draw_split, parse_task, task_name
from longroute.train import NonFiniteError, RunFolder, RunSpec
from longroute.train.batches import check_fits
from longroute.train.records import RecordFile

CONFIG = "evaluation-config.json"


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained run at 1, 2, 4 … times its training length; writes evaluation.json.

    One trained on text: its perplexity on held-out text, or with --tasks its recall of needles in it. One trained on a
    task: its recall.

    Stop it at any moment; the same command goes on where it was.
    """

    folder: Positional[Path]
    """Folder of a run, of `longroute train` or under runs/ of a comparison."""
    out: Path | None = None
    """Where to write. Default: a folder for what is asked, under `evaluations` in the run's folder."""
    text: tuple[Path, ...] = ()
    """Text to measure on: files or folders of txt, md, jsonl, parquet. Default: the held-out books of longroute."""
    text_key: str = "text"
    """Key or column of the text in jsonl and parquet files."""
    reach: int = 128
    """Longest length as a multiple of the training length; a power of two."""
    spans: int = 2
    """Spans a document, at most."""
    tasks: tuple[str, ...] = ()
    """Measure recall in these instead, such as needle or mqar:pairs=8. Default for a task's run: its own."""
    samples: int = 64
    """Samples of a task at each length, at most."""
    prune: float = 1e-6
    """Largest share of a row's attention that long windows may skip, with a certificate; 0 for none."""

    def run(self, console: Console) -> int:
        run = RunFolder(self.folder)
        facts, spec = run.spec(), EvaluateSpec(self.reach, self.spans, prune=self.prune, samples=self.samples)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        tasks = tuple(map(parse_task, self.tasks)) or ((facts.task,) if facts.task else ())
        on_text = not tasks or any(task.in_text for task in tasks)
        if self.text and not on_text:
            raise InputError("--text: these tasks are of made-up tokens")
        given = read_documents(self.text, text_key=self.text_key) if self.text else embedded_books("heldout")
        documents = short_names(given) if on_text else []
        unused = ("spans", "prune") if tasks else ("samples", "sample_tokens")
        asked = {
            "evaluate": {key: value for key, value in to_json(spec).items() if key not in unused},
            "text": corpus_hash(documents) if on_text else "",
            "tasks": [to_json(task) for task in tasks],
            "run": to_json(facts),
        }
        of_text = [asked["text"][:8]] if on_text else []
        measured = [f"samples{self.samples}"] if tasks else [f"spans{self.spans}", f"prune{self.prune:g}"]
        name = "-".join([*map(task_name, tasks), *of_text, f"reach{self.reach}", *measured])
        out = self.out or self.folder / "evaluations" / name
        model = load_run(run, device)
        with locked(out), run_progress(console) as show:
            refuse_other(out / CONFIG, asked)
            shard = write_shard(documents, load_tokenizer(run.tokenizer), out / "heldout") if on_text else None
            file = RecordFile(out / "records.jsonl")
            job = Job(facts, spec, model, device, file, self.folder.name)
            try:
                if tasks:
                    sources = [task.source(hay_of(run, shard)) for task in tasks]
                    longest = spec.lengths(facts.train.length)[-1]
                    for task, source in zip(tasks, sources, strict=True):
                        _check_speaks(task, source, facts)
                        draw_split(source, longest, 1, [TEST_SEED], heldout=True)
                    claim(out / CONFIG, asked)
                    recalled = job.recall(dict(zip(map(task_name, tasks), sources, strict=True)), show)
                    result = run_facts(facts) | {"recall": recalled}
                else:
                    assert shard is not None  # there is text wherever there are no tasks
                    choose_spans(shard, spec, facts.train.length)
                    claim(out / CONFIG, asked)
                    result = run_facts(facts) | job.perplexity(shard, show)
            except NonFiniteError as error:
                show(Progress(self.folder.name, "failed", reason=str(error)))
                return 1
            write_atomically(out / "evaluation.json", json.dumps(result, indent=1, allow_nan=False) + "\n")
        _print_result(console, result, out)
        return 0


def _check_speaks(task: Task, source: Source, run: RunSpec) -> None:
    """Raises InputError for a task in other tokens than the run's: only their own mean something to it."""
    check_fits(source, run)
    if task.in_text != run.on_text:
        raise InputError(f"{task_name(task)}: the run was trained on {'text' if run.on_text else 'made-up tokens'}")
    own = None if task.in_text or run.task is None else run.task
    if own is not None and (type(own) is not type(task) or own.source(None).vocabulary != source.vocabulary):
        raise InputError(f"{task_name(task)}: the run's own tokens are those of {task_name(own)}")


@dataclass(frozen=True)
class Job:
    """One evaluation of a run, going on from the records that its file has."""

    run: RunSpec
    spec: EvaluateSpec
    model: Decoder
    device: torch.device
    file: RecordFile
    name: str

    def perplexity(self, shard: TokenShard, show: Callable[[Progress], None]) -> dict[str, Any]:
        """Measure what is left to measure of perplexity; what it came to."""
        total = len(choose_spans(shard, self.spec, self.run.train.length))
        done = complete_spans(self.file.read(), self.spec, self.run.train.length)
        self.file.keep([record for span in done for record in span])
        spans = evaluate_run(self.model, self.run.train, shard, self.spec, device=self.device, done=len(done))
        for count, records in enumerate(spans, len(done) + 1):
            self.file.add(*records)
            show(Progress(self.name, "evaluate", count, total))
        return summarise(self.file.read(), self.run.train.length)

    def recall(self, sources: dict[str, Source], show: Callable[[Progress], None]) -> dict[str, Any]:
        """Measure what is left to measure of recall in tasks; what it came to, by their names."""
        train, results = self.run.train, {}
        total = len(self.spec.lengths(train.length))
        for name, source in sources.items():
            for count in record_recall(self.file, self.model, train, name, source, self.spec, self.device):
                show(Progress(self.name, f"recall {name}", count, total))
            own = [record for record in self.file.read() if record["task"] == name]
            results[name] = summarise_recall(own, train.length)
        return results


def _print_result(console: Console, result: dict, out: Path) -> None:
    for name, recall in result.get("recall", {}).items():
        table = Table("length", "accuracy", "binding", "chance", "answers", box=None, header_style="bold", title=name)
        for length in recall["accuracy"]:
            shares = [recall[key][length] for key in ("accuracy", "binding", "chance")]
            table.add_row(length, *map(share_text, shares), str(recall["answers"][length]))
        console.print(table)
        if not recall["solved"]:
            console.print(f"{name}: not learned at the training length; longer ones say nothing", markup=False)
    if "perplexity" in result:
        _print_perplexity(console, result)
    console.print(f"written: {out / 'evaluation.json'}", markup=False, soft_wrap=True)


def _print_perplexity(console: Console, result: dict) -> None:
    table = Table("length", "perplexity", "ratio", "tail perplexity", "tail ratio", box=None, header_style="bold")
    for length in result["perplexity"]:
        keys = ("perplexity", "ratio", "tail_perplexity", "tail_ratio")
        values = [result[key][length] for key in keys]
        table.add_row(length, *("-" if value is None else f"{value:.4g}" for value in values))
    console.print(table)
    for length, share in list(result.get("skipped", {}).items())[-1:]:
        console.print(f"skipped at {length} tokens, certified: {share:.1%} of attention", markup=False)
