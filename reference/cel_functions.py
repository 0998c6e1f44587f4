"""The reference page of the functions of CEL, made from the libraries of moorage.cel."""

from __future__ import annotations

from collections.abc import Iterator

from moorage.cel.device import CelFeatures, DeviceCompiler, Scope
from moorage.cel.lang.environment import Library, Overload
from moorage.cel.lang.macros import Macro
from reference.markdown import MADE, page_of, table_of

# The purpose of each library; a test finds libraries without a text.
LIBRARY_PURPOSES: dict[str, str] = {
    "cel.lib.std": "The language itself: operators, conversions, text, time, standard macros.",
    "cel.lib.ext.strings": "Text: parts, positions, case, splitting and joining.",
    "cel.lib.ext.strings.format": "Text from a template, `%s` and its like.",
    "cel.lib.ext.sets": "Lists as sets, whatever their order and repetitions.",
    "cel.lib.ext.lists": "Lists: parts, order, flattening, ranges.",
    "cel.lib.optional": "Values that may be absent.",
    "cel.lib.ext.comprev2": "Macros with two variables: index and element, or key and value.",
    "cel.lib.ext.cel.bindings": "Names for values.",
    "kubernetes.urls": "URLs and their parts.",
    "kubernetes.regex": "What a regular expression finds.",
    "kubernetes.lists": "Lists: sums, extremes, positions, whether they are sorted.",
    "kubernetes.authz": (
        "Permissions. Declared, but no expression about devices has an `Authorizer` to begin with."
    ),
    "kubernetes.quantity": "Quantities, such as the capacities of devices.",
    "kubernetes.net.ip": "IP addresses.",
    "kubernetes.net.cidr": "Networks: ranges of IP addresses.",
    "kubernetes.format": "Named formats, such as that of a label, and whether text has them.",
    "kubernetes.authzSelectors": "Permissions for what selectors select; declared only, as above.",
    "kubernetes.Semver": "Semantic versions, such as those in attributes.",
    "kubernetes.lists.includes": "Membership for attributes that may be lists or single values.",
    "moorage.include": "Another name for `includes`, which KEPs use.",
}

_FUNCTIONS_INTRODUCTION = """\
Every function and macro that expressions about devices may use, by library.
[The language](cel.md) tells what they mean, with examples.

- A call is written with the types of its arguments. `A`, `K`, `V` and the like stand for any type.
- *Overload* is the name that Kubernetes has for the signature.
- Unless a library says otherwise, new and stored expressions have it under all feature gates."""

_OPERATORS = {"_?_:_": "{} ? {} : {}", "_[_]": "{}[{}]", "_[?_]": "{}[?{}]", "_?._": "{}.?{}"}
_INFIX = ("+", "-", "*", "/", "%", "==", "!=", "<", "<=", ">", ">=", "&&", "||")
_OPERATORS |= {f"_{sign}_": f"{{}} {sign} {{}}" for sign in _INFIX}
_OPERATORS |= {"!_": "!{}", "-_": "-{}", "@in": "{} in {}"}


def functions_page() -> str:
    """Return the page of all functions and macros of CEL."""
    always = _library_names(CelFeatures(), Scope.NEW)
    stored = _library_names(CelFeatures(), Scope.STORED)
    sections = ["# Functions of CEL", MADE, _FUNCTIONS_INTRODUCTION]
    for library in DeviceCompiler(CelFeatures())._environment(Scope.STORED).libraries:
        sections += [f"## {library.name}", LIBRARY_PURPOSES[library.name]]
        if library.name not in stored:
            sections.append("An extension; `--strict` does not know it.")
        if library.name not in always:
            sections.append("In new expressions only if `DRAListTypeAttributes` is on.")
        sections += _library_tables(library)
    return page_of(sections)


def _library_names(features: CelFeatures, scope: Scope) -> set[str]:
    environment = DeviceCompiler(features, extensions=False)._environment(scope)
    return {library.name for library in environment.libraries}


def _library_tables(library: Library) -> Iterator[str]:
    if library.macros:
        yield table_of(("macro",), ((f"`{_macro_call(macro)}`",) for macro in library.macros))
    rows = [
        (f"`{_signature(function.name, overload)}`", f"`{overload.result}`", f"`{overload.id}`")
        for function in library.functions
        if function.name[0] not in "@_" or function.name in _OPERATORS  # Others are for macros.
        for overload in function.overloads
    ]
    if rows:
        yield table_of(("call", "gives", "overload"), rows)


def _macro_call(macro: Macro) -> str:
    target = "cel." if macro.name == "bind" else "value." if macro.is_member else ""
    return f"{target}{macro.name}({', '.join('…' * macro.arity)})"


def _signature(name: str, overload: Overload) -> str:
    params = list(map(str, overload.params))
    if name in _OPERATORS:
        return _OPERATORS[name].format(*params)
    target = f"{params.pop(0)}." if overload.is_member else ""
    return f"{target}{name}({', '.join(params)})"
