"""The verdict's sentences on planted comparisons."""

from typing import Any

import planted_reports as planted

from longroute.report.comparison import read_comparison
from longroute.report.verdict import Verdict, judge


def verdict(*rows: dict[str, Any]) -> Verdict:
    return judge(read_comparison(planted.summary(*rows)))


def test_names_the_best_the_holding_and_the_first_to_break() -> None:
    found = verdict(
        planted.row("steady", 70, 0.95),
        planted.row("slow", 60, 1.4),
        planted.row("quick", 50, 5.0),
    )
    text = " ".join(found.sentences)
    assert found.best is not None
    assert found.best.name == "steady"
    assert found.holding == ("steady",)
    # 5^(1/7) is above 1.1 at the first step, 1.4^(2/7) only at the second.
    assert found.breaking == (("quick", 128), ("slow", 256))
    assert "At 8,192 tokens, 128× the training length, steady has the lowest tail perplexity: 64.5" in text
    assert "0.95 times its own at 64" in text
    assert "1 of 3 hold there (tail ratio at most 1.05): steady." in text
    assert "First past 1.1, by 128 tokens (2×): quick." in text
    assert "One seed: this shows, it claims nothing." in text


def test_the_thresholds_are_where_they_are_said_to_be() -> None:
    at, above = planted.row("at"), planted.row("above")
    at["tail_ratio"].update({"4096": 1.10, "8192": 1.05})
    above["tail_ratio"].update({"4096": 1.1001, "8192": 1.0501})
    found = verdict(at, above)
    assert found.holding == ("at",)
    assert found.breaking == (("above", 4096),)


def test_all_holding() -> None:
    text = " ".join(verdict(planted.row("a", 70, 0.95), planted.row("b", 71, 1.04)).sentences)
    assert "All 2 encodings hold (tail ratio at most 1.05). None passes 1.1 at any length." in text


def test_none_holding() -> None:
    text = " ".join(verdict(planted.row("a", 70, 1.5), planted.row("b", 71, 1.6)).sentences)
    assert "None of 2 encodings holds" in text


def test_all_failed() -> None:
    found = verdict(planted.failed_row("a"), planted.failed_row("b"))
    assert found.best is None
    assert found.sentences == (
        "Nothing was measured: there is nothing to compare.",
        "2 of 2 runs failed (a and b); the reasons stand below.",
    )


def test_one_length_says_nothing_about_reach() -> None:
    found = verdict(planted.row("a", 70, lengths=(64,)), planted.row("b", 60, lengths=(64,)))
    assert "b has the lowest perplexity" in found.sentences[0]
    assert "says nothing about reach" in found.sentences[0]
    assert found.judged == 0


def test_seeds_decide_how_much_is_claimed() -> None:
    two = [planted.row("a", seed=seed) for seed in range(2)]
    three = [planted.row("a", seed=seed) for seed in range(3)]
    assert "2 seeds: this shows; a claim needs at least 3." in verdict(*two).sentences
    assert "At least 3 seeds each; intervals are 95 % t-intervals over seeds." in verdict(*three).sentences
    # The encoding with fewest seeds decides.
    assert "One seed: this shows, it claims nothing." in verdict(*three, planted.row("b")).sentences


def test_overlapping_intervals_are_said() -> None:
    near = verdict(planted.row("a", 70, interval=True), planted.row("b", 71, interval=True))
    far = verdict(planted.row("a", 70, interval=True), planted.row("b", 90, interval=True))
    assert "its interval overlaps that of b" in near.sentences[0]
    assert "overlaps" not in far.sentences[0]
