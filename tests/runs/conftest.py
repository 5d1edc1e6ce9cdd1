"""A cache of its own for every session, and the comparisons that several tests look at."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import tiny_comparison as tiny

from longroute.cli.main import main


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Tokenizers and shards of this session."""
    before = os.environ.get("LONGROUTE_CACHE")
    folder = tmp_path_factory.mktemp("cache")
    os.environ["LONGROUTE_CACHE"] = str(folder)
    yield folder
    del os.environ["LONGROUTE_CACHE"]
    if before is not None:
        os.environ["LONGROUTE_CACHE"] = before


@pytest.fixture(scope="session")
def smoke(tmp_path_factory: pytest.TempPathFactory) -> tiny.Finished:
    """The smoke preset as a user calls it, on the embedded books, with two of its encodings."""
    folder = tmp_path_factory.mktemp("smoke")
    program = Path(sys.executable).with_name("longroute")
    command = [str(program), "compare", "--preset", "smoke", "--out", "report", "--encodings", *tiny.SMOKE_ENCODINGS]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    return tiny.Finished(folder / "report", done.returncode, done.stdout, done.stderr)


@pytest.fixture(scope="session")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tiny.Finished:
    """The tiny comparison with enough steps that a kill falls among them."""
    folder = tmp_path_factory.mktemp("undisturbed")
    out = folder / "somewhere" / "else"
    return tiny.Finished(out, main(tiny.arguments(out, folder, steps=500)), "", "")
