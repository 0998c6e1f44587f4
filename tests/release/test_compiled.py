"""The wheel with compiled modules: what is refused, and that it does what the sources do."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path
from typing import Any

import pytest

from release.compiled_hook import (
    BUILD_REQUIRES,
    MODULES,
    SWITCH,
    CompiledModules,
    CompileError,
    is_wanted,
    refuse,
)
from release.lock_file import read_lock
from release.vendored import ROOT
from tests.corpus import corpus

BUILD_S_MAX = 1_800  # on a busy machine
# Tests of what is compiled, and of what reads its classes from outside.
TESTED = (
    *("tests/allocator", "tests/scheduler", "tests/insight/explain", "tests/insight/fit"),
    "tests/insight/answer/test_constraints.py",
)
RECORDED = ("rules", "upstream-table", "perf", "search-public")

# --- what is compiled --------------------------------------------------------------------------


@pytest.mark.parametrize("module", MODULES)
def test_no_module_has_what_mypyc_compiles_into_something_else(module: str) -> None:
    refuse(module, (ROOT / "src" / module).read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("class A(Struct, frozen=True):\n    a: int\n", "1: mypyc ignores the keywords of class A"),
        (
            "from abc import ABC\nclass A(ABC):\n    pass\n",
            "2: compiled classes under one ABC share its answers of isinstance",
        ),
        (
            "x = [1]\nsides = (each for each in x)\n",
            "2: a generator expression is a list, and not an iterator",
        ),
        (
            "class A:\n    @cached_property\n    def a(self) -> int:\n        return 1\n",
            "2: native classes have no __dict__ and no __weakref__: cached_property",
        ),
        (
            "class A(NamedTuple):\n    b: B | None\nclass B:\n    pass\n",
            "2: the import crashes: A is made before B",
        ),
        (
            "class A(NamedTuple):\n    b: object\n",
            "2: the import fails: object is not found as the type of a field",
        ),
    ],
)
def test_what_mypyc_compiles_into_something_else_is_refused(text: str, fault: str) -> None:
    with pytest.raises(CompileError) as caught:
        refuse("moorage/a.py", text)
    assert str(caught.value) == f"moorage/a.py:{fault}"


def test_generators_that_a_call_consumes_are_not_refused() -> None:
    refuse("a.py", "x = any(each for each in y)\nz = f(*(a for a in y))\n")


# --- when it is compiled -----------------------------------------------------------------------


def test_a_wheel_is_pure_python_unless_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    for value in (None, "", "0"):
        if value is None:
            monkeypatch.delenv(SWITCH, raising=False)
        else:
            monkeypatch.setenv(SWITCH, value)
        assert not is_wanted()
        build_data: dict[str, Any] = {"force_include": {}}
        hook = _hook()
        hook.initialize("standard", build_data)
        hook.finalize("standard", build_data, "")
        assert build_data == {"force_include": {}}
        assert hook.dependencies() == []


def test_it_is_built_with_the_mypy_of_the_tests() -> None:
    pinned = read_lock(ROOT / "requirements" / "dev.txt")
    (mypy,) = (each for each in BUILD_REQUIRES if each.startswith("mypy="))
    assert mypy == f"mypy=={pinned['mypy'].version}"
    assert all(each.partition("==")[0] in pinned for each in BUILD_REQUIRES)


def _hook() -> CompiledModules:
    return CompiledModules(str(ROOT), {}, None, None, "", "wheel")  # type: ignore[arg-type]


# --- that it does what the sources do ----------------------------------------------------------


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the wheel with compiled modules and unpack it."""
    if not _has_compiler():
        pytest.skip("no C compiler, or no headers of Python")
    folder = tmp_path_factory.mktemp("wheel")
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    environment = {**os.environ, SWITCH: "1"}
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=BUILD_S_MAX
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (wheel,) = folder.iterdir()
    assert not wheel.name.endswith("-none-any.whl")
    into = tmp_path_factory.mktemp("compiled")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(into)
    return into


def _has_compiler() -> bool:
    names = (os.environ.get("CC", ""), "cc", "gcc", "clang")
    headers = Path(sysconfig.get_path("include"), "Python.h")
    return headers.exists() and any(map(shutil.which, filter(None, names)))


def _run(unpacked: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a module of Python with the unpacked wheel instead of the sources."""
    environment = {**os.environ, "PYTHONPATH": f"{unpacked}{os.pathsep}{ROOT}"}
    return subprocess.run(
        [sys.executable, "-m", *command],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=BUILD_S_MAX,
    )


@pytest.mark.sweep
def test_it_says_that_it_is_compiled_and_has_the_sources_too(unpacked: Path) -> None:
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    for module in MODULES:
        assert (unpacked / module).exists()
        assert (unpacked / module).with_suffix(suffix).exists()
    assert _run(unpacked, "moorage.cli", "--version").stdout.endswith(" (compiled)\n")


@pytest.mark.sweep
def test_it_passes_the_tests_of_the_sources(unpacked: Path) -> None:
    done = _run(unpacked, "pytest", "-q", "-m", "not sweep", "-p", "no:cacheprovider", *TESTED)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]


@pytest.mark.sweep
@pytest.mark.parametrize("name", RECORDED)
def test_it_gives_the_recorded_answers_of_kubernetes(name: str, unpacked: Path) -> None:
    path = corpus("allocator", f"{name}.jsonl")
    done = _run(unpacked, "conformance", "allocator", str(path))
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
