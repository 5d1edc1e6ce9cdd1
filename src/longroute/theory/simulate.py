"""Simulators of the stylised model: independent random steps, seeded, vectorised, float64.

A head of block rotations is kept as complex numbers, one a plane: x_p = x_{p,1} + i x_{p,2}. A step multiplies by
e^{iθ}, a route by e^{iΘ} with Θ the sum of its angles, and a score is Re Σ_p conj(q_p) e^{iΘ_p} k_p.
"""

import hashlib

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike, NDArray

from longroute.theory.ranges import Array, real, require


def generator(seed: int, name: str) -> Generator:
    """A stream of its own for each name, whatever is drawn before it. Raises ValueError for a negative seed."""
    digest = hashlib.sha256(name.encode()).digest()[:16]
    return np.random.default_rng(np.random.SeedSequence([seed, *np.frombuffer(digest, dtype=np.uint32).tolist()]))


def step_angles(
    rng: Generator, shape: tuple[int, ...], spread: ArrayLike, *, law: str = "normal", shared: bool = False
) -> Array:
    """Angles θ of independent steps, radians: `shape` (routes, steps, …) and then an axis of planes.

    Mean 0 and standard deviation `spread` for each plane; `law` is "normal" or "uniform". `shared`: one source x a
    step, θ_p = σ_p x, so that the planes of a step aren't independent. Raises ValueError for another law.
    """
    sigma = np.atleast_1d(real(spread))
    require(law in ("normal", "uniform"), "law normal or uniform")
    drawn = (*shape, 1) if shared else (*shape, sigma.size)
    standard = rng.standard_normal(drawn) if law == "normal" else rng.uniform(-(3**0.5), 3**0.5, drawn)
    return standard * sigma


def unit_vectors(rng: Generator, count: int, dim: int) -> Array:
    """Vectors uniform on the sphere, (count dim)."""
    drawn = rng.standard_normal((count, dim))
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def haar_orthogonal(rng: Generator, count: int, dim: int) -> Array:
    """Matrices from Haar measure on O(dim), (count dim dim): QR of a Gaussian, each column's sign set by R's diagonal.

    Without the signs the law is that of LAPACK's convention, not Haar (Mezzadri 2007).
    """
    q, r = np.linalg.qr(rng.standard_normal((count, dim, dim)))
    return q * np.sign(np.diagonal(r, axis1=1, axis2=2))[:, None, :]


def reflect(x: Array, normal: Array, beta: float = 2.0) -> Array:
    """(I - β w wᵀ) x for each row of x, with w the unit vectors `normal`; β = 2 reflects, 0 < β < 2 contracts."""
    return x - beta * normal * np.sum(normal * x, axis=-1, keepdims=True)


def reflection_matrix(normal: Array, beta: float = 2.0) -> Array:
    """I - β w wᵀ, (… dim dim), of unit vectors w, (… dim)."""
    return np.eye(normal.shape[-1]) - beta * normal[..., :, None] * normal[..., None, :]


def choose_rows(rng: Generator, rows: Array, probability: Array, count: int) -> Array:
    """`count` independent choices among `rows`, by probability."""
    return rows[rng.choice(len(rows), size=count, p=probability)]


def mean_and_stderr(samples: Array) -> tuple[Array, Array]:
    """Mean over the first axis and its standard error."""
    return samples.mean(axis=0), samples.std(axis=0, ddof=1) / len(samples) ** 0.5


def frequency_and_stderr(hits: NDArray[np.bool_]) -> tuple[Array, Array]:
    """Frequency over the first axis and its standard error (Agresti and Coull 1998: not 0 when there is no hit)."""
    count = len(hits)
    centred = (hits.sum(axis=0) + 2) / (count + 4)
    return hits.mean(axis=0), np.sqrt(centred * (1 - centred) / (count + 4))
