"""Results of schema validation, and values as kube-openapi names them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Final

from moorage.api.field_path import Path
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import ErrorType, FieldError, invalid, required

ERRORS_MAX: Final = 1000  # of one value: nobody reads more
CHECKS_MAX: Final = 1_000_000  # of one value: some seconds
NOWHERE: Final = Path("<nil>")  # as Go prints the path of the whole object

MakeError = Callable[[Path | None], FieldError]  # of a failure, below a base path


class TooManyChecksError(Exception):
    """An object that is too much work for its schema."""


class Checks:
    """Counts the values that were checked by nodes of a schema; too many raise an error."""

    __slots__ = ("_left",)

    def __init__(self, most: int = CHECKS_MAX) -> None:
        self._left = most

    def count(self, checks: int = 1) -> None:
        """Count some more."""
        self._left -= checks
        if self._left < 0:
            fact = f"more than {CHECKS_MAX:,} checks by the schema and its alternatives"
            raise TooManyChecksError(fact)


class Result:
    """The failures, and the number of successful checks."""

    __slots__ = ("checks", "failures", "matches")

    def __init__(self, checks: Checks) -> None:
        """Count one check."""
        checks.count()
        self.checks = checks
        self.failures: dict[str, MakeError] = {}  # each message once
        self.matches = 0

    @property
    def is_valid(self) -> bool:
        """Whether nothing was found."""
        return not self.failures

    def add(self, message: str, error: MakeError) -> None:
        """Add a failure, unless it has been added already."""
        if len(self.failures) < ERRORS_MAX:
            self.failures.setdefault(message, error)

    def merge(self, other: Result) -> None:
        """Add all of another result."""
        for message, error in other.failures.items():
            self.add(message, error)
        self.matches += other.matches


def at(name: str, base: Path | None) -> Path:
    """Return the path of a name below a base."""
    name = name.removeprefix(".")
    if not name:
        return base or NOWHERE
    return Path(name, base)


# --- values ---------------------------------------------------------------------------------------


def json_type(value: Any) -> str:
    """Return the type of a value as schemas name it."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def go_number(value: float) -> str:
    """Return a number as Go's %v prints it."""
    if isinstance(value, int):
        return str(value)
    if math.isfinite(value) and value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    mantissa, e, exponent = repr(value).partition("e")
    if not e:
        return mantissa
    return f"{mantissa.removesuffix('.0')}e{exponent[0]}{exponent[1:].rjust(2, '0')}"


def format_found(value: Any) -> str:
    """Return the format of a value's Go type."""
    if isinstance(value, bool):
        return ""
    return {"integer": "int64", "number": "float64"}.get(json_type(value), "")


def is_whole(value: float) -> bool:
    """Return whether a quotient is an integer, except for rounding."""
    return math.isfinite(value) and abs(value - round(value)) < 1e-9 * max(1.0, abs(value))


def enum_key(value: Any) -> object:
    """Return what equal values of enums have in common; 1 and 1.0 are equal, 1 and true are not."""
    match value:
        case bool():
            return "bool", value
        case list():
            return "list", tuple(map(enum_key, value))
        case dict():
            return "map", frozenset((name, enum_key(each)) for name, each in value.items())
    return value


def range_fault(value: float, types: tuple[str, ...], name: str, place: str) -> str:
    """Return why a number does not fit its type; empty if it does."""
    only = types[0] if len(types) == 1 else ""
    bits = 32 if name == "int32" else 64
    if only == "integer":
        is_whole = isinstance(value, int) or value.is_integer()
        if is_whole and -(2 ** (bits - 1)) <= value < 2 ** (bits - 1):
            return ""
        kind = f"with format {name}" if name else "(default format)"
        return f"Checked value must be of type integer {kind} in {place}"
    if name == "float" and abs(value) > 3.4028235677973366e38:
        return f"Checked value must be of type number with format float in {place}"
    return ""


# --- failures -------------------------------------------------------------------------------------


def add_fault(result: Result, name: str, words: str, value: Any) -> None:
    """Add a failure about a value."""
    message = f"{name} in body {words}"
    result.add(message, lambda base: invalid(at(name, base), value, message))


def add_type(result: Result, name: str, wanted: str, found: str) -> None:
    """Add that a value has another type than wanted."""
    message = f"{name} in body must be of type {wanted}: {go_quote(found)}"
    result.add(
        message,
        lambda base: FieldError(ErrorType.TYPE_INVALID, at(name, base), message, found),
    )


def add_whole(result: Result, message: str) -> None:
    """Add a failure that Kubernetes reports without its path."""
    result.add(message, lambda base: invalid(base or NOWHERE, "", message))


def add_required(result: Result, name: str) -> None:
    """Add that a property is missing."""
    result.add(f"{name} in body is required", lambda base: required(at(name, base)))


def add_forbidden(result: Result, name: str, key: str) -> None:
    """Add that a property must not be there."""
    message = f"{name}.{key} in body is a forbidden property"
    result.add(message, lambda base: invalid(at(name, base), key, message))
