"""`longroute compare`: the main job."""

from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.table import Column, Table

from longroute.attention import parse_encoding
from longroute.cli.progress import run_progress
from longroute.cli.settings import read_settings, with_settings
from longroute.compare import DIAL, ComparisonSpec, TextSpec, compare, default_workers, preset, read_summary
from longroute.errors import InputError
from longroute.report.run_log import summary_failures
from longroute.report.tables import terminal_table
from longroute.task import parse_task


@dataclass(frozen=True)
class Compare:
    """Train candidates at a short context, carry each to many times that length, and write one HTML report.

    Stop it at any moment; the same command goes on where it was. Exit code 0 when everything asked for is there, 1 when
    a run failed (the report is written all the same), 2 for bad input.
    """

    out: Path = Path("runs/compare")
    """Folder for the report, the summary and every run."""
    preset: str = "mini"
    """smoke (a minute), mini (ten minutes on two cores), standard (hours, three seeds) or paper (GPUs)."""
    encodings: tuple[str, ...] | None = None
    """What to compare, such as rope-qk alibi; `dial`: a rotation at many spreads. Default: the preset's."""
    seeds: tuple[int, ...] | None = None
    """A run of every encoding for each. Default: the preset's."""
    tasks: tuple[str, ...] | None = None
    """What each encoding must also recall, such as mqar needle (`longroute tasks` lists them), or none. Default: the
    preset's."""
    text: tuple[Path, ...] = ()
    """Your own text to train on: files or folders of txt, md, jsonl, parquet. Default: longroute's books."""
    heldout: tuple[Path, ...] = ()
    """Your own text to measure on. Default: the last tenth of each document of --text."""
    text_key: str = "text"
    """Key or column of the text in jsonl and parquet files."""
    config: Path | None = None
    """A JSON file of settings, as `comparison.json` in an earlier folder has them under "comparison"."""
    set: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE…")] = field(default=())
    """Single settings over all of these, such as train.tokens=2000000 model.width=96 evaluate.spans=4."""
    workers: int | None = None
    """Runs at once, one thread each. Default: one a core."""
    explain: bool = False
    """Diagnose every run in full as well, as `longroute diagnose` does; the report links to it."""

    def run(self, console: Console) -> int:
        spec = self._spec()
        text = TextSpec(self.text, self.heldout, self.text_key)
        with (
            run_progress(console, runs=len(spec.encodings) * len(spec.seeds) * (1 + len(spec.tasks))) as show,
            closing(self._job(spec, text)) as job,
        ):
            for progress in job:
                show(progress)
        summary = read_summary(self.out)
        _print_summary(console, summary, self.out)
        return 1 if summary_failures(summary) else 0

    def _job(self, spec: ComparisonSpec, text: TextSpec):
        workers = default_workers() if self.workers is None else self.workers
        if workers < 1:
            raise InputError(f"--workers must be at least 1, not {workers}")
        return compare(spec, text, self.out, workers=workers, explain=self.explain)

    def _spec(self) -> ComparisonSpec:
        spec = preset(self.preset) if self.config is None else read_settings(self.config, self.preset)
        if self.encodings is not None:
            names = [name for given in self.encodings for name in (DIAL if given == "dial" else (given,))]
            spec = replace(spec, encodings=tuple(map(parse_encoding, names)))
        if self.seeds is not None:
            spec = replace(spec, seeds=self.seeds)
        if self.tasks is not None:
            spec = replace(spec, tasks=tuple(map(parse_task, () if self.tasks == ("none",) else self.tasks)))
        return with_settings(spec, self.set)


def _print_summary(console: Console, summary: dict[str, Any], out: Path) -> None:
    header, *rows = terminal_table(summary)
    table = Table(*(Column(name, overflow="fold") for name in header), box=None, header_style="bold")
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for failure in summary_failures(summary):
        console.print(f"{failure.encoding} (seed {failure.seed}) failed: {failure.reason}", markup=False)
    console.print(f"report: {out / 'report.html'}", markup=False, soft_wrap=True)
