"""A run's folder: one configuration, one owner, records that survive a kill."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import tiny_training as tiny

import longroute
from longroute.errors import InputError
from longroute.files import claim, locked
from longroute.train import RunFolder, RunSpec

HOLD = """
import sys
from pathlib import Path
from longroute.train.folder import locked
with locked(Path(sys.argv[1])):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_it_records_what_trained_it(tmp_path: Path):
    tiny.train_in(tmp_path / "run", tiny.run_spec(), stop_after=1)
    versions = json.loads((tmp_path / "run" / "versions.json").read_text())
    assert set(versions) == {"longroute", "torch", "python", "git"}
    assert versions["longroute"] == longroute.__version__
    assert RunFolder(tmp_path / "run").spec() == tiny.run_spec()


@pytest.mark.parametrize(
    ("key", "other"),
    [
        ("seed", tiny.run_spec(seed=1)),
        ("train.learning_rate", tiny.run_spec(learning_rate=1.0)),
        ("train.precision", tiny.run_spec(precision="bfloat16")),
        ("encoding.transport.kind", tiny.run_spec("random-qkv+forget")),
        ("encoding.values", tiny.run_spec("learned-qk+forget")),
        ("encoding.control.longest", tiny.run_spec("learned-qkv+forget:longest=99")),
    ],
)
def test_another_configuration_is_refused(tmp_path: Path, key: str, other: RunSpec):
    path = tmp_path / "run"
    tiny.train_in(path, tiny.run_spec(), stop_after=2)
    before = tiny.files(path)
    with pytest.raises(InputError, match="another configuration") as refusal:
        tiny.train_in(path, other)
    assert f"{path / 'config.json'}: " in str(refusal.value)
    assert f" {key} is " in str(refusal.value)
    assert tiny.files(path) == before


def test_a_key_on_one_side_only_is_a_difference(tmp_path: Path):
    file = tmp_path / "config.json"
    claim(file, {"a": {"b": [1, 2]}})
    claim(file, {"a": {"b": [1, 2]}})
    for stored, asked in [
        ({"a": {"b": 1}}, {"a": {}}),
        ({"a": {}}, {"a": {"b": 1}}),
        ([], {}),
        ({"a": {"b": 1}}, {"a": 2}),
    ]:
        file.write_text(json.dumps(stored), "utf-8")
        with pytest.raises(InputError, match=r"config\.json"):
            claim(file, asked)


def test_a_live_run_is_refused_and_a_dead_one_is_not(tmp_path: Path):
    path = tmp_path / "run"
    path.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        for patience in (0.0, 0.3):
            with (
                pytest.raises(InputError, match="another process is running here"),
                RunFolder(path).open(tiny.run_spec(), tiny.tokenizer(tmp_path), patience=patience),
            ):
                pass
        assert not (path / "config.json").exists()
        owner.kill()
        with locked(path, patience=10.0):
            pass
    assert len(tiny.train_in(path, tiny.run_spec(tokens=64))) == 1


def test_a_line_that_a_kill_cut_short_is_no_record(tmp_path: Path):
    folder = RunFolder(tmp_path)
    assert folder.records.read() == []
    folder.records.add({"record": "train", "step": 1}, {"record": "train", "step": 2})
    whole = folder.records.path.read_bytes()
    for length in range(len(whole) + 1):
        folder.records.path.write_bytes(whole[:length])
        assert folder.records.read() == [{"record": "train", "step": n + 1} for n in range(whole[:length].count(b"\n"))]


@pytest.mark.parametrize("line", [b"not json", b"\xff\xfe", b"[1, 2]"])
def test_a_broken_record_names_its_file_and_line(tmp_path: Path, line: bytes):
    folder = RunFolder(tmp_path)
    folder.records.path.write_bytes(b'{"record": "train", "step": 1}\n' + line + b"\n")
    with pytest.raises(InputError, match=r"records\.jsonl, line 2: not a record"):
        folder.records.read()


@pytest.mark.parametrize("text", [None, "", "{", "[]", '{"sed": 1}', '{"seed": "1"}', "\udcff"])
def test_a_broken_config_names_its_file(tmp_path: Path, text: str | None):
    file = tmp_path / "config.json"
    if text is not None:
        file.write_text(text, "utf-8", "surrogateescape")
    with pytest.raises(InputError) as error:
        RunFolder(tmp_path).spec()
    assert str(error.value).startswith(f"{file}: ")
