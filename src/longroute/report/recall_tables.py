"""Recall as tables: a task's on the page, all numbers as CSV, one column a task for a terminal."""

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass

from longroute.report.comparison import Comparison, EncodingResult
from longroute.report.estimate import Estimate
from longroute.report.recall import REMEMBERS, Recalled, TaskRecall
from longroute.report.wording import ABSENT, length_text, multiple_text, share_text

SHOWN = (1, 8, 32, 128)
"""Multiples of the training length that the page's table has; the longest measured is there always."""


@dataclass(frozen=True)
class RecallTable:
    """A task's table: column titles, and for each encoding whether it was learned and (text, interval, grade) cells."""

    task: str
    index: int
    chance: str
    titles: list[str]
    rows: list[tuple[EncodingResult, str, list[tuple[str, str, str]]]]


def recall_table(comparison: Comparison, task: TaskRecall, index: int) -> RecallTable:
    """Binding at the shown lengths, best first where recall is judged; those that didn't learn the task come last."""
    lengths = [n for n in task.lengths if n // task.train_length in SHOWN or n == task.lengths[-1]]
    known = [one for one in comparison.encodings if one.name in task.encodings]
    known.sort(key=lambda one: _rank(task.encodings[one.name], task.judged_at))
    rows = []
    for one in known:
        recalled = task.encodings[one.name]
        rows.append((one, learned_text(recalled), [_cell(recalled, length) for length in lengths]))
    titles = [f"{length_text(n)} ({multiple_text(n, task.train_length)})" for n in lengths]
    chances = [e.value for one in task.encodings.values() for e in one.chance.values()]
    return RecallTable(task.task, index, share_text(max(chances, default=None)), titles, rows)


def learned_text(recalled: Recalled) -> str:
    """`yes`, `no`, `2 of 3 seeds`, or `failed`."""
    runs = recalled.seeds + recalled.failed
    if not recalled.seeds:
        return "failed"
    if recalled.learned in (0, runs):
        return "yes" if recalled.learned else "no"
    return f"{recalled.learned} of {runs} seeds"


def recall_csv(tasks: Sequence[TaskRecall]) -> str:
    """Accuracy, binding and chance of every task, encoding and length, unrounded; means over seeds that learned."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    measures = ("accuracy", "binding")
    edges = [f"{measure}{edge}" for measure in measures for edge in ("", "_low", "_high")]
    writer.writerow(["task", "encoding", "seeds", "learned", "length", "multiple", "chance", *edges])
    for task in tasks:
        for name, one in task.encodings.items():
            for length in one.accuracy:
                numbers = [e for m in measures for e in _edges(getattr(one, m).get(length))]
                chance = _edges(one.chance.get(length))[0]
                about = [task.task, name, one.seeds, one.learned, length, length / task.train_length, chance]
                writer.writerow([*about, *numbers])
    return stream.getvalue()


def terminal_columns(tasks: Sequence[TaskRecall], names: Sequence[str]) -> list[list[str]]:
    """For each task a title and a cell for each of these encodings."""
    return [[_title(task), *(_terminal_cell(task, name) for name in names)] for task in tasks if task.judged_at]


def _title(task: TaskRecall) -> str:
    at = task.judged_at or 0
    return f"{task.task} at {length_text(at)} ({multiple_text(at, task.train_length)})"


def _terminal_cell(task: TaskRecall, name: str) -> str:
    one = task.encodings.get(name)
    if one is None or not one.seeds:
        return ABSENT
    estimate = one.binding.get(task.judged_at or 0)
    return share_text(estimate and estimate.value) if one.learned else "not learned"


def _rank(recalled: Recalled, at: int | None) -> tuple[bool, float]:
    estimate = recalled.binding.get(at or 0)
    return not recalled.learned, -(estimate.value if estimate else -1.0)


def _cell(recalled: Recalled, length: int) -> tuple[str, str, str]:
    estimate = recalled.binding.get(length)
    if estimate is None:
        return ABSENT, "", ""
    grade = "holds" if estimate.value >= REMEMBERS else "breaks" if estimate.value <= 0 else ""
    interval = " to ".join(map(share_text, estimate.interval or ()))
    return share_text(estimate.value), interval.replace(" % to", " to"), grade if recalled.learned else ""


def _edges(estimate: Estimate | None) -> list[float | None]:
    return [estimate.value, estimate.low, estimate.high] if estimate else [None, None, None]
