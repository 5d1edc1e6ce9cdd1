"""§5 Far mass: the share of softmax attention that F far sources must receive, and may, when logits are bounded.

Counts may be any positive sums: with a bias b(n), F = Σ_far e^{b(n)} and K = Σ_near e^{b(n)} and λ bounds the rest.
"""

import numpy as np
from numpy.typing import ArrayLike

from longroute.theory.ranges import Array, norms, require


def far_mass_lower_bound(far: ArrayLike, near: ArrayLike, logit_bound: ArrayLike) -> Array:
    """Least share of softmax attention that `far` distant tokens can receive.

        ρ >= F / (F + K e^{2λ})

    with F = `far`, K = `near` tokens (or sums of e^bias), and every logit within ±λ = `logit_bound` nats. Attained
    when each far logit is -λ and each near one +λ. Tends to 1 as F grows, for every choice of rotations; what is left
    for the near signal is at most 1 - ρ. arXiv 2606.24975, far-mass lower bound. Raises ValueError for a negative
    count or bound, or when both counts are zero.
    """
    f, k, bound = _checked(far, near, logit_bound)
    return f / (f + k * np.exp(2 * bound))


def far_mass_upper_bound(far: ArrayLike, near: ArrayLike, logit_bound: ArrayLike) -> Array:
    """Largest share of softmax attention that `far` distant tokens can receive.

        ρ <= F e^{2λ} / (F e^{2λ} + K)

    Attained when each far logit is +λ and each near one -λ. With a bias, F = Σ_far e^{b(n)} and K = Σ_near e^{b(n)}:
    this is x/(1+x) with x = e^{2λ} F/K, where the weaker ρ <= x may exceed 1. Longroute. Raises ValueError as above.
    """
    f, k, bound = _checked(far, near, logit_bound)
    return f / (f + k * np.exp(-2 * bound))


def half_mass_length(near: ArrayLike, logit_bound: ArrayLike) -> Array:
    """Far tokens by which half of the attention is far at the latest: F = K e^{2λ}. arXiv 2606.24975.

    Attained as the lower bound is. Raises ValueError for a negative count or bound.
    """
    return norms(near, "near") * np.exp(2 * norms(logit_bound, "logit bound"))


def _checked(far: ArrayLike, near: ArrayLike, logit_bound: ArrayLike) -> tuple[Array, Array, Array]:
    f, k, bound = norms(far, "far"), norms(near, "near"), norms(logit_bound, "logit bound")
    require(f + k > 0, "far + near > 0")
    return f, k, bound
