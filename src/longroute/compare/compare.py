"""The main job: train every candidate, carry each to many times its training length, and say how far it held."""

import json
from collections.abc import Generator, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

from longroute.attention import encoding_name
from longroute.compare.pool import run_all
from longroute.compare.recall import check_task, joined, recalled
from longroute.compare.spec import ComparisonSpec
from longroute.compare.text import TextSpec, prepare_text
from longroute.compare.worker import Progress, Run
from longroute.configuration import load_json, to_json
from longroute.data.windows import WindowSampler
from longroute.diagnose import span_breaking
from longroute.errors import InputError
from longroute.evaluate import choose_spans, complete_spans, summarise
from longroute.files import claim, locked, write_atomically
from longroute.model import Decoder
from longroute.report import write_report
from longroute.task import task_name
from longroute.train import RunFolder, RunSpec
from longroute.train.folder import versions

SCHEMA = 1


def compare(
    spec: ComparisonSpec, text: TextSpec, out: Path, *, workers: int, explain: bool = False
) -> Generator[Progress, None, None]:
    """Run a comparison in the folder `out`; yields progress, leaves summary.json, records.jsonl and report.html.

    With `explain` every run gets a full diagnosis in its folder too. The same comparison in the same folder goes on
    where it was; another one, or one that is running, is refused. Everything that can be wrong with the input is found
    before anything is trained. Raises InputError.
    """
    with locked(out):
        prepared, corpus = prepare_text(text, spec.model.vocabulary)
        WindowSampler(prepared.train, length=spec.train.length, batch=spec.train.batch, seed=0)
        choose_spans(prepared.heldout, spec.evaluate, spec.train.length)
        specs = spec.runs(vocabulary=prepared.train.vocab_size, text_hash=prepared.train.text_hash)
        runs = [
            Run.of(name, out / "runs" / name, run, spec.evaluate, prepared, explain=explain)
            for name, run in specs.items()
        ]
        for run in {run.spec.task: run for run in runs if run.spec.task}.values():
            check_task(run.spec, prepared, spec.evaluate.lengths(run.spec.train.length)[-1])
        facts = {run.name: run_facts(run.spec) for run in runs}  # builds every model: an impossible one is found here
        claim(out / "comparison.json", {"comparison": to_json(spec), "corpus": corpus["hash"]})
        failures: dict[str, str] = {}
        with closing(run_all(runs, workers=workers)) as progress:
            for item in progress:
                if item.stage == "failed":
                    failures[item.run] = item.reason
                yield item
        outcomes = {run.name: facts[run.name] | _outcome(run, failures.get(run.name)) for run in runs}
        rows = joined(runs, outcomes)
        summary = _summary(spec, runs[0].spec, corpus, rows)
        records = [record for run in runs for record in _labelled(run, failed=run.name in failures)]
        write_atomically(out / "records.jsonl", "".join(json.dumps(record) + "\n" for record in records))
        write_atomically(out / "summary.json", json.dumps(summary, indent=1, allow_nan=False) + "\n")
        write_report(summary, records, out)


def read_summary(out: Path) -> dict[str, Any]:
    """The summary that a comparison left. Raises InputError naming the file."""
    return load_json(out / "summary.json")


def _summary(spec: ComparisonSpec, run: RunSpec, corpus: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "schema": SCHEMA,
        "preset": spec.preset,
        "corpus": corpus,
        "model": to_json(run.model),
        "training": to_json(spec.train),
        "evaluation": to_json(spec.evaluate),
        "tasks": [task_name(task) for task in spec.tasks],
        "task_model": {key: value for key, value in to_json(spec.task_model).items() if key != "vocabulary"},
        "task_training": to_json(spec.task_train),
        "versions": versions(),
        "rows": rows,
    }


def _outcome(run: Run, reason: str | None) -> dict[str, Any]:
    """What a run came to: its row of the summary, but for `run_facts`. Numbers that it doesn't have are null."""
    records = RunFolder(run.folder).records.read() if reason is None else []
    measured = _measured(run, records) if run.spec.task is None else recalled(run, records)
    for place in (run.folder, run.text):  # no paths: the same comparison elsewhere has the same summary
        reason = reason and reason.replace(f"{place}/", "").replace(str(place), place.name)
    return {"status": "failed" if reason else "ok", "reason": reason} | measured


def _measured(run: Run, records: list[dict[str, Any]]) -> dict[str, Any]:
    """Perplexities and breaking lengths from a run's records; nulls without any."""
    train_length = run.spec.train.length
    explained = {"explained": (run.folder / "diagnosis" / "diagnosis.html").exists()}
    if records:
        spans = [record for span in complete_spans(records, run.evaluate, train_length) for record in span]
        predicted = next((record for record in records if record["record"] == "prediction"), None)
        breaking = {"measured": span_breaking(spans, train_length), "predicted": predicted and predicted["breaking"]}
        return explained | summarise(spans, train_length) | {"breaking": breaking}
    nothing = {str(length): None for length in run.evaluate.lengths(train_length)}
    keys = ("perplexity", "ratio", "scored_tokens")
    measured = {prefix + key: nothing for prefix in ("", "tail_") for key in keys}
    return explained | measured | {"interval": None, "skipped": {}, "worth": {}, "breaking": None}


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


def _labelled(run: Run, *, failed: bool) -> Iterator[dict[str, Any]]:
    """The run's records, each with what it belongs to; none if the run failed because they can't be read."""
    label = {"run": run.name, "encoding": encoding_name(run.spec.encoding), "seed": run.spec.seed}
    if run.spec.task is not None:
        label |= {"task": task_name(run.spec.task)}
    try:
        for record in RunFolder(run.folder).records.read():
            yield {"record": record["record"]} | label | record
    except InputError:
        if not failed:
            raise
