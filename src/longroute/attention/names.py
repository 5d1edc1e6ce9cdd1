"""Encodings by name: `rope-qk`, `learned-qkv+forget`, `random-qk:slowest=0.001,by=position`, `alibi`, `none`."""

import re
import typing

from longroute.attention.encoding import Encoding
from longroute.configuration import changed_fields, from_json, kind_of, listed, read_fields
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
    source = f"encoding {name!r}"
    control = {"kind": control_kind} | read_fields(control_fields, source)
    data = {"free": control.pop("free")} if "free" in control else {}
    data |= {"transport": {"kind": stem} | read_fields(fields, source), "values": moved == "qkv", "control": control}
    return from_json(Encoding, data, source=source)


def encoding_name(encoding: Encoding) -> str:
    """The shortest name that `parse_encoding` turns into this encoding."""
    transport, control = encoding.transport, encoding.control
    moves = f"-{'qkv' if encoding.values else 'qk'}" if transport.moves else ""
    free = [f"free={encoding.free}"] if encoding.free else []
    before = f"{transport.name}{moves}{listed(changed_fields(transport))}"
    after = f"{control.name}{listed(changed_fields(control) + free)}"
    if isinstance(control, NoControl):
        return before
    return after if isinstance(transport, NoTransport) else f"{before}+{after}"
