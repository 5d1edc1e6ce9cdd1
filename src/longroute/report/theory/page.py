"""The theory's page: every statement with its picture, its numbers and whether it holds."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from longroute.files import write_atomically
from longroute.report.figures.canvas import inline
from longroute.report.figures.ink import colors
from longroute.report.template import render
from longroute.report.theory.captions import Caption, Section, captions, sections
from longroute.report.theory.figure import (
    exact_name,
    is_drawn,
    is_on_text,
    simulated_name,
    statement_svg,
    superscript,
)
from longroute.report.wording import ABSENT
from longroute.theory import Statement

COLUMNS = 5
"""Points of a sweep that the page's tables show."""
RULE_KEYS = ("sweep", "meets", "within", "side")
"""Parameters that the rule reads; the picture shows them."""


@dataclass(frozen=True)
class Entry:
    """A statement ready for the page: its words, its figure as markup, rows of numbers, parameters as text."""

    statement: Statement
    caption: Caption
    figure: str
    rows: list[tuple[str, list[str]]]
    facts: list[tuple[str, str]]


def write_theory_page(statements: Sequence[Statement], folder: Path, *, seed: int) -> Path:
    """Write `theory.html` into `folder`, self-contained; returns it. The same statements give the same bytes."""
    page = folder / "theory.html"
    write_atomically(page, render_theory_page(statements, seed=seed))
    return page


def render_theory_page(statements: Sequence[Statement], *, seed: int) -> str:
    """The page as HTML."""
    entries = [_entry(statement) for statement in statements]
    formulas = [one for one in statements if not is_on_text(one)]
    return render(
        "theory/theory.html.j2",
        parts=_parts(entries),
        colors=colors(),
        held=sum(one.holds for one in formulas),
        total=len(formulas),
        failing=[one.name for one in formulas if not one.holds],
        on_text=[entry for entry in entries if is_on_text(entry.statement)],
        mark=_mark,
        points=sum(len(one.sweep[1]) if one.sweep else 1 for one in formulas),
        simulated=sum(one.simulated is not None for one in formulas),
        met=sum(bool(one.parameters.get("meets")) for one in formulas),
        seed=seed,
    )


def _mark(statement: Statement) -> str:
    if is_on_text(statement):
        return "✓ independent" if statement.holds else "✗ not independent"
    return "✓ holds" if statement.holds else "✗ doesn't hold"


def number_text(value: float) -> str:
    """Three significant digits: `0.0312`, `1,280`, `2.9·10⁸`; `0` for what rounding leaves."""
    if not math.isfinite(value):
        return ABSENT
    if abs(value) < 1e-12:
        return "0"
    if 1e-3 <= abs(value) < 1e5 or (value == round(value) and abs(value) < 1e7):
        return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
    mantissa, exponent = f"{value:.1e}".split("e")
    return f"{mantissa}·10{superscript(int(exponent))}"


def _parts(entries: list[Entry]) -> list[tuple[str, Section, list[Entry]]]:
    """Entries by section, in the order of the theory; sections without entries are left out."""
    parts = [(name, words, [e for e in entries if e.statement.section == name]) for name, words in sections().items()]
    return [part for part in parts if part[2]]


def _entry(statement: Statement) -> Entry:
    caption = captions()[statement.name]
    figure = inline(statement_svg(statement, caption), statement.name)
    return Entry(statement, caption, figure, _rows(statement), _facts(statement))


def _rows(statement: Statement) -> list[tuple[str, list[str]]]:
    """The sweep and what was found along it, at up to COLUMNS places; the first and the last are always there."""
    count = 1 if statement.sweep is None else len(statement.sweep[1])
    shown = min(count, COLUMNS)
    places = [round(i * (count - 1) / max(1, shown - 1)) for i in range(shown)]
    drawn = statement.simulated is not None and is_drawn(statement)
    named = {
        "bound": statement.bound,
        exact_name(statement): statement.exact,
        simulated_name(statement): statement.simulated,
        "± stderr": statement.stderr if drawn else None,
    }
    rows = [] if statement.sweep is None else [(statement.sweep[0], statement.sweep[1])]
    rows += [(name, values) for name, values in named.items() if values is not None]
    return [(name, [number_text(_at(values, place)) for place in places]) for name, values in rows]


def _at(values: Any, place: int) -> float:
    value = values[place if len(values) > 1 else 0] if isinstance(values, list) else values
    return math.nan if value is None else float(value)


def _facts(statement: Statement) -> list[tuple[str, str]]:
    swept = statement.sweep[0] if statement.sweep else ""
    kept = {key: value for key, value in statement.parameters.items() if key not in (*RULE_KEYS, swept)}
    return [(name, _fact_text(value)) for name, value in kept.items()]


def _fact_text(value: Any) -> str:
    if isinstance(value, list) and len(value) > 7:
        return f"{_fact_text(value[0])} … {_fact_text(value[-1])}, {len(value)} in all"
    if isinstance(value, list):
        return ", ".join(_fact_text(one) for one in value)
    return number_text(value) if isinstance(value, int | float) else ABSENT if value is None else str(value)
