"""Encodings by name: `rope-qk`, `learned-qkv+forget`, `random-qk:slowest=0.001,by=position`, `alibi`, `none`."""

import dataclasses
import json
import re
import typing
from typing import Any

from longroute.attention.encoding import Encoding
from longroute.configuration import from_json, kind_of, to_json
from longroute.control import Control, NoControl
from longroute.errors import InputError, nearest
from longroute.transport import NoTransport, Transport

TRANSPORTS = {kind_of(member): member for member in typing.get_args(Transport)}
CONTROLS = {kind_of(member): member for member in typing.get_args(Control)}


def parse_encoding(name: str) -> Encoding:
    """The encoding that a name describes: TRANSPORT[-qk|-qkv][:FIELD=VALUE,…][+CONTROL[:FIELD=VALUE,…]].

    A control alone has no transport. `free=N` among a control's fields leaves the last N query heads free of it.
    Raises InputError naming the part that isn't known and the nearest that is.
    """
    parts = re.split(r"\+(?=[a-z])", name)  # not the '+' of 1e+3
    if len(parts) > 2:
        raise InputError(f"encoding {name!r}: at most one '+' joins a transport and a control")
    kind, _, fields = parts[0].partition(":")
    if len(parts) == 1 and kind in CONTROLS and kind not in TRANSPORTS:
        parts = ["none", parts[0]]
        kind, fields = "none", ""
    stem, dash, moved = kind.rpartition("-")
    if not dash or kind in TRANSPORTS or (stem not in TRANSPORTS and moved not in ("qk", "qkv")):
        stem, moved = kind, "qk"
    if stem not in TRANSPORTS:
        known = [*TRANSPORTS, *CONTROLS] if parts[0] == name and stem == kind else [*TRANSPORTS]
        raise InputError(f"encoding {name!r}: unknown transport {stem!r}{nearest(stem, known)}")
    if moved not in ("qk", "qkv"):
        raise InputError(f"encoding {name!r}: unknown suffix {moved!r}{nearest(moved, ['qk', 'qkv'])}")
    control_kind, _, control_fields = (parts[1] if len(parts) == 2 else "none").partition(":")
    control = {"kind": control_kind} | _fields(name, control_fields)
    data = {"free": control.pop("free")} if "free" in control else {}
    data |= {"transport": {"kind": stem} | _fields(name, fields), "values": moved == "qkv", "control": control}
    return from_json(Encoding, data, source=f"encoding {name!r}")


def encoding_name(encoding: Encoding) -> str:
    """The shortest name that `parse_encoding` turns into this encoding."""
    transport, control = encoding.transport, encoding.control
    moves = f"-{'qkv' if encoding.values else 'qk'}" if transport.moves else ""
    free = [f"free={encoding.free}"] if encoding.free else []
    before = f"{transport.name}{moves}{_listed(_changed(transport))}"
    after = f"{control.name}{_listed(_changed(control) + free)}"
    if isinstance(control, NoControl):
        return before
    return after if isinstance(transport, NoTransport) else f"{before}+{after}"


def _fields(name: str, text: str) -> dict[str, Any]:
    fields = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"encoding {name!r}: expected FIELD=VALUE, got {item!r}")
        if key == "kind" or key in fields:
            raise InputError(f"encoding {name!r}: {key!r} {'stands twice' if key in fields else 'is not a field'}")
        try:
            fields[key] = json.loads(value)
        except ValueError:
            fields[key] = value
    return fields


def _changed(spec: Transport | Control) -> list[str]:
    """`field=value` of the fields that differ from their defaults."""
    values = to_json(spec)
    return [
        f"{field.name}={values[field.name]}".replace("e+", "e")  # without the '+' that joins
        for field in dataclasses.fields(spec)
        if getattr(spec, field.name) != field.default
    ]


def _listed(fields: list[str]) -> str:
    return ":" + ",".join(fields) if fields else ""
