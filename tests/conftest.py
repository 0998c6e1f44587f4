"""Fixtures and settings for all tests."""

from __future__ import annotations

import gc
import os
import sys

import pytest
from hypothesis import HealthCheck, settings

from tests.corpus import HIDDEN, readers

# How long it takes to make an example says something about the machine, and nothing about us.
settings.register_profile("mooring", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("mooring")


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


def _module(item: pytest.Item) -> str:
    return item.module.__name__ if isinstance(item, pytest.Function) else ""
