"""Values that may be absent: `device.attributes['d'].?model.orValue('none')`.

`.?name`, `[?key]` and `[key]` on an optional, `or` and `orValue` are compiled on their own,
because they look at their right side only when they need it; here they are declared.
"""

from __future__ import annotations

from typing import Any, Final

from mooring.cel.lang.ast import Expr, Ident
from mooring.cel.lang.declarations import Function, Library, Macro, MacroHelper, Overload
from mooring.cel.lang.library.bindings import bind
from mooring.cel.lang.library.gotext import shown
from mooring.cel.lang.time import SECONDS_MIN, Duration, Timestamp
from mooring.cel.lang.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of, param
from mooring.cel.lang.values import NONE, EvalError, Optional

_KEY: Final = param("K")
_VALUE: Final = param("V")
_OPTIONAL: Final = optional_of(_VALUE)
_LIST: Final = list_of(_VALUE)
_MAP: Final = map_of(_KEY, _VALUE)
_FIRST_MOMENT: Final = Timestamp.from_seconds(SECONDS_MIN)

Values = list[Any] | tuple[Any, ...]


def library() -> Library:
    """Return the library `cel.lib.optional`, version 2."""
    return Library(
        "cel.lib.optional",
        functions=(*_makers(), *_accessors(), *_alternatives(), *_qualifiers(), *_lists()),
        macros=(
            Macro("optMap", 2, True, _expand_map),
            Macro("optFlatMap", 2, True, _expand_flat_map),
        ),
        types=(optional_of(DYN),),
    )


# --- declarations -----------------------------------------------------------------------------


def _makers() -> tuple[Function, ...]:
    return (
        Function("optional.of", (Overload("optional_of", (_VALUE,), _OPTIONAL, Optional),)),
        Function("optional.none", (Overload("optional_none", (), _OPTIONAL, _none),)),
        Function(
            "optional.ofNonZeroValue",
            (Overload("optional_ofNonZeroValue", (_VALUE,), _OPTIONAL, _of_non_zero),),
        ),
    )


def _accessors() -> tuple[Function, ...]:
    return (
        Function("value", (Overload("optional_value", (_OPTIONAL,), _VALUE, _value, True),)),
        Function(
            "hasValue", (Overload("optional_hasValue", (_OPTIONAL,), BOOL, _has_value, True),)
        ),
    )


def _alternatives() -> tuple[Function, ...]:
    either = Overload("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, _or, True)
    value = Overload("optional_orValue_value", (_OPTIONAL, _VALUE), _VALUE, _or_value, True)
    return Function("or", (either,)), Function("orValue", (value,))


def _qualifiers() -> tuple[Function, ...]:
    optional_list, optional_map = optional_of(_LIST), optional_of(_MAP)
    return (
        Function("_?._", (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),)),
        Function(
            "_[?_]",
            (
                Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
                Overload("optional_list_optindex_optional_int", (optional_list, INT), _OPTIONAL),
                Overload("map_optindex_optional_value", (_MAP, _KEY), _OPTIONAL),
                Overload("optional_map_optindex_optional_value", (optional_map, _KEY), _OPTIONAL),
            ),
        ),
        Function(
            "_[_]",
            (
                Overload("optional_list_index_int", (optional_list, INT), _OPTIONAL),
                Overload("optional_map_index_value", (optional_map, _KEY), _OPTIONAL),
            ),
        ),
    )


def _lists() -> tuple[Function, ...]:
    optionals = list_of(_OPTIONAL)
    return (
        Function("last", (Overload("list_last", (_LIST,), _OPTIONAL, _last, True),)),
        Function("first", (Overload("list_first", (_LIST,), _OPTIONAL, _first, True),)),
        Function(
            "optional.unwrap", (Overload("optional_unwrap", (optionals,), _LIST, _unwrapped),)
        ),
        Function(
            "unwrapOpt", (Overload("optional_unwrapOpt", (optionals,), _LIST, _unwrapped, True),)
        ),
    )


# --- what they do -----------------------------------------------------------------------------


def _none() -> Optional:
    return NONE


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    """Tell whether a value is what its type starts with; opaque values never are."""
    match value:
        case None:
            return True
        case bool() | int() | float() | str() | bytes() | list() | tuple() | dict():
            return not value
        case Duration():
            return value.nanoseconds == 0
        case Timestamp():
            return value == _FIRST_MOMENT
        case _:
            return False


def _value(optional: Optional) -> Any:
    return optional.value


def _has_value(optional: Optional) -> bool:
    return optional.has_value


def _or(optional: Optional, other: Optional) -> Optional:
    return optional if optional.has_value else other


def _or_value(optional: Optional, value: Any) -> Any:
    return optional.value if optional.has_value else value


def _first(values: Values) -> Optional:
    return Optional(values[0]) if values else NONE


def _last(values: Values) -> Optional:
    return Optional(values[-1]) if values else NONE


def _unwrapped(values: Values) -> list[Any]:
    for value in values:
        if not isinstance(value, Optional):
            raise EvalError(f"value {shown(value)} is not optional")
    return [optional.value for optional in values if optional.has_value]


# --- macros -----------------------------------------------------------------------------------


def _expand_map(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    return _expand(helper, target, args, macro="optMap", wraps=True)


def _expand_flat_map(helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
    return _expand(helper, target, args, macro="optFlatMap", wraps=False)


def _expand(
    helper: MacroHelper, target: Expr | None, args: tuple[Expr, ...], *, macro: str, wraps: bool
) -> Expr:
    """Return `target.hasValue() ? (name = target.value(); transformed) : optional.none()`."""
    assert target is not None
    name, transformed = args
    if not isinstance(name, Ident):
        raise helper.error(name, f"{macro}() variable name must be a simple identifier")
    value = bind(helper, name.name, helper.member_call("value", target), transformed)
    return helper.call(
        "_?_:_",
        helper.member_call("hasValue", target),
        helper.call("optional.of", value) if wraps else value,
        helper.call("optional.none"),
    )
