"""Every statement of the theory, computed once for the tests that only read them."""

import pytest

from longroute.theory import Statement
from longroute.theory.evidence import theory_statements


@pytest.fixture(scope="session")
def statements() -> list[Statement]:
    return list(theory_statements(0))
