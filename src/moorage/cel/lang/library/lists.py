"""Functions on lists, and on lists taken as sets.

    [3, 1].sort(), lists.range(10), [[1], [2]].flatten(), sets.contains([1, 2], [2, 2])

They are charged for their results; `sort`, `sortBy`, `distinct` and the functions on sets for
comparing every element with every other one. Lists of one simple class do not need the comparisons,
only the charge. Elements with equal keys keep their order when they are sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any, Final, NoReturn

from moorage.cel.lang.ast import Call, Comprehension, CreateList, Expr, Ident, Literal, Select
from moorage.cel.lang.costs import (
    TRAVERSAL_FACTOR,
    UNBOUNDED,
    Argument,
    Arguments,
    CallEstimate,
    CostEstimate,
    Range,
    RuntimeCost,
    add,
    exactly,
    multiply,
    scale,
)
from moorage.cel.lang.environment import Function, Library, Overload, functions_of, members_of
from moorage.cel.lang.equality import contains, size_of
from moorage.cel.lang.errors import COST_EXCEEDED, Cancelled, EvalError
from moorage.cel.lang.macros import MAP, Macro, MacroExprFactory, bind
from moorage.cel.lang.time import Duration, Timestamp
from moorage.cel.lang.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    UINT,
    Type,
    list_of,
    param,
)
from moorage.cel.lang.unpaid_work import count_unpaid
from moorage.cel.lang.values import UInt, runtime_type

RANGE_MAX: Final = 1_000_000
# No cost limit allows more; the evaluation ends here instead of a little later.
COMPARISONS_MAX: Final = 10_000_000
SORT_BY_KEYS: Final = "@sortByAssociatedKeys"
_LIST: Final = list_of(param("T"))
_INTS: Final = list_of(INT)
_DYNS: Final = list_of(DYN)
_CALL_COST: Final = 1
_LIST_COST: Final = 10
_ALLOCATION: Final = exactly(_CALL_COST + _LIST_COST)
_PAIR_FACTOR: Final = 2.0
_COMPARABLE: Final = {
    INT: int, UINT: UInt, DOUBLE: float, BOOL: bool, DURATION: Duration, TIMESTAMP: Timestamp,
    STRING: str, BYTES: bytes,
}  # fmt: skip
_TIMES: Final = {Duration: DURATION, Timestamp: TIMESTAMP}
# Classes whose own == and hash are CEL's, among themselves.
_SIMPLE: Final = frozenset({bool, int, UInt, str, bytes})
_SORT_BY_TARGETS: Final = (CreateList, Select, Ident, Comprehension, Call)
_SORT_BY_REFUSAL: Final = (
    "sortBy can only be applied to a list, identifier, comprehension, call or select expression"
)
Values = list[Any] | tuple[Any, ...]


def library() -> Library:
    """Return the library `cel.lib.ext.lists`, version 3."""
    output = (_output_cost, _of_target(lambda target, _: _allocates(target.size)))
    flattening = (_flatten_cost, _estimate_flatten)
    pairs = (_compares_argument(0), _estimate_distinct)
    return Library(
        "cel.lib.ext.lists",
        functions=(
            members_of(
                "slice",
                ("list_slice", (_LIST, INT, INT), _LIST, _slice),
                costs=(_output_cost, _estimate_slice),
            ),
            functions_of(
                "lists.range",
                ("lists_range", (INT,), _INTS, _range),
                costs=(_output_cost, _estimate_range),
            ),
            # Its arguments are not checked before the call: it takes any list.
            members_of(
                "flatten",
                ("list_flatten", (list_of(_LIST),), _LIST, _flatten),
                ("list_flatten_int", (_DYNS, INT), _DYNS, _flatten),
                costs=flattening,
            ),
            Function("sort", tuple(map(_sort_overload, _COMPARABLE))),
            Function(SORT_BY_KEYS, tuple(map(_sort_by_keys_overload, _COMPARABLE))),
            members_of("reverse", ("list_reverse", (_LIST,), _LIST, _reverse), costs=output),
            members_of("distinct", ("list_distinct", (_LIST,), _LIST, _distinct), costs=pairs),
        ),
        macros=(Macro("sortBy", 2, True, _expand_sort_by),),
    )


def _sort_overload(type_: Type) -> Overload:
    list_type = list_of(type_)
    costs = (_compares_argument(0), _estimates_sort(type_, by_target=True))
    return Overload(f"list_{type_.name}_sort", (list_type,), list_type, _sort, True, *costs)


def _sort_by_keys_overload(type_: Type) -> Overload:
    id_ = f"list_{type_.name}_sortByAssociatedKeys"
    costs = (_compares_argument(1), _estimates_sort(type_, by_target=False))
    return Overload(id_, (_LIST, list_of(type_)), _LIST, _sort_by_keys, True, *costs)


# --- functions ------------------------------------------------------------------------------------


def _slice(values: Values, start: int, end: int) -> Values:
    if start < 0 or end < 0:
        raise _no_slice(start, end, "negative indexes not supported")
    if start > end:
        raise _no_slice(start, end, "start index must be less than or equal to end index")
    if len(values) < end:
        raise _no_slice(start, end, f"list is length {len(values)}")
    return values[start:end]


def _no_slice(start: int, end: int, reason: str) -> EvalError:
    return EvalError(f"cannot slice({start}, {end}), {reason}")


def _range(size: int) -> list[int]:
    if size < 0:
        raise EvalError(f"lists.range: size must be non-negative, got {size}")
    if size > RANGE_MAX:
        raise EvalError(f"lists.range: size {size} exceeds maximum allowed ({RANGE_MAX})")
    return list(range(size))


def _reverse(values: Values) -> Values:
    return values[::-1]


def _flatten(values: Values, depth: int = 1) -> Values:
    """Return a list with the elements of the lists in it, down to a depth."""
    if not isinstance(values, list | tuple):
        raise EvalError(f"no such overload: {runtime_type(values, _TIMES).name}.flatten()")
    if depth < 0:
        raise EvalError("level must be non-negative")
    while depth and any(isinstance(value, list | tuple) for value in values):
        parts = [value if isinstance(value, list | tuple) else (value,) for value in values]
        # Lists that contain the same list many times flatten to more than any memory holds.
        count_unpaid(sum(map(len, parts)))
        values = list(chain.from_iterable(parts))
        depth -= 1
    return values


def _distinct(values: Values) -> Values:
    """Return the elements that differ from all earlier ones."""
    if simple_class(values) is not None:
        return list(dict.fromkeys(values))
    limit_comparisons(len(values) ** 2)
    kept: list[Any] = []
    for value in values:
        if not contains(kept, value):
            kept.append(value)
    return kept


def simple_class(*lists: Values) -> type | None:
    """Return the class that all elements of the lists have, if it is one Python can hash."""
    classes = {type(value) for values in lists for value in values}
    return classes.pop() if len(classes) == 1 and classes <= _SIMPLE else None


def limit_comparisons(count: int) -> None:
    """End the evaluation if it would compare more than any cost limit allows."""
    if count > COMPARISONS_MAX:
        raise Cancelled(COST_EXCEEDED)


def _sort(values: Values) -> Values:
    return sorted(values) if simple_class(values) is not None else _sort_by_keys(values, values)


def _sort_by_keys(values: Values, keys: Values) -> Values:
    """Return the values in the order of their keys."""
    if len(values) != len(keys):
        raise EvalError(
            f"{SORT_BY_KEYS}() expected a list of the same size as the associated keys list, "
            f"but got {len(values)} and {len(keys)} elements respectively"
        )
    if not values:
        return values
    class_ = type(keys[0])
    if class_ not in _COMPARABLE.values():
        raise EvalError("list elements must be comparable")
    if any(type(key) is not class_ for key in keys):
        raise EvalError("list elements must have the same type")
    return [values[i] for i in sorted(range(len(keys)), key=keys.__getitem__)]


def _expand_sort_by(factory: MacroExprFactory, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    """Return `input = target; input.@sortByAssociatedKeys(input.map(name, key))`."""
    assert target is not None
    if not isinstance(target, _SORT_BY_TARGETS):
        raise factory.error(target, _SORT_BY_REFUSAL)
    name = "@__sortBy_input__"
    keys = MAP.expand(factory, factory.ident(name), args)
    assert keys is not None
    result = factory.member_call(SORT_BY_KEYS, factory.ident(name), keys)
    return bind(factory, name, target, result)


# --- runtime costs --------------------------------------------------------------------------------


def _allocating(size: int, factor: float = 1.0) -> int:
    product = float(size) * factor
    # A value beyond 64 bits becomes 2^63: so the processor converts it.
    return _CALL_COST + _LIST_COST + (int(product) if product < 2**64 else 2**63)


def _output_cost(_args: tuple[Any, ...], result: Any) -> int:
    return _allocating(size_of(result))


def _flatten_cost(args: tuple[Any, ...], _result: Any) -> int:
    depth = args[1] if len(args) > 1 else 1
    if type(depth) is not int:
        _break_off(f"ref.Val is {_go_class(depth)[0]}, not types.Int")
    return _allocating(size_of(args[0]), float(depth) if depth >= 0 else 1.0)


def _compares_argument(position: int) -> RuntimeCost:
    """Return the cost of comparing every element of a list with every other one."""

    def cost(args: tuple[Any, ...], _result: Any) -> int:
        values = args[position]
        if not isinstance(values, list | tuple):
            class_, method = _go_class(values)
            _break_off(f"{class_} is not traits.Lister: missing method {method}")
        is_text = bool(values) and isinstance(values[0], str | bytes)
        return _allocating(len(values) ** 2, _PAIR_FACTOR + TRAVERSAL_FACTOR * is_text)

    return cost


def _break_off(reason: str) -> NoReturn:
    """End the evaluation as cel-go does when it counts the cost of a failed call.

    It assumes that the argument is a list, though it may be an error: the evaluation fails as a
    whole, and `||` cannot absorb it.
    """
    raise Cancelled(f"internal error: interface conversion: {reason}")


def _go_class(value: Any) -> tuple[str, str]:
    """Return the class of a value in cel-go, and the method that it lacks to be a list."""
    names = {int: "Int", UInt: "Uint", float: "Double", str: "String", bytes: "Bytes"}
    names |= {Duration: "Duration", Timestamp: "Timestamp"}
    if type(value) in names:
        return f"types.{names[type(value)]}", "Contains"
    if isinstance(value, bool):
        return "types.Bool", "Add"
    return "*types.Err", "Add"


# --- estimates ------------------------------------------------------------------------------------


_Estimator = Callable[[Argument, Arguments], CallEstimate]


def _of_target(estimator: _Estimator) -> CostEstimate:
    return lambda target, args: None if target is None else estimator(target, args)


def _allocates(size: Range, factor: float = 1.0) -> CallEstimate:
    return CallEstimate(add(scale(size, factor), _ALLOCATION), size)


def _written(argument: Argument, default: int) -> int:
    """Return the literal number, 0 for a negative one, otherwise the default."""
    match argument.expr:
        case Literal(value=value) if type(value) is int:
            return max(value, 0)
        case _:
            return default


def _estimates_sort(type_: Type, *, by_target: bool) -> CostEstimate:
    factor = _PAIR_FACTOR + TRAVERSAL_FACTOR if type_ in (STRING, BYTES) else _PAIR_FACTOR

    def estimate(target: Argument, args: Arguments) -> CallEstimate:
        size = target.size if by_target else args[0].size
        return _allocates(multiply(size, size), factor)

    return _of_target(estimate)


def _estimate_range(_target: Argument | None, args: Arguments) -> CallEstimate | None:
    return _allocates(exactly(_written(args[0], UNBOUNDED)))


@_of_target
def _estimate_slice(target: Argument, args: Arguments) -> CallEstimate:
    # A slice whose end is before its start has, as in cel-go, a gigantic size.
    end = _written(args[1], target.size.high)
    return _allocates(exactly((end - _written(args[0], 0)) % 2**64))


@_of_target
def _estimate_flatten(target: Argument, args: Arguments) -> CallEstimate:
    depth = _written(args[0], UNBOUNDED) if args else 1
    return _allocates(target.size, float(depth))


@_of_target
def _estimate_distinct(target: Argument, _args: Arguments) -> CallEstimate:
    return _allocates(multiply(target.size, target.size), _PAIR_FACTOR)


# --- sets -----------------------------------------------------------------------------------------


def sets_library() -> Library:
    """Return the library `cel.lib.ext.sets`."""
    return Library(
        "cel.lib.ext.sets",
        functions=(
            _function("contains", _contains, comparisons=1),
            # Each list has to hold the other.
            _function("equivalent", _equivalent, comparisons=2),
            _function("intersects", _intersects, comparisons=1),
        ),
    )


def _function(name: str, evaluate: Callable[[Any, Any], bool], *, comparisons: int) -> Function:
    def cost(args: tuple[Any, ...], _result: Any) -> int:
        return 1 + size_of(args[0]) * size_of(args[1]) * comparisons

    def estimate(_target: Argument | None, args: Arguments) -> CallEstimate:
        pairs = multiply(args[0].size, args[1].size)
        return CallEstimate(add(scale(pairs, comparisons), exactly(1)))

    row = (f"list_sets_{name}_list", (_LIST, _LIST), BOOL, evaluate)
    return functions_of(f"sets.{name}", row, costs=(cost, estimate))


def _contains(values: Values, wanted: Values) -> bool:
    if simple_class(values, wanted) is not None:
        return set(wanted) <= set(values)
    limit_comparisons(len(values) * len(wanted))
    return all(contains(values, value) for value in wanted)


def _equivalent(values: Values, others: Values) -> bool:
    return _contains(values, others) and _contains(others, values)


def _intersects(values: Values, others: Values) -> bool:
    if simple_class(values, others) is not None:
        return not set(values).isdisjoint(others)
    limit_comparisons(len(values) * len(others))
    return any(contains(others, value) for value in values)
