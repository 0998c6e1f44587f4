"""Compile the hot modules with mypyc, for a wheel that is faster on one platform.

The wheel is pure Python unless `MOORAGE_COMPILE=1` is set when it is built. Then the modules below
become extension modules beside their sources, which stay in the wheel: a Python that cannot load
them runs the sources. `python3 dev.py compile` makes such a tree in a folder, to try and to test.

mypyc compiles a subset of Python, and where it does not do what Python does, it says nothing. What
we met is refused before it is compiled; what a module needs that is refused stays interpreted.

Hatchling loads this file by its path, so it imports nothing from its neighbours.
"""

from __future__ import annotations

import argparse
import ast
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

SWITCH = "MOORAGE_COMPILE"
GROUP = "moorage"  # all in one extension, `moorage__mypyc`, so that they call each other natively
ALLOCATOR = (
    *("allocation", "answers", "bin_packing", "bounds", "feasibility"),
    *("interchangeable", "inventory", "ledger", "node_view", "pool_facts", "pool_slices", "pools"),
    *("problem", "remaining", "results", "rules/base", "rules/capacity", "rules/constraints"),
    *("rules/consumption", "search", "slots", "static_rules"),
)
SCHEDULER = (
    *("cluster", "kind_plugins", "node_ranking", "node_snapshot", "ranking_indexes"),
    *("plugins/node_resources", "signature_cache", "size_ranking", "topology_state"),
)
MODULES = (
    *(f"moorage/allocator/{name}.py" for name in ALLOCATOR),
    *(f"moorage/scheduler/{name}.py" for name in SCHEDULER),
    "moorage/kit/lru.py",
)
# What the modules and all that they import need to be understood, besides what users install.
BUILD_REQUIRES = ("mypy==2.4.1", "setuptools", "types-pyyaml")

SETTINGS = """
[mypy]
mypy_path = .
explicit_package_bases = True
namespace_packages = True
follow_imports = silent

[mypy-google.*,grpc.*]
ignore_missing_imports = True
"""


class CompileError(Exception):
    """A module cannot be compiled, or must not be."""


class CompiledModules(BuildHookInterface[Any]):
    """Adds the extension modules to a wheel, if that is wanted."""

    def dependencies(self) -> list[str]:
        """Return what building needs."""
        if not is_wanted():
            return []
        project: list[str] = self.metadata.core.dependencies
        return [*BUILD_REQUIRES, *project]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile, and add what was made to the wheel."""
        if not is_wanted() or version != "standard":
            return
        made = Path(tempfile.mkdtemp(prefix="moorage-compiled-"))
        self._made = made
        compile_into(made, Path(self.root) / "src")
        for path in extensions(made):
            build_data["force_include"][str(path)] = str(path.relative_to(made))
        build_data["pure_python"] = False
        build_data["infer_tag"] = True

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:  # noqa: ARG002
        """Remove what was made on the way."""
        made: Path | None = getattr(self, "_made", None)
        if made is not None:
            shutil.rmtree(made)


def is_wanted() -> bool:
    """Return whether the wheel is to have extension modules."""
    return os.environ.get(SWITCH, "") not in ("", "0")


def compile_into(folder: Path, source: Path) -> None:
    """Copy the package from a source folder into another, and compile its hot modules there."""
    for module in MODULES:
        refuse(module, (source / module).read_text(encoding="utf-8"))
    shutil.rmtree(folder / "moorage", ignore_errors=True)
    ignored = shutil.ignore_patterns("__pycache__", "*.so")
    shutil.copytree(source / "moorage", folder / "moorage", ignore=ignored)
    # A process of its own: mypy and setuptools read the current directory and change global state.
    with tempfile.TemporaryDirectory(prefix="moorage-compiling-") as scratch:
        command = [sys.executable, str(Path(__file__).resolve()), "--in-place", scratch]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode:
        raise CompileError(f"mypyc failed:\n{done.stdout[-4000:]}{done.stderr[-4000:]}")


def extensions(folder: Path) -> list[Path]:
    """Return the extension modules in a folder."""
    suffix = sysconfig.get_config_var("EXT_SUFFIX")
    return sorted(path for path in folder.rglob("*") if path.name.endswith(suffix))


def refuse(name: str, text: str) -> None:
    """Raise CompileError if a module has what mypyc compiles into something else."""
    for line, why in sorted(_faults(ast.parse(text))):
        raise CompileError(f"{name}:{line}: {why}")


def _faults(tree: ast.Module) -> Iterator[tuple[int, str]]:
    # A call that gets a list instead of an iterator does the same, as far as we have such calls.
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    arguments = {
        id(argument.value if isinstance(argument, ast.Starred) else argument)
        for call in calls
        for argument in call.args
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef) and node.keywords:
            yield node.lineno, f"mypyc ignores the keywords of class {node.name}"
        elif isinstance(node, ast.ClassDef) and "NamedTuple" in map(ast.unparse, node.bases):
            yield from _unready(node, tree)
        elif isinstance(node, ast.Name) and node.id == "ABC":
            yield node.lineno, "compiled classes under one ABC share its answers of isinstance"
        elif isinstance(node, ast.GeneratorExp) and id(node) not in arguments:
            yield node.lineno, "a generator expression is a list, and not an iterator"
        elif isinstance(node, ast.Name) and node.id in ("cached_property", "WeakValueDictionary"):
            yield node.lineno, f"native classes have no __dict__ and no __weakref__: {node.id}"


def _unready(named: ast.ClassDef, tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield annotations that mypyc looks up when the class is made, and does not find then."""
    later = {c.name for c in tree.body if isinstance(c, ast.ClassDef) and c.lineno > named.lineno}
    for field in named.body:
        if not isinstance(field, ast.AnnAssign):
            continue
        used = {node.id for node in ast.walk(field.annotation) if isinstance(node, ast.Name)}
        for name in sorted(used & later):
            yield field.lineno, f"the import crashes: {named.name} is made before {name}"
        if ast.unparse(field.annotation) == "object":
            yield field.lineno, "the import fails: object is not found as the type of a field"


def _compile_here(scratch: Path) -> None:
    """Compile the modules in the current directory; each extension is put beside its source."""
    from mypyc.build import mypycify
    from setuptools import setup  # type: ignore[import-untyped]

    settings = scratch / "mypy.ini"
    settings.write_text(SETTINGS, encoding="utf-8")
    options = ["--config-file", str(settings), "--cache-dir", str(scratch / "cache")]
    # Assertions of ours stay; debugging information goes, which would name folders.
    made = mypycify(
        [*options, *MODULES],
        opt_level="3",
        debug_level="0",
        group_name=GROUP,
        target_dir=str(scratch / "c"),
    )
    jobs = str(os.cpu_count() or 1)
    arguments = ["build_ext", "--build-lib", ".", "--build-temp", str(scratch / "o"), "-j", jobs]
    setup(name=GROUP, ext_modules=made, script_args=["--quiet", *arguments])


def main(arguments: Sequence[str]) -> int:
    """Make a tree with compiled modules, and return an exit status."""
    parser = argparse.ArgumentParser(
        prog="dev.py compile", description=(__doc__ or "").split("\n")[0]
    )
    parser.add_argument("--output", metavar="DIR", type=Path, default=Path("compiled"))
    parser.add_argument("--in-place", metavar="SCRATCH", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.in_place is not None:
        _compile_here(options.in_place)
        return 0
    output: Path = options.output
    output.mkdir(parents=True, exist_ok=True)
    for old in extensions(output):
        old.unlink()
    try:
        compile_into(output, Path(__file__).parents[1] / "src")
    except CompileError as error:
        print(f"compile: {error}", file=sys.stderr)
        return 1
    print(f"{len(MODULES)} modules are compiled in {output}: try them with PYTHONPATH={output}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
