"""The class of a CEL error, read off its text: what kind of thing went wrong, and when."""

from __future__ import annotations

import re

_COMPILE: tuple[tuple[str, str], ...] = (
    (r"^must evaluate to ", "type-result"),
    (r"^program instantiation failed: error parsing regexp", "instantiation-regex"),
    (r"^program instantiation failed: type conversion error", "instantiation-constant-conversion"),
    (r"^program instantiation failed: .*overflow", "instantiation-constant-conversion"),
    (r"^program instantiation failed: no such overload", "instantiation-constant-conversion"),
    (r"^program instantiation failed", "instantiation-other"),
    (r"reserved identifier", "parse-reserved"),
    (r"unable to unescape|invalid unicode code point", "parse-literal"),
    (r"invalid (int|uint|double) literal", "parse-literal"),
    (r"Syntax error|unsupported syntax|recursion limit|expression.*exceeds", "parse"),
    (r"invalid argument to has|argument must be a simple name", "macro"),
    (r"invalid matches argument", "literal-regex"),
    (r"invalid timestamp argument", "literal-timestamp"),
    (r"invalid duration argument", "literal-duration"),
    (r"error during formatting|formatting clause|too many arguments supplied", "literal-format"),
    (r"index \d+ out of range|unexpected end of string", "literal-format"),
    (r"^compilation failed: ERROR: \S+ undefined field", "type-undefined-field"),
    (r"undefined field", "type-undefined-field"),
    (r"undeclared reference", "type-undeclared"),
    (r"found no matching overload", "type-no-matching-overload"),
    (r"cannot be range of a comprehension", "type-not-iterable"),
    (r"does not support field selection", "type-unsupported-op"),
    (r"expected type '.*' but found", "type-mismatch"),
)

_EVALUATE: tuple[tuple[str, str], ...] = (
    (r"actual cost limit exceeded", "runtime-cost"),
    (r"^attribute .*: ", "runtime-attribute-input"),
    (r"^CEL result of type|^unsupported CEL return type", "runtime-result-type"),
    (r"^(expected|unsupported) list element|^list elements must", "runtime-result-type"),
    (r"^no such key", "runtime-no-such-key"),
    (r"^no such overload", "runtime-no-such-overload"),
    (r"^NaN values", "runtime-nan-order"),
    (r"overflow", "runtime-overflow"),
    (r"^division by zero", "runtime-division-by-zero"),
    (r"^modulus by zero", "runtime-modulus-by-zero"),
    (r"^index out of", "runtime-index"),
    (r"cannot convert value to integer", "runtime-quantity-not-integer"),
    (r"expected iterable type", "runtime-not-iterable"),
    (r"optional.none\(\) dereference", "runtime-optional-none"),
    (r"^error parsing regexp", "runtime-regex"),
    (r"^type conversion error", "runtime-conversion"),
    (r"lists.range|empty list|cannot slice|error during formatting", "runtime-argument"),
    (r"quantit|character\(s\)|elements found|parse error|strconv", "runtime-parse-value"),
    (r"leading zero|is empty|Version string|short version", "runtime-parse-value"),
)


def error_class(compile_error: str | None, eval_error: str | None) -> str:
    """Return the class of the error that there is."""
    text = compile_error or eval_error or ""
    for pattern, name in _COMPILE if compile_error else _EVALUATE:
        if re.search(pattern, text):
            return name
    return "compile-other" if compile_error else "runtime-other"
