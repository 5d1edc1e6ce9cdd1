"""The page's tables: every length, every cause, how it was measured, and what each word means."""

import math
from collections.abc import Mapping
from typing import Any

from longroute.report.diagnosis.findings import Findings
from longroute.report.diagnosis.verdict import LEAST_SHARE, best_control, evidence_text, proven
from longroute.report.diagnosis.words import about, decimal, interval, percent, times
from longroute.report.wording import (
    ABSENT,
    count_text,
    length_text,
    list_text,
    multiple_text,
    perplexity_text,
    ratio_text,
)

Pairs = list[tuple[str, str]]


def model_line(findings: Findings) -> str:
    """What the model is, in one line."""
    model = findings.model
    shared = "" if model["kv_heads"] == model["heads"] else f" on {model['kv_heads']} key-value heads"
    parts = [
        f"{model['name']} ({model['kind']})",
        f"trained at {findings.train_length:,} tokens",
        f"{count_text(model['layers'], 'layer')} × {count_text(model['heads'], 'head')}{shared} of {model['head_dim']}",
        f"measured up to {findings.longest:,} tokens ({multiple_text(findings.longest, findings.train_length)})",
    ]
    if model.get("longest"):
        parts.append(f"reads at most {model['longest']:,}")
    return " · ".join(parts)


def tiles(findings: Findings) -> list[tuple[str, str, str]]:
    """The verdict at a glance, as (label, figure, note)."""
    return [_measured_tile(findings), _predicted_tile(findings), _cause_tile(findings), _control_tile(findings)]


def _measured_tile(findings: Findings) -> tuple[str, str, str]:
    label, breaking = "Breaks at, tokens", findings.breaking
    if findings.longest <= findings.train_length:
        return label, ABSENT, "nothing longer was measured"
    if breaking.length is None:
        return label, "doesn't", f"up to {findings.longest:,}, {times(findings.longest, findings.train_length)} its own"
    note = f"{interval(breaking)}; {times(breaking.length, findings.train_length)} its own"
    return label, about(breaking.length), note


def _predicted_tile(findings: Findings) -> tuple[str, str, str]:
    label, predicted = "Predicted from short windows", findings.predicted
    if predicted is None:
        return label, ABSENT, "no prediction"
    if predicted.length is None:
        return label, "no break", f"up to {predicted.searched:,}, from at most {findings.read_short:,}"
    if predicted.length <= findings.read_short:
        return label, "no need", f"breaks within the {findings.read_short:,} read for it"
    return label, about(predicted.length), f"{interval(predicted)}; from at most {findings.read_short:,}"


def _cause_tile(findings: Findings) -> tuple[str, str, str]:
    label, causes = "Main cause", proven(findings)
    if causes:
        return label, causes[0]["name"], f"undoing it recovers {percent(causes[0]['recovered'])}"
    if findings.breaking.length is None:
        return label, ABSENT, "nothing broke"
    tested = any(one["recovered"] is not None for one in findings.causes)
    return (label, "none found", "of those tried here") if tested else (label, ABSENT, "none could be tested")


def _control_tile(findings: Findings) -> tuple[str, str, str]:
    label, best = "Best control", best_control(findings)
    if best is None:
        return (label, "none", "helps, of those tried") if findings.controls else (label, ABSENT, "none was tried")
    change = f"{perplexity_text(best['before'])} → {perplexity_text(best['after'])} at {best['length']:,} tokens"
    return label, best["name"], f"perplexity {change}"


def cause_rows(findings: Findings) -> list[tuple[str, str, str, str]]:
    """Every suspected cause as (name, meaning, what undoing it did, evidence)."""
    names = {one["name"] for one in proven(findings)}
    return [
        (one["name"], one["meaning"], _undone(one, one["name"] in names), evidence_text(one)) for one in findings.causes
    ]


def _undone(cause: Mapping[str, Any], named: bool) -> str:
    if cause["recovered"] is None:
        return "undoing it wasn't tested, so its evidence stands by itself"
    by = f"undone by {cause['undone_by']}" if cause["undone_by"] else "undone"
    if named:
        return f"{by}: a cause"
    if (cause["high"] or 0.0) < 0:
        return f"{by}: makes it worse, so it is no cause"
    if (cause["low"] or 0.0) <= 0:
        return f"{by}: the interval has 0 in it, so no cause is shown"
    return f"{by}: recovers less than {percent(LEAST_SHARE)}"


LENGTH_COLUMNS = (
    "tokens",
    "× training",
    "loss, nats",
    "perplexity",
    "ratio",
    "predicted",
    "far mass",
    "sinks",
    "entropy, nats",
)


def length_rows(findings: Findings) -> list[tuple[bool | None, list[str]]]:
    """Every length as (whether it breaks there, None at the training length and below; the cells of LENGTH_COLUMNS)."""
    return [_length_row(findings, length) for length in findings.lengths]


def _length_row(findings: Findings, length: int) -> tuple[bool | None, list[str]]:
    loss, ratio = findings.loss(length), findings.ratios.get(length)
    predicted = findings.predicted_ratios.get(length) if length > findings.read_short else None
    cells = [
        length_text(length),
        multiple_text(length, findings.train_length),
        decimal(loss, 4),
        perplexity_text(None if loss is None else _exp(loss)),
        ratio_text(ratio),
        ratio_text(predicted),
        percent(findings.mean("far_mass", length)),
        percent(findings.mean("sink_mass", length)),
        decimal(findings.mean("entropy", length), 2),
    ]
    judged = length > findings.train_length and ratio is not None
    return (ratio > findings.threshold if judged and ratio is not None else None), cells


def _exp(loss: float) -> float:
    return math.exp(min(loss, 700.0))


def measured_facts(findings: Findings) -> Pairs:
    """The text, the tail, and how far what was recomputed is from the model's own."""
    text, result = findings.result["text"], findings.result
    facts = [
        (
            "text",
            f"{text['stretches']} × {findings.longest + 1:,} tokens",
        ),
        ("from", list_text([str(name) for name in text["documents"]], 8) if text["documents"] else ""),
        ("scored", f"the last {result['tail']:,} tokens of each, {text['targets']:,} in all, the same at every length"),
        ("their context", "from half the length to the whole of it"),
        ("intervals", "95 %, bootstrap over parts of these tails: what other text would change, not another seed"),
        ("far", f"further back than {result.get('near') or findings.train_length:,} tokens, and no sink"),
        ("sinks", "the first 4 tokens of a window, where they are further back than that"),
        ("heads", _heads_fact(findings)),
        ("recomputed", _recomputed_fact(findings)),
    ]
    facts += [(str(name), str(version)) for name, version in sorted((result.get("versions") or {}).items())]
    return [(name, fact) for name, fact in facts if fact]


def _heads_fact(findings: Findings) -> str:
    windows = [findings.result["heads"][str(n)].get("windows") for n in findings.traced_lengths]
    known = [count for count in windows if count]
    if not known:
        return ""
    span = f"{min(known)}" if min(known) == max(known) else f"{min(known)} to {max(known)}"
    return f"measured on rows of the last half of {span} windows a length"


def _recomputed_fact(findings: Findings) -> str:
    errors = [findings.result["heads"][str(n)].get("recomputed_within") for n in findings.traced_lengths]
    known = [error for error in errors if error]
    return f"attention agrees with the model's own outputs within {max(known):.1e}".replace("e-", "e−") if known else ""
