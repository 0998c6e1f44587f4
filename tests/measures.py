"""Measures of the code base: `python3 dev.py check` prints them and fails where a budget is broken.

modules, lines  what is written by hand under src/moorage, per package and in total
single use      modules of fewer than 60 lines that only one other module imports, and that stand
                alone for no reason listed in REASONS
shared names    public class names that several modules or packages define

A budget is a ceiling. Whoever makes a figure smaller lowers its budget in the same commit; a
feature that needs room raises the line of its package, and the commit says why. No budget is
ever taken out.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parent.parent
SOURCES = ROOT / "src"

MODULE_LINES_MAX = 700
FUNCTION_LINES_MAX = 60
SMALL_MODULE_LINES = 60


class Size(NamedTuple):
    """How large a part of the sources may be."""

    lines: int
    modules: int


TOTAL = Size(225_574, 1_134)
PACKAGES = {
    "": Size(115, 1),
    "__main__": Size(6, 1),
    "allocator": Size(6_646, 30),
    "api": Size(17_905, 107),
    "apiserver": Size(29_376, 145),
    "cel": Size(14_626, 57),
    "claims": Size(3_264, 15),
    "cli": Size(11_962, 66),
    "client": Size(4_496, 23),
    "cluster": Size(4_912, 28),
    "controllers": Size(9_364, 41),
    "driver": Size(3_933, 17),
    "drivers": Size(2_425, 13),
    "hardware": Size(2_682, 18),
    "insight": Size(37_090, 186),
    "kit": Size(3_066, 27),
    "library": Size(2_459, 11),
    "node": Size(17_555, 78),
    "scheduler": Size(13_688, 68),
    "sources": Size(1_620, 13),
    "store": Size(3_953, 21),
    "testing": Size(2_833, 15),
    "validation": Size(25_768, 113),
    "web": Size(5_547, 37),
    "wire": Size(283, 3),
}

# Modules that stand alone although they are small and one module imports them.
REASONS: dict[str, str] = {
    "moorage.cli.__main__": "the program that the installed scripts start",
    "moorage.sources.large_files": "inputs would be too long with it",
    "moorage.apiserver.http.extensions": "what the server knows of packages above it",
    "moorage.insight.reports.github": "one module per format of reports",
    "moorage.scheduler.plugins.image_locality": "one module per plugin of Kubernetes",
    "moorage.web.asking": "the only threads of the page",
}


class Module(NamedTuple):
    """A module of the product, read once."""

    name: str
    path: Path
    lines: int
    tree: ast.Module

    @property
    def package(self) -> str:
        """The package under `moorage` that the module belongs to."""
        return self.name.split(".")[1] if "." in self.name else ""


class Measure(NamedTuple):
    """A figure, its budget, and what goes beyond it."""

    title: str
    figure: int
    budget: int
    offenders: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        """Whether the figure is within its budget."""
        return self.figure <= self.budget


def read_modules(sources: Path = SOURCES) -> list[Module]:
    """Return all modules below a folder but those that protoc wrote."""
    paths = (path for path in sorted(sources.rglob("*.py")) if not path.name.endswith("_pb2.py"))
    return [_read(path, sources) for path in paths]


def _read(path: Path, sources: Path) -> Module:
    parts = list(path.relative_to(sources).with_suffix("").parts)
    if parts[-1] == "__init__":
        parts.pop()
    text = path.read_text(encoding="utf-8")
    return Module(".".join(parts), path, text.count("\n"), ast.parse(text))


def importers(modules: list[Module]) -> dict[str, set[str]]:
    """Return for every module those that import it, in any function."""
    names = {module.name for module in modules}
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for imported in _imports(module.tree, names):
            if imported != module.name:
                found[imported].add(module.name)
    return found


def _imports(tree: ast.Module, names: set[str]) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            for alias in node.names:
                inner = f"{node.module}.{alias.name}"
                yield inner if inner in names else node.module
        elif isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)


def single_use(modules: list[Module]) -> tuple[str, ...]:
    """Return the small modules with one importer that have no reason to stand alone."""
    users = importers(modules)
    return tuple(
        module.name
        for module in modules
        if module.lines < SMALL_MODULE_LINES
        and module.path.name != "__init__.py"
        and len(users[module.name]) == 1
        and module.name not in REASONS
    )


def long_modules(modules: list[Module]) -> tuple[str, ...]:
    """Return the modules that are too long to read in one go."""
    return tuple(f"{m.name} ({m.lines})" for m in modules if m.lines > MODULE_LINES_MAX)


def long_functions(modules: list[Module]) -> tuple[str, ...]:
    """Return the functions that are too long."""
    return tuple(
        f"{module.name}.{node.name} ({_length(node)})"
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and _length(node) > FUNCTION_LINES_MAX
    )


def _length(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def class_names(modules: list[Module], *, by_package: bool) -> dict[str, list[str]]:
    """Return public class names with the modules (or packages) that define them."""
    found: dict[str, set[str]] = defaultdict(set)
    for module in modules:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(module.package if by_package else module.name)
    return {name: sorted(places) for name, places in found.items()}


def _shared(modules: list[Module], *, by_package: bool) -> tuple[str, ...]:
    names = class_names(modules, by_package=by_package)
    return tuple(f"{n}: {', '.join(where)}" for n, where in sorted(names.items()) if len(where) > 2)


def measures(root: Path = ROOT) -> list[Measure]:
    """Return all measures of a checkout."""
    modules = read_modules(root / "src")
    words = len((root / "ARCHITECTURE.md").read_text(encoding="utf-8").split())
    small, long, functions = single_use(modules), long_modules(modules), long_functions(modules)
    in_modules = _shared(modules, by_package=False)
    in_packages = _shared(modules, by_package=True)
    return [
        *_sizes(modules),
        Measure(f"modules over {MODULE_LINES_MAX} lines", len(long), 0, long),
        Measure(f"functions over {FUNCTION_LINES_MAX} lines", len(functions), 0, functions),
        Measure("small modules with one importer", len(small), 0, small),
        Measure("class names in more than two modules", len(in_modules), 40, in_modules),
        Measure("class names in more than two packages", len(in_packages), 0, in_packages),
        Measure("words in ARCHITECTURE.md", words, 1500),
        Measure("files of a gated Device field", _steps(root, "Add a Device field"), 12),
        Measure("files of a scheduler filter", _steps(root, "Add a scheduler filter"), 3),
    ]


def _sizes(modules: list[Module]) -> Iterator[Measure]:
    yield Measure("lines in src", sum(module.lines for module in modules), TOTAL.lines)
    yield Measure("modules in src", len(modules), TOTAL.modules)
    for package in sorted({module.package for module in modules}):
        within = [module for module in modules if module.package == package]
        name, budget = package or "moorage itself", PACKAGES.get(package, Size(0, 0))
        yield Measure(f"lines in {name}", sum(module.lines for module in within), budget.lines)
        yield Measure(f"modules in {name}", len(within), budget.modules)


def _steps(root: Path, title: str) -> int:
    """Return the number of files in a change recipe, which tests/test_recipes.py follows."""
    page = (root / "docs" / "contributing" / "recipes.md").read_text(encoding="utf-8")
    recipe = page.partition(f"\n## {title}")[2].partition("\n## ")[0]
    return len(re.findall(r"^\d+\. ", recipe, re.MULTILINE))


def main() -> int:
    """Print the measures; return 1 where a budget is broken."""
    found = measures()
    for measure in found:
        mark = " " if measure.is_kept else "!"
        print(f"{mark} {measure.title:<42}{measure.figure:>9,} of {measure.budget:,}")
        if not measure.is_kept:
            print("".join(f"    {offender}\n" for offender in measure.offenders), end="")
    return 0 if all(measure.is_kept for measure in found) else 1


if __name__ == "__main__":
    sys.exit(main())
