"""The command line: one verb a station."""

import os
import sys
from typing import Annotated

import tyro
from rich.console import Console

from longroute.cli.bench import Bench
from longroute.cli.compare import Compare
from longroute.cli.diagnose import Diagnose
from longroute.cli.encodings import Encodings
from longroute.cli.evaluate import Evaluate
from longroute.cli.generate import Generate
from longroute.cli.tasks import Tasks
from longroute.cli.theory import Theory
from longroute.cli.train import Train
from longroute.errors import InputError

Verb = (
    Annotated[Compare, tyro.conf.subcommand("compare")]
    | Annotated[Train, tyro.conf.subcommand("train")]
    | Annotated[Evaluate, tyro.conf.subcommand("evaluate")]
    | Annotated[Diagnose, tyro.conf.subcommand("diagnose")]
    | Annotated[Generate, tyro.conf.subcommand("generate")]
    | Annotated[Encodings, tyro.conf.subcommand("encodings")]
    | Annotated[Tasks, tyro.conf.subcommand("tasks")]
    | Annotated[Bench, tyro.conf.subcommand("bench")]
    | Annotated[Theory, tyro.conf.subcommand("theory")]
)

RESUMABLE = (Compare, Train, Evaluate, Diagnose)
"""Verbs that keep what they have done when they are stopped."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; returns its exit code: 0 done, 1 a run failed, 2 bad input, 130 stopped, 141 unread."""
    console = Console(stderr=True)
    verb = tyro.cli(Verb, prog="longroute", description=__doc__, args=arguments)
    try:
        return verb.run(console)
    except InputError as error:
        console.print(f"longroute: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
        return 2
    except BrokenPipeError:  # whoever read stdout has gone, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 141
    except KeyboardInterrupt:
        console.print("stopped; the same command goes on from here" if isinstance(verb, RESUMABLE) else "stopped")
        return 130


if __name__ == "__main__":
    sys.exit(main())
