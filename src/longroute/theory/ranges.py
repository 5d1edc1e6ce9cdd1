"""What closed forms take and refuse: float64 arrays that broadcast, and ranges that are checked."""

from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array: TypeAlias = NDArray[np.float64]
ComplexArray: TypeAlias = NDArray[np.complex128]
Integers: TypeAlias = NDArray[np.int_]


def real(values: ArrayLike) -> Array:
    """The values as float64; a number becomes an array without axes, so that formulas broadcast."""
    return np.asarray(values, dtype=np.float64)


def require(valid: ArrayLike, range_text: str) -> None:
    """Raises ValueError with `range_text` unless every comparison in `valid` is true; NaN compares false."""
    if not np.all(valid):
        raise ValueError(f"needs {range_text}")


def counts(values: ArrayLike, name: str, *, least: int = 0) -> Array:
    """Whole numbers of at least `least`, as float64. Raises ValueError otherwise."""
    numbers = real(values)
    require((numbers >= least) & (np.isinf(numbers) | (numbers == np.floor(numbers))), f"whole {name} >= {least}")
    return numbers


def norms(values: ArrayLike, name: str) -> Array:
    """Finite numbers of at least 0, as float64. Raises ValueError otherwise."""
    numbers = real(values)
    require((numbers >= 0) & np.isfinite(numbers), f"finite {name} >= 0")
    return numbers
