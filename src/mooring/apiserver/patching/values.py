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
