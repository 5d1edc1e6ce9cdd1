"""§4 Score gap: with F far sources at once, how high any of their scores reaches, and what weight that leaves them."""

import numpy as np
from numpy.typing import ArrayLike

from longroute.theory.ranges import Array, norms, real, require


def haar_score_threshold(
    far: ArrayLike, delta: ArrayLike, query_norm: ArrayLike, key_norm: ArrayLike, dim: ArrayLike
) -> Array:
    """τ: with probability 1 - δ every |score| of F = `far` mixed sources is at most this many nats (Haar steps).

        τ = ‖q‖ ‖k‖ √(2 ln(2F/δ) / d) / √d

    Lévy's bound and a union bound: the sources' routes may depend on each other. Grows like √ln F. arXiv 2606.24975,
    score gap. Raises ValueError unless far >= 1, 0 < δ < 1, dim >= 1.
    """
    d = real(dim)
    require(d >= 1, "dim >= 1")
    return norms(query_norm, "query norm") * norms(key_norm, "key norm") * np.sqrt(2 * _budget(far, delta) / d) / d**0.5


def block_score_threshold(far: ArrayLike, delta: ArrayLike, amplitude: ArrayLike) -> Array:
    """τ for block rotations with uniform phases, r_b = |q_b| |k_b|: with probability 1 - δ every |score| is at most

        τ = √(Σ r_b² ln(2F/δ)) / √d,    d = 2 · blocks,

    in nats; the Bessel bound, smaller than Hoeffding's by √2. Longroute. Raises ValueError unless far >= 1, 0 < δ < 1.
    """
    r = np.atleast_1d(norms(amplitude, "amplitude"))
    return np.sqrt(np.sum(r**2) * _budget(far, delta)) / (2 * r.size) ** 0.5


def far_weight_bound(target: ArrayLike, threshold: ArrayLike) -> Array:
    """α_far / α_target <= e^{-(s* - τ)} when the target scores s* = `target` and no far source more than τ, nats.

    Attained by a source at τ. arXiv 2606.24975, score gap. Raises ValueError for numbers that aren't finite.
    """
    s, tau = real(target), real(threshold)
    require(np.isfinite(s) & np.isfinite(tau), "finite scores")
    return np.exp(tau - s)


def _budget(far: ArrayLike, delta: ArrayLike) -> Array:
    """ln(2F/δ)."""
    count, risk = real(far), real(delta)
    require((count >= 1) & np.isfinite(count), "finite far >= 1")
    require((risk > 0) & (risk < 1), "0 < delta < 1")
    return np.log(2 * count / risk)
