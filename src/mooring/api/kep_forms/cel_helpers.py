"""Warns about CEL helpers that only Mooring has. Expressions are stored as written; the scan works
on their text and skips strings."""

from __future__ import annotations

import re

from mooring.api.kep_forms.trees import RewriteNotes, Segments, Tree, objects

_TOKEN = re.compile(
    r"""
      "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'       # a string: skipped whole
    | (?P<name>(?<![\w.])device\s*\.\s*name\b)
    | (?P<include>\.\s*include\s*\()
    """,
    re.VERBOSE | re.DOTALL,
)

_MESSAGES = {
    "name": (
        "device.name is an extension of Mooring: in Kubernetes 1.37 a device has driver, "
        "attributes, capacity and allowMultipleAllocations"
    ),
    "include": "include() is an alias of includes(), the function that Kubernetes 1.37 has",
}


def warn_of_selectors(holder: Tree, at: Segments, notes: RewriteNotes) -> None:
    """Warn about helpers in the CEL selectors of a request, class or rule."""
    for position, selector in objects(holder, "selectors"):
        cel = selector.get("cel")
        if isinstance(cel, dict):
            warn_of(cel.get("expression"), (*at, "selectors", position, "cel", "expression"), notes)


def warn_of(expression: object, at: Segments, notes: RewriteNotes) -> None:
    """Warn about helpers in an expression."""
    if not isinstance(expression, str) or not ("name" in expression or "include" in expression):
        return
    for token in _TOKEN.finditer(expression):
        if token.lastgroup is not None:
            notes.warn(f"cel {token.lastgroup}", at, _MESSAGES[token.lastgroup])
