"""Values that may be absent: `device.attributes['d'].?model.orValue('none')`.

The planner has its own steps for `.?name`, `[?key]`, `[key]` on an optional, `or` and `orValue`,
because they evaluate their right side only when they need it; here they are declared.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any, Final

from moorage.cel.lang.ast import Expr, Ident
from moorage.cel.lang.environment import Function, Library, Overload, functions_of, members_of
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.macros import Macro, MacroExpander, MacroExprFactory, bind
from moorage.cel.lang.time import SECONDS_MIN, Duration, Timestamp
from moorage.cel.lang.types import BOOL, DYN, INT, STRING, list_of, map_of, optional_of, param
from moorage.cel.lang.values import NONE, Optional, shown

_KEY: Final = param("K")
_VALUE: Final = param("V")
_OPTIONAL: Final = optional_of(_VALUE)
_LIST: Final = list_of(_VALUE)
_MAP: Final = map_of(_KEY, _VALUE)
_FIRST_MOMENT: Final = Timestamp.from_seconds(SECONDS_MIN)

Values = list[Any] | tuple[Any, ...]


def library() -> Library:
    """Return the library `cel.lib.optional`, version 2."""
    optional_list, optional_map, optionals = (
        optional_of(_LIST),
        optional_of(_MAP),
        list_of(_OPTIONAL),
    )
    return Library(
        "cel.lib.optional",
        functions=(
            functions_of("optional.of", ("optional_of", (_VALUE,), _OPTIONAL, Optional)),
            functions_of("optional.none", ("optional_none", (), _OPTIONAL, lambda: NONE)),
            functions_of(
                "optional.ofNonZeroValue",
                ("optional_ofNonZeroValue", (_VALUE,), _OPTIONAL, _of_non_zero),
            ),
            members_of("value", ("optional_value", (_OPTIONAL,), _VALUE, attrgetter("value"))),
            members_of(
                "hasValue", ("optional_hasValue", (_OPTIONAL,), BOOL, attrgetter("has_value"))
            ),
            members_of("or", ("optional_or_optional", (_OPTIONAL, _OPTIONAL), _OPTIONAL, _or)),
            members_of(
                "orValue", ("optional_orValue_value", (_OPTIONAL, _VALUE), _VALUE, _or_value)
            ),
            Function("_?._", (Overload("select_optional_field", (DYN, STRING), _OPTIONAL),)),
            Function(
                "_[?_]",
                (
                    Overload("list_optindex_optional_int", (_LIST, INT), _OPTIONAL),
                    Overload(
                        "optional_list_optindex_optional_int", (optional_list, INT), _OPTIONAL
                    ),
                    Overload("map_optindex_optional_value", (_MAP, _KEY), _OPTIONAL),
                    Overload(
                        "optional_map_optindex_optional_value", (optional_map, _KEY), _OPTIONAL
                    ),
                ),
            ),
            Function(
                "_[_]",
                (
                    Overload("optional_list_index_int", (optional_list, INT), _OPTIONAL),
                    Overload("optional_map_index_value", (optional_map, _KEY), _OPTIONAL),
                ),
            ),
            members_of("last", ("list_last", (_LIST,), _OPTIONAL, _last)),
            members_of("first", ("list_first", (_LIST,), _OPTIONAL, _first)),
            functions_of("optional.unwrap", ("optional_unwrap", (optionals,), _LIST, _unwrapped)),
            members_of("unwrapOpt", ("optional_unwrapOpt", (optionals,), _LIST, _unwrapped)),
        ),
        macros=(
            Macro("optMap", 2, True, _expander("optMap", wraps=True)),
            Macro("optFlatMap", 2, True, _expander("optFlatMap", wraps=False)),
        ),
        types=(optional_of(DYN),),
    )


# --- functions ------------------------------------------------------------------------------------


def _of_non_zero(value: Any) -> Optional:
    return NONE if _is_zero(value) else Optional(value)


def _is_zero(value: Any) -> bool:
    """Return whether a value is the zero value of its type; opaque values never are."""
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


def _expander(macro: str, *, wraps: bool) -> MacroExpander:
    """Return the expander of `target.macro(name, transformed)`.

    It gives `target.hasValue() ? (name = target.value(); transformed) : optional.none()`.
    """

    def expand(factory: MacroExprFactory, target: Expr | None, args: tuple[Expr, ...]) -> Expr:
        assert target is not None
        name, transformed = args
        if not isinstance(name, Ident):
            raise factory.error(name, f"{macro}() variable name must be a simple identifier")
        value = bind(factory, name.name, factory.member_call("value", target), transformed)
        return factory.call(
            "_?_:_",
            factory.member_call("hasValue", target),
            factory.call("optional.of", value) if wraps else value,
            factory.call("optional.none"),
        )

    return expand
