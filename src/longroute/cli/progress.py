"""Progress on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from longroute.compare.worker import Progress as RunState

_TRAINING = 0.8
"""About how much of a run's time is training, for the estimate."""


@contextmanager
def run_progress(console: Console, *, runs: int = 1) -> Iterator[Callable[[RunState], None]]:
    """A bar for all `runs` with an estimate of what remains and one for each that is live; lines without a terminal."""
    if not console.is_terminal:
        shown: dict[tuple[str, str], int] = {}
        yield lambda state: _print_line(console, state, shown)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[stage]}"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as bars:
        everything = bars.add_task("all", total=runs, stage="")
        tasks: dict[str, TaskID] = {}
        shares: dict[str, float] = {}

        def show(state: RunState) -> None:
            if state.run not in tasks:
                tasks[state.run] = bars.add_task(state.run, stage="", total=None)
            ended = state.stage in ("done", "failed")
            total, done = (1, 1) if ended else (state.total, state.done)
            bars.update(tasks[state.run], total=total, completed=done, stage=state.stage, visible=not ended)
            shares[state.run] = _share(state)
            bars.update(everything, completed=sum(shares.values()))

        yield show


def _share(state: RunState) -> float:
    """How much of a run is behind it, from 0 to 1."""
    if state.stage in ("done", "failed"):
        return 1.0
    part = state.done / max(1, state.total)
    return _TRAINING * part if state.stage == "train" else _TRAINING + (1 - _TRAINING) * part


def _print_line(console: Console, state: RunState, shown: dict[tuple[str, str], int]) -> None:
    """A line for every tenth of a stage; `shown` remembers the last."""
    tenth = 10 * state.done // max(1, state.total)
    if state.stage in ("done", "failed"):
        line = f"{state.run}: {state.stage} {state.reason}".rstrip()
    elif shown.get((state.run, state.stage)) == tenth:
        return
    else:
        line = f"{state.run}: {state.stage} {state.done}/{state.total}"
    shown[state.run, state.stage] = tenth
    console.print(line, markup=False, highlight=False, soft_wrap=True)


@contextmanager
def stage_progress(console: Console) -> Iterator[Callable[[str, float], None]]:
    """One bar for a job of many stages, with an estimate of what remains; a line a stage without a terminal."""
    if not console.is_terminal:
        yield lambda stage, done: console.print(f"{100 * done:3.0f} % {stage}", markup=False, highlight=False)
        return
    with Progress(
        TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn(), TimeRemainingColumn(), console=console
    ) as bars:
        task = bars.add_task("", total=1.0)
        yield lambda stage, done: bars.update(task, description=stage, completed=done)
