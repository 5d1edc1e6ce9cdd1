"""How many of a model's blocks mix within its training length, and how many never do."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longroute.diagnose.job import EPSILON
from longroute.report.diagnosis.findings import Findings
from longroute.theory import mixing_window

_NEVER = 1e-9
"""A rate so near to 1 is 1 up to rounding."""


@dataclass(frozen=True)
class Block:
    """One block of a head: its rate r, the error of that, and its mixing window; None if it never mixes."""

    head: int
    rate: float
    error: float
    window: float | None


def blocks(decay: Mapping[str, Any]) -> list[Block]:
    """Every block of one layer's heads, each once: planes that rotate have two equal singular values."""
    rates, errors = (np.asarray(decay[name], dtype=np.float64) for name in ("rate", "rate_error"))
    found = []
    for head, (of_head, their_errors) in enumerate(zip(rates, errors, strict=True)):
        distinct = {round(float(r), 9): float(e) for r, e in zip(of_head, their_errors, strict=True) if np.isfinite(r)}
        found += [Block(head, r, e if np.isfinite(e) else 0.0, window_of(r)) for r, e in distinct.items()]
    return found


def window_of(rate: float) -> float | None:
    """The mixing window of a rate, tokens; None for r = 1, up to rounding, or above."""
    return None if rate >= 1 - _NEVER else float(mixing_window(max(0.0, rate), EPSILON))


def mixing_sentence(findings: Findings) -> str:
    """How many blocks mix within the training length, in words."""
    groups = findings.transports
    if not groups:
        return "Nothing moves in this model: its attention carries vectors as they are."
    found = [block for _, decay in groups for block in blocks(decay)]
    if not found:
        return "How fast its steps forget couldn't be fitted."
    never = sum(block.window is None for block in found)
    if never == len(found):
        return "Steps are position-indexed: they turn alike whatever the text, so no block ever mixes."
    train = findings.train_length
    within = sum(block.window is not None and block.window <= train for block in found)
    words = f"{within:,} of {len(found):,} blocks mix within the training length of {train:,} tokens"
    slowest = max(block.window for block in found if block.window is not None)
    still = sum(layer is None for layer in findings.result["transports"])
    rest = f", and {never:,} never mix" if never else ""
    unmoved = f" In {still} of {len(findings.result['transports'])} layers nothing moves." if still else ""
    return f"{words}; the slowest that does mix needs {slowest:,.0f}{rest}.{unmoved}"
