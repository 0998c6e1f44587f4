"""Field errors: values, gathered in an ErrorList, with Kubernetes' types and texts.

An object of a few megabytes can break a million rules. So `first_errors` ends a validation that
has found enough, and `shown_errors` keeps as many as a response can show. It also bounds the CEL
expressions that one validation compiles.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextvars import ContextVar
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from moorage.api.codec import encode_sorted_json
from moorage.api.field_path import Path
from moorage.api.quantity import Quantity
from moorage.api.raw_json import go_json
from moorage.api.timestamp import Timestamp
from moorage.kit.go_quote import go_quote

OMITTED = "<value omitted>"
ERRORS_MAX = 1000  # that a validation finds before it ends
EXPRESSIONS_BYTES_MAX = 128 * 1024  # of the CEL expressions that a validation compiles
TEXT_BYTES_MAX = 1024 * 1024  # of all errors that are shown


class ErrorType(StrEnum):
    """The type of a field error, as it appears in the causes of a Status."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    DUPLICATE = "FieldValueDuplicate"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    NOT_FOUND = "FieldValueNotFound"
    TYPE_INVALID = "FieldValueTypeInvalid"
    INTERNAL = "InternalError"


_PHRASES = {
    ErrorType.REQUIRED: "Required value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.NOT_FOUND: "Not found",
    ErrorType.TYPE_INVALID: "Invalid value",
    ErrorType.INTERNAL: "Internal error",
}
_WITHOUT_VALUE = {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL}


class FieldError(Struct, frozen=True):
    """One rule that one field breaks.

    `declared` marks rules of declarative validation. Kubernetes reports those with the path in the
    version that the user wrote, all others with the path in v1. `alone` marks declared rules
    without a handwritten twin: an update that leaves the field unchanged does not break them.
    """

    type: ErrorType
    path: Path
    detail: str = ""
    bad_value: Any = ""
    declared: bool = False
    alone: bool = False

    def __post_init__(self) -> None:
        work = _work.get()
        if work is not None:
            work.errors.append(self)
            if len(work.errors) >= ERRORS_MAX:
                raise EnoughErrors

    @property
    def field(self) -> str:
        """The path as text."""
        return str(self.path)

    @property
    def body(self) -> str:
        """The text without the path."""
        text = _PHRASES[self.type]
        if self.type not in _WITHOUT_VALUE and self.bad_value is not OMITTED:
            value = self.bad_value
            # Kubernetes has types of their own for sets of words, and prints these as JSON.
            is_word = self.type is ErrorType.NOT_SUPPORTED and isinstance(value, str)
            text += f": {go_json(value) if is_word else shown(value)}"
        return f"{text}: {self.detail}" if self.detail else text

    def __str__(self) -> str:
        return f"{self.path}: {self.body}"


ErrorList = list[FieldError]


class EnoughErrors(Exception):  # noqa: N818  # it ends a validation, and is no fault
    """A validation has found as many errors as anybody will read."""


class _Work:
    """What one validation has done so far."""

    def __init__(self) -> None:
        self.errors: ErrorList = []
        self.warnings: list[str] = []
        self.expressions: dict[str, int] = {}  # bytes, or more if compiling took longer
        self.expressions_bytes = 0


_work: ContextVar[_Work | None] = ContextVar("_work", default=None)


def first_errors(validate: Callable[[], ErrorList], warnings: list[str] | None = None) -> ErrorList:
    """Return the errors that a validation finds; it ends when it has found ERRORS_MAX.

    `warnings` gets the text of errors that it ignores.
    """
    work = _Work()
    if warnings is not None:
        work.warnings = warnings
    before = _work.set(work)
    try:
        return validate()
    except EnoughErrors:
        return work.errors
    finally:
        _work.reset(before)


def ignore(error: FieldError) -> None:
    """Turn an error into a warning."""
    work = _work.get()
    if work is not None:
        work.warnings.append(str(error))


def may_compile(expression: str) -> bool:
    """Return whether a validation may compile one more expression; the same one counts once."""
    work = _work.get()
    if work is None or expression in work.expressions:
        return True
    size = work.expressions[expression] = len(expression.encode("utf-8", "replace"))
    work.expressions_bytes += size
    return work.expressions_bytes <= EXPRESSIONS_BYTES_MAX


def count_compiled(expression: str, size: int) -> None:
    """Count an expression by this size if it is more than its length."""
    work = _work.get()
    if work is not None and size > work.expressions[expression]:
        work.expressions_bytes += size - work.expressions[expression]
        work.expressions[expression] = size


def shown_errors(errors: Iterable[FieldError]) -> Iterator[FieldError]:
    """Yield errors until their texts are too long, all together; at least one."""
    size = 0
    for error in errors:
        yield error
        size += len(error.body)
        if size > TEXT_BYTES_MAX:
            return


def required(path: Path, detail: str = "", *, declared: bool = False) -> FieldError:
    """The value is missing."""
    return FieldError(ErrorType.REQUIRED, path, detail, declared=declared)


def invalid(path: Path, value: Any, detail: str, *, declared: bool = False) -> FieldError:
    """The value breaks a rule."""
    return FieldError(ErrorType.INVALID, path, detail, value, declared)


def invalid_whole(path: Path, detail: str) -> FieldError:
    """The value breaks a rule, and is too long to be printed."""
    return FieldError(ErrorType.INVALID, path, detail, OMITTED)


def duplicate(path: Path, value: Any, *, declared: bool = False) -> FieldError:
    """The list contains the value already."""
    return FieldError(ErrorType.DUPLICATE, path, "", value, declared)


def not_supported(
    path: Path, value: Any, supported: Sequence[str], *, declared: bool = False
) -> FieldError:
    """The value is not one of the supported ones."""
    detail = "supported values: " + ", ".join(go_quote(text) for text in supported)
    return FieldError(ErrorType.NOT_SUPPORTED, path, detail, value, declared)


def forbidden(path: Path, detail: str, *, declared: bool = False) -> FieldError:
    """The value may not be set here."""
    return FieldError(ErrorType.FORBIDDEN, path, detail, declared=declared)


def too_long(
    path: Path, length_max: int, *, unit: str = "byte", declared: bool = False
) -> FieldError:
    """The text is longer than it may be."""
    detail = f"may not be more than {_counted(length_max, unit)}"
    return FieldError(ErrorType.TOO_LONG, path, detail, OMITTED, declared)


def too_many(path: Path, actual: int, items_max: int, *, declared: bool = False) -> FieldError:
    """The list is longer than it may be."""
    detail = f"must have at most {_counted(items_max, 'item')}"
    return FieldError(ErrorType.TOO_MANY, path, detail, actual, declared)


def not_found(path: Path, value: Any) -> FieldError:
    """The value names something that does not exist."""
    return FieldError(ErrorType.NOT_FOUND, path, "", value)


def internal(path: Path, detail: str) -> FieldError:
    """The rule could not be checked."""
    return FieldError(ErrorType.INTERNAL, path, detail, detail)


def only_declared(errors: ErrorList) -> ErrorList:
    """Return the errors of declared rules, marked as having no handwritten twin."""
    return [replace(error, alone=True) for error in errors if error.declared]


def shown(value: Any) -> str:
    """Return a value as Kubernetes prints it in an error."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | float():
            return str(value)
        case str() | Quantity() | Timestamp():
            return go_quote(str(value))
        case Struct():
            return encode_sorted_json(value).decode()
        case list() | tuple():
            return "[" + ",".join(map(shown, value)) + "]"
        case dict():
            return go_json(value)
        case _:
            return msgspec.json.encode(value).decode()


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
