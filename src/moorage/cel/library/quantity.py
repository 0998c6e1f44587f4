"""Kubernetes' functions of quantities and versions.

    quantity('10Gi').isGreaterThan(quantity('1G'))
    semver('v1.2', true).isLessThan(semver('1.10.0'))

A sum or difference of quantities is a value of its own class, because Kubernetes makes it a
pointer, and its equality looks at the class: on the left of `==` it compares by number, on the
right it is "no such overload", whatever the number. Everything else treats both alike.

The numbers of a version go up to 2^64; as CEL's ints those above 2^63 are negative.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from moorage.api.errors import QuantityError, VersionError
from moorage.api.quantity import Format, Quantity
from moorage.api.semver import Version, parse_normalized, parse_version
from moorage.cel.lang.costs import traverses_first
from moorage.cel.lang.environment import Library, functions_of, members_of
from moorage.cel.lang.errors import EvalError, no_such_overload
from moorage.cel.lang.types import BOOL, DOUBLE, INT, STRING, struct
from moorage.cel.lang.values import wrapped_int

QUANTITY: Final = struct("kubernetes.Quantity")
SEMVER: Final = struct("kubernetes.Semver")
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
    one, two, with_int = (QUANTITY,), (QUANTITY, QUANTITY), (QUANTITY, INT)
    parsed = traverses_first()
    return Library(
        "kubernetes.quantity",
        functions=(
            functions_of(
                "quantity", ("string_to_quantity", (STRING,), QUANTITY, _parse), costs=parsed
            ),
            functions_of(
                "isQuantity", ("is_quantity_string", (STRING,), BOOL, _is_quantity), costs=parsed
            ),
            # The only one that is no member: `sign(q)`.
            functions_of("sign", ("quantity_sign", one, INT, lambda value: plain(value).sign)),
            members_of("asApproximateFloat", ("quantity_get_float", one, DOUBLE, _float)),
            members_of("asInteger", ("quantity_get_int", one, INT, _as_integer)),
            members_of("isInteger", ("quantity_is_integer", one, BOOL, _is_integer)),
            members_of("isGreaterThan", ("quantity_is_greater_than", two, BOOL, _is_greater)),
            members_of("isLessThan", ("quantity_is_less_than", two, BOOL, _is_less)),
            members_of("compareTo", ("quantity_compare_to", two, INT, _compare)),
            members_of(
                "add",
                ("quantity_add", two, QUANTITY, _add),
                ("quantity_add_int", with_int, QUANTITY, _add),
            ),
            members_of(
                "sub",
                ("quantity_sub", two, QUANTITY, _subtract),
                ("quantity_sub_int", with_int, QUANTITY, _subtract),
            ),
        ),
        python_types={Quantity: QUANTITY, CalculatedQuantity: QUANTITY},
    )


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


def _float(value: AnyQuantity) -> float:
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


def _operand(value: AnyQuantity | int) -> Quantity:
    if isinstance(value, int):
        return Quantity.from_int(value, Format.DECIMAL_EXPONENT)
    return plain(value)


def _add(value: AnyQuantity, other: AnyQuantity | int) -> CalculatedQuantity:
    return CalculatedQuantity(plain(value) + _operand(other))


def _subtract(value: AnyQuantity, other: AnyQuantity | int) -> CalculatedQuantity:
    return CalculatedQuantity(plain(value) - _operand(other))


# --- versions -------------------------------------------------------------------------------------


def semver_library() -> Library:
    """Return the library `kubernetes.Semver`, version 1."""
    one, two = (SEMVER,), (SEMVER, SEMVER)
    parsed = traverses_first()
    return Library(
        "kubernetes.Semver",
        functions=(
            functions_of(
                "semver",
                ("string_to_semver", (STRING,), SEMVER, _parse_version),
                ("string_bool_to_semver", (STRING, BOOL), SEMVER, _parse_version),
                costs=parsed,
            ),
            functions_of(
                "isSemver",
                ("is_semver_string", (STRING,), BOOL, _is_version),
                ("is_semver_string_bool", (STRING, BOOL), BOOL, _is_version),
                costs=parsed,
            ),
            members_of("isGreaterThan", ("semver_is_greater_than", two, BOOL, _is_newer)),
            members_of("isLessThan", ("semver_is_less_than", two, BOOL, _is_older)),
            members_of("compareTo", ("semver_compare_to", two, INT, Version.compare)),
            members_of("major", ("semver_major", one, INT, lambda v: wrapped_int(v.major))),
            members_of("minor", ("semver_minor", one, INT, lambda v: wrapped_int(v.minor))),
            members_of("patch", ("semver_patch", one, INT, lambda v: wrapped_int(v.patch))),
        ),
        python_types={Version: SEMVER},
    )


def _parse_version(text: str, normalize: bool = False) -> Version:
    try:
        return parse_normalized(text) if normalize else parse_version(text)
    except VersionError as error:
        raise EvalError(str(error)) from None


def _is_version(text: str, normalize: bool = False) -> bool:
    try:
        _parse_version(text, normalize)
    except EvalError:
        return False
    return True


def _is_newer(version: Version, other: Version) -> bool:
    return version.compare(other) > 0


def _is_older(version: Version, other: Version) -> bool:
    return version.compare(other) < 0
