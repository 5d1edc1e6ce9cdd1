"""§8 Contraction against incoherence: PaTH's factor I - β w wᵀ loses norm for 0 < β < 2, reflections lose phase alone.

w is a unit vector, drawn anew for each step; where nothing else is said uniform on the sphere in d = `dim` >= 2.
"""

import numpy as np
from numpy.typing import ArrayLike
from scipy.integrate import quad
from scipy.special import beta as beta_function

from longroute.theory.ranges import Array, counts, real, require


def mean_square_norm(dim: int, beta: ArrayLike, steps: ArrayLike) -> Array:
    """E‖Pk‖² / ‖k‖² = (1 - β(2-β)/d)^n exactly: 1 at β = 0 and 2, least at β = 1. Contraction. Longroute.

    Raises ValueError unless dim >= 2 and 0 <= β <= 2.
    """
    strength = _strength(dim, beta)
    return (1 - strength * (2 - strength) / dim) ** counts(steps, "steps")


def mean_alignment(dim: int, beta: ArrayLike, steps: ArrayLike) -> Array:
    """E kᵀPk / ‖k‖² = (1 - β/d)^n exactly: how much of its direction a key keeps, contraction and incoherence together.

    Over √(mean_square_norm) it is incoherence alone. Longroute. Raises ValueError unless dim >= 2 and 0 <= β <= 2.
    """
    return (1 - _strength(dim, beta) / dim) ** counts(steps, "steps")


def log_norm_rate(dim: int, beta: float) -> float:
    """E ln‖Pk‖ for each step: the rate at which a typical route loses norm (a Lyapunov exponent), nats a token.

        ½ E ln(1 - β(2-β) x),    x = (wᵀk)²/‖k‖² ~ Beta(½, (d-1)/2)

    Below ½ ln(1 - β(2-β)/d), the rate of the mean square (Jensen). Longroute. Raises ValueError unless dim >= 2 and
    0 <= β <= 2.
    """
    strength = float(_strength(dim, beta))
    loss = strength * (2 - strength)
    # With x = sin² a the Beta law's density is proportional to cos^{d-2} a, without its pole at 0.
    rate = quad(lambda a: np.log1p(-loss * np.sin(a) ** 2) * np.cos(a) ** (dim - 2), 0, np.pi / 2)[0]
    return float(rate / beta_function(0.5, (dim - 1) / 2))


def mean_reflection(moment: Array, beta: float = 2.0) -> Array:
    """E M = I - β E[w wᵀ], w of any law with second moment `moment` (dim dim, trace 1).

    A direction that is mirrored more often than not (eigenvalue of the moment above 1/β) has a *negative* eigenvalue:
    its mean score alternates in sign, and r = ‖E M‖₂ hides that. Longroute. Raises ValueError unless 0 <= β <= 2 and
    the trace is 1.
    """
    require(0 <= beta <= 2, "0 <= beta <= 2")
    require(moment.ndim == 2 and abs(np.trace(moment) - 1) < 1e-9, "a second moment of unit vectors, trace 1")
    return np.eye(len(moment)) - beta * moment


def reflection_pair_angle(cosine: ArrayLike) -> Array:
    """2 arccos|wᵀu|, radians in [0, π]: two reflections with mirrors' normals w and u rotate the plane they span.

    Textbook. Raises ValueError unless |cosine| <= 1.
    """
    c = np.abs(real(cosine))
    require(c <= 1, "|cosine| <= 1")
    return 2 * np.arccos(c)


def _strength(dim: int, beta: ArrayLike) -> Array:
    strength = real(beta)
    require(dim >= 2, "dim >= 2")
    require((strength >= 0) & (strength <= 2), "0 <= beta <= 2")
    return strength
