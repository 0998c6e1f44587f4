"""Validates values by a schema, with the messages of k8s.io/kube-openapi.

A schema is compiled once to validators, one for each node, which add failures to a Result. `anyOf`
and `oneOf` report the errors of the nearest branch: the one with most successful checks
(`matches`).

Errors of values that an update leaves unchanged are ignored (ratcheting), but not those of `allOf`,
`anyOf`, `oneOf` and `not` above them.

A schema may have many alternatives, and an object many values: their product is bounded. An object
that needs more checks is refused.

# name: the path of a value as kube-openapi writes it: `spec.ports[0].name`
"""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256
from typing import Any, Final

from moorage.api.field_path import Path
from moorage.api.json_schema import Schema
from moorage.api.raw_json import go_json
from moorage.cel.lang.errors import Cancelled, EvalError
from moorage.cel.lang.regex import Regex, compile_regex
from moorage.cel.lang.unpaid_work import begin_evaluation
from moorage.kit.go_quote import go_quote
from moorage.validation.custom_resources.correlation import Correlated
from moorage.validation.custom_resources.formats import NUMBER_FORMATS, format_check
from moorage.validation.custom_resources.schema_values import (
    NOWHERE,
    Checks,
    Result,
    TooManyChecksError,
    add_fault,
    add_forbidden,
    add_required,
    add_type,
    add_whole,
    at,
    enum_key,
    format_found,
    go_number,
    is_whole,
    json_type,
    range_fault,
)
from moorage.validation.errors import (
    ErrorList,
    invalid,
    invalid_whole,
    not_supported,
    too_long,
    too_many,
)

CHARACTERS_A_CHECK: Final = 256  # that a pattern reads, as long as another check takes


class SchemaValidator:
    """The checks of one node of a schema."""

    def __init__(self, tree: Schema) -> None:
        self._types = _types_of(tree)
        self._nullable: bool = tree.get("nullable", False)
        self._format = _format_of(tree, self._types)
        self._check_format = format_check(self._format) if self._format else None
        self._tree = tree
        self._any_of = [SchemaValidator(each) for each in tree.get("anyOf", ())]
        self._one_of = [SchemaValidator(each) for each in tree.get("oneOf", ())]
        self._all_of = [SchemaValidator(each) for each in tree.get("allOf", ())]
        self._not = SchemaValidator(tree["not"]) if "not" in tree else None
        items, additional = tree.get("items"), tree.get("additionalProperties")
        self._items = SchemaValidator(items) if isinstance(items, dict) else None
        self._additional = SchemaValidator(additional) if isinstance(additional, dict) else None
        self._is_closed = additional is False
        self._properties = {
            name: SchemaValidator(each) for name, each in tree.get("properties", {}).items()
        }
        self._required: list[str] = tree.get("required", [])
        self._enum: list[Any] = tree.get("enum", [])
        self._enum_keys = frozenset(map(enum_key, self._enum))
        self._pattern = _pattern_of(tree)
        self._has_logic = bool(self._any_of or self._one_of or self._all_of or self._not)

    def errors(
        self, value: Any, base: Path | None = None, old: Correlated | None = None
    ) -> ErrorList:
        """Return the errors of a value at a path."""
        try:
            result = self._validate(value, "", old, Checks())
        except TooManyChecksError as error:
            return [invalid_whole(base or NOWHERE, str(error))]
        return [error(base) for error in result.failures.values()]

    def _validate(self, value: Any, name: str, old: Correlated | None, checks: Checks) -> Result:
        """Return what is wrong with a value, besides what an update leaves unchanged."""
        result = Result(checks)
        if value is None:
            self._validate_type(value, name, result)
            self._validate_enum(value, name, result)
        else:
            self._validate_value(value, name, result, old)
        if not result.is_valid and old is not None and old.is_unchanged:
            return Result(checks)
        return result

    def _validate_value(
        self, value: Any, name: str, result: Result, old: Correlated | None
    ) -> None:
        if self._types or self._format:
            self._validate_type(value, name, result)
            result.matches += 1
        if self._has_logic:
            self._validate_logic(value, name, result, old)
        result.matches += 2
        match value:
            case bool():
                pass
            case str():
                self._validate_text(value, name, result)
            case int() | float():
                self._validate_number(value, name, result)
                result.matches += 1
            case list():
                self._validate_items(value, name, result, old)
                result.matches += 1
        self._validate_enum(value, name, result)
        result.matches += 1
        if isinstance(value, dict):
            self._validate_members(value, name, result, old)
            result.matches += 1
        result.matches += 1

    # --- type, enum -------------------------------------------------------------------------------

    def _validate_type(self, value: Any, name: str, result: Result) -> None:
        result.matches += 1
        found = json_type(value)
        types = self._types
        if value is None:
            if types and not self._nullable:
                add_type(result, name, ",".join(types), "null")
            return
        is_same = found in types
        is_whole = found == "number" and "integer" in types and float(value).is_integer()
        is_number = found == "integer" and "number" in types
        is_plain = not isinstance(value, str | list)
        if is_plain and self._format and not (is_same or is_whole or is_number):
            add_type(result, name, self._format, format_found(value))
            return
        if not {"number", "integer"} & set(types) and self._format and not is_plain:
            return
        if not (is_same or is_whole or is_number):
            add_type(result, name, ",".join(types), found)

    def _validate_enum(self, value: Any, name: str, result: Result) -> None:
        if not self._enum:
            return
        if value is not None and enum_key(value) in self._enum_keys:
            return
        allowed, digest = self._allowed
        message = f"{name} in body should be one of {digest}"
        result.add(message, lambda base: not_supported(at(name, base), value, allowed))

    @cached_property
    def _allowed(self) -> tuple[list[str], str]:
        """The values of the enum as text, and what tells them from those of others."""
        allowed = [each if isinstance(each, str) else go_json(each) for each in self._enum]
        return allowed, sha256(repr(allowed).encode("utf-8", "surrogatepass")).hexdigest()

    # --- strings and numbers ----------------------------------------------------------------------

    def _validate_text(self, value: str, name: str, result: Result) -> None:
        tree = self._tree
        length = len(value)
        if self._pattern is not None:
            result.checks.count(length // CHARACTERS_A_CHECK)
        most, least = tree.get("maxLength"), tree.get("minLength")
        if most is not None and length > most:
            message = f"{name} in body should be at most {most} chars long"
            result.add(message, lambda base: too_long(at(name, base), most))
        elif least is not None and length < least:
            add_fault(result, name, f"should be at least {least} chars long", value)
        elif self._pattern is not None and not _matches(self._pattern, value):
            add_fault(result, name, f"should match '{tree['pattern']}'", value)
        result.matches += 1
        if self._check_format is not None:
            if not self._check_format(value):
                add_type(result, name, self._format, value)
            result.matches += 1

    def _validate_number(self, value: float, name: str, result: Result) -> None:
        tree = self._tree
        fault = range_fault(value, self._types, self._format, name)
        if fault:
            add_whole(result, fault)
        factor = tree.get("multipleOf")
        if factor is not None:
            self._validate_multiple(value, factor, name, result)
        least, most = tree.get("minimum"), tree.get("maximum")
        if least is not None:
            bound = int(least) if isinstance(value, int) else least
            is_open = tree.get("exclusiveMinimum", False)
            if value < bound or (is_open and value == bound):
                words = "should be greater than" + ("" if is_open else " or equal to")
                add_fault(result, name, f"{words} {go_number(bound)}", value)
        if most is not None:
            bound = int(most) if isinstance(value, int) else most
            is_open = tree.get("exclusiveMaximum", False)
            if value > bound or (is_open and value == bound):
                words = "should be less than" + ("" if is_open else " or equal to")
                add_fault(result, name, f"{words} {go_number(bound)}", value)
        result.matches += 1

    def _validate_multiple(self, value: float, factor: float, name: str, result: Result) -> None:
        factor = int(factor) if isinstance(value, int) else factor
        if factor <= 0:
            words = f"factor MultipleOf declared for {name} must be positive: {go_number(factor)}"
            result.add(words, lambda base: invalid(at(name, base), factor, words))
            return
        quotient = 1 / factor * value if factor < 1 else value / factor
        is_multiple = value % factor == 0 if isinstance(value, int) else is_whole(quotient)
        if not is_multiple:
            add_fault(result, name, f"should be a multiple of {go_number(factor)}", value)

    # --- lists and maps ---------------------------------------------------------------------------

    def _validate_items(
        self, value: list[Any], name: str, result: Result, old: Correlated | None
    ) -> None:
        if self._items is not None:
            for index, item in enumerate(value):
                before = None if old is None else old.index(index)
                inner = f"{name}[{index}]"
                result.merge(self._items._validate(item, inner, before, result.checks))
        least, most = self._tree.get("minItems"), self._tree.get("maxItems")
        size = len(value)
        if least is not None and size < least:
            add_fault(result, name, f"should have at least {least} items", size)
        if most is not None and size > most:
            message = f"{name} in body should have at most {most} items"
            result.add(message, lambda base: too_many(at(name, base), size, most))
        result.matches += 1

    def _validate_members(
        self, value: dict[str, Any], name: str, result: Result, old: Correlated | None
    ) -> None:
        least, most = self._tree.get("minProperties"), self._tree.get("maxProperties")
        size = len(value)
        if least is not None and size < least:
            add_fault(result, name, f"should have at least {least} properties", size)
        if most is not None and size > most:
            message = f"{name} in body should have at most {most} properties"
            result.add(message, lambda base: too_many(at(name, base), size, most))
        for key, member in value.items():
            validator = self._properties.get(key)
            inner = f"{name}.{key}" if name else key
            if validator is None and self._is_closed:
                add_forbidden(result, name, key)
            elif validator is None and self._additional is not None:
                validator, inner = self._additional, f"{name}.{key}"
            if validator is not None:
                is_type = not name and key in ("apiVersion", "kind")
                before = None if old is None or is_type else old.key(key)
                result.merge(validator._validate(member, inner, before, result.checks))
        for key in self._required:
            if key not in value:
                add_required(result, f"{name}.{key}")

    # --- logic ------------------------------------------------------------------------------------

    def _validate_logic(
        self, value: Any, name: str, result: Result, old: Correlated | None
    ) -> None:
        shown = go_quote(name)
        if self._any_of:
            self._validate_any(value, name, result, old)
        if self._one_of:
            self._validate_one(value, name, result, old)
        if self._all_of:
            valid = 0
            for validator in self._all_of:
                found = validator._unratcheted(value, name, old, result.checks)
                valid += found.is_valid
                result.merge(found)
            if valid != len(self._all_of):
                more = "" if valid else ". None validated"
                add_whole(result, f"{shown} must validate all the schemas (allOf){more}")
        inverse = self._not
        if inverse and inverse._unratcheted(value, name, old, result.checks).is_valid:
            add_whole(result, f"{shown} must not validate the schema (not)")

    def _unratcheted(self, value: Any, name: str, old: Correlated | None, checks: Checks) -> Result:
        """Return what a branch finds; values below it may still be what they were."""
        if value is None:
            return self._validate(value, name, None, checks)
        result = Result(checks)
        self._validate_value(value, name, result, old)
        return result

    def _validate_any(self, value: Any, name: str, result: Result, old: Correlated | None) -> None:
        nearest: Result | None = None
        for validator in self._any_of:
            found = validator._unratcheted(value, name, old, result.checks)
            if found.is_valid:
                result.merge(found)
                return
            if nearest is None or found.matches > nearest.matches:
                nearest = found
        add_whole(result, f"{go_quote(name)} must validate at least one schema (anyOf)")
        if nearest is not None:
            result.merge(nearest)

    def _validate_one(self, value: Any, name: str, result: Result, old: Correlated | None) -> None:
        results = [each._unratcheted(value, name, old, result.checks) for each in self._one_of]
        valid = [found for found in results if found.is_valid]
        if len(valid) == 1:
            result.merge(valid[0])
            return
        fact = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        words = f"{go_quote(name)} must validate one and only one schema (oneOf). {fact}"
        add_whole(result, words)
        if not valid:
            result.merge(max(results, key=lambda found: found.matches))


# --- parts of schemas -----------------------------------------------------------------------------


def _types_of(tree: Schema) -> tuple[str, ...]:
    if tree.get("x-kubernetes-int-or-string"):
        return ("integer", "string")
    return (tree["type"],) if "type" in tree else ()


def _format_of(tree: Schema, types: tuple[str, ...]) -> str:
    """Return the format of a schema if it says something about its type."""
    name: str = tree.get("format", "")
    only = types[0] if len(types) == 1 else ""
    if only in NUMBER_FORMATS:
        return name if name in NUMBER_FORMATS[only] else ""
    return name if only in ("", "string") and format_check(name) is not None else ""


def _pattern_of(tree: Schema) -> Regex | None:
    if "pattern" not in tree:
        return None
    begin_evaluation()
    try:
        return compile_regex(tree["pattern"])
    except (EvalError, Cancelled):
        return None  # The definition is refused.


def _matches(pattern: Regex, text: str) -> bool:
    begin_evaluation()
    try:
        return pattern.search(text)
    except Cancelled:
        return False
