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


def write_atomically(path: Path, text: str) -> None:
    """Replace a text file in one step: a reader, and whoever comes after a kill, sees the old text or the new."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(text, encoding="utf-8", newline="\n")
    partial.replace(path)


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


def claim(file: Path, asked: Any) -> bool:
    """Write `asked`, a configuration as JSON data, to a new file (True), or find the same there (False).

    Raises InputError naming the first key whose value differs.
    """
    if file.exists():
        _refuse_difference(load_json(file), asked, file)
        return False
    write_atomically(file, json.dumps(asked, indent=1) + "\n")
    return True


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
