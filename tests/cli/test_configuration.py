"""Specs as JSON and back: nothing is lost, nothing wrong is accepted, and every error says where it is."""

import dataclasses
import json
import math
import typing
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from longroute.attention import Encoding, encoding_name, parse_encoding
from longroute.attention.names import CONTROLS, TRANSPORTS
from longroute.compare import PRESETS, ComparisonSpec, TextSpec
from longroute.configuration import from_json, read_json, to_json
from longroute.control import NoControl
from longroute.errors import InputError
from longroute.evaluate import EvaluateSpec
from longroute.model import ModelSpec
from longroute.train import RunSpec, TrainSpec
from longroute.transport import RoPE

COUNTS = st.integers(1, 10**6)
FLOATS = st.floats(1e-12, 1e12)


def field_values(spec: type, name: str, annotation: Any) -> st.SearchStrategy[Any]:
    """Values of a field by its type; the few that a spec restricts further are drawn from what it allows."""
    restricted = {"warmup": st.floats(0, 0.999), "beta2": st.floats(0, 0.999), "theta": st.floats(1.001, 1e12)}
    restricted["share"] = st.floats(0.01, 1)
    restricted |= {"power": st.floats(1.001, 1e6), "strength": st.floats(1, 1e6)}
    if name in restricted:
        return restricted[name]
    if typing.get_origin(annotation) is typing.Literal:
        return st.sampled_from(typing.get_args(annotation))
    if type(None) in typing.get_args(annotation):
        (inner,) = (one for one in typing.get_args(annotation) if one is not type(None))
        return st.none() | field_values(spec, name, inner)
    return {int: COUNTS, float: FLOATS, str: st.text(), bool: st.booleans()}[annotation]


@st.composite
def filled(draw: st.DrawFn, spec: type) -> Any:
    """A spec with a value for each field, or None where its fields don't go together."""
    hints = typing.get_type_hints(spec)
    values = {field.name: draw(field_values(spec, field.name, hints[field.name])) for field in dataclasses.fields(spec)}
    for low, high in (("slowest", "fastest"), ("shortest", "longest")):
        if low in values:
            values[low], values[high] = sorted((values[low], values[high]))
    if "kv_heads" in values:
        values["heads"] = values["kv_heads"] * draw(st.integers(1, 8))
    return spec(**values)


@st.composite
def encodings(draw: st.DrawFn) -> Encoding:
    transport = draw(st.sampled_from(list(TRANSPORTS.values())).flatmap(filled))
    control = draw(st.sampled_from(list(CONTROLS.values())).flatmap(filled))
    free = 0 if isinstance(control, NoControl) else draw(st.integers(0, 8))
    return Encoding(transport, "qkv" in transport.moves and draw(st.booleans()), control, free)


EVALUATIONS = st.builds(EvaluateSpec, st.integers(1, 12).map(lambda k: 2**k), COUNTS, COUNTS)
TRAININGS = filled(TrainSpec).map(lambda spec: dataclasses.replace(spec, length=2 * spec.length))
RUNS = st.builds(RunSpec, encodings(), filled(ModelSpec), TRAININGS, st.integers(0, 2**63 - 1), st.text())
PATHS = st.lists(st.text("abc/", min_size=1).map(Path)).map(tuple)
SPECS = {
    Encoding: encodings(),
    ModelSpec: filled(ModelSpec),
    TrainSpec: TRAININGS,
    EvaluateSpec: EVALUATIONS,
    RunSpec: RUNS,
    TextSpec: st.builds(TextSpec, PATHS, PATHS, st.text()),
    ComparisonSpec: st.builds(
        ComparisonSpec,
        st.text(),
        st.lists(encodings(), min_size=1, max_size=3, unique_by=encoding_name).map(tuple),
        st.lists(st.integers(0, 99), min_size=1, unique=True).map(tuple),
        filled(ModelSpec),
        TRAININGS,
        EVALUATIONS,
    ),
}


@pytest.mark.parametrize("spec_type", SPECS)
@settings(max_examples=30)
@given(st.data())
def test_through_json_and_back(spec_type: type, data: st.DataObject):
    spec = data.draw(SPECS[spec_type])
    text = json.dumps(to_json(spec), allow_nan=False)
    assert from_json(spec_type, json.loads(text), source="test") == spec


@settings(max_examples=300)
@given(encodings())
def test_through_a_name_and_back(encoding: Encoding):
    name = encoding_name(encoding)
    assert parse_encoding(name) == encoding
    assert encoding_name(parse_encoding(name)) == name


def test_every_preset_goes_through_json():
    for name, spec in PRESETS.items():
        assert from_json(ComparisonSpec, json.loads(json.dumps(to_json(spec))), source=name) == spec


def test_missing_keys_take_their_defaults():
    assert from_json(RunSpec, {}, source="test") == RunSpec()
    assert from_json(RunSpec, {"train": {"tokens": 5}}, source="test") == RunSpec(train=TrainSpec(tokens=5))
    assert from_json(RunSpec, {"train": {"clip": 2}}, source="test").train.clip == 2.0


@pytest.mark.parametrize(
    ("data", "parts"),
    [
        ({"sede": 1}, ["unknown key 'sede'", "did you mean 'seed'?"]),
        ({"train": {"lenght": 8}}, ["train: unknown key 'lenght'", "did you mean 'length'?"]),
        ({"model": {"widht": 8}}, ["model: unknown key 'widht'", "did you mean 'width'?"]),
        ({"seed": "1"}, ["seed: expected int, got '1'"]),
        ({"seed": True}, ["seed: expected int, got True"]),
        ({"seed": 1.0}, ["seed: expected int, got 1.0"]),
        ({"seed": None}, ["seed: expected int, got None"]),
        ({"seed": -1}, ["seed"]),
        ({"train": {"tokens": 1e6}}, ["train.tokens: expected int, got 1000000.0"]),
        ({"train": {"clip": "x"}}, ["train.clip: expected float, got 'x'"]),
        ({"train": {"clip": math.inf}}, ["train.clip: expected a finite number"]),
        ({"train": {"clip": math.nan}}, ["train.clip: expected a finite number"]),
        ({"train": {"clip": 10**400}}, ["train.clip: expected a finite number"]),
        ({"train": {"precision": "bfloat61"}}, ["train.precision: unknown 'bfloat61'", "did you mean 'bfloat16'?"]),
        ({"train": {"precision": ["auto"]}}, ["train.precision: unknown"]),
        ({"train": {"tokens": 0}}, ["train", "tokens must be at least 1"]),
        ({"train": [1]}, ["train: expected an object, got [1]"]),
        ({"text_hash": 5}, ["text_hash: expected str, got 5"]),
        ({"encoding": {"values": 1}}, ["encoding.values: expected bool, got 1"]),
        ({"encoding": {"transport": "rope"}}, ['encoding.transport: expected an object with a "kind"', "rope"]),
        ({"encoding": {"transport": {"kind": "roep"}}}, ["transport.kind: unknown 'roep'", "did you mean 'rope'?"]),
        ({"encoding": {"transport": {"kind": 5}}}, ["encoding.transport"]),
        ({"encoding": {"transport": {"kind": "rope", "thera": 5}}}, ["unknown key 'thera'", "did you mean 'theta'?"]),
        ({"encoding": {"transport": {"kind": "rope", "theta": 0.5}}}, ["encoding.transport", "greater than 1"]),
        ({"encoding": {"control": {"kind": "fogret"}}}, ["control.kind: unknown", "did you mean 'forget'?"]),
        ({"encoding": {"values": True}}, ["encoding", "moves nothing"]),
        ([], ["expected an object, got []"]),
        ("rope", ["expected an object, got 'rope'"]),
        (None, ["expected an object, got None"]),
    ],
)
def test_errors_name_the_file_the_key_and_the_nearest(tmp_path: Path, data: Any, parts: list[str]):
    file = tmp_path / "config.json"
    file.write_text(json.dumps(data))
    with pytest.raises(InputError) as error:
        read_json(RunSpec, file)
    assert str(error.value).startswith(f"{file}: ")
    assert "\n" not in str(error.value)
    for part in parts:
        assert part in str(error.value)


def test_errors_name_the_place_in_a_list():
    wrong = to_json(PRESETS["smoke"])
    wrong["encodings"][1] = {"transport": {"kind": "nine"}}
    with pytest.raises(InputError, match=r"test: encodings\[1\]\.transport\.kind: unknown 'nine'"):
        from_json(ComparisonSpec, wrong, source="test")
    with pytest.raises(InputError, match=r"seeds: expected a list, got 3"):
        from_json(ComparisonSpec, {"seeds": 3}, source="test")
    with pytest.raises(InputError, match=r"seeds\[1\]: expected int, got 'x'"):
        from_json(ComparisonSpec, {"seeds": [1, "x"]}, source="test")


@pytest.mark.parametrize("content", [b"", b"{", b"\xff\xfe{}", b"[" * 100_000, b"1" * 5000])
def test_a_file_that_is_not_json_is_named(tmp_path: Path, content: bytes):
    file = tmp_path / "config.json"
    file.write_bytes(content)
    with pytest.raises(InputError) as error:
        read_json(RunSpec, file)
    assert str(error.value).startswith(f"{file}: not JSON")


def test_a_file_that_is_not_there_is_named(tmp_path: Path):
    for path in (tmp_path / "none.json", tmp_path):
        with pytest.raises(InputError) as error:
            read_json(RunSpec, path)
        assert str(error.value).startswith(f"{path}: ")


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("roep-qk", ["unknown transport 'roep'", "did you mean 'rope'?"]),
        ("rope-kq", ["unknown suffix 'kq'", "'qk"]),
        ("rope-qk+alibbi", ["did you mean 'alibi'?"]),
        ("rope-qk+alibi+forget", ["at most one '+'"]),
        ("rope-qk:thera=5", ["unknown key 'thera'", "did you mean 'theta'?"]),
        ("rope-qk:theta", ["expected FIELD=VALUE, got 'theta'"]),
        ("rope-qk:theta=big", ["theta: expected float, got 'big'"]),
        ("rope-qk:theta=1", ["greater than 1"]),
        ("rope-qk:theta=Infinity", ["finite"]),
        ("rope-qk:share=0", ["share must be in (0, 1], not 0.0"]),
        ("random-qk:by=tokne", ["by: unknown 'tokne'", "did you mean 'token'?"]),
        ("random-qk:slowest=2", ["slowest <= fastest"]),
        ("alibi+rope-qk", ["unknown transport 'alibi'"]),
        ("none-qkv", ["moves nothing"]),
        ("", ["unknown transport ''"]),
        ("rope-", ["unknown suffix ''"]),
    ],
)
def test_a_name_that_is_not_one(name: str, parts: list[str]):
    with pytest.raises(InputError) as error:
        parse_encoding(name)
    assert f"encoding {name!r}" in str(error.value)
    for part in parts:
        assert part in str(error.value)


def test_names_by_hand():
    names = {
        "none": ("none", False, "none"),
        "alibi": ("none", False, "alibi"),
        "forget": ("none", False, "forget"),
        "rope-qk": ("rope", False, "none"),
        "learned-qkv+forget": ("learned", True, "forget"),
        "random-qk:slowest=0.001,by=position": ("random", False, "none"),
    }
    for name, (transport, values, control) in names.items():
        encoding = parse_encoding(name)
        assert (encoding.transport.name, encoding.values, encoding.control.name) == (transport, values, control)
    assert parse_encoding("rope") == parse_encoding("rope-qk")
    assert parse_encoding("random-qk:slowest=0.001").transport.slowest == 0.001  # pyright: ignore


@pytest.mark.parametrize("name", ["rope-qk:theta=1e16", "rope-qk:theta=1e+16", "rope-qk:theta=1e+16+alibi"])
def test_an_exponent_is_no_join(name: str):
    encoding = parse_encoding(name)
    assert encoding.transport == RoPE(theta=1e16)
    assert parse_encoding(encoding_name(encoding)) == encoding


@pytest.mark.parametrize("name", ["rope-qk:kind=random", "rope-qk:theta=1000,theta=2000"])
def test_a_field_stands_once_and_is_no_kind(name: str):
    with pytest.raises(InputError, match=r"stands twice|is not a field"):
        parse_encoding(name)
