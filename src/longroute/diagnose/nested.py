"""Tensors as nested lists for JSON and back: what isn't finite is null there, as JSON has no such number."""

import math
from typing import Any

import torch
from torch import Tensor


def listed(x: Tensor) -> list[Any]:
    """Nested lists; what isn't finite is None, as JSON has no such number."""
    if x.ndim:
        return [listed(row) for row in x]
    return float(x) if math.isfinite(float(x)) else None  # type: ignore[return-value]  # a leaf


def tensor(nested: Any) -> Tensor:
    """Nested lists with None for NaN."""
    if isinstance(nested, list):
        return torch.stack([tensor(row) for row in nested])
    return torch.tensor(math.nan if nested is None else nested, dtype=torch.float64)


def mean_or_none(x: Tensor) -> float | None:
    """Mean of what is a number; None if nothing is."""
    mean = float(x.nanmean())
    return mean if math.isfinite(mean) else None
