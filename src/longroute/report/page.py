"""The report: one self-contained page, its figures and its table as files, from a summary and its records."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from longroute.evaluate import SOLVED
from longroute.files import write_atomically
from longroute.report.comparison import Comparison, read_comparison
from longroute.report.facts import flattened, measured_facts, provenance_facts, version_facts
from longroute.report.figures import draw_figures
from longroute.report.figures.canvas import inline
from longroute.report.figures.draw import NAMES, WORTH
from longroute.report.figures.ink import colors, looks, marker_sign
from longroute.report.paper import beside_the_paper, differences
from longroute.report.prediction import prediction_sentence, read_breaks
from longroute.report.recall import REMEMBERS, TaskRecall, read_recall, read_worth, recall_sentence, shown_task
from longroute.report.recall_tables import recall_csv, recall_table
from longroute.report.run_log import RunLog, all_failures, read_records
from longroute.report.tables import (
    columns,
    csv_table,
    markdown_table,
    parameters_text,
    seeds_text,
    table,
)
from longroute.report.template import render, write_figures
from longroute.report.verdict import BREAKS, HOLDS, judge
from longroute.report.wording import count_text, length_text, multiple_text, perplexity_text, share_text


def write_report(summary: dict[str, Any], records: Iterable[dict[str, Any]], folder: Path) -> Path:
    """Write `report.html`, `figures/*.svg`, `table.md`, `table.csv` and, with tasks, `recall.csv`; returns the page.

    The same summary and records give the same bytes. Each file is replaced whole or not at all, the page
    last; figures of an earlier report that no longer apply are removed.
    """
    comparison, log = read_comparison(summary), read_records(records)
    tasks, worth = read_recall(summary), {kind: read_worth(summary, kind) for kind in WORTH}
    figures = draw_figures(comparison, log.curves, read_breaks(summary), tasks, worth)
    write_figures(folder, figures, NAMES)
    write_atomically(folder / "table.md", markdown_table(comparison))
    write_atomically(folder / "table.csv", csv_table(comparison))
    if tasks:
        write_atomically(folder / "recall.csv", recall_csv(tasks))
    else:
        (folder / "recall.csv").unlink(missing_ok=True)
    page = folder / "report.html"
    write_atomically(page, render_page(summary, comparison, log, figures))
    return page


def render_page(summary: Mapping[str, Any], comparison: Comparison, log: RunLog, figures: Mapping[str, str]) -> str:
    """The page as HTML."""
    verdict, tasks = judge(comparison), read_recall(summary)
    return render(
        "page.html.j2",
        comparison=comparison,
        verdict=verdict,
        recall_sentence=recall_sentence(tasks, verdict.holding),
        tiles=_tiles(comparison, tasks),
        figures={name: inline(svg, name) for name, svg in figures.items()},
        colors=colors(),
        looks=looks(comparison.encodings),
        legend=_legend(comparison),
        columns=columns(comparison),
        rows=table(comparison),
        seeds_text=seeds_text,
        parameters_text=parameters_text,
        failures=all_failures(summary, log),
        tasks=[recall_table(comparison, task, index) for index, task in enumerate(tasks)],
        remembers=share_text(REMEMBERS),
        solved=share_text(SOLVED),
        prediction=prediction_sentence(read_breaks(summary)),
        diagnoses=_diagnoses(summary),
        paper=beside_the_paper(comparison),
        differences=differences(summary),
        measured=measured_facts(summary, comparison, log),
        provenance=provenance_facts(summary),
        versions=version_facts(summary),
        configuration={part: flattened(summary.get(part) or {}) for part in _parts(summary)},
        preset=str(summary.get("preset") or ""),
        train_length=length_text(comparison.train_length),
        longest=length_text(comparison.longest or comparison.train_length),
        multiple=multiple_text(comparison.longest or comparison.train_length, comparison.train_length),
        holds=HOLDS,
        breaks=BREAKS,
    )


def _parts(summary: Mapping[str, Any]) -> tuple[str, ...]:
    """The parts of a summary that say how its models were made."""
    return ("model", "training", *(("task_model", "task_training") if summary.get("tasks") else ()))


def _diagnoses(summary: Mapping[str, Any]) -> list[tuple[str, str]]:
    """(run, link) of every full diagnosis that the comparison made."""
    rows = summary.get("rows") or ()
    runs = [f"{row['encoding']}-seed{row['seed']}" for row in rows if row.get("explained")]
    return [(run, f"runs/{run}/diagnosis/diagnosis.html") for run in runs]


def _tiles(comparison: Comparison, tasks: Sequence[TaskRecall]) -> list[tuple[str, str, str]]:
    """The verdict's facts at a glance, as (label, figure, note); none when nothing was measured."""
    verdict = judge(comparison)
    best, longest = verdict.best, comparison.longest
    if best is None or longest is None:
        return []
    lowest = perplexity_text(best.value("tail_perplexity", longest))
    tiles = [(f"Lowest tail perplexity at {length_text(longest)}", lowest, best.name)]
    if verdict.judged:
        multiple = multiple_text(longest, comparison.train_length)
        note = f"tail ratio at most {HOLDS}"
        tiles.append((f"Hold at {multiple}", f"{len(verdict.holding)} of {verdict.judged}", note))
    if (task := shown_task(tasks, (one.name for one in comparison.measured))) is not None:
        multiple = multiple_text(task.judged_at or 0, task.train_length)
        note = f"binding at least {share_text(REMEMBERS)} in {task.task}"
        tiles.append((f"Recall at {multiple}", f"{len(task.remembering)} of {len(task.encodings)}", note))
    if verdict.breaking:
        earliest = verdict.breaking[0][1]
        names = [name for name, length in verdict.breaking if length == earliest]
        note = names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"
        tiles.append(("First break", multiple_text(earliest, comparison.train_length), note))
    sure = "shows, claims nothing" if verdict.seeds < 3 else "with 95 % intervals"
    tiles.append(("Evidence", count_text(verdict.seeds, "seed"), sure))
    return tiles


def _legend(comparison: Comparison) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    """The transports with their colour variable, and the controls with their marker, that occur here."""
    look = looks(comparison.encodings)
    transports = {one.transport: look[one.name].variable for one in comparison.measured}
    controls = {one.control: marker_sign(one.control) for one in comparison.measured}
    return sorted(transports.items()), sorted(controls.items())
