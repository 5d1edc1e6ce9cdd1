"""The statements: all hold, say all that a record must, and depend on the seed and their own name alone."""

import dataclasses
import json

import numpy as np
import pytest

from longroute.report.theory.captions import captions, sections
from longroute.theory import Statement
from longroute.theory.evidence import EVIDENCE
from longroute.theory.simulate import generator
from longroute.theory.statement import FALSE_ALARM, deviations

FIELDS = {
    "name",
    "section",
    "source",
    "assumptions",
    "parameters",
    "bound",
    "exact",
    "simulated",
    "stderr",
    "holds",
}
QUICK = [EVIDENCE[i] for i in (0, 4, 16, 30, 41, 55)]


def test_every_statement_holds(statements: list[Statement]) -> None:
    assert [statement.name for statement in statements if not statement.holds] == []


def test_names_are_those_of_the_evidence_and_every_section_is_there(statements: list[Statement]) -> None:
    assert [one.name for one in statements] == [one.__name__.replace("_", "-") for one in EVIDENCE]
    assert sorted({one.section for one in statements}) == [f"§{n}" for n in range(1, 9)]


def test_every_statement_has_a_caption_and_every_caption_a_statement(statements: list[Statement]) -> None:
    own = {name for name in captions() if not name.startswith("text-")}
    assert own == {one.name for one in statements}
    assert list(sections()) == [f"§{n}" for n in range(1, 9)]


def test_records_are_whole_and_finite(statements: list[Statement]) -> None:
    for statement in statements:
        record = dataclasses.asdict(statement)
        assert set(record) == FIELDS
        assert json.loads(json.dumps(record, allow_nan=False)) == record


def test_a_reader_can_judge_a_record_again(statements: list[Statement]) -> None:
    for statement in statements:
        record = json.loads(json.dumps(dataclasses.asdict(statement)))
        assert Statement(**{key: value for key, value in record.items() if key != "holds"}) == statement


@pytest.mark.parametrize("evidence", QUICK, ids=lambda one: one.__name__)
def test_the_same_seed_gives_the_same_record_in_any_order(evidence, statements: list[Statement]) -> None:
    again = evidence(generator(0, evidence.__name__))
    (before,) = [one for one in statements if one.name == again.name]
    assert json.dumps(dataclasses.asdict(again)) == json.dumps(dataclasses.asdict(before))


def test_another_seed_draws_other_numbers() -> None:
    first, second = (generator(seed, "name").standard_normal(4) for seed in (0, 1))
    other = generator(0, "another").standard_normal(4)
    assert not np.any(first == second)
    assert not np.any(first == other)


def row(**values) -> Statement:
    parameters = {"sweep": "n", "n": [1, 2, 3], **values.pop("parameters", {})}
    return Statement("a", "§1", "test", "none", parameters, **values)


def test_the_rule_compares_simulation_and_exact_value_within_its_error() -> None:
    exact, stderr = [1.0, 2.0, 3.0], 0.1
    inside, outside = 0.99 * deviations(3) * stderr, 1.01 * deviations(3) * stderr
    assert row(exact=exact, simulated=np.array(exact) + inside, stderr=stderr).holds
    assert not row(exact=exact, simulated=np.array(exact) + outside, stderr=stderr).holds


@pytest.mark.parametrize(("side", "sign"), [("upper", 1.0), ("lower", -1.0)])
def test_the_rule_keeps_values_on_their_side_of_the_bound(side: str, sign: float) -> None:
    parameters = {"side": side}
    assert row(bound=sign, exact=[0.0, 0.0, sign], parameters=parameters).holds
    assert not row(bound=sign, exact=[0.0, 0.0, sign * 1.001], parameters=parameters).holds
    assert row(bound=sign, simulated=[0.0, 0.0, sign * 1.4], stderr=0.1, parameters=parameters).holds
    assert not row(bound=sign, simulated=[0.0, 0.0, sign * 1.6], stderr=0.1, parameters=parameters).holds


def test_the_rule_asks_for_bounds_to_be_met_where_it_is_said() -> None:
    values = {"bound": [1.0, 1.0, 1.0], "exact": [1.0, 0.5, 0.98]}
    assert row(**values, parameters={"meets": [0]}).holds
    assert not row(**values, parameters={"meets": [0, 1]}).holds
    assert not row(**values, parameters={"meets": [2]}).holds
    assert row(**values, parameters={"meets": [2], "within": 0.03}).holds
    assert not row(bound=1.0, simulated=[1.0, 1.0, 1.0], stderr=0.1, parameters={"meets": [0]}).holds


def test_the_rule_refuses_what_compares_nothing_or_is_no_number() -> None:
    assert not row(exact=[1.0, 2.0, 3.0]).holds
    assert not row(exact=1.0, simulated=1.0).holds
    assert not row(exact=[1.0, np.nan, 3.0], bound=4.0).holds
    assert not row(exact=1.0, bound=np.inf).holds
    assert not row(exact=1.0, bound=np.nan, simulated=1.0, stderr=0.1).holds
    assert row(exact=1.0, bound=np.nan).bound == [None]
    assert not row(exact=1.0, simulated=1.0, stderr=np.inf).holds
    with pytest.raises(ValueError, match=r"\(2,\) values for a sweep of 3"):
        row(exact=[1.0, 2.0], bound=3.0)


def test_true_statements_pass_about_as_often_as_is_said() -> None:
    assert 2 * 10 * 0.5 * FALSE_ALARM < 2e-3
    assert deviations(1) == pytest.approx(3.8906, abs=1e-3)
    assert deviations(10) > deviations(1)
