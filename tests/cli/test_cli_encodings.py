"""`longroute encodings`: the list is the unions themselves."""

import dataclasses
import json
import typing
from typing import Any

import pytest

from longroute.attention import parse_encoding
from longroute.cli.main import main
from longroute.configuration import from_json, kind_of
from longroute.control import Control
from longroute.transport import Transport

MEMBERS = {("transport", kind_of(spec)): spec for spec in typing.get_args(Transport)} | {
    ("control", kind_of(spec)): spec for spec in typing.get_args(Control)
}


@pytest.fixture
def listed(capsys: pytest.CaptureFixture[str]) -> list[dict[str, Any]]:
    assert main(["encodings", "--json"]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return json.loads(output.out)


def test_every_member_of_both_unions(listed: list[dict[str, Any]]):
    assert [(entry["axis"], entry["name"]) for entry in listed] == list(MEMBERS)
    assert ("transport", "none") in MEMBERS
    assert ("control", "none") in MEMBERS


def test_every_entry_says_what_it_is(listed: list[dict[str, Any]]):
    for entry in listed:
        assert set(entry) >= {"name", "axis", "summary", "fields", "laws", "source"}
        spec = MEMBERS[entry["axis"], entry["name"]]
        assert entry["summary"]
        assert entry["source"] == spec.source != ""
        assert entry["laws"] == sorted(spec.laws) != []
        assert [field["name"] for field in entry["fields"]] == [field.name for field in dataclasses.fields(spec)]
        for field in entry["fields"]:
            assert set(field) >= {"name", "type", "default", "doc"}
            assert field["doc"].strip(), (entry["name"], field["name"])
            assert field["type"].strip()
            assert field["default"] == getattr(spec(), field["name"])


def test_the_defaults_build_the_spec(listed: list[dict[str, Any]]):
    for entry in listed:
        spec = MEMBERS[entry["axis"], entry["name"]]
        data = {"kind": entry["name"]} | {field["name"]: field["default"] for field in entry["fields"]}
        assert from_json(spec, data, source="listed") == spec()


def test_the_table_shows_names_fields_and_sources(listed: list[dict[str, Any]], capsys: pytest.CaptureFixture[str]):
    assert main(["encodings"]) == 0
    shown = " ".join(capsys.readouterr().err.split())
    for entry in listed:
        assert " ".join(entry["source"].split()) in shown
        for field in entry["fields"]:
            assert f"{field['name']}={field['default']}" in shown


@pytest.mark.parametrize("arguments", [["--help"], ["compare", "--help"], ["encodings", "--help"]])
def test_help(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    assert "usage: longroute" in capsys.readouterr().out


@pytest.mark.parametrize("arguments", [[], ["campare"], ["compare", "--perset", "smoke"], ["compare", "--seeds", "x"]])
def test_a_command_line_that_cannot_be_read(arguments: list[str], capsys: pytest.CaptureFixture[str]):
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err


def test_every_name_in_the_help_parses():
    for name in ("rope-qk", "learned-qkv+forget", "alibi"):
        assert parse_encoding(name)
