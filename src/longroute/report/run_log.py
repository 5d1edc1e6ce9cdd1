"""What the report needs of the raw records: loss curves, failures, and how much text was scored."""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from longroute.report.estimate import finite


@dataclass(frozen=True)
class Curve:
    """One run's training loss (nats per token) against tokens seen, in the order recorded."""

    encoding: str
    seed: int
    tokens: tuple[float, ...]
    loss: tuple[float, ...]


@dataclass(frozen=True)
class Failure:
    """One run that did not end, and why."""

    encoding: str
    seed: str
    reason: str


@dataclass(frozen=True)
class RunLog:
    """Everything read from the records in one pass."""

    curves: tuple[Curve, ...]
    failures: tuple[Failure, ...]
    books: int
    spans: int


def read_records(records: Iterable[Mapping[str, Any]]) -> RunLog:
    """Read the records once, keeping loss curves, failures and held-out spans; others are passed over."""
    losses: dict[tuple[str, int], list[tuple[float, float]]] = {}
    failures: list[Failure] = []
    spans: set[tuple[str, str]] = set()
    for record in records:
        match record.get("record"):
            case "train" if "task" not in record:  # losses on tasks are not to be compared with those on text
                _add_loss(losses, record)
            case "failure":
                failures.append(_failure(record))
            case "evaluation":
                spans.add((str(record.get("book")), str(record.get("span"))))
    curves = tuple(
        Curve(encoding, seed, tuple(t for t, _ in points), tuple(loss for _, loss in points))
        for (encoding, seed), points in losses.items()
    )
    return RunLog(curves, tuple(failures), len({book for book, _ in spans}), len(spans))


def summary_failures(summary: Mapping[str, Any]) -> list[Failure]:
    """The runs that failed, on text and then on tasks, which are named beside the encoding."""
    rows = list(summary.get("rows") or ())
    runs = [(str(row["encoding"]), row, row) for row in rows]
    for row in rows:
        runs += [(f"{row['encoding']}, {task}", row, one) for task, one in dict(row.get("recall") or {}).items()]
    return [
        Failure(name, str(row.get("seed", "")), str(one.get("reason") or "no reason given"))
        for name, row, one in runs
        if one.get("status") != "ok"
    ]


def all_failures(summary: Mapping[str, Any], log: RunLog) -> list[Failure]:
    """The failed rows of the summary, then the failures that only the records know."""
    listed = summary_failures(summary)
    ended = {(str(row["encoding"]), str(row.get("seed", ""))) for row in summary.get("rows") or ()}
    return listed + [one for one in log.failures if (one.encoding, one.seed) not in ended]


def _add_loss(losses: dict[tuple[str, int], list[tuple[float, float]]], record: Mapping[str, Any]) -> None:
    tokens, loss = finite(record.get("tokens")), record.get("loss")
    if tokens is None or not isinstance(loss, int | float) or not math.isfinite(loss):
        return
    key = (str(record.get("encoding")), int(record.get("seed") or 0))
    losses.setdefault(key, []).append((tokens, float(loss)))


def _failure(record: Mapping[str, Any]) -> Failure:
    reason = str(record.get("reason") or "no reason given")
    return Failure(str(record.get("encoding")), str(record.get("seed", "")), reason)
