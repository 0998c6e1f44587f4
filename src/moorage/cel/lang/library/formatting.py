"""`format`: `'%s has %d of %.1f GiB'.format([name, count, size])`.

    verb = "s" string | "d" decimal | "f" fixed point | "e" scientific | "b" binary
         | "x" | "X" hexadecimal | "o" octal

A literal template with a literal list is checked when the expression is compiled: every clause must
have an argument of a type that it supports, and every argument a clause. Both use the same walk
along the template, with one filler for values and one for types.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Final

from moorage.cel.lang import costs
from moorage.cel.lang.ast import Call, CheckedAST, CreateList, CreateMap, Expr, Literal
from moorage.cel.lang.costs import TRAVERSAL_FACTOR, Argument, CallEstimate, traversal_cost
from moorage.cel.lang.environment import Function, Library, Overload
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.library import format_clauses
from moorage.cel.lang.library.format_clauses import Clause, FormatError, filled
from moorage.cel.lang.library.strings import limited
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import DURATION, DYN, STRING, TIMESTAMP, Type, TypeKind, list_of
from moorage.cel.lang.unpaid_work import count_unpaid, count_unpaid_text
from moorage.cel.lang.values import TypeValue, UInt, double_text, key_value, runtime_type
from moorage.kit.go_quote import go_quote

OVERLOAD_ID: Final = "string_format"
WORK: Final = 3  # elements of a list that can be compared while one is formatted

_SPELLED_NUMBERS: Final = frozenset({"NaN", "Infinity", "-Infinity"})
_INTEGERS: Final = frozenset({TypeKind.INT, TypeKind.UINT})
_NUMBERS: Final = frozenset({TypeKind.DOUBLE, TypeKind.STRING})
_TEXTS: Final = frozenset(
    {
        TypeKind.LIST,
        TypeKind.MAP,
        TypeKind.INT,
        TypeKind.UINT,
        TypeKind.DOUBLE,
        TypeKind.BOOL,
        TypeKind.STRING,
        TypeKind.BYTES,
    }
    | {TypeKind.TIMESTAMP, TypeKind.DURATION, TypeKind.TYPE, TypeKind.NULL}
)


def library(python_types: Mapping[type, Type] | None = None) -> Library:
    """Return `format`, which is part of the library `cel.lib.ext.strings`.

    `python_types` are the classes of opaque values, which messages name by their CEL types.
    """
    known = {Timestamp: TIMESTAMP, Duration: DURATION, **(python_types or {})}

    def evaluate(template: str, args: list[Any]) -> str:
        return format_values(template, args, known)

    overload = Overload(
        OVERLOAD_ID,
        (STRING, list_of(DYN)),
        STRING,
        evaluate,
        is_member=True,
        runtime_cost=_cost,
        estimate=_estimate,
    )
    return Library(
        "cel.lib.ext.strings.format",
        functions=(Function("format", (overload,)),),
        validators=(check_format,),
    )


def format_values(template: str, args: list[Any], python_types: Mapping[type, Type]) -> str:
    """Return the template with its clauses replaced by values."""
    parts = _Parts()
    try:
        for part in filled(template, _Values(args, python_types)):
            parts.add(part)
    except FormatError as error:
        raise EvalError(error.message) from None
    text = parts.text()
    count_unpaid_text(len(text))
    return text


def check_format(call: Call, checked: CheckedAST) -> Iterator[tuple[Expr, str]]:
    """Yield the errors of a call of `format` on literals."""
    match call:
        case Call(
            function="format", target=Literal(value=str() as template), args=(CreateList() as args,)
        ):
            pass
        case _:
            return
    reference = checked.references.get(call.id)
    if reference and reference.overload_ids and OVERLOAD_ID not in reference.overload_ids:
        return
    filler = _Types(args.elements, checked.types)
    try:
        clauses = sum(1 for part in filled(template, filler) if part is _CHECKED)
    except FormatError as error:
        yield error.node or call, error.message
        return
    if clauses < filler.count:
        counts = f"(expected {clauses}, got {filler.count})"
        yield call, f"too many arguments supplied to string.format {counts}"


def _cost(args: tuple[Any, ...], _result: Any) -> int:
    return traversal_cost(args[0])


def _estimate(target: Argument | None, _args: tuple[Argument, ...]) -> CallEstimate | None:
    """Return the estimate; how long the result is depends on values that nobody knows."""
    return None if target is None else CallEstimate(costs.scale(target.size, TRAVERSAL_FACTOR))


class _Parts:
    """A text that grows, until it is too long."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._characters = 0

    def add(self, part: str) -> None:
        self._characters += len(part)
        limited(self._characters)
        self._parts.append(part)

    def text(self) -> str:
        return "".join(self._parts)


# --- filling with values ------------------------------------------------------------------------


class _Values:
    """Fills clauses with values."""

    looks_first = True

    def __init__(self, args: list[Any], python_types: Mapping[type, Type]) -> None:
        self._args = args
        self._python_types = python_types

    @property
    def count(self) -> int:
        return len(self._args)

    def fill(self, clause: Clause, index: int) -> str:
        value = self._args[index]
        verb = _VERBS[clause.verb]
        if isinstance(value, list | tuple | dict) and clause.verb == "s":
            parts = _Parts()
            self._add_member(value, parts)
            return parts.text()
        text = verb.text(value, clause.precision)
        if text is None:
            raise FormatError(f"{verb.refusal}, was given {self._type_name(value)}")
        return text

    def _add_list(self, values: list[Any] | tuple[Any, ...], parts: _Parts) -> None:
        count_unpaid(WORK * len(values))
        parts.add("[")
        for position, value in enumerate(values):
            if position:
                parts.add(", ")
            self._add_member(value, parts)
        parts.add("]")

    def _add_map(self, values: dict[Any, Any], parts: _Parts) -> None:
        count_unpaid(WORK * len(values))
        named = [(self._key(key_value(key)), value) for key, value in values.items()]
        parts.add("{")
        for position, (key, value) in enumerate(sorted(named, key=itemgetter(0))):
            parts.add(f"{', ' if position else ''}{key}:")
            self._add_member(value, parts)
        parts.add("}")

    def _key(self, key: Any) -> str:
        match key:
            case str():
                return go_quote(key)
            case int():  # bools are among them
                return _scalar_text(key) or ""
            case _:
                type_name = self._type_name(key)
                raise FormatError(f"no formatting function for map key of type {type_name}")

    def _add_member(self, value: Any, parts: _Parts) -> None:
        """Add a value inside a list or map, as it could be written in an expression."""
        match value:
            case list() | tuple():
                self._add_list(value, parts)
            case dict():
                self._add_map(value, parts)
            case str():
                parts.add(go_quote(value))
            case bytes():
                parts.add(f"b{go_quote(_decoded(value))}")
            case float():
                parts.add(_double_member(value))
            case Timestamp():
                parts.add(f"timestamp({go_quote(str(value))})")
            case Duration():
                parts.add(f"duration({go_quote(str(value))})")
            case _:
                text = _scalar_text(value)
                if text is None:
                    raise FormatError(f"no formatting function for {self._type_name(value)}")
                parts.add(text)

    def _type_name(self, value: Any) -> str:
        try:
            return runtime_type(value, self._python_types).name
        except TypeError:
            return type(value).__name__


def _scalar_text(value: Any, _precision: int | None = None) -> str | None:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int():
            return str(int(value))
        case float():
            return double_text(value)
        case str():
            return value
        case bytes():
            return _decoded(value)
        case TypeValue():
            return value.name
        case Timestamp() | Duration():
            return str(value)
        case _:
            return None


def _double_member(value: float) -> str:
    if value - value == 0:  # finite
        return f"{value:.{format_clauses.DEFAULT_PRECISION}f}"
    return go_quote(double_text(value))


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        reason = go_quote("invalid UTF-8 in bytes, cannot convert to string")
        raise FormatError(f"could not convert argument {reason} to string") from None


# --- filling with types -------------------------------------------------------------------------

_CHECKED: Final = "checked"


class _Types:
    """Fills clauses with nothing, but checks the types of the arguments."""

    looks_first = False

    def __init__(self, args: tuple[Expr, ...], types: Mapping[int, Type]) -> None:
        self._args = args
        self._types = types

    @property
    def count(self) -> int:
        return len(self._args)

    def fill(self, clause: Clause, index: int) -> str:
        node = self._args[index]
        verb = _VERBS[clause.verb]
        for part in self._inside(node) if clause.verb == "s" else (node,):
            type_ = self._types.get(part.id, DYN)
            if type_.kind is not TypeKind.DYN and type_.kind not in verb.kinds:
                raise FormatError(f"{verb.refusal}, was given {type_.name}", part)
        return _CHECKED

    def _inside(self, node: Expr) -> Iterator[Expr]:
        """Yield a node and, if it is a literal list or map, its elements."""
        yield node
        match node:
            case CreateList(elements=elements):
                for element in elements:
                    yield from self._inside(element)
            case CreateMap(entries=entries):
                for entry in entries:
                    yield from self._inside(entry.key)
                    yield from self._inside(entry.value)


# --- the verbs ----------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Verb:
    """The types that a verb supports, and its text of a value; None if it has none."""

    kinds: frozenset[TypeKind]
    refusal: str
    text: Callable[[Any, int | None], str | None]


def _decimal(value: Any, _precision: int | None) -> str | None:
    return str(int(value)) if _is_integer(value) else None


def _fixed(value: Any, precision: int | None) -> str | None:
    number = _number(value)
    return None if number is None else format_clauses.fixed(number, _or_default(precision))


def _scientific(value: Any, precision: int | None) -> str | None:
    number = _number(value)
    return None if number is None else format_clauses.scientific(number, _or_default(precision))


def _binary(value: Any, _precision: int | None) -> str | None:
    return format(int(value), "b") if isinstance(value, int) else None


def _octal(value: Any, _precision: int | None) -> str | None:
    return format(int(value), "o") if _is_integer(value) else None


def _hexadecimal(value: Any, _precision: int | None) -> str | None:
    match value:
        case str():
            return value.encode("utf-8", "surrogateescape").hex()
        case bytes():
            return value.hex()
        case _:
            return format(int(value), "x") if _is_integer(value) else None


def _upper_hexadecimal(value: Any, precision: int | None) -> str | None:
    text = _hexadecimal(value, precision)
    return None if text is None else text.upper()


def _is_integer(value: Any) -> bool:
    return type(value) in (int, UInt)


def _number(value: Any) -> float | None:
    """Return a double, which may be spelled out if it is none that digits can write."""
    if isinstance(value, str) and value in _SPELLED_NUMBERS:
        return float(value)
    return value if isinstance(value, float) else None


def _or_default(precision: int | None) -> int:
    return format_clauses.DEFAULT_PRECISION if precision is None else precision


_HEX_REFUSAL: Final = "only integers, byte buffers, and strings can be formatted as hex"
_HEX_KINDS: Final = _INTEGERS | {TypeKind.STRING, TypeKind.BYTES}
_VERBS: Final = {
    "s": _Verb(
        _TEXTS,
        "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, "
        "types, durations, and timestamps",
        _scalar_text,
    ),
    "d": _Verb(_INTEGERS, "decimal clause can only be used on integers", _decimal),
    "f": _Verb(_NUMBERS, "fixed-point clause can only be used on doubles", _fixed),
    "e": _Verb(_NUMBERS, "scientific clause can only be used on doubles", _scientific),
    "b": _Verb(
        _INTEGERS | {TypeKind.BOOL}, "only integers and bools can be formatted as binary", _binary
    ),
    "x": _Verb(_HEX_KINDS, _HEX_REFUSAL, _hexadecimal),
    "X": _Verb(_HEX_KINDS, _HEX_REFUSAL, _upper_hexadecimal),
    "o": _Verb(_INTEGERS, "octal clause can only be used on integers", _octal),
}
