"""The main job: train every candidate, carry each to many times its training length, and say how far it held."""

import json
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from longroute.attention import encoding_name
from longroute.compare.pool import run_all
from longroute.compare.spec import ComparisonSpec
from longroute.compare.text import TextSpec, prepare_text
from longroute.compare.worker import Progress, Run
from longroute.configuration import load_json, to_json
from longroute.data.windows import WindowSampler
from longroute.evaluate import choose_spans, complete_spans, summarise
from longroute.model import Decoder
from longroute.report import write_report
from longroute.train import RunFolder, RunSpec
from longroute.train.folder import locked, refuse_difference, versions, write_atomically

SCHEMA = 1


def compare(spec: ComparisonSpec, text: TextSpec, out: Path, *, workers: int) -> Generator[Progress, None, None]:
    """Run a comparison in the folder `out`; yields progress, leaves summary.json, records.jsonl and report.html.

    The same comparison in the same folder goes on where it was; another one, or one that is running, is refused.
    Everything that can be wrong with the input is found before anything is trained. Raises InputError.
    """
    out.mkdir(parents=True, exist_ok=True)
    with locked(out):
        prepared, corpus = prepare_text(text, spec.model.vocabulary)
        WindowSampler(prepared.train, length=spec.train.length, batch=spec.train.batch, seed=0)
        choose_spans(prepared.heldout, spec.evaluate, spec.train.length)
        _claim(out, {"comparison": to_json(spec), "corpus": corpus["hash"]})
        specs = spec.runs(vocabulary=prepared.train.vocab_size, text_hash=prepared.train.text_hash)
        runs = [Run.of(name, out / "runs" / name, run, spec.evaluate, prepared) for name, run in specs.items()]
        failures: dict[str, str] = {}
        with closing(run_all(runs, workers=workers)) as progress:
            for item in progress:
                if item.stage == "failed":
                    failures[item.run] = item.reason
                yield item
        summary = _summary(spec, runs, failures, corpus)
        records = [record for run in runs for record in _labelled(run)]
        write_atomically(out / "records.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        write_atomically(out / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
        write_report(summary, records, out)


def read_summary(out: Path) -> dict[str, Any]:
    """The summary that a comparison left. Raises InputError naming the file."""
    return load_json(out / "summary.json")


def _claim(out: Path, asked: dict[str, Any]) -> None:
    """Mark the folder as this comparison's. Raises InputError naming the first key in which an earlier one differs."""
    file = out / "comparison.json"
    if file.exists():
        refuse_difference(load_json(file), asked, file)
    else:
        write_atomically(file, json.dumps(asked, indent=1) + "\n")


def _summary(
    spec: ComparisonSpec, runs: list[Run], failures: dict[str, str], corpus: dict[str, Any]
) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "preset": spec.preset,
        "corpus": corpus,
        "model": to_json(runs[0].spec.model),
        "training": to_json(spec.train),
        "evaluation": to_json(spec.evaluate),
        "versions": versions(),
        "rows": [summary_row(run, failures.get(run.name)) for run in runs],
    }


def summary_row(run: Run, reason: str | None) -> dict[str, Any]:
    """A run's row of the summary; numbers that it doesn't have are null."""
    folder = RunFolder(run.folder)
    train_length = run.spec.train.length
    spans = complete_spans(folder.read_records(), run.evaluate, train_length)
    if reason is None:
        measured = summarise([record for span in spans for record in span], train_length)
    else:
        nothing = {str(length): None for length in run.evaluate.lengths(train_length)}
        keys = ("perplexity", "ratio", "scored_tokens")
        measured = {prefix + key: nothing for prefix in ("", "tail_") for key in keys} | {"interval": None}
    return run_facts(run.spec) | {"status": "failed" if reason else "ok", "reason": reason} | measured


def run_facts(spec: RunSpec) -> dict[str, Any]:
    """What identifies a run in a summary, and its sizes."""
    return {
        "encoding": encoding_name(spec.encoding),
        "transport": spec.encoding.transport.name,
        "values": spec.encoding.values,
        "control": spec.encoding.control.name,
        "seed": spec.seed,
        "parameters": sum(p.numel() for p in Decoder(spec.model, spec.encoding).parameters()),
        "train_length": spec.train.length,
        "train_tokens": spec.train.steps * spec.train.tokens_per_step,
        "spec": to_json(spec.encoding),
    }


def _labelled(run: Run) -> Iterator[dict[str, Any]]:
    """The run's records, each with what it belongs to."""
    label = {"run": run.name, "encoding": encoding_name(run.spec.encoding), "seed": run.spec.seed}
    for record in RunFolder(run.folder).read_records():
        yield {"record": record["record"]} | label | record
