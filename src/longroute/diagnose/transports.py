"""How fast a model's own steps forget: E[P] by distance, the rate fitted on it, norm loss apart from phase loss."""

from dataclasses import dataclass

import torch
from torch import Tensor

_GROUPS = 8
"""Parts of the sample that errors are jackknifed over."""
_NOISE = 3.0
"""A value is fitted while it is this many times the noise of a mean over the sample."""


@dataclass(frozen=True, eq=False)
class TransportDecay:
    """The steps of one layer's heads, (head …), float64.

    With P_n the transport over n steps, `lags` are the n = 1, 2, 4, …; `autocorrelation` (head lag block) the singular
    values of E[P_n], largest first: for planes that rotate, |E e^{iΘ_n}| of each, twice. r^n is fitted on each block's:
    `rate` (head block) is r, `rate_error` its standard error, `gap` 1 - r. `norm` (head lag) is the root mean square of
    ‖P_n x‖ / ‖x‖ and `cosine` (head lag) the mean cosine of P_n x and x, over directions x: one is lost by contraction,
    the other by incoherence. `lag_one` is the rate that independent steps would have, σ(E[M]), (head block).
    """

    lags: Tensor
    autocorrelation: Tensor
    rate: Tensor
    rate_error: Tensor
    norm: Tensor
    cosine: Tensor

    @property
    def gap(self) -> Tensor:
        """1 - r of each block, (head block)."""
        return 1 - self.rate

    @property
    def lag_one(self) -> Tensor:
        """σ(E[M]), (head block)."""
        return self.autocorrelation[:, 0]


def transport_decay(steps: Tensor) -> TransportDecay:
    """Measure steps M_t, (window head time dim dim) float64, on all routes of 1, 2, 4, … ≤ time / 4 tokens.

    P_2n(t) = P_n(t + n) P_n(t) doubles the route. Work O(time · dim³ · ln time) a head.
    """
    time, dim = steps.shape[2], steps.shape[-1]
    transport, lags, means, norms, cosines = steps, [], [], [], []
    longest, lag = max(1, time // 4), 1
    groups = max(1, min(_GROUPS, time - longest))
    while lag <= longest:
        lags.append(lag)
        means.append(torch.stack([part.mean((0, 2)) for part in transport.tensor_split(groups, dim=2)]))
        size = transport.square().sum((-2, -1)) / dim
        norms.append(size.mean((0, 2)).sqrt())
        trace = transport.diagonal(dim1=-2, dim2=-1).mean(-1)
        cosines.append((trace / size.sqrt()).mean((0, 2)))
        if transport.shape[2] <= lag:
            break
        transport = transport[:, :, lag:] @ transport[:, :, :-lag]
        lag *= 2
    return _fit(
        torch.tensor(lags), torch.stack(means, 2), torch.stack(norms, 1), torch.stack(cosines, 1), len(steps) * time
    )


def _fit(lags: Tensor, means: Tensor, norm: Tensor, cosine: Tensor, tokens: int) -> TransportDecay:
    """`means` (group head lag dim dim). The error is the jackknife's over groups."""
    whole = torch.linalg.svdvals(means.mean(0))
    rate = _rates(lags, whole, tokens)
    others = (means.sum(0) - means) / max(1, len(means) - 1)
    left_out = torch.stack([_rates(lags, torch.linalg.svdvals(one), tokens) for one in others])
    spread = (left_out - left_out.mean(0)).square().sum(0) * (len(means) - 1) / len(means)
    return TransportDecay(lags, whole, rate, spread.sqrt(), norm, cosine)


def _rates(lags: Tensor, values: Tensor, tokens: int) -> Tensor:
    """r of each block from values (head lag block) ≈ r^lag: least squares of ln value through the origin.

    A mean over about tokens / lag independent routes is noise below its inverse root; later lags than the first such
    aren't used. Never above 1.
    """
    noise = _NOISE * (lags.double() / tokens).sqrt()[:, None]
    used = (values > noise).cumprod(1).bool()
    used[:, 0] = True
    n = lags.double()[:, None] * used
    slope = (n * values.clamp(min=1e-12).log() * used).sum(1) / n.square().sum(1)
    return slope.exp().clamp(max=1.0)
