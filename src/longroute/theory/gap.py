"""§2 Spectral gap: E[P(j→i)] = (E M)^n for independent steps, so the mean score dies within a window of its own."""

import numpy as np
from numpy.typing import ArrayLike

from longroute.theory.ranges import Array, ComplexArray, counts, norms, real, require


def angle_characteristic(spread: ArrayLike, *, order: int = 1, law: str = "normal") -> Array:
    """φ = E e^{i k θ} of an angle of mean 0 and standard deviation σ = `spread` radians, k = `order`.

        normal: e^{-k² σ² / 2},    uniform on ±a, a = σ √3: sin(k a) / (k a).

    Textbook. Raises ValueError for a negative spread or another law.
    """
    argument = order * norms(spread, "spread")
    require(law in ("normal", "uniform"), "law normal or uniform")
    return np.exp(-(argument**2) / 2) if law == "normal" else np.sinc(argument * 3**0.5 / np.pi)


def mean_step_norm(mean_step: Array) -> float:
    """r = ‖E M‖₂, the largest singular value of the mean step (dim dim); the gap is 1 - r.

    For block rotations r = max_b |φ_b|. It bounds ‖(E M)^n‖₂ <= r^n, also where E M isn't normal; the decay is then
    faster in the end, at the spectral radius. arXiv 2606.24975, spectral gap.
    """
    require(mean_step.ndim == 2 and mean_step.shape[0] == mean_step.shape[1], "a square matrix")
    return float(np.linalg.norm(mean_step, 2))


def mixing_window(r: ArrayLike, epsilon: ArrayLike) -> Array:
    """Steps after which the mean score is at most ε of its largest: the least n >= 1 with r^n <= ε.

        w(ε) = ⌈ln(1/ε) / ln(1/r)⌉

    in tokens, whatever the context length; inf for r = 1, where the theorem says nothing. r = ‖E M‖₂, or |φ_b| for
    the window of block b alone. arXiv 2606.24975, mixing window. Raises ValueError unless 0 <= r <= 1 and 0 < ε < 1.
    """
    radius, level = real(r), real(epsilon)
    require((radius >= 0) & (radius <= 1), "0 <= r <= 1")
    require((level > 0) & (level < 1), "0 < epsilon < 1")
    with np.errstate(divide="ignore"):
        steps = np.log(level) / np.log(radius)
    # A window that is a whole number must not grow by one from the rounding of two logarithms.
    return np.where(radius == 1, np.inf, np.maximum(1.0, np.ceil(steps * (1 - 1e-12))))


def mean_score_bound(r: ArrayLike, steps: ArrayLike, query_norm: ArrayLike, key_norm: ArrayLike, dim: int) -> Array:
    """|E s_ij| <= r^n ‖q‖ ‖k‖ / √d for n = `steps` independent steps, q and k independent of them.

    In nats. Attained when q = k lies in the slowest eigenspace of a symmetric E M. arXiv 2606.24975, spectral gap.
    Raises ValueError unless 0 <= r <= 1, counts and norms are not negative, and dim >= 1.
    """
    radius, n = real(r), counts(steps, "steps")
    require((radius >= 0) & (radius <= 1), "0 <= r <= 1")
    require(dim >= 1, "dim >= 1")
    return radius**n * norms(query_norm, "query norm") * norms(key_norm, "key norm") / dim**0.5


def mean_block_score(pair: ComplexArray, characteristic: ArrayLike, steps: ArrayLike) -> Array:
    """E s_ij √d = Re Σ_b z_b φ_b^n exactly, for block rotations; one value for each n in `steps`.

    z_b = conj(q_b) k_b is `pair`, φ_b = E e^{iθ_b} `characteristic`, complex where angles have a mean. Longroute.
    Raises ValueError where |φ| > 1.
    """
    phi = np.asarray(characteristic, dtype=np.complex128)
    require(np.abs(phi) <= 1 + 1e-12, "|characteristic| <= 1")
    n = counts(steps, "steps")
    return np.real(np.sum(pair * phi ** n[..., None], axis=-1))


def mean_score(query: Array, key: Array, mean_step: Array, steps: ArrayLike) -> Array:
    """E s_ij √d = qᵀ (E M)^n k exactly, for any independent steps; one value for each n in `steps`. Longroute."""
    powers = [np.linalg.matrix_power(mean_step, int(n)) for n in np.atleast_1d(counts(steps, "steps"))]
    return np.array([query @ power @ key for power in powers])
