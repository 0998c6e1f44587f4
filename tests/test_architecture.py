"""ARCHITECTURE.md states facts about packages and imports; these tests check them."""

from __future__ import annotations

import ast
import re
import subprocess
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "moorage"
ARCHITECTURE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")

_IMPORT = re.compile(r"^[ \t]*(?:from|import) ([\w.]+)", re.MULTILINE)
_NAMES = re.compile(r"`([\w.]+)`")


@cache
def drawn_packages() -> dict[str, str]:
    """Return the packages in the drawing, each with its line."""
    drawing = ARCHITECTURE.partition("\n## Packages\n")[2].split("```")[1]
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
    """Return the sentence of the page about a contract, to the end of its entry."""
    found = re.search(rf"^- \*{re.escape(name)}\*: (.*?)(?=^- |^## )", ARCHITECTURE, re.M | re.S)
    assert found, name
    return " ".join(found[1].split())


@cache
def imports() -> dict[str, frozenset[str]]:
    """Return what each module imports, by its name without `moorage.`."""
    found = {}
    for path in PACKAGE.rglob("*.py"):
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        found[module] = frozenset(_IMPORT.findall(path.read_text(encoding="utf-8")))
    return found


def packages_imported_by(package: str) -> set[str]:
    names = set[str]().union(
        *(names for module, names in imports().items() if _is_in(module, package))
    )
    inside = {name.split(".")[1] for name in names if name.startswith("moorage.")}
    return inside - {package}


def importers_of(*packages: str) -> Iterator[str]:
    """Give the modules that import a package, or something in it."""
    for module, names in imports().items():
        if any(_is_in(name, package) for name in names for package in packages):
            yield module


def _is_in(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


# --- packages -----------------------------------------------------------------------------


def test_packages_that_are_drawn_are_those_that_exist() -> None:
    existing = {path.name for path in packages(PACKAGE) if path.parent == PACKAGE}
    assert set(drawn_packages()) == existing
    assert len(existing) == 23
    assert "of twenty-three subpackages" in ARCHITECTURE


def test_every_package_lists_its_modules() -> None:
    """The docstring of a package names each of its modules and subpackages."""
    for path in packages(PACKAGE)[1:]:
        catalogue = ast.get_docstring(ast.parse((path / "__init__.py").read_text("utf-8"))) or ""
        named = set(re.findall(r"\w+", catalogue))
        modules = {each.stem for each in path.glob("[!_]*.py") if "_pb2" not in each.name}
        modules |= {each.parent.name for each in path.glob("*/__init__.py")}
        assert modules <= named, f"{path.relative_to(PACKAGE)}: {sorted(modules - named)}"


def test_files_and_modules_that_are_named_exist() -> None:
    for name in re.findall(r"`([\w./]+)`", ARCHITECTURE):
        if "/" in name and not name.startswith("http"):
            inside = ROOT / name if (ROOT / name).exists() else PACKAGE / name
            assert inside.exists(), name
        elif name.startswith("moorage."):
            path = ROOT / "src" / Path(*name.split("."))
            assert path.is_dir() or path.with_suffix(".py").exists(), name


def test_folders_beside_the_package_are_named() -> None:
    tracked = subprocess.run(
        ["git", "ls-files"], cwd=ROOT, capture_output=True, encoding="utf-8", check=False
    )
    if tracked.returncode:
        pytest.skip("not a git checkout: cannot tell which folders belong to the repository")
    folders = {line.split("/")[0] for line in tracked.stdout.splitlines() if "/" in line}
    visible = {folder for folder in folders if not folder.startswith(".")}
    assert [name for name in visible - {"src"} if f"| `{name}/` |" not in ARCHITECTURE] == []


# --- imports ------------------------------------------------------------------------------


def test_every_contract_is_stated() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    for each in project["tool"]["importlinter"]["contracts"]:
        assert statement(each["name"])


def test_the_order_of_packages_is_that_of_the_contract() -> None:
    name = "Lower packages never import upper ones"
    layers = " | ".join(contract(name)["layers"]).split(" | ")
    stated = _NAMES.findall(statement(name).partition("the order is")[2])
    assert stated == layers
    assert set(stated) == set(drawn_packages())


def test_packages_import_what_the_page_says_and_nothing_else() -> None:
    stated = re.findall(r"`(\w+)` imports ((?:`\w+`(?:, | and )?)+) only", ARCHITECTURE)
    assert len(stated) == 6
    for package, names in stated:
        assert packages_imported_by(package) == set(_NAMES.findall(names)), package


def test_grpc_is_imported_where_the_page_says() -> None:
    stated = _NAMES.findall(statement("gRPC is used where it is spoken"))
    importers = set(importers_of("grpc", "google"))
    assert [
        module for module in importers if not any(_is_in(module, package) for package in stated)
    ] == []
    assert [each for each in stated if not any(_is_in(module, each) for module in importers)] == []


def test_click_is_imported_where_the_page_says() -> None:
    (stated,) = _NAMES.findall(statement("Only the command line uses the terminal"))
    assert {module.split(".")[0] for module in importers_of("click")} == {stated}


def test_pure_packages_are_those_of_the_contract() -> None:
    name = "Pure packages do no I/O and read no clock"
    whole = {each for each in contract(name)["source_modules"] if each.count(".") == 1}
    stated = set(_NAMES.findall(statement(name).partition(", and the parts")[0]))
    assert {f"moorage.{each}" for each in stated} == whole
    assert {package for package, line in drawn_packages().items() if "(pure)" in line} == stated
