"""What a diagnosis comes to in two sentences, for somebody who hasn't read the paper."""

from collections.abc import Mapping
from typing import Any

from longroute.report.diagnosis.findings import Break, Findings
from longroute.report.diagnosis.words import about, interval, percent, short, times
from longroute.report.wording import list_text, perplexity_text, printable, ratio_text

LEAST_SHARE = 0.10
"""A cause is named if undoing it recovers at least this share of what is lost, and surely more than nothing."""


_SAME = 0.02
"""Shares of attention that differ by less are the same."""


def verdict(result: Mapping[str, Any]) -> tuple[str, str]:
    """Two sentences: whether and where it breaks, and what was predicted; why it does, and what helps most."""
    findings = Findings(result)
    return _where(findings), _why(findings)


def proven(findings: Findings) -> list[Mapping[str, Any]]:
    """The causes whose undoing recovers a tenth or more of the lost nats, with an interval above 0; largest first."""
    return [one for one in findings.causes if (one["low"] or 0.0) > 0 and (one["recovered"] or 0.0) >= LEAST_SHARE]


def best_control(findings: Findings) -> Mapping[str, Any] | None:
    """The control with the lowest perplexity after; None if none lowers it."""
    helping = [one for one in findings.controls if one["after"] < one["before"]]
    return min(helping, key=lambda one: one["after"] / one["before"], default=None)


def _where(findings: Findings) -> str:
    train, longest = findings.train_length, findings.longest
    who = f"{printable(findings.model['name'])}, trained at {train:,} tokens,"
    if longest <= train:
        return f"{who} was measured at no greater length, which says nothing about how far it carries."
    passes = f"{findings.threshold:g} times that at {train:,} tokens"
    breaking = findings.breaking
    if breaking.length is not None:
        return (
            f"{who} breaks at about {about(breaking.length)} tokens (95 % interval {interval(breaking)}), "
            f"{times(breaking.length, train)} its training length, where its perplexity on the same text passes "
            f"{passes}; {_foretold(findings)}."
        )
    doubt = "" if breaking.low is None else f" (though a break from {about(breaking.low)} on isn't excluded at 95 %)"
    highest = max((ratio for length, ratio in findings.ratios.items() if length > train), default=None)
    return (
        f"{who} isn't broken up to {longest:,} tokens, {times(longest, train)} its training length and the longest "
        f"tested: its perplexity on the same text is at most {ratio_text(highest)} times that at {train:,} tokens"
        f"{doubt}; {_foretold(findings)}."
    )


def _foretold(findings: Findings) -> str:
    """What short windows had said, beside what came."""
    predicted = findings.predicted
    if predicted is None:
        if findings.untraced is not None:
            return "nothing was predicted, as its attention can't be looked into"
        why = findings.result["prediction"].get("unpredicted")
        return f"nothing was predicted ({printable(why)})" if why else "nothing was predicted"
    read = f"windows of at most {findings.read_short:,} tokens"
    if predicted.length is None:
        return (
            f"from {read} no break was predicted up to {predicted.searched:,}{_against(findings.breaking, predicted)}"
        )
    if predicted.length <= findings.read_short:
        return f"that lies within the {read} that a prediction is made from"
    words = f"from {read} a break at about {about(predicted.length)} ({interval(predicted)}) was predicted"
    return words if findings.breaking.length is not None else f"{words}{_unseen(findings, predicted)}"


def _against(breaking: Break, predicted: Break) -> str:
    """Whether a prediction of no break came true."""
    if breaking.length is not None and breaking.length <= predicted.searched:
        return ", which was wrong"
    return ""


def _unseen(findings: Findings, predicted: Break) -> str:
    assert predicted.length is not None  # asked before
    return ", which isn't so" if predicted.length <= findings.longest else ", further than was tested"


def _why(findings: Findings) -> str:
    if findings.longest <= findings.train_length:
        return "Give longer lengths to learn whether and why it breaks."
    if findings.untraced is not None:
        asked = "Why it breaks" if findings.breaking.length is not None else "What its attention does with distance"
        return f"{asked} can't be said: its heads can't be looked at ({printable(findings.untraced)})."
    if findings.breaking.length is None:
        return f"{_far_mass(findings)}."
    causes = proven(findings)
    return f"{_cause(findings, causes) if causes else _no_cause(findings)}; {_help(findings)}."


def _cause(findings: Findings, causes: list[Mapping[str, Any]]) -> str:
    first, *others = causes
    shown = f": {evidence_text(first)}" if evidence_text(first) else ""
    also = [f"{printable(one['name'])} {percent(one['recovered'])}" for one in others]
    beside = f" (and undoing {list_text(also)}: causes overlap)" if also else ""
    return (
        f"What explains most is {printable(first['name'])} ({printable(first['meaning'])}{shown}), as undoing it "
        f"recovers {_share(first)} of the loss that {findings.evidence_length:,} tokens add{beside}"
    )


def _share(cause: Mapping[str, Any]) -> str:
    """`84 % (79 % to 89 %)`."""
    return f"{percent(cause['recovered'])} ({percent(cause['low'])} to {percent(cause['high'])})"


def _no_cause(findings: Findings) -> str:
    tried = [one for one in findings.causes if one["recovered"] is not None]
    if not tried:
        return "No cause was tested, so why it breaks isn't known"
    best = tried[0]
    short_of = "an interval with 0 in it" if (best["low"] or 0.0) <= 0 else f"less than {percent(LEAST_SHARE)}"
    return (
        f"No cause tried here explains it: the most that undoing one recovers of the loss that "
        f"{findings.evidence_length:,} tokens add is {_share(best)}, {short_of}, for {printable(best['name'])}"
    )


def _help(findings: Findings) -> str:
    if not findings.controls:
        return "no control was tried"
    best = best_control(findings)
    if best is None:
        return "no control tried at test time lowers its perplexity"
    before, after, trained = (perplexity_text(best[key]) for key in ("before", "after", "at_train"))
    return (
        f"of what can be switched on at test time, {printable(best['name'])} ({printable(best['meaning'])}) "
        f"helps most, bringing perplexity from {before} to {after}, where {trained} is that at the training length"
    )


def _far_mass(findings: Findings) -> str:
    """What far tokens get of attention in a model that doesn't break."""
    shares = {length: findings.mean("far_mass", length) for length in findings.traced_lengths}
    known = [(length, share) for length, share in shares.items() if share is not None]
    train = findings.train_length
    if not known:
        return f"What its heads do with tokens further back than {train:,} wasn't measured"
    (start, before), (end, after) = known[0], known[-1]
    what = f"Tokens further back than {train:,} take"
    if start == end:
        return f"{what} {percent(after)} of its attention at {end:,} tokens, which doesn't break it"
    last = [share for _, share in known[-3:]]
    if after < before + _SAME or (len(known) > 3 and max(last) < min(last) + _SAME):
        most = max(share for _, share in known)
        return (
            f"{what} {percent(before)} of its attention at {start:,} tokens and no more than {percent(most)} up to "
            f"{end:,}, on average over heads: far tokens don't crowd out near ones"
        )
    return (
        f"{what} a growing share of its attention, {percent(before)} at {start:,} tokens and {percent(after)} at "
        f"{end:,} on average over heads, but that doesn't break it"
    )


def evidence_text(cause: Mapping[str, Any]) -> str:
    """The numbers beside a cause, in plain words where its name is known."""
    found = [(name, value) for name, value in cause["evidence"].items() if value is not None]
    masses = [(name.removeprefix(_FAR_MASS), value) for name, value in found if name.startswith(_FAR_MASS)]
    if len(masses) == len(found) == 2:
        (start, before), (end, after) = masses
        return (
            f"their share of attention is {percent(before)} at {printable(start)}, {percent(after)} at {printable(end)}"
        )
    return ", ".join(_plain(name, value) for name, value in found)


_FAR_MASS = "far mass at "
_PLAIN = {
    "far free energy above that of trained distances, nats": "far scores {} nats above those at trained distances",
    "norm of the far sum over its incoherent value": "the far sum is {} times that of values with nothing in common",
    "least norm kept by a transport": "a transport keeps at least {} of the norm",
}


def _plain(name: str, value: float) -> str:
    return _PLAIN[name].format(short(value)) if name in _PLAIN else f"{printable(name)} {short(value)}"
