"""Runs side by side in worker processes that each carry out one after the other."""

import multiprocessing
import multiprocessing.context
import signal
from collections.abc import Generator, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess

import torch

from longroute.compare.worker import Progress, Run, serve

_STOP_SECONDS = 60.0


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection
    run: Run | None = None

    def give(self, run: Run) -> None:
        self.run = run
        with suppress(BrokenPipeError):  # it died: listening to it will tell
            self.connection.send(run)


def default_workers() -> int:
    """One a CPU core that this process may use; one a GPU where there is one."""
    return max(1, torch.cuda.device_count()) if torch.cuda.is_available() else torch.get_num_threads()


def run_all(runs: Sequence[Run], *, workers: int) -> Generator[Progress, None, None]:
    """Carry out all runs, `workers` at a time with one thread each; yields their progress as it comes.

    Closing the iterator (as Ctrl-C does) stops the workers at their next record, with their state on disk. A worker
    that dies fails the run that it was at, and another takes its place.
    """
    context = multiprocessing.get_context("spawn")
    workers = min(workers, len(runs))
    stop = context.Event()
    waiting, live = list(runs), []
    try:
        while waiting or any(worker.run for worker in live):
            while waiting and len(live) < workers:
                live.append(_start(context, len(live), stop))
            for worker in live:
                if worker.run is None and waiting:
                    worker.give(waiting.pop(0))
            busy = {worker.connection: worker for worker in live if worker.run}
            for connection in wait(list(busy)):
                worker = busy[connection]  # type: ignore[index]  # wait returns what it was given
                yield from _listen(worker)
                if not worker.process.is_alive() and worker.run is None:
                    live.remove(worker)
    finally:
        stop.set()
        for worker in live:
            worker.connection.close()
            worker.process.join(_STOP_SECONDS)
            worker.process.kill()


def _start(context: multiprocessing.context.SpawnContext, place: int, stop: object) -> _Worker:
    ours, theirs = context.Pipe()
    device = f"cuda:{place % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"
    process = context.Process(target=serve, args=(theirs, device, stop))
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a worker inherits it: Ctrl-C is the parent's to handle
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    theirs.close()
    return _Worker(process, ours)


def _listen(worker: _Worker) -> Iterator[Progress]:
    """What a worker has to say; its run is None once that has ended."""
    assert worker.run is not None  # only busy workers are listened to
    try:
        progress = worker.connection.recv()
    except EOFError:
        worker.process.join()
        progress = Progress(
            worker.run.name, "failed", reason=f"its process ended with exit code {worker.process.exitcode}"
        )
    if progress.stage in ("done", "failed"):
        worker.run = None
    yield progress
