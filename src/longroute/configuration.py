"""Specs as JSON and back, strictly: a misspelt key, a wrong type or an unknown kind is an error that says where.

A spec is a frozen dataclass. Where a field is a union of specs, the JSON object says which by `"kind"`, the class's
`name`.
"""

import dataclasses
import json
import sys
import types
import typing
from pathlib import Path
from typing import Any, TypeVar

from longroute.errors import InputError, nearest

Spec = TypeVar("Spec")


def to_json(spec: Any) -> Any:
    """Plain JSON data of a spec: every field by name, unions tagged with their kind."""
    if dataclasses.is_dataclass(spec):
        kind = {"kind": kind_of(type(spec))} if hasattr(spec, "name") else {}
        return kind | {field.name: to_json(getattr(spec, field.name)) for field in dataclasses.fields(spec)}
    if isinstance(spec, tuple | list):
        return [to_json(item) for item in spec]
    return str(spec) if isinstance(spec, Path) else spec


def from_json(spec_type: type[Spec], data: Any, *, source: str) -> Spec:
    """The spec that JSON data describes; missing keys take their defaults.

    Raises InputError naming `source` (a file, or what else the data came from), the key's path and the nearest valid
    one.
    """
    return _parse(spec_type, data, source)


def read_json(spec_type: type[Spec], path: Path) -> Spec:
    """The spec in a JSON file. Raises InputError naming the file for anything wrong with it."""
    return from_json(spec_type, load_json(path), source=str(path))


def load_json(path: Path) -> Any:
    """The data in a JSON file. Raises InputError naming the file."""
    try:
        return json.loads(path.read_text("utf-8"))
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:  # also bytes that aren't UTF-8, a number of over 4,300 digits
        raise InputError(f"{path}: not JSON: {error}") from error


def kind_of(spec_type: type) -> str:
    """The name that tells a member of a union of specs."""
    return spec_type.name  # type: ignore[attr-defined]  # every member of a union has one, as a class variable


def read_fields(text: str, source: str) -> dict[str, Any]:
    """The fields in a name's `FIELD=VALUE,FIELD=VALUE`, for `from_json`. Raises InputError naming `source`."""
    fields = {}
    for item in filter(None, text.split(",")):
        key, equals, value = item.partition("=")
        if not equals:
            raise InputError(f"{source}: expected FIELD=VALUE, got {item!r}")
        if key == "kind" or key in fields:
            raise InputError(f"{source}: {key!r} {'stands twice' if key in fields else 'is not a field'}")
        try:
            fields[key] = json.loads(value)
        except ValueError:
            fields[key] = value
    return fields


def changed_fields(spec: Any) -> list[str]:
    """`field=value` of the fields that differ from their defaults, as `read_fields` takes them."""
    values = to_json(spec)
    return [
        f"{field.name}={values[field.name]}".replace("e+", "e")  # without the '+' that joins
        for field in dataclasses.fields(spec)
        if getattr(spec, field.name) != field.default
    ]


def listed(fields: list[str]) -> str:
    """The part of a name after its kind."""
    return ":" + ",".join(fields) if fields else ""


def _parse(expected: Any, data: Any, where: str) -> Any:
    if isinstance(expected, types.UnionType) or typing.get_origin(expected) is typing.Union:
        return _parse_union(typing.get_args(expected), data, where)
    if dataclasses.is_dataclass(expected):
        return _parse_fields(expected, data, where)
    if typing.get_origin(expected) is tuple:
        if not isinstance(data, list):
            raise InputError(f"{where}: expected a list, got {data!r}")
        return tuple(_parse(typing.get_args(expected)[0], item, f"{where}[{i}]") for i, item in enumerate(data))
    return _parse_value(expected, data, where)


def _parse_union(members: tuple[Any, ...], data: Any, where: str) -> Any:
    if type(None) in members:
        rest = [member for member in members if member is not type(None)]
        return None if data is None else _parse(typing.Union[tuple(rest)], data, where)  # noqa: UP007  # built at run time
    kinds = {kind_of(member): member for member in members}
    if not isinstance(data, dict) or not isinstance(data.get("kind"), str):
        raise InputError(f'{where}: expected an object with a "kind"{nearest("", kinds)}, got {data!r}')
    if data["kind"] not in kinds:
        raise InputError(f"{where}.kind: unknown {data['kind']!r}{nearest(data['kind'], kinds)}")
    return _parse_fields(kinds[data["kind"]], data, where)


def _parse_fields(spec_type: Any, data: Any, where: str) -> Any:
    if not isinstance(data, dict):
        raise InputError(f"{where}: expected an object, got {data!r}")
    hints = typing.get_type_hints(spec_type)
    names = [field.name for field in dataclasses.fields(spec_type) if field.init]
    values = {}
    for key, value in data.items():
        if key == "kind" and hasattr(spec_type, "name") and value == kind_of(spec_type):
            continue
        if key not in names:
            raise InputError(f"{where}: unknown key {key!r}{nearest(key, names)}")
        values[key] = _parse(hints[key], value, f"{where}: {key}" if ": " not in where else f"{where}.{key}")
    try:
        return spec_type(**values)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    except TypeError as error:
        raise InputError(f"{where}: {str(error).removeprefix(spec_type.__name__ + '.__init__() ')}") from error


def _parse_value(expected: Any, data: Any, where: str) -> Any:
    if typing.get_origin(expected) is typing.Literal:
        choices = typing.get_args(expected)
        if data not in choices:
            raise InputError(f"{where}: unknown {data!r}{nearest(str(data), map(str, choices))}")
        return data
    if expected is float and type(data) in (int, float):
        if not -sys.float_info.max <= data <= sys.float_info.max:
            raise InputError(f"{where}: expected a finite number, got {data!r}")
        return float(data)
    if expected is Path and type(data) is str:
        return Path(data)
    if type(data) is not expected:
        raise InputError(f"{where}: expected {expected.__name__}, got {data!r}")
    return data
