"""`cel.bind(name, value, expression)`: a name for a value that an expression uses.

It becomes a loop over nothing: the name is the accumulator, and so is evaluated when it is first
looked at, if ever.
"""

from __future__ import annotations

from typing import Final

from mooring.cel.lang.ast import Expr, Ident
from mooring.cel.lang.declarations import Library, Macro, MacroHelper

UNUSED: Final = "#unused"


def library() -> Library:
    """Return the library `cel.lib.ext.cel.bindings`, version 0."""
    return Library("cel.lib.ext.cel.bindings", macros=(Macro("bind", 3, True, _expand_bind),))


def bind(helper: MacroHelper, name: str, value: Expr, result: Expr) -> Expr:
    """Return an expression in which a name stands for a value."""
    return helper.comprehension(
        helper.new_list(),
        UNUSED,
        name,
        value,
        helper.literal(False),
        helper.ident(name),
        result,
    )


def _expand_bind(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr | None:
    if not isinstance(target, Ident) or target.name != "cel":
        return None
    name, value, result = args
    if not isinstance(name, Ident):
        raise helper.error(name, "cel.bind() variable names must be simple identifiers")
    return bind(helper, name.name, value, result)
