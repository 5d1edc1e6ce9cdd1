"""A run's folder: its configuration, records and checkpoints, with one owner at a time.

config.json      the RunSpec, which a later command in the same folder must match
versions.json    what trained it: longroute, torch, python, git state
tokenizer.json   so that the folder is all that an evaluation needs
records.jsonl    what was measured, one JSON object a line
checkpoints/     the newest checkpoint
"""

import fcntl
import json
import os
import platform
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import torch

import longroute
from longroute.configuration import load_json, read_json, to_json
from longroute.errors import InputError
from longroute.train.spec import RunSpec


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file in one step: readers see the old text or the new."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, "utf-8")
    os.replace(partial, path)


def versions() -> dict[str, str]:
    """What the numbers depend on besides the configuration."""
    return {"longroute": longroute.__version__, "torch": torch.__version__, "python": platform.python_version()}


class RunFolder:
    """The files of one run. `open` it to write; reading needs no lock."""

    def __init__(self, path: Path):
        self.path = path
        self.checkpoints = path / "checkpoints"
        self.records = path / "records.jsonl"
        self.tokenizer = path / "tokenizer.json"

    @contextmanager
    def open(self, spec: RunSpec, tokenizer: Path, *, patience: float = 0.0) -> Iterator[None]:
        """Own the folder for a run of `spec`: made if new, gone on with if it holds the same, else refused.

        Raises InputError if another process still owns it after `patience` seconds, or if it holds another
        configuration (naming the first key that differs).
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with locked(self.path, patience=patience):
            config = self.path / "config.json"
            if config.exists():
                refuse_difference(load_json(config), to_json(spec), config)
            else:
                shutil.copyfile(tokenizer, self.tokenizer)
                write_atomically(self.path / "versions.json", json.dumps(versions() | git_state(), indent=2) + "\n")
                write_atomically(config, json.dumps(to_json(spec), indent=2) + "\n")
            yield

    def spec(self) -> RunSpec:
        """The run's configuration. Raises InputError naming the file if it is missing or wrong."""
        return read_json(RunSpec, self.path / "config.json")

    def read_records(self) -> list[dict[str, Any]]:
        """All whole records; a last line that a kill cut short is not one. Raises InputError naming a broken line."""
        if not self.records.exists():
            return []
        lines = self.records.read_bytes().split(b"\n")[:-1]
        return [_record(line, f"{self.records}, line {number}") for number, line in enumerate(lines, 1)]

    def keep_records(self, records: list[dict[str, Any]]) -> None:
        """Replace the records, as on going back to a checkpoint."""
        write_atomically(self.records, "".join(json.dumps(record) + "\n" for record in records))

    def add_records(self, *records: dict[str, Any]) -> None:
        """Append records, in one write."""
        with self.records.open("a", encoding="utf-8") as file:
            file.write("".join(json.dumps(record) + "\n" for record in records))


def _record(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not a record: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("record"), str):
        raise InputError(f"{where}: not a record: {line[:80]!r}")
    return record


@contextmanager
def locked(folder: Path, *, patience: float = 0.0) -> Iterator[None]:
    """Hold a folder's lock, which the system frees when its owner dies.

    Raises InputError if another process still holds it after `patience` seconds.
    """
    until = time.monotonic() + patience
    with (folder / ".lock").open("w") as file:
        while not _lock(file):
            if time.monotonic() >= until:
                raise InputError(f"{folder}: another process is running here; wait for it, or choose another folder")
            time.sleep(0.1)
        yield


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def refuse_difference(stored: Any, asked: Any, file: Path, key: str = "") -> None:
    """Raise InputError naming the first key whose value differs from what `file` stores."""
    if isinstance(stored, dict) and isinstance(asked, dict):
        for name in stored | asked:
            refuse_difference(stored.get(name), asked.get(name), file, f"{key}.{name}" if key else name)
    elif stored != asked:
        raise InputError(
            f"{file}: this folder holds another configuration: {key} is {stored!r} there, {asked!r} here; "
            "choose another folder, or ask for what it holds"
        )


def git_state() -> dict[str, str | None]:
    """The commit of the working directory's repository, with `+changes` if it has any; None outside one."""
    command = ["git", "describe", "--always", "--dirty=+changes", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=10, check=True)
    except (OSError, subprocess.SubprocessError):
        return {"git": None}
    return {"git": done.stdout.strip()}
