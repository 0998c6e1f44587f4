"""The interface is what its listing says, types included, and its examples run."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

import moorage
import moorage.library
from reference.library_page import library_page, surface

ROOT = Path(__file__).parents[2]
LISTING = Path(__file__).with_name("surface.txt")
USER = Path(__file__).with_name("user_sample.py")
EXAMPLES = sorted((ROOT / "examples" / "library").glob("*.py"))


def test_the_interface_is_what_the_listing_says() -> None:
    remedy = "a change is a decision: python -m reference.library_page > tests/library/surface.txt"
    assert surface() == LISTING.read_text(encoding="utf-8"), remedy


def test_every_name_of_the_library_is_one_of_moorage() -> None:
    own = {"__version__", "driver", "hardware", "testing"}
    assert set(moorage.__all__) - own == set(moorage.library.__all__)
    assert set(moorage.__all__) <= set(dir(moorage))
    for name in moorage.__all__:
        assert getattr(moorage, name) is not None


def test_every_name_has_a_docstring() -> None:
    for name in moorage.__all__:
        if name != "__version__":
            assert getattr(moorage, name).__doc__, name
    assert "|  |" not in library_page().replace("` |  |", "")


def test_a_driver_can_make_every_value_that_the_sdk_takes() -> None:
    """A field's type that is not public could only be imported from what may change."""
    public = {f"moorage.driver.{name}" for name in moorage.driver.__all__}
    read_only = {"ResourceClaim", "Timestamp", "Extra", "Format"}
    missing = {
        f"{line}: {word}"
        for line in surface().splitlines()
        if line.startswith("moorage.driver.") and "(" not in line and ": " in line
        for word in re.findall(r"\b[A-Z]\w+", line.partition(": ")[2])
        if f"moorage.driver.{word}" not in public and word not in read_only | {"None", "Any"}
    }
    assert missing == set()


def run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_every_example_runs(path: Path) -> None:
    done = run(sys.executable, "-W", "error", str(path))
    status = 1 if path.stem == "fix_in_ci" else 0  # not everything fits
    assert done.returncode == status, done.stderr
    assert done.stdout or done.stderr


def test_the_facade_example_has_ten_lines() -> None:
    text = (ROOT / "examples" / "library" / "explain.py").read_text(encoding="utf-8")
    lines = [line for line in text.splitlines() if line and not line.startswith('"""')]
    assert len(lines) <= 10


@pytest.fixture(scope="module")
def mypy(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Return the command of mypy, with a cache that both tests share."""
    cache = tmp_path_factory.mktemp("mypy")
    options = ("--strict", "--config-file=", "--cache-dir", str(cache))
    return (sys.executable, "-m", "mypy", *options)


def test_a_typed_user_passes_mypy(mypy: tuple[str, ...]) -> None:
    done = run(*mypy, str(USER))
    assert done.returncode == 0, done.stdout


def test_a_typed_user_passes_pyright() -> None:
    options = ("--pythonpath", sys.executable, "--project", str(LISTING.parent))
    done = run(sys.executable, "-m", "basedpyright", *options)
    assert done.returncode == 0, done.stdout


def test_type_checkers_see_through_the_lazy_imports(mypy: tuple[str, ...], tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text("import moorage\nmoorage.lod('x')\nmoorage.load(on=5).plan().pods[0].nod\n")
    done = run(*mypy, str(wrong))
    assert 'Module has no attribute "lod"' in done.stdout
    assert 'Argument "on" to "load" has incompatible type "int"' in done.stdout
    assert 'has no attribute "nod"' in done.stdout
