"""Comparisons of attributes with literals, whichever way they are written.

attribute == "x"    "x" == attribute    attribute in ["x"]    attribute >= 3    3 <= attribute
capacity.compareTo(quantity("40Gi")) >= 0    version.isGreaterThan(semver("1.2.3"))
"""

from __future__ import annotations

from typing import Final, NamedTuple

from mooring.cel.lang import ast
from mooring.insight.expressions.syntax import chains

RELATIONS: Final = {"_>=_": 1, "_>_": 1, "_<=_": -1, "_<_": -1}
_FLIPPED: Final = {"_>=_": "_<=_", "_>_": "_<_", "_<=_": "_>=_", "_<_": "_>_"}
_ORDERINGS: Final = {"isGreaterThan": "_>_", "isLessThan": "_<_"}


class Comparison(NamedTuple):
    """An attribute compared with a literal."""

    chain: ast.Expr
    relation: str  # of the chain to the literal: `_==_`, `@in`, `_>=_`, …
    literal: ast.Literal
    wraps: str = ""  # the function around the literal: quantity, semver


def comparison_of(node: ast.Expr) -> Comparison | None:
    """Return an attribute compared with a literal, whichever way it is written."""
    match node:
        case ast.Call(function="_==_" | "@in" as relation, args=(left, right)):
            return _plain(left, right, relation) or _plain(right, left, relation)
        case ast.Call(function=relation, args=(left, right)) if relation in RELATIONS:
            found = _compared_to(left, right, relation)
            if found is not None:
                return found
            return _plain(left, right, relation) or _plain(right, left, _FLIPPED[relation])
        case ast.Call(function=name, target=target, args=(argument,)) if (
            name in _ORDERINGS and target is not None
        ):
            wrapped = _wrapped(argument)
            if wrapped is not None and _is_chain(target):
                return Comparison(target, _ORDERINGS[name], *wrapped)
    return None


def _compared_to(left: ast.Expr, right: ast.Expr, relation: str) -> Comparison | None:
    """Return `chain.compareTo(quantity("…")) >= 0` as a comparison of the chain."""
    match left, right:
        case ast.Call(function="compareTo", target=target, args=(argument,)), ast.Literal(value=0):
            wrapped = _wrapped(argument)
            if target is not None and wrapped is not None and _is_chain(target):
                return Comparison(target, relation, *wrapped)
    return None


def _wrapped(node: ast.Expr) -> tuple[ast.Literal, str] | None:
    match node:
        case ast.Call(function="quantity" | "semver" as name, args=(ast.Literal() as literal, *_)):
            return literal, name
    return None


def _plain(chain: ast.Expr, other: ast.Expr, relation: str) -> Comparison | None:
    if not _is_chain(chain):
        return None
    match other:
        case ast.Literal():
            return Comparison(chain, relation, other)
        case ast.Call(function="quantity" | "semver"):
            wrapped = _wrapped(other)
            return None if wrapped is None else Comparison(chain, relation, *wrapped)
        case ast.CreateList(elements=(ast.Literal() as only,)):
            return Comparison(chain, relation, only)
    return None


def _is_chain(node: ast.Expr) -> bool:
    return any(chain is node for chain in chains(node, {"device": None}))
