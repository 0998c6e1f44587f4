"""Kubernetes' quantity functions: `quantity('10Gi').isGreaterThan(quantity('1G'))`.

A sum or difference is a value of its own class, because Kubernetes makes it a pointer, and its
equality looks at the class: on the left of `==` it compares by number, on the right it is
"no such overload", whatever the number. Everything else treats both alike.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from mooring.api.errors import QuantityError
from mooring.api.quantity import Format, Quantity
from mooring.cel.lang.declarations import Function, Library, Overload
from mooring.cel.lang.types import BOOL, DOUBLE, INT, STRING, Type, struct
from mooring.cel.lang.values import EvalError, no_such_overload
from mooring.cel.library.costs import estimates_first, traverses_first

QUANTITY: Final = struct("kubernetes.Quantity")
NOT_AN_INTEGER: Final = "cannot convert value to integer"


@dataclass(frozen=True, slots=True)
class CalculatedQuantity:
    """A quantity that `add` or `sub` made."""

    quantity: Quantity

    def __str__(self) -> str:
        return str(self.quantity)

    def cel_equal(self, other: Any) -> bool:
        """Return whether `self == other`; only a plain quantity can be on the right."""
        if not isinstance(other, Quantity):
            raise no_such_overload()
        return self.quantity == other


AnyQuantity = Quantity | CalculatedQuantity


def plain(value: AnyQuantity) -> Quantity:
    """Return the quantity in either class of value."""
    return value.quantity if isinstance(value, CalculatedQuantity) else value


def library() -> Library:
    """Return the library `kubernetes.quantity`."""
    return Library(
        "kubernetes.quantity",
        functions=(*_readers(), *_accessors(), *_comparisons(), *_sums()),
        python_types={Quantity: QUANTITY, CalculatedQuantity: QUANTITY},
    )


# --- declarations ---------------------------------------------------------------------------------


def _readers() -> tuple[Function, ...]:
    return (
        _reader("quantity", "string_to_quantity", QUANTITY, _parse),
        _reader("isQuantity", "is_quantity_string", BOOL, _is_quantity),
    )


def _accessors() -> tuple[Function, ...]:
    return (
        # The only one that is no member: `sign(q)`.
        Function("sign", (Overload("quantity_sign", (QUANTITY,), INT, _sign),)),
        _member("asApproximateFloat", "quantity_get_float", (), DOUBLE, _approximate_float),
        _member("asInteger", "quantity_get_int", (), INT, _as_integer),
        _member("isInteger", "quantity_is_integer", (), BOOL, _is_integer),
    )


def _comparisons() -> tuple[Function, ...]:
    return (
        _member("isGreaterThan", "quantity_is_greater_than", (QUANTITY,), BOOL, _is_greater),
        _member("isLessThan", "quantity_is_less_than", (QUANTITY,), BOOL, _is_less),
        _member("compareTo", "quantity_compare_to", (QUANTITY,), INT, _compare),
    )


def _sums() -> tuple[Function, ...]:
    return (
        Function(
            "add",
            (
                _overload("quantity_add", (QUANTITY,), QUANTITY, _add),
                _overload("quantity_add_int", (INT,), QUANTITY, _add_integer),
            ),
        ),
        Function(
            "sub",
            (
                _overload("quantity_sub", (QUANTITY,), QUANTITY, _subtract),
                _overload("quantity_sub_int", (INT,), QUANTITY, _subtract_integer),
            ),
        ),
    )


def _reader(name: str, id_: str, result: Type, evaluate: Callable[..., Any]) -> Function:
    overload = Overload(
        id_,
        (STRING,),
        result,
        evaluate,
        runtime_cost=traverses_first(),
        estimate=estimates_first(),
    )
    return Function(name, (overload,))


def _member(
    name: str, id_: str, args: tuple[Type, ...], result: Type, evaluate: Callable[..., Any]
) -> Function:
    return Function(name, (_overload(id_, args, result, evaluate),))


def _overload(
    id_: str, args: tuple[Type, ...], result: Type, evaluate: Callable[..., Any]
) -> Overload:
    return Overload(id_, (QUANTITY, *args), result, evaluate, is_member=True)


# --- what they do ---------------------------------------------------------------------------------


def _parse(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except QuantityError as error:
        raise EvalError(str(error)) from None


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except QuantityError:
        return False
    return True


def _sign(value: AnyQuantity) -> int:
    return plain(value).sign


def _approximate_float(value: AnyQuantity) -> float:
    return plain(value).approximate_float


def _as_integer(value: AnyQuantity) -> int:
    number = plain(value).as_int64()
    if number is None:
        raise EvalError(NOT_AN_INTEGER)
    return number


def _is_integer(value: AnyQuantity) -> bool:
    return plain(value).as_int64() is not None


def _is_greater(value: AnyQuantity, other: AnyQuantity) -> bool:
    return plain(value) > plain(other)


def _is_less(value: AnyQuantity, other: AnyQuantity) -> bool:
    return plain(value) < plain(other)


def _compare(value: AnyQuantity, other: AnyQuantity) -> int:
    return plain(value).compare(plain(other))


def _add(value: AnyQuantity, other: AnyQuantity) -> CalculatedQuantity:
    return CalculatedQuantity(plain(value) + plain(other))


def _add_integer(value: AnyQuantity, number: int) -> CalculatedQuantity:
    return CalculatedQuantity(plain(value) + _from_integer(number))


def _subtract(value: AnyQuantity, other: AnyQuantity) -> CalculatedQuantity:
    return CalculatedQuantity(plain(value) - plain(other))


def _subtract_integer(value: AnyQuantity, number: int) -> CalculatedQuantity:
    return CalculatedQuantity(plain(value) - _from_integer(number))


def _from_integer(number: int) -> Quantity:
    return Quantity.from_int(number, Format.DECIMAL_EXPONENT)
