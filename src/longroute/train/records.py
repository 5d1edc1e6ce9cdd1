"""What was measured, one JSON object a line."""

import json
import os
from pathlib import Path
from typing import Any, BinaryIO

from longroute.errors import InputError
from longroute.files import write_atomically


class RecordFile:
    """A file of records, each a JSON object whose key `record` says what it is of."""

    def __init__(self, path: Path):
        self.path = path

    def read(self) -> list[dict[str, Any]]:
        """All whole records; a last line that a kill cut short is not one. Raises InputError naming a broken line."""
        if not self.path.exists():
            return []
        lines = self.path.read_bytes().split(b"\n")[:-1]
        return [_parse(line, f"{self.path}, line {number}") for number, line in enumerate(lines, 1)]

    def keep(self, records: list[dict[str, Any]]) -> None:
        """Replace all records, as on going back to a checkpoint."""
        write_atomically(self.path, _lines(records))

    def add(self, *records: dict[str, Any]) -> None:
        """Append records, in one write, after the last whole one: what a kill cut short goes."""
        with self.path.open("ab+") as file:
            if not _ends_whole(file):
                file.truncate(self.path.read_bytes().rfind(b"\n") + 1)
            file.write(_lines(records).encode("utf-8"))


def _ends_whole(file: BinaryIO) -> bool:
    """Whether a file is empty or ends where a line does."""
    if file.seek(0, os.SEEK_END) == 0:
        return True
    file.seek(-1, os.SEEK_END)
    return file.read(1) == b"\n"


def _lines(records: list[dict[str, Any]] | tuple[dict[str, Any], ...]) -> str:
    return "".join(json.dumps(record) + "\n" for record in records)


def _parse(line: bytes, where: str) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError as error:
        raise InputError(f"{where}: not a record: {error}") from error
    if not isinstance(record, dict) or not isinstance(record.get("record"), str):
        raise InputError(f"{where}: not a record: {line[:80]!r}")
    return record
