"""`longroute evaluate`: a trained run on any text, at every length."""

import json
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table
from tyro.conf import Positional

from longroute.cli.progress import run_progress
from longroute.compare.compare import run_facts
from longroute.compare.worker import Progress
from longroute.configuration import to_json
from longroute.data.corpus import corpus_hash, embedded_books, read_documents, short_names
from longroute.data.shards import write_shard
from longroute.data.tokenizer import load_tokenizer
from longroute.evaluate import EvaluateSpec, choose_spans, complete_spans, evaluate_run, load_run, summarise
from longroute.files import claim, locked, refuse_other, write_atomically
from longroute.train import NonFiniteError, RunFolder
from longroute.train.records import RecordFile

CONFIG = "evaluation-config.json"


@dataclass(frozen=True)
class Evaluate:
    """Measure a trained run on held-out text at 1, 2, 4 … times its training length; writes evaluation.json.

    Stop it at any moment; the same command goes on where it was.
    """

    folder: Positional[Path]
    """Folder of a run, of `longroute train` or under runs/ of a comparison."""
    out: Path | None = None
    """Where to write. Default: a folder for this text, reach and spans under `evaluations` in the run's folder."""
    text: tuple[Path, ...] = ()
    """Text to measure on: files or folders of txt, md, jsonl, parquet. Default: the held-out books of longroute."""
    text_key: str = "text"
    """Key or column of the text in jsonl and parquet files."""
    reach: int = 128
    """Longest length as a multiple of the training length; a power of two."""
    spans: int = 2
    """Spans a document, at most."""
    prune: float = 1e-6
    """Largest share of a row's attention that long windows may skip, with a certificate; 0 for none."""

    def run(self, console: Console) -> int:
        run = RunFolder(self.folder)
        facts, spec = run.spec(), EvaluateSpec(self.reach, self.spans, prune=self.prune)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        given = read_documents(self.text, text_key=self.text_key) if self.text else embedded_books("heldout")
        documents = short_names(given)
        asked = {"evaluate": to_json(spec), "text": corpus_hash(documents), "run": to_json(facts)}
        name = f"{asked['text'][:8]}-reach{self.reach}-spans{self.spans}-prune{self.prune:g}"
        out = self.out or self.folder / "evaluations" / name
        model = load_run(run, device)
        with locked(out), run_progress(console) as show:
            refuse_other(out / CONFIG, asked)
            shard = write_shard(documents, load_tokenizer(run.tokenizer), out / "heldout")
            total = len(choose_spans(shard, spec, facts.train.length))
            claim(out / CONFIG, asked)
            file = RecordFile(out / "records.jsonl")
            done = complete_spans(file.read(), spec, facts.train.length)
            file.keep([record for span in done for record in span])
            spans = evaluate_run(model, facts.train, shard, spec, device=device, done=len(done))
            try:
                for count, records in enumerate(spans, len(done) + 1):
                    file.add(*records)
                    show(Progress(self.folder.name, "evaluate", count, total))
            except NonFiniteError as error:
                show(Progress(self.folder.name, "failed", reason=str(error)))
                return 1
            result = run_facts(facts) | summarise(file.read(), facts.train.length)
            write_atomically(out / "evaluation.json", json.dumps(result, indent=1, allow_nan=False) + "\n")
        _print_result(console, result, out)
        return 0


def _print_result(console: Console, result: dict, out: Path) -> None:
    table = Table("length", "perplexity", "ratio", "tail perplexity", "tail ratio", box=None, header_style="bold")
    for length in result["perplexity"]:
        keys = ("perplexity", "ratio", "tail_perplexity", "tail_ratio")
        values = [result[key][length] for key in keys]
        table.add_row(length, *("-" if value is None else f"{value:.4g}" for value in values))
    console.print(table)
    for length, share in list(result.get("skipped", {}).items())[-1:]:
        console.print(f"skipped at {length} tokens, certified: {share:.1%} of attention", markup=False)
    console.print(f"written: {out / 'evaluation.json'}", markup=False, soft_wrap=True)
