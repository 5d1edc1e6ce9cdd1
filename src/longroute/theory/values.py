"""§7 Value side: a shared background adds up coherently when values stay, incoherently when routes transport them.

Values are v_j = μ + ξ_j, a background and independent noise of mean zero. Weights α are those of the far sources, in
order of distance, and must be independent of the phases: where one rotation serves scores and values too they are not,
and `shared_phase_coherence` is what remains.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.signal import lfilter
from scipy.special import i0e, i1e

from longroute.theory.ranges import Array, counts, norms, real, require


def coherent_second_moment(weights: ArrayLike, background: float, noise: float) -> float:
    """E‖Σ α_j v_j‖² = ρ² ‖μ‖² + ‖α‖² E‖ξ‖² untransported, ρ = Σ α_j: the background doesn't average out.

    `background` is ‖μ‖, `noise` √E‖ξ‖². Textbook. Raises ValueError for a negative number.
    """
    alpha = norms(weights, "weights")
    require(background >= 0 and noise >= 0, "background >= 0 and noise >= 0")
    return float(np.sum(alpha) ** 2 * background**2 + np.sum(alpha**2) * noise**2)


def block_incoherent_moment(weights: ArrayLike, characteristic: complex) -> float:
    """E|Σ_j α_j e^{iΘ_j}|² = Σ_{j,k} α_j α_k Re φ^{|j-k|} exactly, for one block of background 1.

    φ = E e^{iθ}, complex where the angle has a mean. arXiv 2606.24975. Raises ValueError unless |φ| <= 1.
    """
    alpha = np.atleast_1d(norms(weights, "weights"))
    require(abs(characteristic) <= 1 + 1e-12, "|characteristic| <= 1")
    earlier = lfilter([0.0, characteristic], [1.0, -characteristic], alpha.astype(np.complex128))
    return float(np.sum(alpha**2) + 2 * np.sum(alpha * np.real(np.asarray(earlier))))


def transported_second_moment(weights: ArrayLike, mean_step: Array, background: Array) -> float:
    """E‖Σ_j α_j P(j→i) μ‖² = Σ_{j,k} α_j α_k μᵀ (E M)^{|j-k|} μ exactly, for any independent orthogonal steps.

    They needn't commute: P(k→i) drops out of ⟨P(j→i)μ, P(k→i)μ⟩ = ⟨P(j→k)μ, μ⟩. Longroute.
    """
    alpha = np.atleast_1d(norms(weights, "weights"))
    overlap = np.correlate(alpha, alpha, mode="full")[alpha.size - 1 :]
    moved, total = np.array(background, dtype=np.float64), 0.0
    for lag, shared in enumerate(overlap):
        total += (1 if lag == 0 else 2) * shared * float(background @ moved)
        moved = mean_step @ moved
    return total


def incoherence_bound(weights: ArrayLike, r: ArrayLike) -> Array:
    """E‖Σ_j α_j P(j→i) μ‖² <= ‖α‖₂² (1+r)/(1-r) ‖μ‖², r = ‖E M‖₂ (or |φ_b| in a block), for ‖μ‖ = 1.

    Approached by long flat weights when μ is an eigenvector of E M at +r; with a mean angle, r far from +1 on the
    circle, it is loose (`flat_incoherent_moment`). arXiv 2606.24975 for commuting blocks; Longroute without
    commutation. Raises ValueError unless 0 <= r < 1.
    """
    alpha, radius = np.atleast_1d(norms(weights, "weights")), real(r)
    require((radius >= 0) & (radius < 1), "0 <= r < 1")
    return np.sum(alpha**2) * (1 + radius) / (1 - radius)


def flat_incoherent_moment(far: ArrayLike, characteristic: complex) -> Array:
    """E|(1/F) Σ_j e^{iΘ_j}|² exactly for flat weights over F = `far` sources, per ρ² |μ_b|²:

        (1/F) Re[(1+φ)/(1-φ) - 2φ(1-φ^F) / (F (1-φ)²)]

    The amplitude falls as F^{-1/2}, with constant √((1-|φ|²)/|1-φ|²). Longroute. Raises ValueError unless |φ| < 1.
    """
    f = counts(far, "far", least=1)
    require(abs(characteristic) < 1, "|characteristic| < 1")
    edge = 2 * characteristic * (1 - characteristic**f) / (f * (1 - characteristic) ** 2)
    return np.real((1 + characteristic) / (1 - characteristic) - edge) / f


def far_covariance_bound(weights: ArrayLike, r: float, background: float, noise: float) -> float:
    """Trace of the far contribution's second moment, transported: <= ‖α‖₂² [(1+r)/(1-r) ‖μ‖² + E‖ξ‖²].

    Orthogonal steps leave the noise as it is. `background` is ‖μ‖, `noise` √E‖ξ‖². arXiv 2606.24975 (covariance of the
    far contribution). Raises ValueError unless 0 <= r < 1 and both are not negative.
    """
    require(background >= 0 and noise >= 0, "background >= 0 and noise >= 0")
    return float(incoherence_bound(weights, r) * background**2 + np.sum(real(weights) ** 2) * noise**2)


def shared_phase_coherence(logit_amplitude: ArrayLike) -> Array:
    """|E α e^{iΘ}| / E α = I₁(a)/I₀(a) for weights α ∝ e^{a cos Θ}: what is left of the background for *any* F.

    The F^{-1/2} law needs weights independent of the phases. When one rotation serves scores and values, block b of
    a score is a cos(Θ_b + ψ), a = |q_b||k_b|/√d nats, and weighting selects aligned phases: about a/2 of the
    background stays coherent. Longroute. Raises ValueError for a negative amplitude.
    """
    a = norms(logit_amplitude, "logit amplitude")
    return i1e(a) / i0e(a)
