"""§6 Certified pruning: sources that may be skipped because even their largest possible weight is nothing."""

import numpy as np
from numpy.typing import ArrayLike

from longroute.theory.ranges import Array, norms, real, require


def score_upper_bound(query_norm: ArrayLike, key_norm: ArrayLike, bias: ArrayLike, dim: int) -> Array:
    """s_ij <= ‖q‖ ‖k‖ / √d + b_ij, whatever orthogonal steps lie between: they keep norms. Longroute.

    Attained when the transported key points along the query. Raises ValueError for a negative norm or dim < 1.
    """
    require(dim >= 1, "dim >= 1")
    return norms(query_norm, "query norm") * norms(key_norm, "key norm") / dim**0.5 + real(bias)


def pruning_margin(length: ArrayLike, epsilon: ArrayLike) -> Array:
    """ln(L/ε) nats: skip each source whose upper bound is more than this below a lower bound of the row's log-sum-exp.

    Each skipped weight is then below ε/L, and the mass skipped in a row of L sources below ε. Approached when L - 1
    sources lie exactly there. Longroute. Raises ValueError unless L >= 1 and 0 < ε < 1.
    """
    count, level = real(length), real(epsilon)
    require((count >= 1) & (level > 0) & (level < 1), "length >= 1 and 0 < epsilon < 1")
    return np.log(count / level)


def skipped_mass_bound(upper: ArrayLike, log_sum_exp: ArrayLike) -> Array:
    """Σ_skipped e^{u_j - ℓ} over the last axis: the mass that sources of upper bounds u hold at most.

    ℓ is a lower bound of the row's log-sum-exp, such as that over any part of the row. Attained when both are exact.
    Longroute. Raises ValueError for a NaN.
    """
    u, log_sum = real(upper), real(log_sum_exp)
    require(~np.isnan(u), "upper bounds that are numbers")
    require(np.isfinite(log_sum), "a finite log-sum-exp")
    return np.sum(np.exp(u - log_sum[..., None]), axis=-1)
