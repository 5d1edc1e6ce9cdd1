"""Drawn examples are the same on every machine and in every run, and no clock fails a test."""

from collections.abc import Iterator

import pytest
import torch
from hypothesis import HealthCheck, settings

settings.register_profile(
    "longroute",
    derandomize=True,
    deadline=None,
    database=None,
    max_examples=5,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
settings.load_profile("longroute")


@pytest.fixture(scope="module")
def one_thread() -> Iterator[None]:
    """One thread for tests of many tiny tensors: on a shared machine two would spend ten times as long waiting."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture
def threads_restored() -> Iterator[None]:
    """The number of threads as it was, after a test that changes it."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)
