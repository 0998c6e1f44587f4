"""What ARCHITECTURE.md says of rooms and imports is so."""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "mooring"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NUMBERS = ("Eighteen", "Nineteen", "Twenty", "Twenty-one", "Twenty-two", "Twenty-three")
FIRST_NUMBER = 18

_IMPORT = re.compile(r"^[ \t]*(?:from|import) ([\w.]+)", re.MULTILINE)
_NAMES = re.compile(r"`([\w.]+)`")


@cache
def rooms() -> dict[str, str]:
    """Return the rooms that are drawn, each with its line."""
    drawing = ARCHITECTURE.partition("\n## The house\n")[2].split("```")[1]
    return dict(re.findall(r"^([a-z]+)/ +(.*)$", drawing, re.MULTILINE))


def packages(folder: Path) -> list[Path]:
    return sorted(marker.parent for marker in folder.rglob("__init__.py"))


def contract(name: str) -> dict[str, Any]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (found,) = (
        each for each in project["tool"]["importlinter"]["contracts"] if each["name"] == name
    )
    return dict(found)


def statement(name: str) -> str:
    """Return what the page says of a contract, to the end of its entry."""
    found = re.search(rf"^- \*{re.escape(name)}\*: (.*?)(?=^- |^## )", ARCHITECTURE, re.M | re.S)
    assert found, name
    return " ".join(found[1].split())


@cache
def imports() -> dict[str, frozenset[str]]:
    """Return what each module imports, by its name without `mooring.`."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[module] = frozenset(_IMPORT.findall(path.read_text(encoding="utf-8")))
    return found


def rooms_imported_by(room: str) -> set[str]:
    names = set[str]().union(
        *(names for module, names in imports().items() if _is_in(module, room))
    )
    inside = {name.split(".")[1] for name in names if name.startswith("mooring.")}
    return inside - {room}


def importers_of(*packages: str) -> Iterator[str]:
    """Give the modules that import a package, or something in it."""
    for module, names in imports().items():
        if any(_is_in(name, package) for name in names for package in packages):
            yield module


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


# --- rooms --------------------------------------------------------------------------------


def test_rooms_that_are_drawn_are_those_that_exist() -> None:
    existing = {path.name for path in packages(PACKAGE) if path.parent == PACKAGE}
    assert set(rooms()) == existing
    assert f"{NUMBERS[len(existing) - FIRST_NUMBER]} rooms stand:" in ARCHITECTURE


def test_every_package_of_a_room_is_named() -> None:
    for room in rooms():
        for path in packages(PACKAGE / room):
            inside = path.relative_to(PACKAGE)
            names = (f"src/mooring/{inside.as_posix()}/", f"mooring.{'.'.join(inside.parts)}")
            assert any(name in ARCHITECTURE for name in names), path


def test_files_and_modules_that_are_named_exist() -> None:
    for name in re.findall(r"`([\w./]+)`", ARCHITECTURE):
        if "/" in name and not name.startswith("http"):
            inside = ROOT / name if (ROOT / name).exists() else PACKAGE / name
            assert inside.exists(), name
        elif name.startswith("mooring."):
            path = ROOT / "src" / Path(*name.split("."))
            assert path.is_dir() or path.with_suffix(".py").exists(), name


def test_folders_beside_the_house_are_named() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout: cannot tell which folders belong to the repository")
    folders = {line.split("/")[0] for line in tracked.stdout.splitlines() if "/" in line}
    visible = {folder for folder in folders if not folder.startswith(".")}
    assert [name for name in visible - {"src"} if f"| `{name}/` |" not in ARCHITECTURE] == []


# --- imports ------------------------------------------------------------------------------


def test_every_contract_is_told() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for each in project["tool"]["importlinter"]["contracts"]:
        assert statement(each["name"])


def test_the_order_of_rooms_is_that_of_the_contract() -> None:
    name = "Lower rooms never import upper ones"
    layers = " | ".join(contract(name)["layers"]).split(" | ")
    told = _NAMES.findall(statement(name).partition("the order is")[2])
    assert told == layers
    assert set(told) == set(rooms())


def test_rooms_import_what_the_page_says_and_nothing_else() -> None:
    told = re.findall(r"`(\w+)` imports ((?:`\w+`(?:, | and )?)+) only", ARCHITECTURE)
    assert len(told) == 6
    for room, names in told:
        assert rooms_imported_by(room) == set(_NAMES.findall(names)), room


def test_grpc_is_imported_where_the_page_says() -> None:
    told = _NAMES.findall(statement("gRPC stays with what speaks it"))
    importers = set(importers_of("grpc", "google"))
    assert [module for module in importers if not any(_is_in(module, room) for room in told)] == []
    assert [room for room in told if not any(_is_in(module, room) for module in importers)] == []


def test_click_is_imported_where_the_page_says() -> None:
    (told,) = _NAMES.findall(statement("The terminal is the command line's business"))
    assert {module.split(".")[0] for module in importers_of("click")} == {told}


def test_pure_rooms_are_those_of_the_contract() -> None:
    name = "Pure rooms do no I/O and read no clock"
    whole, _, rest = statement(name).partition(" import nothing ")
    waiting, *parts = rest.split(" - of ")
    told = _NAMES.findall(whole)
    for part in parts:
        room, *names = _NAMES.findall(part)
        told += [f"{room}.{each}" for each in names]
    assert sorted(f"mooring.{each}" for each in told) == contract(name)["source_modules"]
    ignored = [each.split(" -> ")[0] for each in contract(name)["ignore_imports"]]
    assert [f"mooring.{each}" for each in _NAMES.findall(waiting)] == ignored


def test_pure_rooms_are_drawn_as_pure() -> None:
    whole = statement("Pure rooms do no I/O and read no clock").partition(" import nothing ")[0]
    assert {room for room, line in rooms().items() if "(pure)" in line} == set(
        _NAMES.findall(whole)
    )
