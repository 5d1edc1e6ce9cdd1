"""One run of a comparison, in a process of its own: train, measure, record, go on from what is recorded."""

import multiprocessing
import os
import threading
import traceback
from collections.abc import Generator
from contextlib import closing
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from multiprocessing.synchronize import Event
from pathlib import Path

import torch

from longroute.configuration import load_json
from longroute.data.shards import Prepared, TokenShard, open_shard
from longroute.diagnose import DiagnoseSpec, diagnose, light_diagnosis, open_diagnosis
from longroute.diagnose.decoder import load_decoder
from longroute.diagnose.spec import choose_stretches
from longroute.errors import InputError
from longroute.evaluate import (
    EvaluateSpec,
    choose_spans,
    complete_spans,
    evaluate_run,
    hay_of,
    lengths_recorded,
    load_run,
    record_recall,
)
from longroute.files import locked
from longroute.report.diagnosis import write_diagnosis_page
from longroute.task import task_name
from longroute.train import NonFiniteError, RunFolder, RunSpec, train
from longroute.train.checkpoint import latest_checkpoint

_PATIENCE_SECONDS = 20.0


@dataclass(frozen=True)
class Run:
    """A run, its place, and where its text lies."""

    name: str
    folder: Path
    spec: RunSpec
    evaluate: EvaluateSpec
    tokenizer: Path
    text: Path
    heldout_names: tuple[str, ...]
    explain: bool = False

    @staticmethod
    def of(
        name: str, folder: Path, spec: RunSpec, evaluate: EvaluateSpec, text: Prepared, *, explain: bool = False
    ) -> "Run":
        """A run on prepared text."""
        place = text.tokenizer_path
        return Run(name, folder, spec, evaluate, place, place.parent, text.heldout.names, explain)


@dataclass(frozen=True)
class Progress:
    """How far a run is.

    `stage` is train (steps), predict, evaluate (spans), recall (lengths), explain (percent), done, or failed (then
    `reason` says why).
    """

    run: str
    stage: str
    done: int = 0
    total: int = 0
    reason: str = ""


def serve(connection: Connection, device: str, stop: Event) -> None:
    """The body of a worker process: carry out the runs that come in, until the parent closes the connection or stops.

    One thread, so that the bits of a run don't depend on what runs beside it.
    """
    threading.Thread(target=_die_with_parent, daemon=True).start()
    torch.set_num_threads(1)
    try:
        while not stop.is_set():
            _work(connection.recv(), torch.device(device), connection, stop)
    except (EOFError, BrokenPipeError):  # the parent wants nothing more
        return


def _work(run: Run, device: torch.device, connection: Connection, stop: Event) -> None:
    try:
        with closing(carry_out(run, device)) as progress:
            for item in progress:
                connection.send(item)
                if stop.is_set():
                    return
    except InputError as error:
        connection.send(Progress(run.name, "failed", reason=str(error)))
    except BrokenPipeError:
        raise
    except Exception as error:
        traceback.print_exc()
        connection.send(Progress(run.name, "failed", reason=f"{type(error).__name__}: {error}"))


def carry_out(run: Run, device: torch.device) -> Generator[Progress, None, None]:
    """Train a run and measure it: a task's recall, or where it breaks on text, predicted first; yields its progress.

    It may be closed after any of it with the state on disk. A loss that stops being finite is recorded as the run's
    failure, which a later call finds and does not repeat.
    """
    folder = RunFolder(run.folder)
    tokenizer = run.tokenizer if run.spec.on_text else None
    with folder.open(run.spec, tokenizer, patience=_PATIENCE_SECONDS):
        failure = [record for record in folder.records.read() if record["record"] == "failure"]
        if not failure:
            try:
                yield from _train(run, folder, device)
                if run.spec.task is not None:
                    yield from _recall(run, folder, device)
                else:
                    yield from _predict(run, folder, device)
                    yield from _evaluate(run, folder, device)
                    yield from _explain(run, folder, device)
            except NonFiniteError as error:
                failure = [{"record": "failure", "step": error.step, "reason": str(error)}]
                folder.records.add(*failure)
        yield Progress(run.name, "failed", reason=failure[0]["reason"]) if failure else Progress(run.name, "done")


def _train(run: Run, folder: RunFolder, device: torch.device) -> Generator[Progress, None, None]:
    checkpoint = latest_checkpoint(folder.checkpoints)
    if checkpoint is not None and checkpoint.step == run.spec.train.steps:
        return
    shard = open_shard(run.text / "train") if run.spec.on_text else None
    with closing(train(run.spec, shard, folder, device)) as records:
        for record in records:
            yield Progress(run.name, "train", record["step"], run.spec.train.steps)


def _predict(run: Run, folder: RunFolder, device: torch.device) -> Generator[Progress, None, None]:
    """The prediction is recorded before anything long is measured."""
    if any(record["record"] == "prediction" for record in folder.records.read()):
        return
    spans = choose_spans(_heldout(run), run.evaluate, run.spec.train.length)
    lengths = run.evaluate.lengths(run.spec.train.length)
    try:
        record = light_diagnosis(load_decoder(run.folder, device), spans, lengths)
    except InputError as error:  # a loss that isn't finite; the evaluation will say where
        record = {"record": "prediction", "breaking": None, "unpredicted": str(error)}
    folder.records.add(record)
    yield Progress(run.name, "predict", 1, 1)


def _explain(run: Run, folder: RunFolder, device: torch.device) -> Generator[Progress, None, None]:
    """The full diagnosis, where it is asked for, in the run's folder `diagnosis`."""
    out = run.folder / "diagnosis"
    if not run.explain:
        return
    model = load_decoder(run.folder, device)
    spec = DiagnoseSpec(run.evaluate.lengths(run.spec.train.length))
    heldout = _heldout(run)
    documents = {name: torch.from_numpy(heldout.document(i).astype("int64")) for i, name in enumerate(heldout.names)}
    with locked(out):
        text = choose_stretches(documents, spec.lengths[-1], spec.spans)
        for progress in diagnose(open_diagnosis(model, text, spec, out), out):
            yield Progress(run.name, "explain", int(100 * progress.done), 100)
        write_diagnosis_page(load_json(out / "diagnosis.json"), out)


def _recall(run: Run, folder: RunFolder, device: torch.device) -> Generator[Progress, None, None]:
    task, train_spec = run.spec.task, run.spec.train
    assert task is not None  # a run without one isn't asked
    name, lengths = task_name(task), run.evaluate.lengths(train_spec.length)
    if len(lengths_recorded(folder.records, name)) == len(lengths):
        return
    source = task.source(hay_of(folder, _heldout(run) if task.in_text else None))
    model = load_run(folder, device)
    for count in record_recall(folder.records, model, train_spec, name, source, run.evaluate, device):
        yield Progress(run.name, "recall", count, len(lengths))


def _heldout(run: Run) -> TokenShard:
    return replace(open_shard(run.text / "heldout"), names=run.heldout_names)  # the cache may know it by others


def _evaluate(run: Run, folder: RunFolder, device: torch.device) -> Generator[Progress, None, None]:
    heldout = _heldout(run)
    total = len(choose_spans(heldout, run.evaluate, run.spec.train.length))
    records = folder.records.read()
    done = complete_spans(records, run.evaluate, run.spec.train.length)
    if len(done) == total:
        return
    folder.records.keep(
        [r for r in records if r["record"] in ("train", "prediction")] + [r for span in done for r in span]
    )
    model = load_run(folder, device)
    spans = evaluate_run(model, run.spec.train, heldout, run.evaluate, device=device, done=len(done))
    for count, records in enumerate(spans, len(done) + 1):
        folder.records.add(*records)
        yield Progress(run.name, "evaluate", count, total)


def _die_with_parent() -> None:
    """A parent that was killed can't stop its workers: they end themselves, leaving the state that is on disk."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        wait([parent.sentinel])
        os._exit(1)
