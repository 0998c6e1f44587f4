"""Generates the page of the library's interface, and its listing, from signatures and docstrings.

`python -m reference.library_page` prints the listing in tests/library/surface.txt, which makes each
change of the interface visible and deliberate.
"""

from __future__ import annotations

import inspect
import re
import sys
import types
import typing
from collections.abc import Iterator
from enum import Enum
from importlib import import_module
from typing import Any

import moorage
from reference.markdown import MADE, page_of, table_of

_INTRODUCTION = """\
`import moorage` imports nothing else: each name is imported when it is first used. This page is the
interface: the names of `moorage`, `moorage.driver` (see [Write a
driver](../tutorial/write-a-driver.md)), `moorage.testing` (see [Test a
driver](../how-to/test-a-driver.md)) and `moorage.hardware`. All other packages are internal and may
change in every release. A name that is here keeps its meaning; later versions may add names and
optional parameters. [Moorage in a notebook](../tutorial/library.md) shows how to use it."""

_RESULTS = """\
Every class below that is a `Readable` can be read in three ways: `to_dict()` is the JSON that the
command of the same name prints with `-o json`, `str()` is text for people, and notebooks show a
table."""

# Names of `moorage.testing`, by the module that has them; its fixtures come with pytest.
TESTING = {
    "moorage.testing.plugin": ("assert_allocated", "dra_cluster", "fake_kubelet", "hardware"),
    "moorage.testing.cluster": ("Cluster", "DriverFailedError", "cluster"),
    "moorage.testing.kubelet": ("DevicesRefusedError", "FakeKubelet", "Fault"),
    "moorage.testing.machine": ("FakeMachine",),
}
_SIMPLE = (str, int, float, bool, tuple, type(None))
_HIDDEN = {"driver", "hardware", "testing"}
_HOOKS = {"instead_of"}  # of our own checks of values


def library_page() -> str:
    """Return the page of the names of `moorage`, and of the packages that are frozen with it."""
    sections = ["# The Python library", MADE, _INTRODUCTION]
    functions = [name for name in _names() if inspect.isfunction(getattr(moorage, name))]
    errors = [name for name in _names() if _is_error(getattr(moorage, name))]
    classes = [name for name in _names() if name not in (*functions, *errors)]
    sections.append("## Functions")
    for name in functions:
        sections += _function_section(name, getattr(moorage, name))
    sections += ["## Results and values", _RESULTS]
    for name in classes:
        sections += _class_section(name, getattr(moorage, name))
    sections.append("## Errors and warnings")
    rows = ((f"`{name}`", _first_paragraph(getattr(moorage, name))) for name in errors)
    sections.append(table_of(("name", "meaning"), rows))
    for package, names in _packages():
        sections.append(f"## {package}")
        rows = ((f"`{name}`", _meaning(value)) for name, value in names.items())
        sections.append(table_of(("name", "meaning"), rows))
        for name, value in names.items():
            if isinstance(value, type) and not _is_error(value):
                sections += _class_section(f"{package}.{name}", value)
            elif inspect.isfunction(value):
                sections += _function_section(name, value, package)
    return page_of(sections)


def surface() -> str:
    """Return a line for each name, method, property and field of the interface."""
    names = {name: getattr(moorage, name) for name in _names()}
    lines = [f"moorage.{line}" for name, value in names.items() for line in _lines(name, value)]
    for package, found in _packages():
        for name, value in found.items():
            lines += (f"{package}.{line}" for line in _lines(name, value))
    return "".join(f"{line}\n" for line in lines)


def _names() -> list[str]:
    return [name for name in moorage.__all__ if name not in _HIDDEN and name != "__version__"]


def _packages() -> Iterator[tuple[str, dict[str, Any]]]:
    for package in ("moorage.driver", "moorage.hardware"):
        module = import_module(package)
        yield package, {name: getattr(module, name) for name in module.__all__}
    for module_name, names in TESTING.items():
        module = import_module(module_name)
        yield module_name, {name: _plain(getattr(module, name)) for name in names}


def _plain(value: Any) -> Any:
    """Return the function behind a fixture."""
    found = getattr(value, "__wrapped__", None) or getattr(value, "_fixture_function", None)
    return found or value


# --- sections -------------------------------------------------------------------------------------


def _function_section(name: str, function: Any, package: str = "moorage") -> Iterator[str]:
    yield f"### {name if package == 'moorage' else f'{package}.{name}'}"
    yield f"```text\n{package}.{name}{_signature(function, is_wide=True)}\n```"
    yield inspect.cleandoc(function.__doc__ or "")


def _class_section(name: str, value: type) -> Iterator[str]:
    yield f"### {name}"
    yield inspect.cleandoc(value.__doc__ or "")
    members = list(_members(value))
    if fields := [shown for shown, member in members if member is None]:
        yield "```text\n" + "\n".join(fields) + "\n```"
    rows = [(f"`{shown}`", _first_paragraph(each)) for shown, each in members if each is not None]
    if rows:
        yield table_of(("member", "meaning"), rows)


def _meaning(value: Any) -> str:
    """Return what a name means; for an alias, the types that it stands for."""
    if isinstance(value, type) or callable(value):
        return _first_paragraph(value)
    return f"`{_shortened(str(value))}`"


def _first_paragraph(value: Any) -> str:
    text = inspect.cleandoc(getattr(value, "__doc__", None) or "")
    return " ".join(text.partition("\n\n")[0].split())


def _is_error(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, BaseException)


# --- signatures -----------------------------------------------------------------------------------


def _lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, type):
        yield f"{name}({', '.join(base.__name__ for base in value.__bases__)})"
        yield from (f"{name}.{shown}" for shown, _ in _members(value))
    elif callable(value):
        yield f"{name}{_signature(value)}"
    else:
        yield f"{name} = {_shortened(str(value))}"


def _members(value: type) -> Iterator[tuple[str, Any]]:
    """Yield the public members as text, each with the object that has its docstring."""
    if issubclass(value, Enum):
        yield from ((f"{each.name} = {each.value!r}", None) for each in value)
    fields = getattr(value, "__struct_fields__", ()) or getattr(value, "_fields", ())
    hints = _hints(value)
    yield from ((f"{field}: {_annotation(hints.get(field, ''), value)}", None) for field in fields)
    for name in sorted(_public(value)):
        if name not in fields:
            yield from _member(value, name)


def _hints(value: type) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(value.__mro__):
        found |= inspect.get_annotations(base)
    return found


def _public(value: type) -> set[str]:
    own = (base for base in value.__mro__ if base.__module__.startswith("moorage"))
    return {name for base in own for name in vars(base) if not name.startswith("_")} - _HOOKS


def _member(value: type, name: str) -> Iterator[tuple[str, Any]]:
    found = inspect.getattr_static(value, name)
    if isinstance(value, type) and issubclass(value, Enum) and name in value.__members__:
        return
    getter = getattr(found, "fget", None) or getattr(found, "func", None)
    if getter is not None:  # a property, cached or not
        returned = inspect.get_annotations(getter).get("return", "")
        yield f"{name}: {_annotation(returned, getter)}", found
    elif isinstance(found, classmethod | staticmethod) or inspect.isfunction(found):
        yield f"{name}{_signature(getattr(found, '__func__', found))}", found


def _signature(function: Any, *, is_wide: bool = False) -> str:
    """Return parameters and result; wide: a line for each parameter."""
    signature = inspect.signature(function)
    shown: list[str] = []
    is_starred = False
    for each in signature.parameters.values():
        if each.name in ("self", "cls"):
            continue
        if each.kind is each.KEYWORD_ONLY and not is_starred:
            shown.append("*")
        stars = "*" * (each.kind is each.VAR_POSITIONAL) + "**" * (each.kind is each.VAR_KEYWORD)
        is_starred = is_starred or each.kind in (each.KEYWORD_ONLY, each.VAR_POSITIONAL)
        shown.append(f"{stars}{each.name}{_typed(each, function)}")
    returned = _annotation(signature.return_annotation, function)
    lines = "".join(f"\n    {each}," for each in shown) + "\n"
    inside = lines if is_wide and len(shown) > 2 else ", ".join(shown)
    return f"({inside}) -> {returned}"


def _typed(parameter: inspect.Parameter, function: Any) -> str:
    text = _annotation(parameter.annotation, function)
    kind = f": {text}" if text else ""
    default = parameter.default
    if default is parameter.empty:
        return kind
    value = repr(default) if isinstance(default, _SIMPLE) and not isinstance(default, Enum) else "…"
    return f"{kind} = {value}"


def _annotation(annotation: Any, owner: Any) -> str:
    """Return a type as it is written, with aliases of its module written out."""
    if annotation is inspect.Parameter.empty:
        return ""
    annotation = getattr(annotation, "__forward_arg__", annotation)  # of a named tuple
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    module = sys.modules.get(getattr(owner, "__module__", ""), None)
    return _shortened(re.sub(r"(?<![\w.'\"])[A-Z]\w*", lambda word: _alias(word[0], module), text))


def _alias(word: str, module: types.ModuleType | None) -> str:
    found = getattr(module, word, None)
    is_alias = isinstance(found, types.UnionType | types.GenericAlias) or (
        typing.get_origin(found) is not None
    )
    return _shortened(str(found)) if is_alias else word


def _shortened(text: str) -> str:
    """Return a type without the modules of its names, and without bounds."""
    return re.sub(
        r"Annotated\[(\w+), Meta\([^()]*\)\]",
        r"\1",
        re.sub(r"\b(?:\w+\.)+(?=[A-Z])", "", text),
    )


if __name__ == "__main__":
    print(surface(), end="")
