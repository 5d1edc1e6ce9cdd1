"""§5 The typical law: the far mass predicted from the near partition and the far free energy, and where that fails.

Scores are in nats. The near partition is Z = Σ_near e^s, the far free energy f = ln mean_far e^s. For Gaussian far
scores everything follows from one Laplace transform, L(u) = E exp(-u e^{σz}), z standard normal.
"""

import numpy as np
from numpy.typing import ArrayLike

from longroute.theory.ranges import Array, norms, real, require

STEP = 0.02
"""Of the trapezoidal rules, which converge geometrically: the integrands are analytic and vanish at both ends."""


def typical_far_mass(far: ArrayLike, near_partition: ArrayLike, far_free_energy: ArrayLike) -> Array:
    """ρ(F) = 1 / (1 + Z e^{-f} / F), with Z = `near_partition`, f = `far_free_energy` nats.

    An identity when f is the row's own. With the annealed f = ln E e^s it bounds the *mean* far mass from above
    (Jensen: S/(Z+S) is concave in the far sum S) and is near it well beyond `typical_range`. Longroute. Raises
    ValueError unless far > 0 and Z > 0.
    """
    f, z, energy = norms(far, "far"), norms(near_partition, "near partition"), real(far_free_energy)
    require((f > 0) & (z > 0) & np.isfinite(energy), "far > 0, near partition > 0, a finite free energy")
    return 1 / (1 + z * np.exp(-energy) / f)


def typical_half_mass_length(near_partition: ArrayLike, far_free_energy: ArrayLike) -> Array:
    """F½ = Z e^{-f}: far tokens at which half of the attention is far. Longroute.

    For one target at logit g among Gaussian scores N* = e^{g - σ²/2}. Raises ValueError unless Z > 0.
    """
    z, energy = norms(near_partition, "near partition"), real(far_free_energy)
    require((z > 0) & np.isfinite(energy), "near partition > 0, a finite free energy")
    return z * np.exp(-energy)


def gaussian_free_energy(mean: ArrayLike, spread: ArrayLike) -> Array:
    """f = m + σ²/2, the annealed free energy ln E e^s of Gaussian scores: what infinitely many would have. Textbook.

    Raises ValueError for a negative spread.
    """
    return real(mean) + norms(spread, "spread") ** 2 / 2


def expected_free_energy(spread: float, far: ArrayLike, *, mean: float = 0.0) -> Array:
    """E ln mean_far e^s exactly, for F = `far` independent Gaussian scores: the free energy that F tokens do have.

        m - ln F + ∫ [exp(-e^x) - L(e^x)^F] dx

    Below m + σ²/2, and by how much is how far the typical law is off: F½ by the factor e^{σ²/2 - f}. Longroute.
    Raises ValueError unless 0 <= σ <= 12 and far >= 1.
    """
    count = np.atleast_1d(_far(far))
    x = _grid(spread, float(np.max(count)))
    surviving = np.exp(count[:, None] * _log_laplace(x, spread))
    integral = STEP * np.sum(np.exp(-np.exp(x)) - surviving, axis=1)
    return (mean - np.log(count) + integral).reshape(np.shape(far))


def expected_far_mass(far: ArrayLike, near_partition: float, spread: float) -> Array:
    """E ρ exactly, for F = `far` independent Gaussian far scores of mean 0 and standard deviation σ = `spread`:

        E ρ = 1 - Z ∫ e^{-uZ} L(u)^F du,    Z = `near_partition`.

    Longroute. Raises ValueError unless 0 <= σ <= 12, far >= 1 and Z > 0.
    """
    require(near_partition > 0, "near partition > 0")
    count = np.atleast_1d(_far(far))
    x = _grid(spread, float(np.max(count)) + near_partition)
    density = near_partition * np.exp(x - near_partition * np.exp(x))
    surviving = np.exp(count[:, None] * _log_laplace(x, spread))
    return (1 - STEP * surviving @ density).reshape(np.shape(far))


def typical_range(spread: ArrayLike) -> Array:
    """F = e^{σ²/2}: with fewer far tokens a few maxima carry Σ e^s and f still grows with F.

    The edge, not a safe place: at it Σ e^s typically reaches about a half of its mean, or less. Within a tenth needs ln
    F of about (σ + 1.3)²/2. Longroute (after Derrida 1981, the random energy model). Raises ValueError for σ < 0.
    """
    return np.exp(norms(spread, "spread") ** 2 / 2)


def _far(far: ArrayLike) -> Array:
    count = real(far)
    require((count >= 1) & np.isfinite(count), "finite far >= 1")
    return count


def _grid(spread: float, most: float) -> Array:
    """Where L(e^x)^F falls from 1 to 0 for every F up to `most`, with room on both sides."""
    require(0 <= spread <= 12, "0 <= spread <= 12")
    return np.arange(-np.log(most) - spread**2 / 2 - 40.0, 10.0 + 13.0 * spread, STEP)


def _log_laplace(x: Array, spread: float) -> Array:
    """ln L(e^x), from 1 - L so that it is precise where L is nearly 1."""
    z = np.arange(-13.0, 13.0, STEP)
    weight = np.exp(-(z**2) / 2) * STEP / np.sqrt(2 * np.pi)
    with np.errstate(over="ignore"):
        lost = -np.expm1(-np.exp(x[:, None] + spread * z)) @ weight
    with np.errstate(divide="ignore"):
        return np.log1p(-np.minimum(lost, 1.0))
