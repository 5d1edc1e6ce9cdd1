"""Settings from a file or the command line over a preset, checked key by key."""

import json
from pathlib import Path
from typing import Any

from longroute.attention import parse_encoding
from longroute.compare import ComparisonSpec, preset
from longroute.configuration import from_json, load_json, to_json
from longroute.errors import InputError, nearest


def read_settings(file: Path, base: str) -> ComparisonSpec:
    """A preset with a JSON file's settings over it; encodings there may be names. Raises InputError naming the file."""
    data = load_json(file)
    if not isinstance(data, dict):
        raise InputError(f"{file}: expected an object of settings")
    data = data.get("comparison", data)
    if not isinstance(data, dict):
        raise InputError(f'{file}: expected an object under "comparison", got {data!r}')
    try:
        if isinstance(data.get("encodings"), list):
            named = [to_json(parse_encoding(item)) if isinstance(item, str) else item for item in data["encodings"]]
            data = data | {"encodings": named}
        under = preset(str(data.get("preset", base)))
    except InputError as error:
        raise InputError(f"{file}: {error}") from error
    return from_json(ComparisonSpec, _over(to_json(under), data), source=str(file))


def with_settings(spec: ComparisonSpec, settings: tuple[str, ...]) -> ComparisonSpec:
    """A spec with `key.key=value` settings over it. Raises InputError naming the setting and the nearest key."""
    data = to_json(spec)
    for setting in settings:
        path, equals, value = setting.partition("=")
        if not equals:
            raise InputError(f"--set {setting}: expected KEY=VALUE")
        *outer, last = path.split(".")
        target = data
        for key in outer:
            target = _member(target, key, setting)
        _member(target, last, setting)
        target[last] = _value(value)
    return from_json(ComparisonSpec, data, source="--set")


def _member(target: Any, key: str, setting: str) -> Any:
    if not isinstance(target, dict) or key not in target:
        raise InputError(
            f"--set {setting}: unknown key {key!r}{nearest(key, target if isinstance(target, dict) else ())}"
        )
    return target[key]


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _over(base: dict[str, Any], data: dict[str, Any]) -> dict[str, Any]:
    """`data` over `base`, objects key by key; an object of another kind replaces the whole."""
    merged = dict(base)
    for key, value in data.items():
        nested = isinstance(value, dict) and isinstance(base.get(key), dict)
        merged[key] = _over(base[key], value) if nested else value
    return merged
