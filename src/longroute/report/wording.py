"""How numbers and lists are written: the same on the page, in the tables and in the terminal."""

from collections.abc import Sequence

from longroute.report.estimate import Estimate

ABSENT = "–"
"""What stands where nothing was measured."""


def perplexity_text(value: float | None) -> str:
    """A perplexity: one decimal below 1,000, grouped thousands above, a power of ten from a million."""
    if value is None:
        return ABSENT
    if value >= 1e6:
        return f"{value:.1e}"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.1f}"


def ratio_text(value: float | None) -> str:
    """A ratio of perplexities: two decimals below 10, one below 100, then as a perplexity."""
    if value is None or value >= 100:
        return perplexity_text(value)
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def share_text(value: float | None) -> str:
    """A share: `97 %`, `−3 %`."""
    return ABSENT if value is None else f"{100 * value:z.0f} %".replace("-", "\N{MINUS SIGN}")


def measure_text(measure: str, value: float | None) -> str:
    """A value written as its measure is: ratios with two decimals, perplexities with one."""
    return ratio_text(value) if measure.endswith("ratio") else perplexity_text(value)


def interval_text(measure: str, estimate: Estimate | None) -> str:
    """`0.91–0.95`, or nothing where there is no interval."""
    if estimate is None or estimate.interval is None:
        return ""
    return "–".join(measure_text(measure, edge) for edge in estimate.interval)


def length_text(length: int) -> str:
    """A context length in tokens: `512`, `8,192`."""
    return f"{length:,}"


def short_length_text(length: int) -> str:
    """A context length that fits under an axis tick: `8,192`, `16K`."""
    return f"{length // 1024}K" if length >= 10_000 and length % 1024 == 0 else f"{length:,}"


def multiple_text(length: int, train_length: int) -> str:
    """A length as a multiple of the training length: `16×`."""
    return f"{length / train_length:.3g}×" if train_length else ABSENT


def list_text(names: Sequence[str], limit: int = 6) -> str:
    """`a, b and c`; beyond `limit` names, `a, b, c and 4 more`."""
    shown = list(names) if len(names) <= limit else [*names[: limit - 1], f"{len(names) - limit + 1} more"]
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"


def count_text(count: int, noun: str) -> str:
    """`one seed`, `3 seeds`."""
    return f"one {noun}" if count == 1 else f"{count} {noun}s"


def printable(name: str) -> str:
    """A name with control characters replaced: SVG forbids them, and they would break a table's line."""
    return "".join(character if character.isprintable() else "\N{REPLACEMENT CHARACTER}" for character in name)
