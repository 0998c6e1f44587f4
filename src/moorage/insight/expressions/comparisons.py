"""Comparisons of what devices have with literals, whichever way they are written.

attribute == "x"    "x" == attribute    attribute in ["x"]    attribute >= 3    3 <= attribute
capacity.compareTo(quantity("40Gi")) >= 0    version.isGreaterThan(semver("1.2.3"))
attribute.startsWith("x")    attribute.exists(x, x == "a")    "x" in attribute

# subject: what is compared: an attribute, a capacity, or something made of one
# relation: of the subject to the literals: ==, !=, >=, >, <=, <, in, has; or a function's name
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from moorage.cel.lang import ast
from moorage.insight.expressions.syntax import DEVICE, EVERYTHING, Aliases, readings

ITSELF: Final[Aliases] = {DEVICE: EVERYTHING}
ORDER: Final = {">=": 1, ">": 1, "<=": -1, "<": -1}
FLIPPED: Final = {">=": "<=", ">": "<", "<=": ">=", "<": ">", "==": "==", "!=": "!="}
TEXT_FUNCTIONS: Final = ("startsWith", "endsWith", "contains", "matches")
_OPERATORS: Final = {f"_{sign}_": sign for sign in FLIPPED}
_ORDERINGS: Final = {"isGreaterThan": ">", "isLessThan": "<"}
_FUNCTIONS: Final = (*TEXT_FUNCTIONS, "includes", "include")


class Comparison(NamedTuple):
    """What devices have, compared with literals."""

    node: ast.Expr
    subject: ast.Expr
    relation: str
    literals: tuple[ast.Literal, ...]
    wraps: str = ""  # the function around the literal: quantity, semver
    is_called: bool = False  # written as compareTo, isGreaterThan, isLessThan

    @property
    def literal(self) -> ast.Literal:
        """The first literal."""
        return self.literals[0]


def comparison_of(
    node: ast.Expr, macro_calls: Mapping[int, ast.Call], aliases: Aliases = ITSELF
) -> Comparison | None:
    """Return a comparison with literals, whichever way it is written."""
    return _Reader(macro_calls, aliases).read(node)


class _Reader:
    def __init__(self, macro_calls: Mapping[int, ast.Call], aliases: Aliases) -> None:
        self._macro_calls = macro_calls
        self._aliases = aliases

    def read(self, node: ast.Expr) -> Comparison | None:
        """Return the comparison of a node."""
        if isinstance(node, ast.Comprehension) and node.id in self._macro_calls:
            return self._exists(node, self._macro_calls[node.id])
        match node:
            case ast.Call(function=function, args=(left, right)) if function in _OPERATORS:
                return self._operator(node, left, right, _OPERATORS[function])
            case ast.Call(function="@in", args=(left, right)):
                return self._membership(node, left, right)
            case ast.Call(function=name, target=target, args=(argument,)) if target is not None:
                return self._call(node, name, target, argument)
        return None

    def _operator(
        self, node: ast.Expr, left: ast.Expr, right: ast.Expr, relation: str
    ) -> Comparison | None:
        found = self._compared_to(node, left, right, relation)
        if found is None:
            found = self._compared_to(node, right, left, FLIPPED[relation])
        if found is not None:
            return found
        for subject, other, sign in ((left, right, relation), (right, left, FLIPPED[relation])):
            literals = _literals(other)
            if literals is not None and self._is_about_devices(subject):
                return Comparison(node, subject, sign, *literals)
        return None

    def _compared_to(
        self, node: ast.Expr, left: ast.Expr, right: ast.Expr, relation: str
    ) -> Comparison | None:
        """Return `subject.compareTo(quantity("…")) >= 0` as a comparison of the subject."""
        match left, right:
            case ast.Call(function="compareTo", target=target, args=(argument,)), ast.Literal(
                value=0
            ):
                if target is not None:
                    return self._either_way(node, target, argument, relation)
        return None

    def _either_way(
        self, node: ast.Expr, target: ast.Expr, argument: ast.Expr, relation: str
    ) -> Comparison | None:
        for subject, other, sign in (
            (target, argument, relation),
            (argument, target, FLIPPED[relation]),
        ):
            literals = _literals(other)
            if literals is not None and self._is_about_devices(subject):
                return Comparison(node, subject, sign, *literals, is_called=True)
        return None

    def _membership(self, node: ast.Expr, left: ast.Expr, right: ast.Expr) -> Comparison | None:
        if isinstance(left, ast.Literal) and self._is_about_devices(right):
            return Comparison(node, right, "has", (left,))
        if not self._is_about_devices(left):
            return None
        match right:
            case ast.Literal():
                return Comparison(node, left, "in", (right,))
            case ast.CreateList(elements=elements) if elements:
                literals = [_literals(each) for each in elements]
                known = [each for each in literals if each is not None]
                if len(known) == len(literals):
                    return Comparison(
                        node, left, "in", tuple(each[0][0] for each in known), known[0][1]
                    )
        return None

    def _call(
        self, node: ast.Expr, name: str, target: ast.Expr, argument: ast.Expr
    ) -> Comparison | None:
        if name in _ORDERINGS:
            return self._either_way(node, target, argument, _ORDERINGS[name])
        if (
            name in _FUNCTIONS
            and isinstance(argument, ast.Literal)
            and self._is_about_devices(target)
        ):
            relation = "includes" if name == "include" else name
            return Comparison(node, target, relation, (argument,))
        return None

    def _exists(self, node: ast.Comprehension, call: ast.Call) -> Comparison | None:
        """Return `subject.exists(x, x == "a")` as a comparison."""
        match call:
            case ast.Call(
                function="exists",
                target=target,
                args=(ast.Ident(name=name), ast.Call(function="_==_", args=(left, right))),
            ) if target is not None and self._is_about_devices(node.iter_range):
                for element, other in ((left, right), (right, left)):
                    is_element = isinstance(element, ast.Ident) and element.name == name
                    if is_element and isinstance(other, ast.Literal):
                        return Comparison(node, node.iter_range, "exists", (other,))
        return None

    def _is_about_devices(self, node: ast.Expr) -> bool:
        """Whether a node reads one field of devices."""
        reads = {reading.read for reading in readings(node, self._aliases)}
        return len(reads) == 1 and EVERYTHING not in reads


def _literals(node: ast.Expr) -> tuple[tuple[ast.Literal, ...], str] | None:
    match node:
        case ast.Literal():
            return (node,), ""
        case ast.Call(function="quantity" | "semver" as name, args=(ast.Literal() as literal, *_)):
            return (literal,), name
    return None
