"""One written report of the first trial, shared by tests that only read it."""

from pathlib import Path

import planted_reports as planted
import pytest

from longroute.report import write_report


@pytest.fixture(scope="session")
def trial_report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of DESIGN's first trial, with its figures and tables beside it."""
    rows = planted.trial()
    folder = tmp_path_factory.mktemp("trial")
    return write_report(planted.summary(*rows), planted.training_records(*rows), folder)
