"""What the numbers say in three sentences: which is best, which hold, which break first, how sure it is."""

from dataclasses import dataclass

from longroute.report.comparison import Comparison, EncodingResult
from longroute.report.wording import (
    count_text,
    length_text,
    list_text,
    multiple_text,
    perplexity_text,
    ratio_text,
)

HOLDS = 1.05
"""An encoding holds when its tail ratio at the longest length is at most this."""
BREAKS = 1.10
"""An encoding breaks at the first measured length whose tail ratio is above this."""
SEEDS_FOR_A_CLAIM = 3


@dataclass(frozen=True)
class Verdict:
    """The sentences, and the facts that they state. `breaking` lists (name, length), the earliest first."""

    sentences: tuple[str, ...]
    best: EncodingResult | None
    holding: tuple[str, ...]
    breaking: tuple[tuple[str, int], ...]
    judged: int
    seeds: int
    failed: int


def judge(comparison: Comparison) -> Verdict:
    """Judge every encoding by its fixed tail: the same targets at each length can't flatter."""
    measured, longest = comparison.measured, comparison.longest
    judged = [one for one in measured if one.at("tail_ratio", longest)] if comparison.milestones else []
    best = next((one for one in measured if one.at("tail_perplexity", longest)), None)
    holding = tuple(one.name for one in judged if (one.value("tail_ratio", longest) or 0) <= HOLDS)
    breaking = _breaking(comparison)
    seeds = min((one.seeds for one in measured), default=0)
    failed = sum(one.failed for one in comparison.encodings)
    sentences = (
        _best_sentence(comparison, best),
        _reach_sentence(comparison, holding, breaking, len(judged)),
        _certainty_sentence(seeds),
        _failure_sentence(comparison, failed),
    )
    kept = tuple(sentence for sentence in sentences if sentence)
    return Verdict(kept, best, holding, breaking, len(judged), seeds, failed)


def breaking_length(encoding: EncodingResult) -> int | None:
    """The first measured length at which the tail ratio is above 1.1; None if it never is."""
    ratios = encoding.measures["tail_ratio"]
    return next((length for length in sorted(ratios) if ratios[length].value > BREAKS), None)


def _breaking(comparison: Comparison) -> tuple[tuple[str, int], ...]:
    broken = [(one.name, breaking_length(one)) for one in comparison.measured]
    found = [(name, length) for name, length in broken if length is not None]
    return tuple(sorted(found, key=lambda pair: pair[1]))


def _best_sentence(comparison: Comparison, best: EncodingResult | None) -> str:
    longest = comparison.longest
    if best is None or longest is None:
        return "Nothing was measured: there is nothing to compare."
    perplexity = perplexity_text(best.value("tail_perplexity", longest))
    if not comparison.milestones:
        return (
            f"Measured at {length_text(longest)} tokens alone, where {best.name} has the lowest perplexity,"
            f" {perplexity}: this says nothing about reach."
        )
    multiple = multiple_text(longest, comparison.train_length)
    ratio = ratio_text(best.value("tail_ratio", longest))
    return (
        f"At {length_text(longest)} tokens, {multiple} the training length, {best.name} has the lowest tail"
        f" perplexity: {perplexity}, which is {ratio} times its own at {length_text(comparison.train_length)}"
        f"{_overlap(comparison, best)}."
    )


def _overlap(comparison: Comparison, best: EncodingResult) -> str:
    """Which others' intervals overlap the best one's: the order among those is not settled."""
    own = best.at("tail_perplexity", comparison.longest)
    if own is None or own.interval is None:
        return ""
    rivals = ((one, one.at("tail_perplexity", comparison.longest)) for one in comparison.measured)
    near = [
        one.name
        for one, theirs in rivals
        if one is not best and theirs and theirs.interval and theirs.interval[0] <= own.interval[1]
    ]
    return f"; its interval overlaps that of {list_text(near, 4)}" if near else ""


def _reach_sentence(
    comparison: Comparison, holding: tuple[str, ...], breaking: tuple[tuple[str, int], ...], judged: int
) -> str:
    if not judged:
        return ""
    within = f"(tail ratio at most {HOLDS})"
    if len(holding) == judged:
        held = f"All {judged} encodings hold {within}" if judged > 1 else f"It holds {within}"
    elif holding:
        held = f"{len(holding)} of {judged} hold there {within}: {list_text(holding)}"
    else:
        held = f"None of {count_text(judged, 'encoding')} holds {within}"
    return f"{held}. {_first_to_break(comparison, breaking)}."


def _first_to_break(comparison: Comparison, breaking: tuple[tuple[str, int], ...]) -> str:
    if not breaking:
        return f"None passes {BREAKS:.1f} at any length"
    earliest = breaking[0][1]
    first = [name for name, length in breaking if length == earliest]
    multiple = multiple_text(earliest, comparison.train_length)
    return f"First past {BREAKS:.1f}, by {length_text(earliest)} tokens ({multiple}): {list_text(first)}"


def _certainty_sentence(seeds: int) -> str:
    if not seeds:
        return ""
    if seeds == 1:
        return "One seed: this shows, it claims nothing."
    if seeds < SEEDS_FOR_A_CLAIM:
        return f"{seeds} seeds: this shows; a claim needs at least {SEEDS_FOR_A_CLAIM}."
    return f"At least {seeds} seeds each; intervals are 95 % t-intervals over seeds."


def _failure_sentence(comparison: Comparison, failed: int) -> str:
    if not failed:
        return ""
    runs = failed + sum(one.seeds for one in comparison.encodings)
    names = list_text([one.name for one in comparison.encodings if one.failed])
    return f"{failed} of {count_text(runs, 'run')} failed ({names}); the reasons stand below."
