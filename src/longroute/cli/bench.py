"""`longroute bench`: speed, memory and precision as ratios."""

import json
from dataclasses import dataclass

import torch
from rich.console import Console

from longroute.bench import run_bench
from longroute.errors import InputError


@dataclass(frozen=True)
class Bench:
    """Measure speed, memory and precision side by side in one process; every figure is a ratio with its goal.

    Exit code 0 whatever the ratios: machines differ. Rows whose reference isn't installed have none.
    """

    json: bool = False
    """Print {"rows": […]} alone."""
    only: str | None = None
    """Only the rows whose name contains this."""
    threads: int | None = None
    """CPU threads. Default: all."""

    def run(self, console: Console) -> int:
        if self.threads is not None:
            if self.threads < 1:
                raise InputError(f"--threads must be at least 1, not {self.threads}")
            torch.set_num_threads(self.threads)
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        rows = []
        for row in run_bench(only=self.only, device=device):
            rows.append(row)
            ratio = "not installed" if row["ratio"] is None else f"{row['ratio']:.3f} (goal {row['goal']:.3g})"
            verdict = {True: "met", False: "MISSED", None: ""}[row["met"]]
            peak = "" if row["peak_mib"] is None else f"peak {row['peak_mib']:.0f} MiB"
            line = f"{row['name']} / {row['against']}, {row['shape']}: {ratio} {verdict} {peak}"
            console.print(line, markup=False, highlight=False, soft_wrap=True)
        if self.json:
            print(json.dumps({"rows": rows}, indent=1))
        return 0
