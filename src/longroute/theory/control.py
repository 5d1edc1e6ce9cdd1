"""§6 Explicit far-mass control: sums of e^{b(n)} over distances n, whose finiteness decides what happens at length.

With every content score within ±λ the far mass lies between `far_mass_lower_bound` and `far_mass_upper_bound` of the
far and the near sum, so it stays away from 1 at every length exactly when Σ_n e^{b(n)} is finite (Longroute).
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import zeta

from longroute.theory.far_mass import far_mass_lower_bound
from longroute.theory.ranges import Array, counts, norms, real, require

DIRECT = 64
"""Terms that a finite log-distance sum adds one by one before Euler's and Maclaurin's formula takes over."""


def geometric_sum(ratio: ArrayLike, first: ArrayLike, last: ArrayLike = np.inf) -> Array:
    """Σ_{n=first}^{last} x^n = (x^first - x^{last+1}) / (1 - x).

    ALiBi with slope m has x = e^{-m}: over n > D it is e^{-m(D+1)} / (1 - e^{-m}). Independent forget gates have x = E
    e^{a}, the mean gate, and this is the *expected* sum. Textbook. Raises ValueError unless 0 <= x < 1, first <= last.
    """
    x, start, end = real(ratio), counts(first, "first"), counts(last, "last")
    require((x >= 0) & (x < 1), "0 <= ratio < 1")
    require(start <= end, "first <= last")
    return (x**start - x ** (end + 1)) / (1 - x)


def log_distance_sum(exponent: float, scale: float, first: int, last: float = np.inf) -> float:
    """Σ_{n=first}^{last} (1 + n/w)^{-κ}, the bias being b(n) = -κ ln(1 + n/w), κ = `exponent`, w = `scale` tokens.

    w^κ ζ(κ, w + first) to infinity for κ > 1 (Hurwitz); finite sums within 1e-13 by Euler and Maclaurin. inf when it
    diverges. Longroute; the bias is KERPLE-log's (Chi et al. 2022). Raises ValueError unless κ >= 0, w > 0, 0 <= first
    <= last.
    """
    require(exponent >= 0 and scale > 0 and np.isfinite(exponent + scale), "finite exponent >= 0 and scale > 0")
    require(0 <= first <= last, "0 <= first <= last")
    if np.isinf(last):
        return float(scale**exponent * zeta(exponent, scale + first)) if exponent > 1 else np.inf
    some = np.arange(first, min(first + DIRECT, last + 1))
    head = float(np.sum((1 + some / scale) ** -exponent))
    return head + _euler_maclaurin(exponent, scale, first + DIRECT, last) if last >= first + DIRECT else head


def log_distance_tail_bound(exponent: float, scale: float, window: ArrayLike) -> Array:
    """Σ_{n>D} (1 + n/w)^{-κ} <= w/(κ-1) (1 + D/w)^{1-κ}, D = `window`: the integral. Met as D grows.

    Longroute. Raises ValueError unless κ > 1 and w > 0.
    """
    require(exponent > 1 and scale > 0, "exponent > 1 and scale > 0")
    return scale / (exponent - 1) * (1 + norms(window, "window") / scale) ** (1 - exponent)


def least_far_mass(exponent: float, scale: float, window: int, length: float, logit_bound: float) -> float:
    """The far mass under a log-distance bias when content does all it can against it, for n <= `length`.

    Tends to 1 with the length (give inf) exactly when κ <= 1: the summability criterion. Longroute.
    Raises ValueError unless window < length.
    """
    require(window < length, "window < length")
    far = log_distance_sum(exponent, scale, window + 1, length)
    near = log_distance_sum(exponent, scale, 0, window)
    return 1.0 if np.isinf(far) else float(far_mass_lower_bound(far, near, logit_bound))


def log_count_far_sum(length: ArrayLike, near: ArrayLike, strength: float, reference: float) -> Array:
    """Σ_far e^{b} = (n - K) (n/n_ref)^{-c}: far scores lowered by c ln(n/n_ref) in a row of n = `length` sources.

    At most n_ref for c = `strength` = 1, which bounds the far mass by x/(1+x), x = e^{2λ} n_ref/K; it vanishes for c >
    1 (and with it every far memory) and grows without bound for c < 1. Longroute; the offset is arXiv 2609.07314's.
    Raises ValueError unless c >= 0, n >= n_ref > 0 and n >= K.
    """
    n, k = counts(length, "length"), counts(near, "near")
    require(strength >= 0 and reference > 0, "strength >= 0 and reference > 0")
    require((n >= reference) & (n >= k), "length >= reference and length >= near")
    return (n - k) * (n / reference) ** -strength


def recall_cost(distance: ArrayLike, exponent: float, scale: float) -> Array:
    """κ ln(1 + n/w): extra nats that a token at distance n needs under a log-distance bias to weigh as one at 0.

    Under ALiBi it is m n. Longroute. Raises ValueError unless κ >= 0 and w > 0.
    """
    require(exponent >= 0 and scale > 0, "exponent >= 0 and scale > 0")
    return exponent * np.log1p(norms(distance, "distance") / scale)


def least_recall_cost(distance: ArrayLike, total: ArrayLike) -> Array:
    """ln(n/S): what *any* control that falls with distance and sums to S = Σ_{n>=1} e^{b(n)} costs at distance n.

    For n e^{b(n)} <= Σ_{m<=n} e^{b(m)} <= S. Attained by a plain window of S tokens at its edge: no bounded far mass is
    cheaper than logarithmic. Longroute. Raises ValueError unless n >= 1 and S > 0.
    """
    n, s = counts(distance, "distance", least=1), real(total)
    require((s > 0) & np.isfinite(s), "finite total > 0")
    return np.log(n / s)


def _euler_maclaurin(exponent: float, scale: float, first: float, last: float) -> float:
    """∫ f + (f(a) + f(b))/2 + (f'(b) - f'(a))/12 - (f'''(b) - f'''(a))/720 for f(n) = (1 + n/w)^-κ, in u = w + n."""
    a, b, k = scale + first, scale + last, exponent
    integral = np.log(b / a) if k == 1 else (b ** (1 - k) - a ** (1 - k)) / (1 - k)
    ends = (a**-k + b**-k) / 2
    slope = -k * (b ** (-k - 1) - a ** (-k - 1)) / 12
    third = k * (k + 1) * (k + 2) * (b ** (-k - 3) - a ** (-k - 3)) / 720
    return float(scale**k * (integral + ends + slope + third))
