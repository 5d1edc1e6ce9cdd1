"""What the page states about a comparison beside its results: how it was measured, on what, with what."""

from collections.abc import Mapping, Sequence
from typing import Any

from longroute.report.comparison import Comparison
from longroute.report.run_log import RunLog
from longroute.report.wording import count_text, length_text, list_text

Facts = list[tuple[str, str]]


def measured_facts(summary: Mapping[str, Any], comparison: Comparison, log: RunLog) -> Facts:
    """Scored tokens, spans, books, and where the intervals come from."""
    rows = [row for row in summary.get("rows") or () if row.get("status") == "ok"]
    bootstrap = next((row["interval"] for row in rows if row.get("interval")), None)
    facts = [
        ("scored over whole windows", _scored(rows, "scored_tokens")),
        ("scored over the fixed tail", _scored(rows, "tail_scored_tokens")),
        ("held-out text", _spans(bootstrap, log)),
        ("intervals", _intervals(bootstrap, comparison)),
        ("attention skipped, certified", _skipped(rows, comparison)),
    ]
    return [(name, fact) for name, fact in facts if fact]


def _skipped(rows: Sequence[Mapping[str, Any]], comparison: Comparison) -> str:
    """What certified pruning skipped of each encoding's attention at the longest length, the mean over seeds."""
    shares: dict[str, list[float]] = {}
    for row in rows:
        share = (row.get("skipped") or {}).get(str(comparison.longest))
        if share:
            shares.setdefault(str(row["encoding"]), []).append(float(share))
    if not shares:
        return ""
    parts = [f"{name} {sum(each) / len(each):.0%}" for name, each in shares.items()]
    return f"at {length_text(comparison.longest or 0)} tokens: {', '.join(parts).replace('%', ' %')}"


def provenance_facts(summary: Mapping[str, Any]) -> Facts:
    """The corpus: its name, books, sizes and hash."""
    corpus = summary.get("corpus") or {}
    facts = [
        ("corpus", str(corpus.get("name") or "")),
        ("trained on", _texts(corpus.get("train"), corpus.get("train_tokens"))),
        ("held out", _texts(corpus.get("heldout"), corpus.get("heldout_tokens"))),
        ("vocabulary", _value(corpus["vocabulary"]) if corpus.get("vocabulary") else ""),
        ("hash", str(corpus.get("hash") or "")),
    ]
    return [(name, fact) for name, fact in facts if fact]


def version_facts(summary: Mapping[str, Any]) -> Facts:
    """Versions of what ran it."""
    return [(str(name), str(version)) for name, version in sorted((summary.get("versions") or {}).items())]


def flattened(settings: Mapping[str, Any], prefix: str = "") -> Facts:
    """Nested settings as (dotted name, value) in their own order."""
    facts: Facts = []
    for key, value in settings.items():
        name = f"{prefix}{key}"
        facts += flattened(value, f"{name}.") if isinstance(value, Mapping) and value else [(name, _value(value))]
    return facts


def _value(value: Any) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(_value(one) for one in value)
    if value is None:
        return "none"
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value)


def _scored(rows: list[Mapping[str, Any]], key: str) -> str:
    """`65,536 tokens at every length`, or the range when the lengths differ."""
    counts = {int(count) for row in rows for count in (row.get(key) or {}).values() if count}
    if not counts:
        return ""
    if len(counts) == 1:
        return f"{min(counts):,} tokens at every length"
    return f"{min(counts):,} to {max(counts):,} tokens, by length"


def _spans(bootstrap: Mapping[str, Any] | None, log: RunLog) -> str:
    spans = (bootstrap or {}).get("spans") or log.spans
    books = (bootstrap or {}).get("books") or log.books
    return f"{count_text(spans, 'span')} from {count_text(books, 'book')}" if spans and books else ""


def _intervals(bootstrap: Mapping[str, Any] | None, comparison: Comparison) -> str:
    kinds = []
    if any(one.seeds > 1 for one in comparison.measured):
        kinds.append("several seeds: 95 % t-intervals over them, on the scale of nats")
    if bootstrap and any(one.seeds == 1 for one in comparison.measured):
        level, resamples = bootstrap.get("level") or 0.95, bootstrap.get("resamples")
        drawn = f", {resamples:,} resamples" if isinstance(resamples, int) else ""
        kinds.append(
            f"one seed: {level:.0%} bootstrap over the spans of these books{drawn}:"
            " what other spans would change, not what another seed or another book would"
        )
    return "; ".join(kinds) or "none"


def _texts(names: Any, tokens: Any) -> str:
    listed = list_text([str(name) for name in names], 12) if names else ""
    counted = f"{length_text(tokens)} tokens" if isinstance(tokens, int) else ""
    return f"{listed} ({counted})" if listed and counted else listed or counted
