"""Values of JSON trees, and the value that is not there.

Trees are dicts, lists and scalars. They are never changed once made: results share parts with
what they were made from.
"""

from __future__ import annotations

from typing import Any, Final

Tree = Any  # a JSON value of any shape


class _Absent:
    """The type of ABSENT."""

    __slots__ = ()

    def __bool__(self) -> bool:
        return False

    def __repr__(self) -> str:
        return "ABSENT"


ABSENT: Final = _Absent()  # no value, which is not null


def same(left: Tree, right: Tree) -> bool:
    """Whether two values are the same in JSON: 1 is 1.0 and not true, null is null."""
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


# ---- from mooring.apiserver.patching.gotext: Values as Go prints them: error messages of Kubernetes quote them so.

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quoted(text: str) -> str:
    """Return a text as `%q` writes it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_ESCAPES.get(c) or _quoted_character(c) for c in text) + '"'


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
            return quoted(value)
        case dict():
            pairs = ", ".join(f"{quoted(k)}:{syntax(value[k])}" for k in sorted(value))
            return f"map[string]interface {{}}{{{pairs}}}"
        case list():
            return "[]interface {}{" + ", ".join(map(syntax, value)) + "}"
        case _:
            return plain(value)


def type_name(value: Any) -> str:
    """Return the Go type that a JSON value is decoded into."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "bool"
        case int():
            return "int64"
        case float():
            return "float64"
        case str():
            return "string"
        case list():
            return "[]interface {}"
        case _:
            return "map[string]interface {}"


def _float(value: float) -> str:
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def _quoted_character(character: str) -> str:
    if character.isprintable():
        return character
    code = ord(character)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
