"""Run the bench: ratios of times taken in turn in one process, and peak memory."""

import gc
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch

from longroute.bench.row import Job, Limited, Timed
from longroute.bench.rows import bench_rows
from longroute.errors import InputError, nearest

_SECONDS = 20.0


def run_bench(*, only: str | None, device: torch.device) -> Iterator[dict[str, Any]]:
    """A record a row: name, against, shape, ratio, goal, met, peak_mib; `ratio` None if the reference isn't installed.

    `only` keeps the rows whose name contains it. Raises InputError naming the nearest if none does.
    """
    rows = bench_rows(device)
    chosen = [row for row in rows if only is None or only in row.name]
    if not chosen:
        raise InputError(f"no row is named {only!r}{nearest(only or '', {row.name for row in rows})}")
    for row in chosen:
        gc.collect()
        _reset_peak(device)
        ratio = _ratio(row, device)
        peak = _peak_mib(device)
        if isinstance(row, Limited) and row.limit_mib is not None:
            ratio = None if peak is None else peak / row.limit_mib
        goal = row.goal if isinstance(row, Timed) else 1.0
        met = None if ratio is None else ratio <= goal
        yield {
            "name": row.name,
            "against": row.against,
            "shape": row.shape,
            "ratio": ratio,
            "goal": goal,
            "met": met,
            "peak_mib": peak,
        }


def _ratio(row: Timed | Limited, device: torch.device) -> float | None:
    if isinstance(row, Limited):
        return row.measure()
    try:
        return paired_ratio(row.job(), row.reference(), device, pairs=row.pairs)
    except ImportError:
        return None


def paired_ratio(job: Job, reference: Job, device: torch.device, *, pairs: int = 25) -> float:
    """Least time of `job` over least time of `reference`, run in turn: whatever else a machine does only adds."""
    for warm in (job, reference, job, reference) if pairs > 2 else (job,):
        _seconds(warm, device)
    ours: list[float] = []
    theirs: list[float] = []
    began = time.perf_counter()
    while len(ours) < pairs and (len(ours) < 3 or time.perf_counter() - began < _SECONDS):
        ours.append(_seconds(job, device))
        theirs.append(_seconds(reference, device))
    return min(ours) / min(theirs)


def _seconds(job: Job, device: torch.device) -> float:
    _synchronize(device)
    began = time.perf_counter()
    job()
    _synchronize(device)
    return time.perf_counter() - began


def _synchronize(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def _reset_peak(device: torch.device) -> None:
    """Start counting the peak afresh: the device's, or on Linux the process's resident memory."""
    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats(device)
        return
    counters = Path("/proc/self/clear_refs")
    if counters.exists():
        counters.write_text("5")


def _peak_mib(device: torch.device) -> float | None:
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device) / 2**20
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    line = next(line for line in status.read_text().splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) / 1024
