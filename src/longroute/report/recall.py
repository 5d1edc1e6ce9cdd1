"""What a summary says of recall and of what context is worth, over seeds."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from longroute.report.estimate import Estimate, mean_over_seeds
from longroute.report.wording import length_text, list_text, multiple_text, share_text

MULTIPLE = 32
"""Recall is judged at this multiple of the training length, or the longest that was measured if that is less."""
REMEMBERS = 0.9
"""Binding there from which an encoding counts as remembering."""


@dataclass(frozen=True)
class Recalled:
    """All seeds of one encoding in one task, by lengths and distances in tokens; means over those that learned it."""

    seeds: int
    failed: int
    learned: int
    accuracy: Mapping[int, Estimate]
    binding: Mapping[int, Estimate]
    chance: Mapping[int, Estimate]
    by_distance: Mapping[int, Estimate]


@dataclass(frozen=True)
class TaskRecall:
    """One task over all encodings."""

    task: str
    train_length: int
    lengths: tuple[int, ...]
    encodings: Mapping[str, Recalled]

    @property
    def judged_at(self) -> int | None:
        """The length at which recall is judged; None when nothing was measured beyond the training length."""
        within = [n for n in self.lengths if self.train_length < n <= MULTIPLE * self.train_length]
        return within[-1] if within else None

    @property
    def learned(self) -> dict[str, Recalled]:
        """The encodings of which at least one seed learned the task."""
        return {name: one for name, one in self.encodings.items() if one.learned}

    @property
    def remembering(self) -> list[str]:
        """Encodings that most seeds learned it with, whose binding is at least REMEMBERS at `judged_at`, best first."""
        most = {name: one for name, one in self.learned.items() if 2 * one.learned > one.seeds + one.failed}
        judged = {name: one.binding.get(self.judged_at or 0) for name, one in most.items()}
        found = {name: one.value for name, one in judged.items() if one and one.value >= REMEMBERS}
        return sorted(found, key=lambda name: -found[name])


def read_recall(summary: Mapping[str, Any]) -> list[TaskRecall]:
    """The summary's tasks in their order; none in a summary without any."""
    grouped: dict[str, dict[str, list[Mapping[str, Any]]]] = {}
    for row in summary.get("rows") or ():
        for task, one in (row.get("recall") or {}).items():
            grouped.setdefault(task, {}).setdefault(str(row["encoding"]), []).append(one)
    return [_task(task, encodings) for task, encodings in grouped.items()]


def read_worth(summary: Mapping[str, Any], kind: str) -> dict[str, dict[int, Estimate]]:
    """What context (`context`) or its order (`order`) is worth in nats a token, by encoding and length."""
    grouped: dict[str, dict[int, list[Estimate]]] = {}
    for row in summary.get("rows") or ():
        for length, (value, low, high) in ((row.get("worth") or {}).get(kind) or {}).items():
            if value is not None:
                of_one = Estimate(value, low, high, "spans" if low is not None else "none")
                grouped.setdefault(str(row["encoding"]), {}).setdefault(int(length), []).append(of_one)
    return {name: _means(found) for name, found in grouped.items()}


def recall_sentence(tasks: Sequence[TaskRecall], holding: Sequence[str]) -> str:
    """Which of the encodings that hold also remember, by the task shown; nothing if none of them learned it."""
    task = shown_task(tasks, holding)
    if task is None or task.judged_at is None:
        return ""
    where = f"{length_text(task.judged_at)} tokens ({multiple_text(task.judged_at, task.train_length)})"
    both = [name for name in task.remembering if name in holding]
    at_least = f"at least {share_text(REMEMBERS)} of the bindings of {task.task} at {where}"
    if both:
        return f"Of those that hold, {list_text(both, 4)} still {'recalls' if len(both) == 1 else 'recall'} {at_least}."
    return f"None of those that hold recalls {at_least}."


def shown_task(tasks: Sequence[TaskRecall], names: Iterable[str]) -> TaskRecall | None:
    """The first task that any of the encodings `names` learned and that reaches beyond the training length."""
    known = set(names)
    return next((task for task in tasks if task.judged_at and known & set(task.learned)), None)


def _task(task: str, encodings: Mapping[str, list[Mapping[str, Any]]]) -> TaskRecall:
    results = {name: _recalled(rows) for name, rows in encodings.items()}
    lengths = sorted({n for one in results.values() for n in one.accuracy})
    first = next(iter(encodings.values()))[0]
    return TaskRecall(task, int(first["train_length"]), tuple(lengths), results)


def _recalled(rows: Sequence[Mapping[str, Any]]) -> Recalled:
    well = [row for row in rows if row.get("status") == "ok"]
    learned = [row for row in well if row.get("solved")]
    counted = learned or well  # if no seed learned it, what they have is shown all the same, and said so
    distances = ((row.get("slices") or {}).get("distance") or {} for row in counted)
    by_distance: dict[int, list[Estimate]] = {}
    for of_one in distances:
        for start, scores in of_one.items():
            if int(start) and scores["binding"] is not None:
                by_distance.setdefault(int(start), []).append(_estimate(scores["binding"], scores["interval_binding"]))
    return Recalled(
        seeds=len(well),
        failed=len(rows) - len(well),
        learned=len(learned),
        accuracy=_shares(_by_length(counted, "accuracy")),
        binding=_shares(_by_length(counted, "binding")),
        chance=_shares(_by_length(counted, "chance")),
        by_distance=_shares(by_distance),
    )


def _by_length(rows: Iterable[Mapping[str, Any]], measure: str) -> dict[int, list[Estimate]]:
    found: dict[int, list[Estimate]] = {}
    for row in rows:
        intervals = (row.get("interval") or {}).get(measure) or {}
        for length, value in (row.get(measure) or {}).items():
            if value is not None:
                found.setdefault(int(length), []).append(_estimate(value, intervals.get(length)))
    return found


def _estimate(value: float, interval: Sequence[float | None] | None) -> Estimate:
    low, high = interval or (None, None)
    return Estimate(value, low, high, "none" if low is None else "samples")


def _shares(found: Mapping[int, list[Estimate]]) -> dict[int, Estimate]:
    """As `_means`, of what can't be above 1."""
    return {
        key: one if one.high is None else replace(one, high=min(1.0, one.high)) for key, one in _means(found).items()
    }


def _means(found: Mapping[int, list[Estimate]]) -> dict[int, Estimate]:
    return {key: mean_over_seeds(found[key]) for key in sorted(found)}
