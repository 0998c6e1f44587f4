"""Work for which an expression is charged nothing, bounded for each evaluation.

Kubernetes charges functions for the lists and texts that they are given, not for what those hold.
A list that holds one list twice, which holds another twice, has more elements than any memory, and
costs what two cost. So walks through inner lists, and texts that grow, are counted here: beyond
UNPAID_MAX the evaluation ends as one that exceeds its cost limit.

    # unpaid: elements of inner lists and maps that a function looked at; 64 characters are one
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Final

from moorage.cel.lang.ast import CheckedAST, CreateList, CreateMap, Expr, children
from moorage.cel.lang.errors import COST_EXCEEDED, Cancelled
from moorage.cel.lang.types import TypeKind, is_optional

UNPAID_MAX: Final = 500_000  # a tenth of a second
_CHARACTERS: Final = 64
_HOLDERS: Final = frozenset(
    {TypeKind.LIST, TypeKind.MAP, TypeKind.DYN, TypeKind.ANY, TypeKind.TYPE_PARAM}
)


_unpaid: ContextVar[int] = ContextVar("_unpaid", default=0)


def begin_evaluation() -> None:
    """Count anew, for the next evaluation of this context."""
    _unpaid.set(0)


def unpaid_of_evaluation() -> int:
    """Return what this context's latest evaluation has done unpaid."""
    return _unpaid.get()


def count_unpaid(elements: int) -> None:
    """Count elements that are about to be looked at; end the evaluation if they are too many."""
    unpaid = _unpaid.get() + elements
    _unpaid.set(unpaid)
    if unpaid > UNPAID_MAX:
        raise Cancelled(COST_EXCEEDED)


def count_unpaid_text(characters: int) -> None:
    """Count a text that is about to be made."""
    count_unpaid(characters // _CHARACTERS)


def nests(checked: CheckedAST) -> bool:
    """Return whether an expression writes lists or maps that may hold others."""
    pending = [checked.parsed.expr]
    while pending:
        node = pending.pop()
        pending += children(node)
        if any(_may_hold_others(each, checked) for each in _written_in(node)):
            return True
    return False


def _written_in(node: Expr) -> tuple[Expr, ...]:
    match node:
        case CreateList(elements=elements):
            return elements
        case CreateMap(entries=entries):
            return tuple(entry.value for entry in entries)
    return ()


def _may_hold_others(node: Expr, checked: CheckedAST) -> bool:
    type_ = checked.types.get(node.id)
    return type_ is None or type_.kind in _HOLDERS or is_optional(type_)
