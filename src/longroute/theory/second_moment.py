"""§2 Second moments: how large a score of unknown sign is once its route has mixed, and where blocks resonate."""

import numpy as np
from numpy.typing import ArrayLike

from longroute.theory.gap import angle_characteristic
from longroute.theory.ranges import Array, ComplexArray, counts, norms, real, require


def pair_characteristics(spread: ArrayLike, *, shared: bool, law: str = "normal") -> tuple[Array, Array]:
    """E e^{i(θ_b + θ_c)} and E e^{i(θ_b - θ_c)} for every two blocks, (block block) each.

    Blocks of mean 0 with standard deviations σ_b: independent, φ_b φ_c for b ≠ c; or `shared`, θ_b = σ_b x with one x
    for the step, φ(σ_b ± σ_c). On the diagonal E e^{2iθ_b}, and 1. Longroute. Raises ValueError for a bad spread
    or law.
    """
    sigma = np.atleast_1d(norms(spread, "spread"))
    total, difference = sigma[:, None] + sigma, np.abs(sigma[:, None] - sigma)
    plus, minus = angle_characteristic(total, law=law), angle_characteristic(difference, law=law)
    if shared:
        return plus, minus
    single = angle_characteristic(sigma, law=law)
    apart = ~np.eye(sigma.size, dtype=bool)
    return np.where(apart, np.outer(single, single), plus), np.where(apart, np.outer(single, single), minus)


def block_second_moment(pair: ComplexArray, plus: Array, minus: Array, steps: ArrayLike) -> Array:
    """E (qᵀPk)² exactly, for block rotations whose steps are independent; one value for each n in `steps`:

        ½ Re Σ_{b,c} [z_b z_c E e^{i(θ_b+θ_c)}^n + z_b conj(z_c) E e^{i(θ_b-θ_c)}^n],    z_b = conj(q_b) k_b.

    `plus` and `minus` as from `pair_characteristics`. Longroute.
    """
    n = counts(steps, "steps")[..., None, None]
    same = np.einsum("b,c,...bc->...", pair, pair, plus**n)
    opposite = np.einsum("b,c,...bc->...", pair, pair.conj(), minus**n)
    return np.real(same + opposite) / 2


def mixed_second_moment(amplitude: ArrayLike) -> Array:
    """What E (qᵀPk)² tends to without resonance: ½ Σ_b r_b², r_b = |q_b| |k_b|.

    Needs |E e^{2iθ_b}| < 1 and |E e^{i(θ_b±θ_c)}| < 1 for b ≠ c: see `second_moment_radius`. arXiv 2606.24975.
    """
    return np.sum(norms(amplitude, "amplitude") ** 2, axis=-1) / 2


def second_moment_radius(plus: Array, minus: Array) -> float:
    """r₂ = the largest of |E e^{i(θ_b+θ_c)}| and, for b ≠ c, |E e^{i(θ_b-θ_c)}|; 1 means resonance. Longroute."""
    apart = ~np.eye(len(plus), dtype=bool)
    return float(max(np.max(np.abs(plus)), np.max(np.abs(minus[apart]), initial=0.0)))


def second_moment_bound(amplitude: ArrayLike, r2: float, steps: ArrayLike) -> Array:
    """E (qᵀPk)² <= ½ Σ r_b² + r₂^n ((Σ r_b)² - ½ Σ r_b²) for n = `steps`.

    Attained at n = 0 when all pairs are in phase. Longroute. Raises ValueError unless 0 <= r₂ <= 1.
    """
    r = norms(amplitude, "amplitude")
    require(0 <= r2 <= 1, "0 <= r2 <= 1")
    half = np.sum(r**2) / 2
    return half + r2 ** counts(steps, "steps") * (np.sum(r) ** 2 - half)


def haar_second_moment(dim: ArrayLike) -> Array:
    """E (qᵀUk)² = 1/d for unit vectors and U from Haar measure, on O(d) as on SO(d) for d >= 2: Uk is uniform.

    arXiv 2606.24975. Raises ValueError for d < 2.
    """
    return 1 / counts(dim, "dim", least=2)


def householder_second_moment(dim: int, steps: ArrayLike, cosine: ArrayLike) -> Array:
    """E (qᵀPk)² after n reflections in uniform random mirrors, unit vectors with qᵀk = `cosine`:

        1/d + (cosine² - 1/d) ((d-2)/(d+2))^n,    while E qᵀPk = (1 - 2/d)^n cosine.

    From E HXH = (d-2)/(d+2) X on traceless symmetric X. Longroute. Raises ValueError for d < 2 or |cosine| > 1.
    """
    require(dim >= 2, "dim >= 2")
    c = real(cosine)
    require(np.abs(c) <= 1, "|cosine| <= 1")
    return 1 / dim + (c**2 - 1 / dim) * ((dim - 2) / (dim + 2)) ** counts(steps, "steps")
