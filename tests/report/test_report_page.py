"""The page: whole in itself, the same bytes each time, safe with hostile names, never without an answer."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import planted_reports as planted
import pytest
from html_page import Page, assert_self_contained

from longroute.report import write_report

HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=http://evil.example/x onerror=alert(1)>',
    "{{ 7 * 7 }} {% raw %}",
    "$\\frac{1}{2}$ _hidden 漢字 \x00\x1b[31m",
    "a-very-long-name-" * 12,
]


def written(folder: Path, *rows: dict[str, Any], trained: bool = True) -> str:
    records = planted.training_records(*rows, steps=20) if trained else []
    return write_report(planted.summary(*rows), records, folder).read_text(encoding="utf-8")


def files(folder: Path) -> Iterator[tuple[str, bytes]]:
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            yield str(path.relative_to(folder)), path.read_bytes()


def test_the_trial_is_self_contained_with_unique_ids(trial_report: Path) -> None:
    page = assert_self_contained(trial_report.read_text(encoding="utf-8"))
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))
    known = set(ids)
    used = [attributes["xlink:href"] for _, attributes in page.elements if "xlink:href" in attributes]
    assert used
    assert all(str(reference)[1:] in known for reference in used)


def test_the_trial_has_every_part_in_order(trial_report: Path) -> None:
    headings = re.findall(r"<h2>(.*?)</h2>", trial_report.read_text(encoding="utf-8"))
    assert headings == [
        "What is left at longer contexts",
        "Price and reach",
        "Every encoding",
        "Perplexity and training",
        "The dial",
        "The paper&#39;s figures beside ours".replace("&#39;", "'"),
        "How it was measured",
        "Corpus, configuration, and how to repeat it",
    ]


def test_the_page_states_numbers_provenance_and_command(trial_report: Path) -> None:
    text = Page(trial_report.read_text(encoding="utf-8")).text
    for stated in (
        "57.9",
        "non-finite loss at step 12 (nan)",
        "longroute compare --preset mini",
        "9f3c5d1e77aa",
        "8 spans from 3 books",
        "65,536 tokens at every length",
        "optimiser.learning_rate",
        "arXiv 2606.24975",
        "2.13.0",
    ):
        assert stated in text, stated


def test_the_same_records_give_the_same_bytes(trial_report: Path, tmp_path: Path) -> None:
    rows = planted.trial()
    write_report(planted.summary(*rows), iter(planted.training_records(*rows)), tmp_path)
    assert dict(files(tmp_path)) == dict(files(trial_report.parent))
    for name, content in files(tmp_path):
        assert str(tmp_path).encode() not in content, name
        assert not re.search(rb"dc:date|\d\d:\d\d:\d\d", content), name


def test_hostile_names_are_text(tmp_path: Path) -> None:
    rows = [planted.row(name, 60 + at, 1.3, transport=name, control=name) for at, name in enumerate(HOSTILE)]
    html = written(tmp_path, *rows, planted.failed_row("gone", reason="<b onclick=x>no</b>"))
    page = assert_self_contained(html)
    assert "<script>alert(1)</script>" in page.text
    assert "{{ 7 * 7 }}" in page.text
    assert "\x00" not in html
    assert "\x1b" not in html


def test_a_later_report_replaces_the_earlier_and_leaves_no_drafts(tmp_path: Path) -> None:
    written(tmp_path, *planted.trial())
    written(tmp_path, planted.row("a", lengths=(64,)), trained=False)
    names = [name for name, _ in files(tmp_path)]
    assert names == ["figures/tail-perplexity.svg", "report.html", "table.csv", "table.md"]


@pytest.mark.parametrize("trained", [True, False])
def test_all_failed(tmp_path: Path, trained: bool) -> None:
    text = Page(written(tmp_path, planted.failed_row("a"), planted.failed_row("b"), trained=trained)).text
    assert "Nothing was measured: there is nothing to compare." in text
    assert "2 runs failed" in text


def test_failures_that_only_the_records_know_are_shown(tmp_path: Path) -> None:
    failure = {"record": "failure", "run": "x-seed1", "encoding": "x", "seed": 1, "step": 3, "reason": "gone"}
    page = write_report(planted.summary(planted.row("a")), [failure], tmp_path)
    assert "1 run failed" in page.read_text(encoding="utf-8")


def test_an_empty_summary(tmp_path: Path) -> None:
    assert "The summary has no rows." in write_report({"rows": []}, [], tmp_path).read_text(encoding="utf-8")


def test_nulls_everywhere(tmp_path: Path) -> None:
    row = planted.row("a", interval=True)
    row["tail_ratio"] = dict.fromkeys(row["tail_ratio"])
    row["interval"]["perplexity"]["64"] = [None, None]
    bare = {**planted.row("b"), "parameters": None, "spec": None, "scored_tokens": None, "perplexity": None}
    summary = {
        **planted.summary(row, bare),
        "corpus": None,
        "model": None,
        "training": None,
        "versions": None,
    }
    html = write_report(summary, [{"record": "train", "encoding": "a", "loss": None}], tmp_path).read_text(
        encoding="utf-8"
    )
    assert "NaN" not in html
    assert ">None<" not in html


def test_twenty_encodings_of_three_seeds(tmp_path: Path) -> None:
    rows = [
        planted.row(f"encoding-{at}", 60 + at + seed, 1 + at / 20, seed=seed, transport=f"kind-{at % 9}")
        for at in range(20)
        for seed in range(3)
    ]
    text = Page(written(tmp_path, *rows)).text
    assert all(f"encoding-{at}" in text for at in range(20))
    assert "At least 3 seeds each" in text


def test_ids_stay_unique_with_several_seeds(tmp_path: Path) -> None:
    rows = [planted.row(name, 60 + seed, 1.2, seed=seed) for name in ("a", "b") for seed in range(3)]
    ids = [attributes["id"] for _, attributes in Page(written(tmp_path, *rows)).elements if "id" in attributes]
    assert len(ids) == len(set(ids))
