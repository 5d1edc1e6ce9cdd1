"""A statement of the theory beside its evidence: a quantity's bound, its exact value, its simulation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

Values: TypeAlias = ArrayLike | None
"""A number, or one for each point of a sweep; kept as plain floats and lists."""
Side: TypeAlias = Literal["upper", "lower"]

FALSE_ALARM = 1e-4
"""Probability, at most, that a true statement is refused by the chance of its simulation."""
ROUNDING = 1e-9
"""What float64 may lose in a closed form, relative to the largest value."""
DIGITS = 12
"""Significant digits that are kept: what differs beyond them differs between machines."""


@dataclass(frozen=True)
class Statement:
    """One statement. `bound`, `exact`, `simulated` and `stderr` are a number, a list along the sweep, or None.

    `parameters` holds what was fixed and swept. Four keys are read by the rule: `sweep` names the swept parameter,
    `side` says whether the bound is "upper" (the default) or "lower", `meets` lists the places of the sweep where the
    bound is attained, `within` how nearly, as a share of the bound (default: rounding). `holds` is computed:

        |simulated - exact| <= z stderr,    simulated and exact on their side of the bound (within z stderr),
        |exact - bound| <= within |bound| at every place in `meets`,

    with z such that all points of a true statement pass with probability >= 1 - FALSE_ALARM (Bonferroni). A statement
    with nothing to compare, or with a value that isn't finite, doesn't hold. Raises ValueError if lengths differ.
    """

    name: str
    section: str
    source: str
    assumptions: str
    parameters: Mapping[str, Any]
    bound: Values = None
    exact: Values = None
    simulated: Values = None
    stderr: Values = None
    holds: bool = field(init=False)

    def __post_init__(self) -> None:
        for name in ("bound", "exact", "simulated", "stderr"):
            values = plain(getattr(self, name))
            broken = values is None and getattr(self, name) is not None
            object.__setattr__(self, name, [None] if broken else values)
        object.__setattr__(self, "parameters", {key: plain(value) for key, value in self.parameters.items()})
        object.__setattr__(self, "holds", judge(self))

    @property
    def sweep(self) -> tuple[str, list[Any]] | None:
        """The swept parameter's name and values, or None for a single number."""
        name = self.parameters.get("sweep")
        return None if name is None else (name, self.parameters[name])


def plain(value: Any) -> Any:
    """JSON data of numbers and arrays, at DIGITS significant digits; None for what isn't finite."""
    if isinstance(value, np.ndarray | np.generic):
        value = value.tolist()
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if np.isfinite(value) else None
    return value


def judge(statement: Statement) -> bool:
    """The one rule, stated at Statement."""
    columns = (statement.bound, statement.exact, statement.simulated, statement.stderr)
    bound, exact, simulated, stderr = (_column(values, statement) for values in columns)
    given = [values for values in (bound, exact, simulated) if values is not None]
    if len(given) < 2 or (simulated is not None and stderr is None):
        return False
    if not all(np.all(np.isfinite(values)) for values in (*given, stderr) if values is not None):
        return False
    rounding = ROUNDING * max(float(np.max(np.abs(values))) for values in given)
    slack = rounding + (0.0 if simulated is None or stderr is None else deviations(simulated.size) * stderr)
    checks = [
        simulated is None or exact is None or np.all(np.abs(simulated - exact) <= slack),
        _on_side(bound, simulated, slack, statement),
        _on_side(bound, exact, rounding, statement),
        _meets(bound, exact, rounding, statement),
    ]
    return all(bool(check) for check in checks)


def deviations(points: int) -> float:
    """z: standard errors within which `points` normal errors all lie with probability >= 1 - FALSE_ALARM."""
    return float(norm.isf(FALSE_ALARM / (2 * points)))


def _column(values: Values, statement: Statement) -> np.ndarray | None:
    if values is None:
        return None
    column = np.atleast_1d(np.asarray(values, dtype=np.float64))
    points = 1 if statement.sweep is None else len(statement.sweep[1])
    if column.shape not in ((1,), (points,)):
        raise ValueError(f"{statement.name}: {column.shape} values for a sweep of {points}")
    return np.broadcast_to(column, (points,))


def _on_side(bound: np.ndarray | None, values: np.ndarray | None, slack: ArrayLike, statement: Statement) -> bool:
    if bound is None or values is None:
        return True
    sign = {"upper": 1.0, "lower": -1.0}[statement.parameters.get("side", "upper")]
    return bool(np.all(sign * (bound - values) >= -np.asarray(slack)))


def _meets(bound: np.ndarray | None, exact: np.ndarray | None, rounding: float, statement: Statement) -> bool:
    places = statement.parameters.get("meets", [])
    if not places:
        return True
    if bound is None or exact is None:
        return False
    allowed = rounding + statement.parameters.get("within", 0.0) * np.abs(bound[places])
    return bool(np.all(np.abs(exact[places] - bound[places]) <= allowed))
