"""Presets, settings over them, and the runs that they ask for."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from longroute.attention import encoding_name, parse_encoding
from longroute.cli.compare import Compare
from longroute.compare import CANDIDATES, DIAL, PRESETS, ComparisonSpec, preset
from longroute.configuration import to_json
from longroute.task import parse_task


def spec_of(**given) -> ComparisonSpec:
    return Compare(**given)._spec()


def test_a_preset_alone():
    for name, spec in PRESETS.items():
        assert spec_of(preset=name) == spec == preset(name)
        assert spec.preset == name
        assert tuple(map(encoding_name, spec.encodings)) == CANDIDATES
    assert Compare().preset == "mini"


def test_each_option_over_the_preset():
    smoke = preset("smoke")
    assert spec_of(preset="smoke", seeds=(4, 5)) == replace(smoke, seeds=(4, 5))
    chosen = spec_of(preset="smoke", encodings=("alibi", "rope-qk"))
    assert chosen == replace(smoke, encodings=(parse_encoding("alibi"), parse_encoding("rope-qk")))
    changed = spec_of(preset="smoke", set=("train.tokens=5", "model.width=8", "train.precision=float32"))
    assert changed.train == replace(smoke.train, tokens=5, precision="float32")
    assert changed.model == replace(smoke.model, width=8)
    assert spec_of(preset="smoke", set=("train.tokens=5", "train.tokens=6")).train.tokens == 6


def test_the_dial_is_a_name_for_many():
    assert tuple(map(encoding_name, spec_of(encodings=("dial",)).encodings)) == tuple(
        encoding_name(parse_encoding(name)) for name in DIAL
    )


def test_a_file_of_settings(tmp_path: Path):
    """A few keys over a preset, encodings by name, and what an earlier folder stored; --set and options go over it."""
    file = tmp_path / "settings.json"
    file.write_text(json.dumps({"preset": "smoke", "train": {"tokens": 7}, "encodings": ["alibi"]}))
    smoke = preset("smoke")
    expected = replace(smoke, train=replace(smoke.train, tokens=7), encodings=(parse_encoding("alibi"),))
    assert spec_of(config=file) == expected
    assert spec_of(config=file, set=("train.tokens=8",)).train.tokens == 8
    assert spec_of(config=file, seeds=(3,)).seeds == (3,)
    file.write_text(json.dumps({"comparison": to_json(expected), "corpus": "hash"}))
    assert spec_of(config=file) == expected


def test_runs_are_every_encoding_by_every_seed_and_task():
    spec = replace(
        preset("smoke"),
        seeds=(0, 7),
        encodings=(parse_encoding("alibi"), parse_encoding("rope-qkv")),
        tasks=(parse_task("mqar:pairs=3"), parse_task("needle")),
    )
    runs = spec.runs(vocabulary=300, text_hash="hash")
    assert list(runs) == [
        f"{encoding}-seed{seed}{task}"
        for seed in (0, 7)
        for task in ("", "-mqar:pairs=3", "-needle")
        for encoding in ("alibi", "rope-qkv")
    ]
    recall, needle = runs["rope-qkv-seed7-mqar:pairs=3"], runs["rope-qkv-seed7-needle"]
    assert (recall.seed, recall.text_hash, recall.model.vocabulary) == (7, "", 48)  # no text at all
    assert (needle.text_hash, needle.model.vocabulary) == ("hash", 300)
    assert (recall.train, needle.train) == (spec.task_train, spec.task_train)
    run = runs["rope-qkv-seed7"]
    assert (run.seed, run.text_hash, run.model.vocabulary) == (7, "hash", 300)
    assert (run.encoding, run.train) == (parse_encoding("rope-qkv"), spec.train)


def test_presets_reach_as_far_as_they_say():
    reached = {name: spec.evaluate.lengths(spec.train.length)[-1] for name, spec in PRESETS.items()}
    assert reached["mini"] == 8192
    assert reached["standard"] == 16_384
    assert reached["paper"] == 65_536
    assert len(PRESETS["standard"].seeds) >= 3


@pytest.mark.parametrize("name", ["mini", "standard", "paper"])
def test_lengths_double_from_the_training_length(name: str):
    spec = preset(name)
    lengths = spec.evaluate.lengths(spec.train.length)
    assert lengths[0] == spec.train.length
    assert all(b == 2 * a for a, b in pairwise(lengths))
