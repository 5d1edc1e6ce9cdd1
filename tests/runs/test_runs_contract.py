"""What `longroute compare --preset smoke` leaves: the contract that other things rely on."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest
from tiny_comparison import SMOKE_ENCODINGS, Finished

from longroute.attention import parse_encoding
from longroute.compare import PRESETS
from longroute.configuration import to_json

ROW = {
    "encoding": str,
    "transport": str,
    "values": bool,
    "control": str,
    "seed": int,
    "parameters": int,
    "train_length": int,
    "train_tokens": int,
    "status": str,
    "reason": type(None),
    "spec": dict,
    "perplexity": dict,
    "ratio": dict,
    "tail_perplexity": dict,
    "tail_ratio": dict,
    "interval": dict,
    "skipped": dict,
    "worth": dict,
    "recall": dict,
    "breaking": dict,
    "explained": bool,
    "scored_tokens": dict,
    "tail_scored_tokens": dict,
}


RUNS = [f"{name}-seed0{task}" for name in SMOKE_ENCODINGS for task in ("", "-mqar")]


def refuse(constant: str) -> Any:
    raise AssertionError(f"{constant} is not JSON")


def summary_of(run: Finished) -> dict[str, Any]:
    return json.loads(run.bytes(), parse_constant=refuse)


def test_exit_code_and_files(smoke: Finished):
    assert smoke.code == 0, smoke.errors
    names = {path.name for path in smoke.out.iterdir()}
    assert {"summary.json", "report.html", "records.jsonl", "runs"} <= names
    assert {path.name for path in (smoke.out / "runs").iterdir()} == set(RUNS)
    assert "Traceback" not in smoke.errors
    assert "Warning" not in smoke.errors
    assert smoke.output == ""


def test_summary_keys_and_types(smoke: Finished):
    summary = summary_of(smoke)
    assert summary["schema"] == 1
    assert {"rows", "schema", "corpus", "versions"} <= set(summary)
    assert [row["encoding"] for row in summary["rows"]] == list(SMOKE_ENCODINGS)
    for row in summary["rows"]:
        assert {key: type(value) for key, value in row.items()} == ROW
        assert row["status"] == "ok"
        encoding = parse_encoding(row["encoding"])
        assert row["spec"] == to_json(encoding)
        assert (row["transport"], row["control"]) == (encoding.transport.name, encoding.control.name)
        assert (row["values"], row["seed"]) == (encoding.values, 0)


def test_summary_numbers(smoke: Finished):
    spec = PRESETS["smoke"]
    lengths = spec.evaluate.lengths(spec.train.length)
    for row in summary_of(smoke)["rows"]:
        assert row["train_length"] == spec.train.length
        assert row["train_tokens"] == spec.train.steps * spec.train.tokens_per_step >= spec.train.tokens
        for prefix in ("", "tail_"):
            perplexity, ratio = row[f"{prefix}perplexity"], row[f"{prefix}ratio"]
            scored = row[f"{prefix}scored_tokens"]
            assert list(perplexity) == list(ratio) == list(scored) == [str(length) for length in lengths]
            assert len(set(scored.values())) == 1
            base = perplexity[str(lengths[0])]
            assert ratio[str(lengths[0])] == 1.0
            for length, value in perplexity.items():
                assert 1 < value < row["spec"].get("vocabulary", 10_000)
                assert ratio[length] == pytest.approx(value / base, rel=1e-9)
                low, high = row["interval"][f"{prefix}perplexity"][length]
                assert low <= value <= high
        spans = row["interval"]["spans"]
        assert row["scored_tokens"][str(lengths[0])] == spans * spec.evaluate.reach * spec.train.length
        assert row["tail_scored_tokens"][str(lengths[0])] == spans * spec.evaluate.tail(spec.train.length)
        assert row["interval"]["books"] == len(summary_of(smoke)["corpus"]["heldout"])


def test_recall_and_worth(smoke: Finished):
    """Both stand at every length; forty thousand tokens don't teach the task, and the summary says so."""
    spec = PRESETS["smoke"]
    lengths = [str(length) for length in spec.evaluate.lengths(spec.train.length)]
    for row in summary_of(smoke)["rows"]:
        recall = row["recall"]["mqar"]
        assert (recall["status"], recall["solved"]) == ("ok", False)
        assert recall["train_tokens"] == spec.task_train.steps * spec.task_train.tokens_per_step
        for key in ("answers", "accuracy", "binding", "chance"):
            assert list(recall[key]) == lengths
        for length in lengths:
            low, high = recall["interval"]["accuracy"][length]
            assert 0 <= low <= recall["accuracy"][length] <= high <= 1
            assert recall["binding"][length] <= recall["accuracy"][length]
        assert list(row["worth"]["context"]) == lengths[1:]
        assert list(row["worth"]["order"]) == lengths[3::2]


def test_it_learned_something(smoke: Finished):
    """A uniform model's perplexity would be the vocabulary."""
    summary = summary_of(smoke)
    for row in summary["rows"]:
        assert row["perplexity"][str(row["train_length"])] < 0.8 * summary["corpus"]["vocabulary"]


def test_no_clock_times_and_no_paths(smoke: Finished):
    text = smoke.bytes().decode()
    assert str(smoke.out) not in text
    assert not re.search(r"\d\d:\d\d|20\d\d-\d\d-\d\d", text)
    assert not re.search(r'"[^"]*/(home|root|tmp|work|opt|usr)/', text)
    assert "seconds" not in text


def test_versions_and_corpus(smoke: Finished):
    summary = summary_of(smoke)
    assert set(summary["versions"]) >= {"longroute", "torch", "python"}
    assert all(isinstance(version, str) for version in summary["versions"].values())
    assert re.fullmatch(r"[0-9a-f]{64}", summary["corpus"]["hash"])


def test_records_are_json_and_labelled(smoke: Finished):
    lines = (smoke.out / "records.jsonl").read_text().splitlines()
    records = [json.loads(line, parse_constant=refuse) for line in lines]
    assert {record["record"] for record in records} == {"train", "prediction", "evaluation", "recall"}
    assert {record["encoding"] for record in records} == set(SMOKE_ENCODINGS)
    for record in records:
        of_task = f"-{record['task']}" if "task" in record else ""
        assert record["run"] == f"{record['encoding']}-seed{record['seed']}{of_task}"
        assert all(math.isfinite(value) for value in record.values() if isinstance(value, float))
    assert {record["run"] for record in records} == set(RUNS)


def test_summary_is_made_of_the_records(smoke: Finished):
    records = [json.loads(line) for line in (smoke.out / "records.jsonl").read_text().splitlines()]
    for row in summary_of(smoke)["rows"]:
        for length, value in row["tail_perplexity"].items():
            chosen = [
                record
                for record in records
                if record["encoding"] == row["encoding"]
                and (record.get("protocol"), record.get("length")) == ("tail", int(length))
            ]
            nats, tokens = sum(r["nats"] for r in chosen), sum(r["tokens"] for r in chosen)
            assert value == pytest.approx(math.exp(nats / tokens), rel=1e-9)
            assert tokens == row["tail_scored_tokens"][length]


def test_the_report_needs_no_network(smoke: Finished):
    page = (smoke.out / "report.html").read_text("utf-8")
    assert all(name in page for name in SMOKE_ENCODINGS)
    assert not re.search(r'(src|href)="(https?:)?//', page.replace('href="https://arxiv.org', ""))


@pytest.mark.parametrize("name", SMOKE_ENCODINGS)
def test_one_folder_a_run(smoke: Finished, name: str):
    folder: Path = smoke.out / "runs" / f"{name}-seed0"
    assert {"config.json", "versions.json", "tokenizer.json", "records.jsonl"} <= {p.name for p in folder.iterdir()}
    assert list(folder.glob("checkpoints/step-*/model.safetensors"))
