"""How lengths, shares and intervals are written in a diagnosis: no more digits than they deserve."""

import math

from longroute.report.diagnosis.findings import Break
from longroute.report.wording import ABSENT


def about(length: float) -> str:
    """A measured length to three digits: `1,150`, `217`."""
    digits = max(0, math.floor(math.log10(length)) - 2) if length > 0 else 0
    return f"{round(length, -digits):,.0f}"


def interval(breaking: Break) -> str:
    """`925 to 1,420`; an end that lies beyond what was looked at says so."""
    if breaking.low is None:
        return f"beyond {breaking.searched:,}"
    high = f"beyond {breaking.searched:,}" if breaking.high is None else about(breaking.high)
    return f"{about(breaking.low)} to {high}"


def times(length: float, train_length: int) -> str:
    """A multiple of the training length in words: `18 times`, `3.4 times`."""
    multiple = length / train_length
    return f"{multiple:,.0f} times" if multiple >= 10 else f"{multiple:.2g} times"


def percent(share: float | None) -> str:
    """`84 %`, `−12 %`, `0.3 %`; what is no number stands as a dash."""
    if share is None or not math.isfinite(share):
        return ABSENT
    value = 100 * share
    tenths = 0.05 <= abs(value) < 0.95
    text = f"{value:.1f}" if tenths else f"{value:,.0f}"
    return f"{'0' if text == '-0' else text} %".replace("-", "−")


def short(value: float | None) -> str:
    """A value in about three characters, for the cell of a heat map: `0.98`, `8.5`, `443`, `−1.3`."""
    if value is None or not math.isfinite(value):
        return ABSENT
    size = abs(value)
    if size < 0.005:
        return "0"
    text = f"{value:.2f}" if size < 0.995 else f"{value:.1f}" if size < 9.95 else f"{value:.0f}"
    return (text if size < 1e4 else f"{value:.0e}").replace("-", "−")


def decimal(value: float | None, digits: int) -> str:
    """A number with so many decimals, with a true minus sign; a dash for none."""
    return ABSENT if value is None or not math.isfinite(value) else f"{value:.{digits}f}".replace("-", "−")
