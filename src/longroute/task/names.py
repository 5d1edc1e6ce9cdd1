"""Tasks by name: `mqar`, `mqar:pairs=8`, `word-problem:group=S3`."""

import typing

from longroute.configuration import changed_fields, from_json, kind_of, listed, read_fields
from longroute.task.copy import Copy
from longroute.task.flip_flop import FlipFlop
from longroute.task.mqar import MQAR
from longroute.task.needle import Needle, Passkey
from longroute.task.phone_book import PhoneBook
from longroute.task.word_problem import WordProblem

Task = MQAR | FlipFlop | Copy | PhoneBook | WordProblem | Passkey | Needle
"""Every task there is: a frozen dataclass of its sizes with a `name`, an `origin`, whether it is `in_text` (it then has
the text's vocabulary), and `source(hay)`, which its samples are drawn from. A new one joins here and in the tests."""

TASKS = {kind_of(member): member for member in typing.get_args(Task)}


def parse_task(name: str) -> Task:
    """The task that a name describes: TASK[:FIELD=VALUE,…]. Raises InputError naming the nearest that is known."""
    kind, _, fields = name.partition(":")
    source = f"task {name!r}"
    return from_json(Task, {"kind": kind} | read_fields(fields, source), source=source)  # type: ignore[arg-type]  # a union


def task_name(task: Task) -> str:
    """The shortest name that `parse_task` turns into this task."""
    return f"{task.name}{listed(changed_fields(task))}"
