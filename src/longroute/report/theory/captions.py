"""What each picture of the theory is called, shows and measures: read from captions.toml."""

import tomllib
from dataclasses import dataclass
from functools import cache
from importlib.resources import files


@dataclass(frozen=True)
class Caption:
    """A statement's words: title, caption, names of the axes, and the scales of both.

    `scale` is "linear" or "log" for each axis; "log1" is logarithmic with room for 0,
    "zero" linear from 0.
    """

    title: str
    caption: str
    x: str = ""
    y: str = ""
    scale: str = "linear linear"


@dataclass(frozen=True)
class Section:
    """A section's heading and what it is about."""

    title: str
    text: str


@cache
def captions() -> dict[str, Caption]:
    """Every statement's caption, by its name."""
    return {name: Caption(**words) for name, words in _read().items() if not name.startswith("§")}


@cache
def sections() -> dict[str, Section]:
    """Every section's heading, by its number, in order."""
    return {name: Section(**words) for name, words in _read().items() if name.startswith("§")}


@cache
def _read() -> dict[str, dict[str, str]]:
    return tomllib.loads((files("longroute.report.theory") / "captions.toml").read_text("utf-8"))
