"""Progress on the terminal."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskID, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from longroute.compare.worker import Progress as RunState


@contextmanager
def run_progress(console: Console) -> Iterator[Callable[[RunState], None]]:
    """A bar for every run that has begun, with an estimate of what remains; plain lines where there is no terminal."""
    if not console.is_terminal:
        yield lambda state: _print_line(console, state)
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[stage]}"))
    with Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console) as bars:
        tasks: dict[str, TaskID] = {}

        def show(state: RunState) -> None:
            if state.run not in tasks:
                tasks[state.run] = bars.add_task(state.run, stage="", total=None)
            task = tasks[state.run]
            if state.stage in ("done", "failed"):
                bars.update(task, total=1, completed=1, stage=state.stage)
            else:
                bars.update(task, total=state.total, completed=state.done, stage=state.stage)

        yield show


def _print_line(console: Console, state: RunState) -> None:
    tenths = state.done * 10 // state.total if state.total else 0
    before = (state.done - 1) * 10 // state.total if state.total else -1
    if state.stage in ("done", "failed"):
        console.print(f"{state.run}: {state.stage} {state.reason}".rstrip(), markup=False, highlight=False)
    elif tenths != before:
        console.print(f"{state.run}: {state.stage} {state.done}/{state.total}", markup=False, highlight=False)
