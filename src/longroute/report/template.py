"""How a page becomes a file: its template rendered, its figures beside it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from longroute.files import write_atomically
from longroute.report.wording import printable


def render(template: str, **values: Any) -> str:
    """The page as HTML. Every text is escaped by the template; the figures alone are markup."""
    environment = Environment(
        loader=PackageLoader("longroute.report", "."),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    environment.filters["printable"] = _shown
    return environment.get_template(template).render(**values)


def write_figures(folder: Path, figures: Mapping[str, str], names: Sequence[str]) -> None:
    """Write `figures/NAME.svg` for each of `names`; figures of an earlier page that no longer apply are removed."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    for name in names:
        if name in figures:
            write_atomically(folder / "figures" / f"{name}.svg", figures[name])
        else:
            (folder / "figures" / f"{name}.svg").unlink(missing_ok=True)


def _shown(text: str) -> str:
    """A text without control characters, whose `84 %` stays on one line."""
    return printable(text).replace(" %", "\N{NO-BREAK SPACE}%")
