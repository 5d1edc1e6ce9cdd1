"""Runs side by side in worker processes."""

import multiprocessing
import queue as queues
from collections.abc import Generator, Iterator, Sequence
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from longroute.compare.worker import Progress, Run, work

_STOP_SECONDS = 60.0


def default_workers() -> int:
    """One a CPU core that this process may use; one a GPU where there is one."""
    return max(1, torch.cuda.device_count()) if torch.cuda.is_available() else torch.get_num_threads()


def run_all(runs: Sequence[Run], *, workers: int) -> Generator[Progress, None, None]:
    """Carry out all runs, `workers` at a time with one thread each; yields their progress as it comes.

    Closing the iterator (as Ctrl-C does) stops the workers at their next record, with their state on disk.
    """
    context = multiprocessing.get_context("spawn")
    queue, stop = context.Queue(), context.Event()
    waiting, live = list(runs), {}
    try:
        while waiting or live:
            while waiting and len(live) < workers:
                run, device = waiting.pop(0), _device(len(live))
                process = context.Process(target=work, args=(run, 1, device, queue, stop), name=run.name)
                process.start()
                live[run.name] = process
            yield from _drain(queue)
            for name in [name for name, process in live.items() if not process.is_alive()]:
                yield from _drain(queue)
                yield from _reap(name, live.pop(name))
    finally:
        stop.set()
        for process in live.values():
            process.join(_STOP_SECONDS)
            process.kill()
        queue.cancel_join_thread()


def _device(place: int) -> str:
    return f"cuda:{place % torch.cuda.device_count()}" if torch.cuda.is_available() else "cpu"


def _drain(queue: Any) -> Iterator[Progress]:
    """What has come, after a short wait for the first; a busy queue must not keep ended workers from being seen."""
    try:
        yield queue.get(timeout=0.2)
        while True:
            yield queue.get_nowait()
    except queues.Empty:
        return


def _reap(name: str, process: BaseProcess) -> Iterator[Progress]:
    process.join()
    if process.exitcode:
        yield Progress(name, "failed", reason=f"its process ended with exit code {process.exitcode}")
