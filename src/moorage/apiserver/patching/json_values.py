"""JSON trees, the value that is absent, and values as Go prints them in messages.

Trees are dicts, lists and scalars. They never change once made: results share parts with inputs.
"""

from __future__ import annotations

from typing import Any, Final

from moorage.kit.go_quote import go_quote

Tree = Any  # a JSON value of any shape


class _Absent:
    """The type of ABSENT."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()  # no value; null is a value


def same(left: Tree, right: Tree) -> bool:
    """Return whether two values are equal in JSON: 1 is 1.0 and not true."""
    if left is right:
        return True
    if isinstance(left, dict):
        return (
            isinstance(right, dict)
            and left.keys() == right.keys()
            and all(same(value, right[key]) for key, value in left.items())
        )
    if isinstance(left, list):
        return isinstance(right, list) and len(left) == len(right) and all(map(same, left, right))
    return bool(left == right) and isinstance(left, bool) == isinstance(right, bool)


# --- Go formats -----------------------------------------------------------------------------------


def plain(value: Any) -> str:
    """Return a JSON value as `%v` writes it."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return _float(value)
        case dict():
            return "map[" + " ".join(f"{k}:{plain(value[k])}" for k in sorted(value)) + "]"
        case list():
            return "[" + " ".join(map(plain, value)) + "]"
        case _:
            return str(value)


def syntax(value: Any) -> str:
    """Return a JSON value as `%#v` writes it."""
    match value:
        case None:
            return "interface {}(nil)"
        case str():
            return go_quote(value)
        case dict():
            pairs = ", ".join(f"{go_quote(k)}:{syntax(value[k])}" for k in sorted(value))
            return f"map[string]interface {{}}{{{pairs}}}"
        case list():
            return "[]interface {}{" + ", ".join(map(syntax, value)) + "}"
        case _:
            return plain(value)


def _float(value: float) -> str:
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)
