"""Text to train on and to measure on: the embedded books, or the user's own files."""

import hashlib
import json
import lzma
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from typing import Literal, get_args

from longroute.errors import InputError, nearest

Split = Literal["train", "heldout"]
SUPPORTED = (".jsonl", ".md", ".parquet", ".txt")
SHORTEST_CUT = 2_000  # characters: a shorter document is not worth cutting in two


@dataclass(frozen=True)
class Document:
    """One text, and a name to speak of it by: a book's slug, a file, or a file and a line."""

    name: str
    text: str


def embedded_books(split: Split) -> tuple[Document, ...]:
    """The books of one split in the manifest's order, each checked against its SHA-256.

    Raises InputError for an unknown split or a damaged installation.
    """
    if split not in get_args(Split):
        raise InputError(f"unknown split {split!r}{nearest(split, get_args(Split))}")
    folder = resources.files("longroute.data") / "books"
    entries = json.loads((folder / "MANIFEST.json").read_text(encoding="utf-8"))
    return tuple(
        Document(entry["slug"], _unpack((folder / f"{entry['slug']}.txt.xz").read_bytes(), entry))
        for entry in entries
        if entry["split"] == split
    )


def _unpack(packed: bytes, entry: dict[str, str]) -> str:
    """The text of a packed book."""
    try:
        data = lzma.decompress(packed)
    except lzma.LZMAError:
        data = b""
    if hashlib.sha256(data).hexdigest() != entry["sha256"]:
        raise InputError(f"embedded book {entry['slug']!r} is damaged: install longroute again")
    return data.decode("utf-8")


def read_documents(paths: Sequence[Path], *, text_key: str = "text") -> tuple[Document, ...]:
    """The documents in files and folders (searched to any depth, in sorted order, hidden entries left out).

    One document is a .txt or .md file, a line of a .jsonl file (text under `text_key`), or a row of a
    .parquet file (text in column `text_key`). Text is UTF-8, kept as it is but for a byte order mark at the
    start. Blank lines and documents of whitespace alone (or null, in Parquet) are skipped.

    Raises InputError, naming the file and the place in it: nothing there, nothing that can be read, no text
    left, invalid UTF-8, a NUL, a lone surrogate, a broken line, a missing key, or a text that isn't a string.
    """
    files = [file for path in paths for file in _files(path)]
    for file, times in Counter(file.resolve() for file in files).items():
        if times > 1:
            raise InputError(f"{file}: given {times} times; a text counts once")
    return tuple(document for file in files for document in _read(file, text_key))


def short_names(documents: Sequence[Document]) -> tuple[Document, ...]:
    """The documents named by file alone, without the folders; a name that several share is numbered."""
    shared = Counter(Path(document.name).name for document in documents)
    seen: Counter[str] = Counter()
    named = []
    for document in documents:
        name = Path(document.name).name
        seen[name] += 1
        named.append(replace(document, name=f"{name} ({seen[name]})" if shared[name] > 1 else name))
    return tuple(named)


def corpus_hash(documents: Sequence[Document]) -> str:
    """SHA-256 over the texts in order (names don't count), each preceded by its length in 8 bytes."""
    digest = hashlib.sha256()
    for document in documents:
        try:
            data = document.text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise InputError(f"{document.name}: lone surrogate at character {error.start}") from None
        digest.update(len(data).to_bytes(8, "little"))
        digest.update(data)
    return digest.hexdigest()


def hold_out_tails(
    documents: Sequence[Document], fraction: float = 0.1
) -> tuple[tuple[Document, ...], tuple[Document, ...]]:
    """Cut each document in two: the beginnings to train on, and the last `fraction` of characters held out.

    The cut moves back to the last whitespace if one lies within 200 characters. The two parts joined are the
    document. Documents under 2,000 characters stay whole in training.
    Raises InputError for a fraction outside (0, 1/2], or when every document is too short to cut.
    """
    if not 0 < fraction <= 0.5:
        raise InputError(f"fraction to hold out is {fraction}; it must be above 0 and at most 0.5")
    cuts = [(document, _cut(document.text, fraction)) for document in documents]
    heldout = tuple(Document(f"{d.name} (tail)", d.text[cut:]) for d, cut in cuts if d.text[cut:].strip())
    if not heldout:
        raise InputError(f"nothing to hold out: no document has {SHORTEST_CUT} characters, enough to be cut in two")
    return tuple(Document(d.name, d.text[:cut]) for d, cut in cuts), heldout


def _cut(text: str, fraction: float) -> int:
    """Where the held-out tail begins."""
    if len(text) < SHORTEST_CUT:
        return len(text)
    cut = len(text) - max(1, round(len(text) * fraction))
    space = re.search(r"\s\S*\Z", text[cut - 200 : cut])
    return cut - 200 + space.start() if space else cut


def _files(path: Path) -> list[Path]:
    """The supported files at or below `path`."""
    if not path.exists():
        raise InputError(f"{path}: no such file or folder")
    supported = ", ".join(SUPPORTED)
    if path.is_dir():
        files = [file for file in sorted(path.rglob("*")) if file.suffix.lower() in SUPPORTED and file.is_file()]
        files = [file for file in files if not any(p.startswith(".") for p in file.relative_to(path).parts)]
        if not files:
            raise InputError(f"{path}: no file to read in this folder (supported: {supported})")
        return files
    if path.suffix.lower() not in SUPPORTED:
        raise InputError(f"{path}: can't read {path.suffix or 'a file without a suffix'} (supported: {supported})")
    return [path]


def _read(file: Path, text_key: str) -> list[Document]:
    """All documents of one file; an error if there is none."""
    try:
        if file.stat().st_size == 0:
            raise InputError(f"{file}: the file is empty")
        documents = [document for document in _documents(file, text_key) if document.text.strip()]
    except OSError as error:
        raise InputError(f"{file}: can't be read: {error.strerror or error}") from None
    if not documents:
        raise InputError(f"{file}: no text in this file")
    return documents


def _documents(file: Path, text_key: str) -> Iterator[Document]:
    if file.suffix.lower() == ".jsonl":
        return _json_lines(file, text_key)
    if file.suffix.lower() == ".parquet":
        return _parquet_rows(file, text_key)
    return iter([Document(str(file), _decode(file.read_bytes(), str(file), 0))])


def _decode(data: bytes, place: str, offset: int) -> str:
    """UTF-8 bytes that begin at byte `offset` of a file, without a byte order mark at the file's start."""
    if offset == 0 and data.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise InputError(f"{place}: invalid UTF-8 at byte 0: this looks like UTF-16; convert it to UTF-8")
    if (null := data.find(b"\0")) >= 0:
        raise InputError(f"{place}: NUL at byte {offset + null}: this isn't plain text")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        wrong = offset + error.start
        raise InputError(f"{place}: invalid UTF-8 at byte {wrong} (0x{data[error.start]:02x})") from None
    return text.removeprefix("\ufeff") if offset == 0 else text


def _json_lines(file: Path, text_key: str) -> Iterator[Document]:
    offset = 0
    with file.open("rb") as lines:
        for number, line in enumerate(lines, start=1):
            text = _decode(line, f"{file}, line {number}", offset)
            offset += len(line)
            if text.strip():
                yield Document(f"{file}:{number}", _json_text(text, f"{file}, line {number}", text_key))


def _json_text(line: str, place: str, text_key: str) -> str:
    """The text in one line of JSON."""
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{place}: not JSON: {error.msg} at character {error.pos}") from None
    except (ValueError, RecursionError) as error:  # a number of over 4,300 digits; nesting without end
        raise InputError(f"{place}: not JSON that can be read: {error}") from None
    if not isinstance(record, dict):
        raise InputError(f"{place}: expected an object with the key {text_key!r}, found {type(record).__name__}")
    if text_key not in record:
        raise InputError(f"{place}: no key {text_key!r}{nearest(text_key, record)}")
    return _checked(record[text_key], f"{place}, key {text_key!r}")


def _checked(text: object, place: str) -> str:
    """A text that came through escapes, which can spell what no UTF-8 file holds."""
    if not isinstance(text, str):
        raise InputError(f"{place}: expected a string, found {type(text).__name__}")
    if (null := text.find("\0")) >= 0:
        raise InputError(f"{place}: NUL at character {null} of the text")
    if surrogate := re.search("[\ud800-\udfff]", text):
        raise InputError(f"{place}: lone surrogate at character {surrogate.start()} of the text")
    return text


def _parquet_rows(file: Path, text_key: str) -> Iterator[Document]:
    """Rows in order, one row group in memory at a time."""
    import pyarrow as pa  # here, because it takes a third of a second that only Parquet's users should pay
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(file) as table:
            if text_key not in table.schema_arrow.names:
                raise InputError(f"{file}: no column {text_key!r}{nearest(text_key, table.schema_arrow.names)}")
            row = 0
            for group in range(table.num_row_groups):
                for value in table.read_row_group(group, columns=[text_key]).column(text_key):
                    place = f"{file}, row {row}, column {text_key!r}"
                    yield Document(f"{file}:{row}", _checked(_utf8(value, place), place))
                    row += 1
    except pa.ArrowException as error:
        raise InputError(f"{file}: not a Parquet file that can be read: {error}") from None


def _utf8(value, place: str) -> object:
    """A Parquet value in Python; null is the empty text."""
    try:
        content = value.as_py()
    except UnicodeDecodeError as error:
        raise InputError(f"{place}: invalid UTF-8 at byte {error.start} of the text") from None
    return "" if content is None else content
