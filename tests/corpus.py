"""Where the recorded answers of Kubernetes are, if this checkout has them beside it.

A checkout alone has none: its tests must be collected all the same, and those that read recordings
be skipped with a plain message. So recordings are read inside of tests and fixtures, never while a
module is imported. `pytest --without-corpus` shows that this holds: it hides the recordings and
runs just the tests of modules that can read them.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

HIDDEN = "MOORAGE_WITHOUT_CORPUS"  # set for the programs that tests start, too
BESIDE = Path(__file__).parents[2] / "shared" / "corpus"


def corpus(*names: str) -> Path:
    """Return a file or folder of the corpus, or skip the test that asks for it."""
    path = BESIDE.joinpath(*names)
    if HIDDEN in os.environ or not path.exists():
        pytest.skip(f"no recorded answers of Kubernetes at ../shared/corpus/{'/'.join(names)}")
    return path


def readers(modules: dict[str, ModuleType]) -> set[str]:
    """Return the modules of tests that can read recordings, directly or through others."""
    tests = {name: module for name, module in modules.items() if name.startswith("tests.")}
    used = {name: set(_used_modules(module)) & tests.keys() for name, module in tests.items()}
    found = {__name__}
    while more := {name for name in used if name not in found and used[name] & found}:
        found |= more
    return found - {__name__}


def _used_modules(module: ModuleType) -> Iterator[str]:
    """Yield the modules whose functions, classes and values a module names."""
    for value in vars(module).values():
        name = value.__name__ if isinstance(value, ModuleType) else getattr(value, "__module__", "")
        if isinstance(name, str):
            yield name
