"""How an encoding is drawn: colour says the transport, dashes that values stay, the marker its control."""

from collections.abc import Iterable
from dataclasses import dataclass

from longroute.report.comparison import EncodingResult

PAPER, INK, MUTED, RULE = "#ffffff", "#1d2330", "#667085", "#d8dce3"

TRANSPORTS = {
    "none": ("#5c6470", "#b3bac5"),
    "rope": ("#cf5200", "#ff9a4d"),
    "random": ("#0069b4", "#5db8ff"),
    "learned": ("#00805f", "#3fd0a4"),
    "householder": ("#9c3f97", "#e291dc"),
    "path": ("#8f6a00", "#e5bf45"),
}
"""Known transports' colours on light and dark paper: Okabe and Ito (2008), darkened to be read as text."""
SPARE = (("#b3205f", "#ff86b5"), ("#3f51b5", "#9fb0ff"), ("#4d7c0f", "#a8d65c"), ("#00788a", "#4fd1e0"))
"""Colours for transports that this file does not know, in the order that they are met."""
GROUND = {
    "paper": (PAPER, "#14171d"),
    "ink": (INK, "#e8eaee"),
    "muted": (MUTED, "#9aa3b2"),
    "rule": (RULE, "#333a46"),
}
"""Paper, text, secondary text and hairlines, on light and on dark paper."""

MARKERS = {
    "none": ("o", "●"),
    "alibi": ("s", "■"),
    "forget": ("D", "◆"),
    "log-distance": ("^", "▲"),
    "log-count": ("v", "▼"),
}
"""Matplotlib's marker and its look in text, by far-mass control."""
OTHER_MARKER = ("P", "✚")


@dataclass(frozen=True)
class Look:
    """How one encoding is drawn."""

    color: str
    variable: str
    dashed: bool
    marker: str
    width: float

    @property
    def linestyle(self) -> str | tuple[float, tuple[float, float]]:
        """Matplotlib's line style: dashes when only queries and keys rotate."""
        return (0, (4.0, 2.2)) if self.dashed else "-"


def colors() -> dict[str, tuple[str, str]]:
    """Every colour by the name of its CSS variable: (on light paper, on dark paper)."""
    spare = {f"spare-{number}": pair for number, pair in enumerate(SPARE)}
    return {**GROUND, **TRANSPORTS, **spare}


def looks(encodings: Iterable[EncodingResult]) -> dict[str, Look]:
    """Each encoding's look, by name. Unknown transports take the spare colours in alphabetical order."""
    encodings = list(encodings)
    unknown = sorted({one.transport for one in encodings} - set(TRANSPORTS))
    variables = {transport: f"spare-{number % len(SPARE)}" for number, transport in enumerate(unknown)}
    return {one.name: _look(one, variables.get(one.transport, one.transport)) for one in encodings}


def marker_sign(control: str) -> str:
    """The marker of a far-mass control as a character, for legends."""
    return MARKERS.get(control, OTHER_MARKER)[1]


def _look(encoding: EncodingResult, variable: str) -> Look:
    controlled = encoding.control != "none"
    return Look(
        color=colors()[variable][0],
        variable=variable,
        dashed=not encoding.values,
        marker=MARKERS.get(encoding.control, OTHER_MARKER)[0],
        width=2.1 if controlled else 1.4,
    )
