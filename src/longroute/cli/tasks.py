"""`longroute tasks`: what can be recalled, read from the specs themselves."""

import json
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from longroute.cli.encodings import described, print_entries
from longroute.task import TASKS


@dataclass(frozen=True)
class Tasks:
    """List every recall task with its fields, defaults and source, for --tasks and --task.

    A name is a task with what differs from its defaults: TASK[:FIELD=VALUE,...]
    """

    json: bool = False
    """Print JSON."""

    def run(self, console: Console) -> int:
        entries = task_table()
        if self.json:
            print(json.dumps(entries, indent=1))
        else:
            print_entries(console, "TASK[:FIELD=VALUE,…]", entries)
        return 0


def task_table() -> list[dict[str, Any]]:
    """Every task: name, whether it needs text, what it is, its fields with type, default and meaning, source."""
    return [
        {"name": spec.name, "axis": "in text" if spec.in_text else "made-up tokens"}
        | described(spec)
        | {"source": spec.origin}
        for spec in TASKS.values()
    ]
