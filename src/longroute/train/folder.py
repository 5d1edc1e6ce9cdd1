"""A run's folder: its configuration, records and checkpoints, with one owner at a time.

config.json      the RunSpec, which a later command in the same folder must match
versions.json    what trained it: longroute, torch, python, git state
tokenizer.json   so that the folder is all that an evaluation needs; none for a task on made-up tokens
records.jsonl    what was measured, one JSON object a line
checkpoints/     the newest checkpoint
"""

import json
import platform
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch

import longroute
from longroute.configuration import read_json, to_json
from longroute.files import claim, locked, refuse_other, write_atomically
from longroute.train.records import RecordFile
from longroute.train.spec import RunSpec


def versions() -> dict[str, str]:
    """What the numbers depend on besides the configuration."""
    return {"longroute": longroute.__version__, "torch": torch.__version__, "python": platform.python_version()}


class RunFolder:
    """The files of one run. `open` it to write; reading needs no lock."""

    def __init__(self, path: Path):
        self.path = path
        self.config = path / "config.json"
        self.tokenizer = path / "tokenizer.json"
        self.records = RecordFile(path / "records.jsonl")
        self.checkpoints = path / "checkpoints"

    @contextmanager
    def open(self, spec: RunSpec, tokenizer: Path | None, *, patience: float = 0.0) -> Iterator[None]:
        """Own the folder for a run of `spec`: made if new, gone on with if it holds the same, else refused.

        Raises InputError if another process still owns it after `patience` seconds, or if it holds another
        configuration (naming the first key that differs).
        """
        with locked(self.path, patience=patience):
            refuse_other(self.config, to_json(spec))
            if not self.config.exists():
                if tokenizer is not None:
                    shutil.copyfile(tokenizer, self.tokenizer)
                write_atomically(self.path / "versions.json", json.dumps(versions() | _git_state(), indent=1) + "\n")
            claim(self.config, to_json(spec))
            yield

    def spec(self) -> RunSpec:
        """The run's configuration. Raises InputError naming the file if it is missing or wrong."""
        return read_json(RunSpec, self.config)


def _git_state() -> dict[str, str | None]:
    """The commit of the working directory's repository, with `+changes` if it has any; None outside one."""
    command = ["git", "describe", "--always", "--dirty=+changes", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return {"git": None}
    return {"git": done.stdout.strip()}
