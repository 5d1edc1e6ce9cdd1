"""What a head does with distance, on sampled rows of each window: mass, partitions, gap, spread, coherence."""

import torch
from torch import Tensor

from longroute.diagnose.heads import SINKS, Heads, Rows, row_blocks

MEASURES = {
    "far_mass": "share of attention on far tokens",
    "sink_mass": f"share of attention on the first {SINKS} tokens where they are further off than D",
    "near_partition": "ln Σ_near e^s, nats",
    "sink_partition": "ln Σ_sinks e^s, nats",
    "far_free_energy": "ln mean_far e^s, nats",
    "edge_free_energy": "ln mean e^s over distances from D / 2 to D, the last that training reached, nats",
    "far_mean": "mean far score, nats",
    "far_variance": "variance of far scores within a row, nats²",
    "far_count": "far tokens of a row",
    "score_gap": "largest near score less largest far score, nats",
    "logit_bound": "largest |score|, nats",
    "logit_spread": "standard deviation of scores within a row, nats",
    "entropy": "entropy of attention, nats",
    "far_norm": "mean ‖Σ_far α ṽ‖²",
    "incoherent_norm": "mean Σ_far α² ‖ṽ‖²: what the far sum would be if its values had nothing in common",
    "coherent_norm": "mean (Σ_far α ‖ṽ‖)²: what it would be if they all pointed one way",
}
"""Every measure of a head, with its meaning and unit. Far: further off than D, and no sink."""

ROWS = 64
"""Rows sampled from the last half of a window."""


def bin_edges(longest: int) -> list[int]:
    """Lower edges of the bins of distance 0, 1, 2-3, 4-7, … that hold 0 … longest - 1."""
    return [0, *(1 << k for k in range(max(0, longest - 1).bit_length()))]


def measure_heads(heads: Heads, *, near: int, rows: int = ROWS) -> dict[str, Tensor]:
    """MEASURES, (window head), and `mass`, the share of attention by `bin_edges` of distance, (window head bin).

    float64, means over rows of each window's last half; sinks don't count in `mass`.

    Rows without a far token don't count for what is of far tokens; where none has one that is NaN. Memory
    O(rows · time).
    """
    time = heads.time
    index = torch.linspace(time // 2, time - 1, min(rows, time - time // 2), device=heads.query.device).long()
    blocks = [_measure_rows(heads, block, near) for block in row_blocks(heads, index)]
    by_row = {name: torch.cat([block[name] for block in blocks], 2) for name in blocks[0]}
    means = {name: by_row[name].nanmean(2) for name in (*MEASURES, "mass") if name != "logit_bound"}
    return means | {"logit_bound": by_row["logit_bound"].amax(2)}


def _measure_rows(heads: Heads, rows: Rows, near: int) -> dict[str, Tensor]:
    """Every measure of each row, (window head row), float64; `mass` (window head row bin)."""
    scores = rows.scores.double()
    seen = rows.scores[0, 0].isfinite()  # the same keys for every head
    far = rows.far(near) & seen
    is_near = (rows.distance <= near) & seen
    edge, sink = is_near & (2 * rows.distance > near), seen & ~is_near & ~far
    weights = scores.softmax(-1)
    count = far.sum(-1).double()
    some = torch.where(count > 0, 1.0, torch.nan)
    partition = _masked(scores, is_near).logsumexp(-1)
    mean, variance = _moments(scores, far)
    far_weights = weights * far
    return {
        "far_mass": far_weights.sum(-1) * some,
        "sink_mass": (weights * sink).sum(-1) * some,
        "near_partition": partition,
        "sink_partition": _masked(scores, sink).logsumexp(-1) + 0 * some,
        "far_free_energy": _masked(scores, far).logsumexp(-1) - count.log() + 0 * some,
        "edge_free_energy": _masked(scores, edge).logsumexp(-1) - edge.sum(-1).double().log() + 0 * some,
        "far_mean": mean * some,
        "far_variance": variance * some,
        "far_count": (count * some).expand_as(mean),
        "score_gap": (_masked(scores, is_near).amax(-1) - _masked(scores, far).amax(-1)) * some,
        "logit_bound": scores.masked_fill(~seen, 0).abs().amax(-1),
        "logit_spread": _moments(scores, seen)[1].sqrt(),
        "entropy": torch.special.entr(weights).sum(-1),
        **{name: value * some for name, value in _far_norms(far_weights, heads.value).items()},
        "mass": _by_bin(weights * ~sink, rows, heads.time),
    }


def _masked(scores: Tensor, mask: Tensor) -> Tensor:
    return scores.masked_fill(~mask, -torch.inf)


def _moments(scores: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Mean and variance of the scores under a mask, over keys."""
    count = mask.sum(-1).clamp(min=1)
    mean = scores.masked_fill(~mask, 0).sum(-1) / count
    return mean, (scores - mean[..., None]).masked_fill(~mask, 0).square().sum(-1) / count


def _far_norms(far_weights: Tensor, value: Tensor) -> dict[str, Tensor]:
    """Squared norms of the far sum, and what they would be for incoherent and for parallel values."""
    batch, heads, _, keys = far_weights.shape
    value = value[:, :, :keys].double()
    grouped = far_weights.view(batch, value.shape[1], -1, keys)
    squares = value.square().sum(-1, keepdim=True)
    incoherent, coherent = grouped.square() @ squares, (grouped @ squares.sqrt()).square()
    sums = {
        "far_norm": (grouped @ value).square().sum(-1),
        "incoherent_norm": incoherent[..., 0],
        "coherent_norm": coherent[..., 0],
    }
    return {name: norm.view(batch, heads, -1) for name, norm in sums.items()}


def _by_bin(x: Tensor, rows: Rows, time: int) -> Tensor:
    """Sums of x (window head row key) over each bin of distance, (window head row bin)."""
    edges = torch.tensor([*bin_edges(time), time], device=x.device)
    upto = torch.nn.functional.pad(x.cumsum(-1), (1, 0))  # upto[k]: the sum over the first k keys
    ends = (rows.index[:, None] + 1 - edges).clamp(min=0).expand(*x.shape[:2], -1, -1)
    return -upto.gather(-1, ends).diff(dim=-1)
