"""Joins the modules of the page into one script, for pages that fetch nothing.

Each module becomes a function. The functions run in the order of their imports, and each stores an
object with its exports, which others import from:

    const modules = {};
    (() => { … modules["words.js"] = { many, age }; })();
    (() => { const { many } = modules["words.js"]; … })();

Only the forms of `import` and `export` that the page uses are supported; others are errors, which
the tests of the page would show. Import cycles are errors, too.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from typing import Final

_IMPORT: Final = re.compile(
    r"""^import\s+(?:(?P<names>[^"';]+?)\s+from\s+)?["'](?P<path>\./[^"']+)["'];?[ \t]*$""",
    re.MULTILINE,
)
_EXPORTED: Final = re.compile(
    r"^export\s+(?=(?:async\s+)?(?:function|class|const)\b)"
    r"(?P<kind>(?:async\s+)?(?:function\*?|class|const))\s+(?P<name>[\w$]+)",
    re.MULTILINE,
)
_LIST: Final = re.compile(r"(?:^|(?<=[;}\n]))export\s*\{(?P<names>[^}]*)\};?")
_DEFAULT: Final = re.compile(r"(?:^|(?<=[;}\n]))export\s+default\s+")
_LEFT: Final = re.compile(r"^(?:import|export)\b[^\n]{0,80}", re.MULTILINE)


class BundleError(ValueError):
    """A module that cannot be bundled."""


def bundled(modules: Mapping[str, str], entry: str) -> str:
    """Return one script that runs a module and everything that it imports."""
    parts = ['"use strict";\nconst modules = {};\n']
    parts += (_scope(name, modules[name]) for name in _in_order(modules, entry))
    return "".join(parts)


def _in_order(modules: Mapping[str, str], entry: str) -> Iterator[str]:
    """Yield the modules, each after those that it imports."""
    done: set[str] = set()

    def visit(name: str, above: tuple[str, ...]) -> Iterator[str]:
        if name in above:
            raise BundleError(f"modules import each other: {' → '.join((*above, name))}")
        if name in done:
            return
        done.add(name)
        if name not in modules:
            raise BundleError(
                f"{above[-1] if above else 'the page'} imports {name}, which is not there"
            )
        for found in _IMPORT.finditer(modules[name]):
            yield from visit(_path(name, found["path"]), (*above, name))
        yield name

    yield from visit(entry, ())


def _scope(name: str, text: str) -> str:
    exports: list[str] = []

    def exported(found: re.Match[str]) -> str:
        exports.append(found["name"])
        return f"{found['kind']} {found['name']}"

    def listed(found: re.Match[str]) -> str:
        exports.extend(
            _pair(each, reverse=True) for each in found["names"].split(",") if each.strip()
        )
        return ""

    def default(_: re.Match[str]) -> str:
        exports.append("default: defaultExport")
        return "const defaultExport = "

    text = _IMPORT.sub(lambda found: _taken(name, found), text)
    text = _DEFAULT.sub(default, _LIST.sub(listed, _EXPORTED.sub(exported, text)))
    if left := _LEFT.search(text):
        raise BundleError(f"{name}: {left[0]!r} is a form that is not known")
    return f'(() => {{\n{text}\nmodules["{name}"] = {{ {", ".join(exports)} }};\n}})();\n'


def _taken(name: str, found: re.Match[str]) -> str:
    """Return the statement that assigns the names of an import."""
    names, source = (found["names"] or "").strip(), f'modules["{_path(name, found["path"])}"]'
    if not names:
        return ""
    if names.startswith("*"):
        return f"const {names.partition(' as ')[2].strip()} = {source};"
    if not names.startswith("{"):
        return f"const {names} = {source}.default;"
    pairs = (_pair(each, reverse=False) for each in names.strip("{} \n").split(",") if each.strip())
    return f"const {{ {', '.join(pairs)} }} = {source};"


def _pair(text: str, *, reverse: bool) -> str:
    """Return `a as b` as a property: `a: b` for an import, `b: a` for an export."""
    first, _, second = (part.strip() for part in text.strip().partition(" as "))
    if not second:
        return first
    return f"{second}: {first}" if reverse else f"{first}: {second}"


def _path(importer: str, path: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(importer), path))
