"""The page of a diagnosis: its verdict in each situation, and that it renders whatever couldn't be measured."""

import re
from pathlib import Path

import planted_diagnoses as planted
import pytest

from longroute.report.diagnosis import terminal_lines, verdict, write_diagnosis_page


@pytest.mark.parametrize("case", planted.CASES)
def test_the_page_renders_and_needs_nothing_else(case: str, tmp_path: Path) -> None:
    result = planted.CASES[case]()
    html = write_diagnosis_page(result, tmp_path).read_text(encoding="utf-8")
    assert html.startswith("<!DOCTYPE html>")
    assert not re.search(r"<(script|link|img|iframe|object|embed|base)\b", html)
    assert all(link.startswith("#") for link in re.findall(r'(?:href|src)="([^"]*)"', html))
    assert all(link.startswith("#") for link in re.findall(r"url\(([^)]*)\)", html))
    seen = re.sub(r"<style.*?</style>|<[^>]*>", " ", html, flags=re.DOTALL)
    assert not re.search(r"\b(None|nan|NaN|inf|undefined)\b", seen)
    assert "\N{REPLACEMENT CHARACTER}" not in seen or case == "hostile"
    ids = re.findall(r'\bid="([^"]*)"', html)
    assert len(ids) == len(set(ids))
    assert len(html) < 2_500_000


@pytest.mark.parametrize("case", planted.CASES)
def test_the_verdict_is_two_sentences(case: str) -> None:
    result = planted.CASES[case]()
    sentences = verdict(result)
    for sentence in sentences:
        assert sentence.endswith(".")
        assert ". " not in sentence
        assert not re.search(r"\b(None|nan|inf)\b", sentence)
    assert terminal_lines(result)[:2] == list(sentences)


def test_the_same_diagnosis_gives_the_same_bytes(tmp_path: Path) -> None:
    pages = [write_diagnosis_page(planted.sample(), tmp_path / name) for name in ("a", "b")]
    files = [sorted(path for path in page.parent.rglob("*") if path.is_file()) for page in pages]
    assert len(files[0]) == 12
    assert [path.read_bytes() for path in files[0]] == [path.read_bytes() for path in files[1]]


def test_figures_that_no_longer_apply_are_removed(tmp_path: Path) -> None:
    write_diagnosis_page(planted.sample(), tmp_path)
    write_diagnosis_page(planted.untraced(), tmp_path)
    assert [path.name for path in (tmp_path / "figures").iterdir()] == ["ratio.svg"]


def test_a_break_with_its_cause() -> None:
    where, why = verdict(planted.sample())
    assert "breaks at about 1,150 tokens (95 % interval 925 to 1,420), 18 times its training length" in where
    assert "from windows of at most 256 tokens a break at about 1,120 (836 to 1,460) was predicted" in where
    assert why.startswith("What explains most is dilution (the far tokens grow in number")
    assert "16 % at 128 tokens, 81 % at 2,048" in why
    assert "recovers 84 % (79 % to 89 %) of the loss" in why
    assert "untrained positions 24 %: causes overlap" in why
    assert "window with sinks" in why
    assert "from 109.0 to 95.2, where 94.4" in why


def test_a_share_whose_interval_has_zero_in_it_is_no_cause() -> None:
    _, why = verdict(planted.no_cause())
    assert why.startswith("No cause tried here explains it: the most that undoing one recovers")
    assert "12 % (−3 % to 20 %), an interval with 0 in it, for dilution" in why


def test_a_small_share_is_no_cause_however_sure() -> None:
    result = planted.sample()
    for cause in result["causes"]:
        cause.update(recovered=0.08, low=0.07, high=0.09)
    assert "8 % (7 % to 9 %), less than 10 %, for dilution" in verdict(result)[1]


def test_controls_that_only_harm_are_not_recommended() -> None:
    result = planted.sample()
    for control in result["controls"]:
        control["after"] = control["before"] + 1
    assert "no control tried at test time lowers its perplexity" in verdict(result)[1]


def test_a_model_that_does_not_break() -> None:
    where, why = verdict(planted.unbroken())
    assert "isn't broken up to 8,192 tokens, 128 times its training length" in where
    assert "no break was predicted up to 8,192" in where
    assert "a growing share of its attention, 21 % at 128 tokens and 96 % at 8,192" in why
    assert "explain" not in why


def test_far_mass_that_levels_off_is_said_to() -> None:
    result = planted.unbroken()
    for length, share in zip(planted.SAMPLE["lengths"][1:], (0.1, 0.2, 0.3, 0.3, 0.3), strict=True):
        result["heads"][str(length)]["far_mass"]["mean"] = [[share, share], [share, None]]
    assert "10 % of its attention at 128 tokens and no more than 30 % up to 8,192" in verdict(result)[1]


def test_an_interval_may_leave_a_break_open() -> None:
    result = planted.unbroken() | {"breaking": planted.NEVER | {"low": 7000.0}}
    assert "though a break from 7,000 on isn't excluded at 95 %" in verdict(result)[0]
    where, _ = verdict(planted.open_ended())
    assert "interval 925 to beyond 8,192" in where
    assert "6,000 (beyond 8,192) was predicted" in where


def test_an_untraced_model_says_why() -> None:
    where, why = verdict(planted.untraced())
    assert "nothing was predicted, as its attention can't be looked into" in where
    assert why.startswith("Why it breaks can't be said")
    assert planted.UNTRACED in why


def test_what_was_not_predicted_says_why() -> None:
    assert "nothing was predicted (no length from 128 to 256 tokens was asked for)" in verdict(planted.unpredicted())[0]


def test_predictions_that_failed_are_owned() -> None:
    assert (
        "a break at about 1,120 (836 to 1,460) was predicted, which isn't so" in verdict(planted.predicted_unseen())[0]
    )
    assert "no break was predicted up to 8,192, which was wrong" in verdict(planted.broken_unforeseen())[0]


def test_what_the_windows_saw_is_no_prediction() -> None:
    early = {"length": 217.0, "low": 195.0, "high": 246.0, "searched": 1024}
    result = planted.sample(breaking=early, prediction=planted.SAMPLE["prediction"] | {"breaking": early})
    assert "lies within the windows of at most 256 tokens that a prediction is made from" in verdict(result)[0]


def test_steps_that_do_not_depend_on_the_text_never_mix(tmp_path: Path) -> None:
    assert "no block ever mixes" in write_diagnosis_page(planted.position_indexed(), tmp_path).read_text(
        encoding="utf-8"
    )


def test_heads_out_of_the_laws_range_are_counted(tmp_path: Path) -> None:
    html = write_diagnosis_page(planted.resized(3, 3), tmp_path).read_text(encoding="utf-8")
    assert "dotted heads (3 of 9) are out of its range" in html
