"""A comparison's summary, read once: every table, figure and sentence takes its numbers from here."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from longroute.report.estimate import Estimate, estimate_over_seeds, finite

MEASURES = ("perplexity", "ratio", "tail_perplexity", "tail_ratio")
"""A row's four measures: over whole windows and the fixed tail, absolute and against the training length."""


@dataclass(frozen=True)
class EncodingResult:
    """What all seeds of one encoding measured together. `measures[measure][length]` is an Estimate.

    `index` is its place in the comparison's order, which names its line in every figure.
    """

    index: int
    name: str
    transport: str
    values: bool
    control: str
    seeds: int
    failed: int
    reasons: tuple[str, ...]
    parameters: int | None
    spec: Mapping[str, Any]
    measures: Mapping[str, Mapping[int, Estimate]]

    def at(self, measure: str, length: int | None) -> Estimate | None:
        """The estimate of `measure` at `length`, or None where it was not measured."""
        return None if length is None else self.measures[measure].get(length)

    def value(self, measure: str, length: int | None) -> float | None:
        """As `at`, the number alone."""
        estimate = self.at(measure, length)
        return None if estimate is None else estimate.value


@dataclass(frozen=True)
class Comparison:
    """Every encoding's result, best at the longest length first, and the lengths measured."""

    encodings: tuple[EncodingResult, ...]
    train_length: int
    lengths: tuple[int, ...]

    @property
    def longest(self) -> int | None:
        """The longest length anything was measured at, in tokens; None when nothing was."""
        return self.lengths[-1] if self.lengths else None

    @property
    def milestones(self) -> tuple[int, ...]:
        """Lengths that tables show beside the training length: 16 times it if measured, and the longest."""
        beyond = [length for length in self.lengths if length > self.train_length]
        shown = {length for length in beyond if length == 16 * self.train_length} | set(beyond[-1:])
        return tuple(sorted(shown))

    @property
    def measured(self) -> tuple[EncodingResult, ...]:
        """The encodings that have at least one seed that ended well."""
        return tuple(encoding for encoding in self.encodings if encoding.seeds)

    def find(self, name: str) -> EncodingResult | None:
        """The measured encoding of this name, if there is one."""
        return next((encoding for encoding in self.measured if encoding.name == name), None)


def read_comparison(summary: Mapping[str, Any]) -> Comparison:
    """Group rows by encoding, average over seeds, order by tail perplexity at the longest length."""
    rows = list(summary.get("rows") or ())
    grouped: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        grouped.setdefault(str(row["encoding"]), []).append(row)
    results = [_result(name, group) for name, group in grouped.items()]
    lengths = tuple(sorted({n for one in results for measure in one.measures.values() for n in measure}))
    common = Counter(int(row["train_length"]) for row in rows if row.get("train_length")).most_common(1)
    train_length = common[0][0] if common else (lengths[0] if lengths else 0)
    results.sort(key=lambda one: _rank(one, lengths))
    numbered = tuple(replace(one, index=index) for index, one in enumerate(results))
    return Comparison(numbered, train_length, lengths)


def _result(name: str, rows: list[Mapping[str, Any]]) -> EncodingResult:
    """All seeds of one encoding; what is the same in every row is taken from the first."""
    first, well = rows[0], [row for row in rows if row.get("status") == "ok"]
    failed = [row for row in rows if row.get("status") != "ok"]
    parameters = finite(first.get("parameters"))
    return EncodingResult(
        index=0,
        name=name,
        transport=str(first.get("transport") or "none"),
        values=bool(first.get("values")),
        control=str(first.get("control") or "none"),
        seeds=len(well),
        failed=len(failed),
        reasons=tuple(str(row.get("reason") or "no reason given") for row in failed),
        parameters=None if parameters is None else int(parameters),
        spec=first.get("spec") or {},
        measures={measure: _over_seeds(well, measure) for measure in MEASURES},
    )


def _rank(result: EncodingResult, lengths: tuple[int, ...]) -> tuple[bool, float, str]:
    """Sort key: lowest tail perplexity at the longest length first, the unmeasured last, names break ties."""
    last = result.value("tail_perplexity", lengths[-1] if lengths else None)
    return (last is None, last or 0.0, result.name)


def _over_seeds(rows: Iterable[Mapping[str, Any]], measure: str) -> dict[int, Estimate]:
    """One measure at each length over the seeds that have it, in increasing length."""
    seen: dict[int, list[Estimate]] = {}
    for row in rows:
        intervals = ((row.get("interval") or {}).get(measure)) or {}
        for length, number in (row.get(measure) or {}).items():
            value = finite(number)
            if value is not None:
                seen.setdefault(int(length), []).append(_of_one_seed(value, intervals.get(length)))
    estimates = {length: estimate_over_seeds(seen[length]) for length in sorted(seen)}
    return {length: estimate for length, estimate in estimates.items() if estimate is not None}


def _of_one_seed(value: float, interval: Any) -> Estimate:
    """One seed's number with its bootstrap interval over held-out spans, where the summary has one."""
    low, high = (finite(edge) for edge in interval) if interval else (None, None)
    if low is None or high is None:
        return Estimate(value)
    return Estimate(value, low, high, "spans")
