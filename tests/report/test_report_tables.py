"""The tables say what the summary says."""

import csv
import io

import planted_reports as planted
import pytest

from longroute.report.comparison import MEASURES, read_comparison
from longroute.report.paper import beside_the_paper
from longroute.report.tables import csv_table, markdown_table, terminal_table


def test_csv_has_every_number_of_the_summary_in_full() -> None:
    rows = planted.trial()
    lines = csv.DictReader(io.StringIO(csv_table(read_comparison(planted.summary(*rows)))))
    read = {(line["encoding"], line["length"]): line for line in lines}
    assert len(read) == len(rows) * len(planted.LENGTHS)
    for row in rows:
        for measure in MEASURES:
            for length, value in row[measure].items():
                line = read[row["encoding"], length]
                edges = [float(line[f"{measure}_low"]), float(line[f"{measure}_high"])]
                assert float(line[measure]) == value
                assert edges == row["interval"][measure][length]
    assert read["path+log-distance", "64"]["perplexity"] == ""


def test_markdown_rounds_the_summary_and_keeps_its_columns() -> None:
    name = "a|b`<script>\n[x](y)"
    summary = planted.summary(planted.row(name, 70, 2.0, interval=True), planted.failed_row("gone"))
    header, rule, first, second = markdown_table(read_comparison(summary)).splitlines()
    cells = first.replace("\\|", "").split("|")
    assert len(cells) == len(header.split("|")) == len(rule.split("|")) == len(second.split("|"))
    assert "<script>" not in first
    assert "tail ratio at 1,024 (16×)" in header
    assert cells[-2].strip() == "2.00 [1.94–2.06]"
    assert cells[4].strip() == "70.0 [67.9–72.1]"
    assert "failed" in second


def test_terminal_table() -> None:
    summary = planted.summary(planted.row("a", 70, 2.0), planted.failed_row("b\x1b[31m", reason="out of memory"))
    header, first, second = terminal_table(summary)
    assert header == [
        "encoding",
        "perplexity at 64 (1×)",
        "tail ratio at 1,024 (16×)",
        "tail ratio at 8,192 (128×)",
        "tail perplexity at 8,192 (128×)",
        "status",
    ]
    assert first == ["a", "70.0", "1.49", "2.00", "135.8", "ok"]
    assert second == ["b�[31m", "–", "–", "–", "–", "failed: out of memory"]


def test_terminal_table_of_one_length_and_of_nothing() -> None:
    assert terminal_table(planted.summary(planted.row("a", lengths=(64,))))[1] == ["a", "70.0", "ok"]
    assert len(terminal_table(planted.summary())) == 1


def test_the_paper_stands_beside_the_same_multiples() -> None:
    short = planted.row("alibi", 70, 0.9, lengths=(64, 1024))
    lines = beside_the_paper(read_comparison(planted.summary(planted.row("rope-qk", 70, 2.0), short)))
    assert [(line.multiple, line.published) for line in lines] == [
        (16, "16.2"),
        (16, "1.60"),
        (128, "7.49"),
        (128, "1.59"),
        (128, "0.96"),
    ]
    assert (lines[0].ratio, lines[0].tail_ratio) == ("1.46", "1.49")
    assert lines[4].ratio == "–"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), None])
def test_nothing_unmeasured_is_written_as_a_number(number: float | None) -> None:
    row = planted.row("a")
    row["tail_ratio"]["8192"] = number
    comparison = read_comparison(planted.summary(row, planted.row("b")))
    for text in (csv_table(comparison), markdown_table(comparison)):
        assert "nan" not in text.lower()
        assert "inf" not in text.lower()
