"""The theory's page: whole in itself, the same bytes each time, and plain about what doesn't hold."""

import dataclasses
import re
from pathlib import Path

import numpy as np
import pytest
from html_page import Page, assert_self_contained

from longroute.report.theory import write_theory_page
from longroute.report.theory.page import number_text
from longroute.theory import Statement


@pytest.fixture(scope="module")
def html(statements: list[Statement], tmp_path_factory: pytest.TempPathFactory) -> str:
    return write_theory_page(statements, tmp_path_factory.mktemp("theory"), seed=0).read_text("utf-8")


def test_the_page_is_self_contained_with_unique_ids(html: str) -> None:
    page = assert_self_contained(html)
    ids = [attributes["id"] for _, attributes in page.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_every_statement_has_its_picture_its_mark_and_its_section(html: str, statements: list[Statement]) -> None:
    assert html.count("<svg") == len(statements)
    assert html.count("✓ holds") == len(statements)
    assert f"All {len(statements)} statements hold" in html
    sections = re.findall(r"<h2>§(\d)", html)
    assert sections == [str(n) for n in range(1, 9)]
    for statement in statements:
        assert f'<article class="statement" id="{statement.name}">' in html


def test_colours_follow_the_readers_scheme(html: str) -> None:
    drawn = " ".join(re.findall(r"<svg.*?</svg>", html, re.DOTALL))
    assert "var(--rope)" in drawn
    assert "#cf5200" not in drawn


def test_the_same_statements_give_the_same_bytes(html: str, statements: list[Statement], tmp_path: Path) -> None:
    assert write_theory_page(statements, tmp_path, seed=0).read_text("utf-8") == html
    assert str(tmp_path) not in html


def test_what_does_not_hold_is_named_first(statements: list[Statement], tmp_path: Path) -> None:
    tail = next(one for one in statements if one.name == "levy-tail")
    values = {f.name: getattr(tail, f.name) for f in dataclasses.fields(tail) if f.init}
    broken = Statement(**{**values, "bound": 0.1})
    text = Page(write_theory_page([statements[0], broken], tmp_path, seed=0).read_text("utf-8")).text
    assert "1 of 2 statements hold; not so: levy-tail." in text
    assert "✗ doesn't hold" in text


def test_numbers_that_are_not_finite_leave_a_gap(statements: list[Statement], tmp_path: Path) -> None:
    base = {"section": "§3", "source": "test", "assumptions": "none"}
    sweep = {"sweep": "t", "t": [0.0, 0.1]}
    for bound in (np.nan, [np.inf, 1.0], [np.nan, np.nan]):
        row = Statement("levy-tail", **base, parameters=sweep, bound=bound, exact=[1.0, 0.5])
        html = write_theory_page([row], tmp_path, seed=0).read_text("utf-8")
        assert "✗ doesn't hold" in Page(html).text
        assert "nan" not in Page(html).text.lower()


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0"),
        (0.031234, "0.0312"),
        (1284.6, "1,285"),
        (65_536.0, "65,536"),
        (2.913e8, "2.9·10⁸"),
        (1.24e-5, "1.2·10⁻⁵"),
        (-0.25, "-0.25"),
        (1e-17, "0"),
    ],
)
def test_numbers_are_short(value: float, text: str) -> None:
    assert number_text(value) == text
