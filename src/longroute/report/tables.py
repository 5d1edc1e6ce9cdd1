"""The table, one row an encoding: for the page, as Markdown, as CSV with every length, and for a terminal."""

import csv
import io
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from longroute.report.comparison import MEASURES, Comparison, EncodingResult, read_comparison
from longroute.report.recall import read_recall
from longroute.report.recall_tables import terminal_columns
from longroute.report.verdict import BREAKS, HOLDS
from longroute.report.wording import (
    ABSENT,
    interval_text,
    length_text,
    measure_text,
    multiple_text,
    printable,
)

TITLES = {
    "perplexity": "perplexity",
    "tail_perplexity": "tail perplexity",
    "ratio": "ratio",
    "tail_ratio": "tail ratio",
}


@dataclass(frozen=True)
class Column:
    """One measure at one length."""

    measure: str
    length: int
    multiple: str

    @property
    def title(self) -> str:
        """`tail ratio at 1,024 (16×)`."""
        return f"{TITLES[self.measure]} at {length_text(self.length)} ({self.multiple})"


@dataclass(frozen=True)
class Cell:
    """A number as text, its interval as text, and whether it is the column's best, holds or breaks."""

    text: str
    interval: str
    best: bool
    grade: Literal["", "holds", "breaks"]


@dataclass(frozen=True)
class Row:
    """An encoding and its cells, in the order of the columns."""

    encoding: EncodingResult
    cells: tuple[Cell, ...]


def columns(comparison: Comparison) -> list[Column]:
    """Perplexities at the training length, then tail perplexity and both ratios at each milestone."""
    start = comparison.train_length
    shown = [(measure, start) for measure in ("perplexity", "tail_perplexity")]
    for length in comparison.milestones:
        shown += [(measure, length) for measure in ("tail_perplexity", "ratio", "tail_ratio")]
    return [Column(measure, length, multiple_text(length, start)) for measure, length in shown]


def table(comparison: Comparison) -> list[Row]:
    """The rows in the comparison's order: lowest tail perplexity at the longest length first."""
    shown = columns(comparison)
    best = [_lowest(comparison, column) for column in shown]
    return [
        Row(one, tuple(_cell(one, column, low) for column, low in zip(shown, best, strict=True)))
        for one in comparison.encodings
    ]


def markdown_table(comparison: Comparison) -> str:
    """The same table as GitHub Markdown, intervals in brackets."""
    titles = ["encoding", "seeds", "parameters", *(column.title for column in columns(comparison))]
    lines = [_markdown_line(titles), _markdown_line(["---", *["---:"] * (len(titles) - 1)])]
    for row in table(comparison):
        numbers = [f"{cell.text} [{cell.interval}]" if cell.interval else cell.text for cell in row.cells]
        name = _markdown_escape(row.encoding.name)
        lines.append(_markdown_line([name, seeds_text(row.encoding), parameters_text(row.encoding), *numbers]))
    return "\n".join(lines) + "\n"


def csv_table(comparison: Comparison) -> str:
    """Every measure at every length in full precision, one line for each encoding and length."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    edges = [f"{measure}{edge}" for measure in MEASURES for edge in ("", "_low", "_high")]
    about = [
        "encoding",
        "transport",
        "values",
        "control",
        "seeds",
        "failed",
        "parameters",
        "length",
        "multiple",
    ]
    writer.writerow([*about, *edges])
    for one in comparison.encodings:
        for length in comparison.lengths or (comparison.train_length,):
            multiple = length / comparison.train_length if comparison.train_length else None
            facts = [one.name, one.transport, one.values, one.control, one.seeds, one.failed, one.parameters]
            writer.writerow([*facts, length, multiple, *_edges(one, length)])
    return stream.getvalue()


def terminal_table(summary: Mapping[str, Any]) -> list[list[str]]:
    """Header and rows for a terminal: encoding, fit, reach, perplexity at the longest, recall, status."""
    comparison = read_comparison(summary)
    shown = [("perplexity", comparison.train_length)]
    shown += [("tail_ratio", length) for length in comparison.milestones]
    shown += [("tail_perplexity", length) for length in comparison.milestones[-1:]]
    start = comparison.train_length
    names = [one.name for one in comparison.encodings]
    lines = [["encoding", *map(printable, names)]]
    for measure, length in shown:
        title = Column(measure, length, multiple_text(length, start)).title
        lines.append([title, *(measure_text(measure, one.value(measure, length)) for one in comparison.encodings)])
    lines += terminal_columns(read_recall(summary), names)
    lines.append(["status", *map(status_text, comparison.encodings)])
    return [list(line) for line in zip(*lines, strict=True)]


def status_text(encoding: EncodingResult) -> str:
    """`ok`, `failed: …`, or `2 ok, 1 failed`."""
    if not encoding.failed:
        return "ok"
    if not encoding.seeds:
        return f"failed: {printable(encoding.reasons[0])}"
    return f"{encoding.seeds} ok, {encoding.failed} failed"


def seeds_text(encoding: EncodingResult) -> str:
    """Seeds that ended well, with the failed ones: `3`, `2 (+1 failed)`, `failed`."""
    if not encoding.failed:
        return str(encoding.seeds)
    return f"{encoding.seeds} (+{encoding.failed} failed)" if encoding.seeds else "failed"


def parameters_text(encoding: EncodingResult) -> str:
    """The number of parameters with grouped thousands."""
    return ABSENT if encoding.parameters is None else f"{encoding.parameters:,}"


def _cell(encoding: EncodingResult, column: Column, lowest: float | None) -> Cell:
    estimate = encoding.at(column.measure, column.length)
    if estimate is None:
        return Cell(ABSENT, "", False, "")
    grade: Literal["", "holds", "breaks"] = ""
    if column.measure == "tail_ratio":
        grade = "holds" if estimate.value <= HOLDS else "breaks" if estimate.value > BREAKS else ""
    text = measure_text(column.measure, estimate.value)
    best = column.measure.endswith("perplexity") and estimate.value == lowest
    return Cell(text, interval_text(column.measure, estimate), best, grade)


def _lowest(comparison: Comparison, column: Column) -> float | None:
    values = [one.value(column.measure, column.length) for one in comparison.measured]
    return min((value for value in values if value is not None), default=None)


def _edges(encoding: EncodingResult, length: int) -> list[float | None]:
    estimates = [encoding.at(measure, length) for measure in MEASURES]
    return [edge for one in estimates for edge in ((one.value, one.low, one.high) if one else (None,) * 3)]


def _markdown_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _markdown_escape(name: str) -> str:
    """A name that can neither end its cell nor be taken for markup."""
    special = {"&": "&amp;", "<": "&lt;", ">": "&gt;", "|": "\\|", "[": "\\[", "`": "\\`", "*": "\\*"}
    return "".join(special.get(character, character) for character in printable(name))
