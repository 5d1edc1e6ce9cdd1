"""Files that are whole or absent, and folders with one owner and one configuration."""

import fcntl
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from longroute.configuration import load_json
from longroute.errors import InputError

CLAIMS = ("config.json", "comparison.json", "evaluation-config.json", "theory-config.json", "diagnosis-config.json")
"""The files that say whose a folder is: a run's, a comparison's, an evaluation's, a theory's, a diagnosis's."""


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file in one step: a reader, and whoever comes after a kill, sees the old text or the new."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    partial.replace(path)


@contextmanager
def locked(folder: Path, *, patience: float = 0.0) -> Iterator[None]:
    """Make a folder if it isn't there and hold its lock, which the system frees when its owner dies.

    Raises InputError if it can't be made or written to, or if another process still holds it after `patience` seconds.
    """
    until = time.monotonic() + patience
    try:
        folder.mkdir(parents=True, exist_ok=True)
        lock = (folder / ".lock").open("w")
    except OSError as error:
        raise InputError(f"{folder}: can't write to this folder: {error.strerror}") from error
    with lock as file:
        while not _lock(file):
            if time.monotonic() >= until:
                raise InputError(f"{folder}: another process is running here; wait for it, or choose another folder")
            time.sleep(0.1)
        yield


def claim(file: Path, asked: Any) -> None:
    """Mark a folder as that of `asked`, JSON data kept in `file`. Raises InputError as `refuse_other` does."""
    refuse_other(file, asked)
    if not file.exists():
        write_atomically(file, json.dumps(asked, indent=1) + "\n")


def refuse_other(file: Path, asked: Any) -> None:
    """Raise InputError if a folder is that of something else than `asked`, naming the first key whose value differs."""
    for other in CLAIMS:
        if other != file.name and (file.parent / other).exists():
            raise InputError(f"{file.parent}: this folder is taken ({other}); choose another")
    if file.exists():
        _refuse_difference(load_json(file), asked, file)


def _refuse_difference(stored: Any, asked: Any, file: Path, key: str = "") -> None:
    if isinstance(stored, dict) and isinstance(asked, dict):
        for name in stored | asked:
            _refuse_difference(stored.get(name), asked.get(name), file, f"{key}.{name}" if key else name)
    elif stored != asked:
        raise InputError(
            f"{file}: this folder holds another configuration: {key} is {stored!r} there, {asked!r} here; "
            "choose another folder, or ask for what it holds"
        )


def _lock(file: IO[str]) -> bool:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
