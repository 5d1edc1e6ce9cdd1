"""The page of one diagnosis: self-contained, with its figures as files beside it."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from longroute.diagnose.job import EPSILON
from longroute.files import write_atomically
from longroute.report.diagnosis.facts import (
    LENGTH_COLUMNS,
    cause_rows,
    length_rows,
    measured_facts,
    model_line,
    tiles,
)
from longroute.report.diagnosis.figures import NAMES, draw_figures
from longroute.report.diagnosis.findings import Findings
from longroute.report.diagnosis.mixing import mixing_sentence
from longroute.report.diagnosis.verdict import LEAST_SHARE, verdict
from longroute.report.diagnosis.words import percent
from longroute.report.figures.canvas import inline
from longroute.report.figures.ink import colors
from longroute.report.template import render, write_figures
from longroute.report.wording import length_text


def write_diagnosis_page(result: Mapping[str, Any], folder: Path) -> Path:
    """Write `diagnosis.html` and `figures/*.svg` into `folder`; returns the page.

    The same JSON gives the same bytes. Each file is replaced whole or not at all, the page last; figures of an earlier
    page that no longer apply are removed.
    """
    findings = Findings(result)
    figures = draw_figures(findings)
    write_figures(folder, figures, NAMES)
    page = folder / "diagnosis.html"
    write_atomically(page, render_diagnosis_page(findings, figures))
    return page


def render_diagnosis_page(findings: Findings, figures: Mapping[str, str]) -> str:
    """The page as HTML."""
    traced = findings.traced_lengths
    return render(
        "diagnosis/diagnosis.html.j2",
        colors=colors(),
        name=str(findings.model["name"]),
        facts_line=model_line(findings),
        verdict=verdict(findings.result),
        tiles=tiles(findings),
        figures={name: inline(svg, name) for name, svg in figures.items()},
        causes=cause_rows(findings),
        least=percent(LEAST_SHARE),
        breaks=findings.breaking.length is not None,
        searched=length_text(findings.longest),
        untraced=findings.untraced,
        unpredicted=findings.result["prediction"].get("unpredicted"),
        train=length_text(findings.train_length),
        read_short=length_text(findings.read_short),
        evidence=length_text(findings.evidence_length),
        traced_to=length_text(traced[-1]) if traced else "",
        threshold=f"{findings.threshold:g}",
        out_of_range=_out_of_range(findings),
        law_from=length_text((findings.result.get("law") or {}).get("from_length") or 0),
        mixing=mixing_sentence(findings),
        mixed_to=percent(EPSILON),
        columns=LENGTH_COLUMNS,
        rows=length_rows(findings),
        measured=measured_facts(findings),
    )


def _out_of_range(findings: Findings) -> str:
    """How many heads the law of far mass doesn't speak of."""
    inside = findings.in_range
    return "" if inside is None else f"{int((~inside).sum())} of {inside.size}"
