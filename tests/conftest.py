"""Fixtures and settings for all tests."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator

import pytest
from hypothesis import HealthCheck, settings

from moorage.kit.bulkhead import FAULTS, Fault
from tests.corpus import HIDDEN, readers

# A test run tries the same examples each time, `--hypothesis-profile=random` others. How long it
# takes to make an example says something about the machine, and nothing about us.
settings.register_profile(
    "same",
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile("random", settings.get_profile("same"), derandomize=False)
settings.load_profile("same")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--without-corpus",
        action="store_true",
        help="run the tests that read recorded answers of Kubernetes as a checkout alone does",
    )


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--without-corpus"):
        os.environ[HIDDEN] = "1"


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.getoption("--without-corpus"):
        return
    names = readers(dict(sys.modules))
    kept = [item for item in items if _module(item) in names]
    config.hook.pytest_deselected(items=[item for item in items if _module(item) not in names])
    items[:] = kept


def pytest_collection_finish() -> None:
    # What was collected stays to the end: searching it for garbage took a sixth of the time.
    gc.collect()
    gc.freeze()


@pytest.fixture
def faults() -> list[Fault]:
    """Return what bulkheads have set aside so far; a test without this fixture expects nothing."""
    return []


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None]:
    """Fail a test in which a bulkhead hid an error that the test did not expect."""
    expected: list[Fault] | None = getattr(item, "funcargs", {}).get("faults")
    found: list[Fault] = [] if expected is None else expected
    FAULTS.observer = found.append
    try:
        yield
    finally:
        FAULTS.observer = None
    if expected is None and found:
        raise AssertionError(f"{found[0].place}: {found[0].subject}") from found[0].error


def _module(item: pytest.Item) -> str:
    return item.module.__name__ if isinstance(item, pytest.Function) else ""
