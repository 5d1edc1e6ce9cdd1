"""§3 Concentration: how unlikely a mixed route's score is to be large, by bound and by exact law.

Sizes of tails are for |X| >= t on both sides. `amplitude` is r_b = |q_b| |k_b| for each block.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainc, j0

from longroute.theory.ranges import Array, norms, real, require

TERMS = 2**14
"""Terms of the Fourier series of `phase_sum_tail`."""


def levy_tail_bound(t: ArrayLike, dim: ArrayLike) -> Array:
    """P(|X| >= t) <= 2 e^{-d t² / 2}, X = qᵀUk / (‖q‖‖k‖), U from Haar measure on O(d).

    The exponent is the best possible (X has variance 1/d); the factor 2 is needed at d = 1 alone. arXiv 2606.24975,
    Lévy's lemma. Raises ValueError unless t >= 0 and dim >= 1.
    """
    d = real(dim)
    require(d >= 1, "dim >= 1")
    return 2 * np.exp(-d * norms(t, "t") ** 2 / 2)


def haar_tail(t: ArrayLike, dim: ArrayLike) -> Array:
    """P(|X| >= t) exactly: (X + 1)/2 ~ Beta((d-1)/2, (d-1)/2).

    Textbook. Raises ValueError unless 0 <= t <= 1 and dim >= 2.
    """
    threshold, d = real(t), real(dim)
    require((threshold >= 0) & (threshold <= 1), "0 <= t <= 1")
    require(d >= 2, "dim >= 2")
    return 2 * betainc((d - 1) / 2, (d - 1) / 2, (1 - threshold) / 2)


def hoeffding_tail_bound(t: ArrayLike, amplitude: ArrayLike) -> Array:
    """P(|S| >= t) <= 2 exp(-t² / (2 Σ r_b²)), S = Σ_b r_b cos ψ_b with independent phases of mean zero cosine.

    For uniform phases it is loose by a factor 2 in the exponent (`bessel_tail_bound`); phases 0 or π attain the
    exponent. arXiv 2606.24975, Hoeffding. Raises ValueError unless t >= 0 and some amplitude is positive.
    """
    return 2 * np.exp(-(norms(t, "t") ** 2) / (2 * _square_sum(amplitude)))


def bessel_tail_bound(t: ArrayLike, amplitude: ArrayLike) -> Array:
    """P(|S| >= t) <= 2 exp(-t² / Σ r_b²) for independent *uniform* phases: twice Hoeffding's exponent.

    From E e^{λ r cos ψ} = I₀(λr) <= e^{λ²r²/4}; the exponent is the best possible (S has variance ½ Σ r_b²).
    Longroute. Raises ValueError unless t >= 0 and some amplitude is positive.
    """
    return 2 * np.exp(-(norms(t, "t") ** 2) / _square_sum(amplitude))


def phase_sum_tail(t: ArrayLike, amplitude: ArrayLike) -> Array:
    """P(|S| >= t) exactly, S = Σ_b r_b cos ψ_b with independent uniform phases: S lies in ±R, R = Σ r_b, so

        P(|S| < t) = t/R + Σ_{k>=1} 2/(πk) sin(πkt/R) Π_b J₀(πk r_b/R).

    TERMS terms: within 1e-8 for four comparable amplitudes or more, within 1e-4 for two. Not for tails below 1e-12.
    Longroute. Raises ValueError unless t >= 0 and two or more amplitudes are positive.
    """
    threshold, r = norms(t, "t"), np.atleast_1d(norms(amplitude, "amplitude"))
    require(np.sum(r > 0) >= 2, "two or more positive amplitudes")
    total = np.sum(r)
    k = np.arange(1, TERMS + 1)
    weight = 2 / (np.pi * k) * np.prod(j0(np.pi * k[:, None] * r / total), axis=1)
    inside = np.minimum(threshold / total, 1.0)
    below = inside + np.sin(np.pi * inside[..., None] * k) @ weight
    return np.clip(1 - below, 0.0, 1.0)


def _square_sum(amplitude: ArrayLike) -> Array:
    r = np.atleast_1d(norms(amplitude, "amplitude"))
    require(np.any(r > 0), "a positive amplitude")
    return real(np.sum(r**2))
