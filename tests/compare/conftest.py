"""A cache for the session, so that nothing outside the tests is read or written."""

import os
from collections.abc import Iterator

import pytest


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Tokenizers and shards of this session."""
    before = os.environ.get("LONGROUTE_CACHE")
    os.environ["LONGROUTE_CACHE"] = str(tmp_path_factory.mktemp("own-cache"))
    yield
    del os.environ["LONGROUTE_CACHE"]
    if before is not None:
        os.environ["LONGROUTE_CACHE"] = before
