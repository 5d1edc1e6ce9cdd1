"""`longroute encodings`: what there is, read from the specs themselves."""

import dataclasses
import json
from dataclasses import dataclass
from typing import Any

from docstring_parser import parse_from_object
from rich.console import Console

from longroute.attention.names import CONTROLS, TRANSPORTS
from longroute.configuration import to_json


@dataclass(frozen=True)
class Encodings:
    """List every transport and far-mass control with its fields, defaults, laws and source.

    A name joins the two axes: TRANSPORT[-qk|-qkv][:FIELD=VALUE,...][+CONTROL[:FIELD=VALUE,...]]
    """

    json: bool = False
    """Print JSON."""

    def run(self, console: Console) -> int:
        entries = encoding_table()
        if self.json:
            print(json.dumps(entries, indent=1))
            return 0
        print_entries(console, "TRANSPORT[-qk|-qkv][:FIELD=VALUE,…][+CONTROL[:FIELD=VALUE,…]]", entries)
        return 0


def encoding_table() -> list[dict[str, Any]]:
    """Every spec of the two unions: name, axis, what it is, its fields with type, default and meaning, laws, source."""
    axes = [("transport", spec) for spec in TRANSPORTS.values()] + [("control", spec) for spec in CONTROLS.values()]
    return [_entry(axis, spec) for axis, spec in axes]


def _entry(axis: str, spec: Any) -> dict[str, Any]:
    about = {"name": spec.name, "axis": axis} | described(spec)
    return about | {"laws": sorted(spec.laws), "source": spec.source}


def described(spec: Any) -> dict[str, Any]:
    """What a spec's docstring says of it, and its fields with type, default and meaning."""
    documentation = parse_from_object(spec)
    meanings = {item.arg_name: item.description for item in documentation.params}
    defaults = to_json(spec())
    fields = [
        {
            "name": field.name,
            "type": field.type.__name__ if isinstance(field.type, type) else str(field.type).removeprefix("typing."),
            "default": defaults[field.name],
            "doc": meanings.get(field.name) or "",
        }
        for field in dataclasses.fields(spec)
    ]
    return {"summary": documentation.short_description, "fields": fields}


def print_entries(console: Console, grammar: str, entries: list[dict[str, Any]]) -> None:
    """The grammar of names, then each entry: its kind and source, what it is, its fields."""
    console.print(grammar, style="bold", markup=False)
    for entry in entries:
        console.print(f"\n{entry['name']}", style="bold", end="", markup=False)
        console.print(f"  {entry['axis']}, {entry['source']}", markup=False, highlight=False)
        console.print(f"  {entry['summary']}", markup=False, highlight=False)
        for field in entry["fields"]:
            console.print(f"  {field['name']}={field['default']}  {field['doc']}", markup=False, highlight=False)
