"""Fields that several kinds share: CEL selectors and their cost limit, parameters, taints.

Taints get their default timeAdded here; tolerations and qualified names are checked here too.
"""

from __future__ import annotations

import json
from math import isfinite

from msgspec import Raw
from msgspec.structs import replace

from moorage.api import names
from moorage.api.field_path import Path
from moorage.api.names import byte_length
from moorage.api.resource.v1 import (
    DeviceSelector,
    DeviceTaint,
    DeviceToleration,
    OpaqueDeviceConfiguration,
)
from moorage.api.structs import NULL
from moorage.api.timestamp import Timestamp
from moorage.cel.device import COST_LIMIT
from moorage.validation.errors import (
    EXPRESSIONS_BYTES_MAX,
    OMITTED,
    ErrorList,
    FieldError,
    count_compiled,
    forbidden,
    invalid,
    may_compile,
    only_declared,
    required,
    too_long,
)
from moorage.validation.field_rules import (
    declared_driver_name,
    declared_enum,
    declared_list,
    duplicates,
    each_invalid,
    identity,
    label_name,
    label_value,
)
from moorage.validation.strategy import Context, ExpressionPurpose, RejectedExpression

SELECTORS_MAX = 32
EXPRESSION_MAX_BYTES = 10 * 1024
UNPAID_PER_BYTE = 8  # of an expression, which takes as long to compile
EXPRESSION_COST_MAX = COST_LIMIT
PARAMETERS_MAX_BYTES = 10 * 1024
CONDITIONS_MAX = 4

TAINT_EFFECTS = ("NoExecute", "NoSchedule", "None")
TOLERATION_OPERATORS = ("Equal", "Exists")
NODE_OPERATIONS = ("*", "NodePrepareResources", "NodeUnprepareResources")


def validate_selector(
    selector: DeviceSelector, path: Path, context: Context, *, stored: bool = False
) -> ErrorList:
    """Validate a selector; a stored expression is not compiled again."""
    if selector.cel is None:
        return [required(path.child("cel"))]
    if stored:
        return []
    place = path.child("cel", "expression")
    return check_expression(selector.cel.expression, place, context, ExpressionPurpose.SELECTOR)[0]


def check_expression(
    expression: str, path: Path, context: Context, purpose: ExpressionPurpose
) -> tuple[ErrorList, int]:
    """Validate an expression and return the errors and its greatest cost."""
    if byte_length(expression) > EXPRESSION_MAX_BYTES:
        return [too_long(path, EXPRESSION_MAX_BYTES)], 0
    if not may_compile(expression):
        detail = f"all expressions together may not have more than {EXPRESSIONS_BYTES_MAX} bytes"
        return [forbidden(path, detail)], 0
    verdict = context.check_expression(expression, purpose)
    count_compiled(expression, verdict.unpaid // UNPAID_PER_BYTE)
    if isinstance(verdict, RejectedExpression):
        value = expression if verdict.type != "InternalError" else verdict.detail
        return [FieldError(verdict.type, path, verdict.detail, value)], 0
    if verdict.cost_max > EXPRESSION_COST_MAX:
        return [forbidden(path, "too complex, exceeds cost limit")], verdict.cost_max
    return [], verdict.cost_max


def validate_opaque(
    opaque: OpaqueDeviceConfiguration | None, path: Path, *, stored: bool = False
) -> ErrorList:
    """Validate opaque configuration, which is required."""
    place = path.child("opaque")
    if opaque is None:
        return [required(place)]
    found = declared_driver_name(opaque.driver, place.child("driver"))
    parameters = place.child("parameters")
    return found + validate_json_object(opaque.parameters, parameters, stored=stored)


def validate_json_object(raw: Raw, path: Path, *, stored: bool = False) -> ErrorList:
    """Validate that raw JSON is an object, and of limited size unless it is stored already."""
    if raw == NULL:
        return [required(path)]
    data = bytes(raw)
    if not stored and len(data) > PARAMETERS_MAX_BYTES:
        return [too_long(path, PARAMETERS_MAX_BYTES)]
    try:
        value = json.loads(data, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        return [invalid(path, OMITTED, f"error parsing data as JSON: {error}")]
    if not isinstance(value, dict):
        return [invalid(path, OMITTED, "must be a valid JSON object")]
    return []


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(f"json: cannot unmarshal number {text} into Go value of type float64")
    return number


def validate_taint(taint: DeviceTaint, old: DeviceTaint | None, path: Path) -> ErrorList:
    """Validate a taint; an unchanged effect is not validated again."""
    found = label_name(taint.key, path.child("key"))
    if taint.value:
        found += label_value(taint.value, path.child("value"))
    if old is None or old.effect != taint.effect:
        place = path.child("effect")
        if taint.effect:
            found += declared_enum(taint.effect, TAINT_EFFECTS, place)
        else:
            found.append(required(place, declared=True))
    return found


def default_taint(taint: DeviceTaint, now: Timestamp) -> DeviceTaint:
    """Return the taint with timeAdded set."""
    return taint if taint.time_added is not None else replace(taint, time_added=now.truncated())


def validate_toleration(toleration: DeviceToleration, path: Path) -> ErrorList:
    """Validate a toleration."""
    found: ErrorList = []
    if toleration.key:
        messages = names.label_name(toleration.key)
        found += each_invalid(path.child("key"), toleration.key, messages, declared=True)
    match toleration.operator:
        case "Exists":
            if toleration.value:
                detail = "must be empty for operator `Exists`"
                found.append(invalid(path.child("value"), toleration.value, detail))
        case "Equal":
            found += label_value(toleration.value, path.child("value"))
        case "":
            found.append(required(path.child("operator"), declared=True))
        case operator:
            found += declared_enum(operator, TOLERATION_OPERATORS, path.child("operator"))
    if toleration.effect:
        found += declared_enum(toleration.effect, TAINT_EFFECTS, path.child("effect"))
    return found


def validate_binding_conditions(
    conditions: tuple[str, ...], failures: tuple[str, ...], path: Path
) -> ErrorList:
    """Validate that both lists are set or neither, are disjoint, and have no duplicates."""
    if not conditions and not failures:
        return []
    conditions_path = path.child("bindingConditions")
    failures_path = path.child("bindingFailureConditions")
    found = declared_list(conditions, CONDITIONS_MAX, label_name, conditions_path)
    found += declared_list(failures, CONDITIONS_MAX, label_name, failures_path)
    found += duplicates(conditions, identity, conditions_path)
    found += duplicates(failures, identity, failures_path)
    successes = set(conditions)
    for position, failure in enumerate(failures):
        if failure in successes:
            detail = "bindingFailureConditions must not overlap with bindingConditions"
            found.append(invalid(failures_path.index(position), failure, detail))
    if not conditions:
        detail = "bindingConditions are required to use bindingFailureConditions"
        found.append(invalid(conditions_path, None, detail))
    if not failures:
        detail = "bindingFailureConditions are required to use bindingConditions"
        found.append(invalid(failures_path, None, detail))
    return found


def validate_skip_node_operations(operations: tuple[str, ...], path: Path) -> ErrorList:
    """Validate that the operations exist, and that nothing prepared stays without unpreparing."""
    if not operations:
        return []
    found: ErrorList = []
    for position, operation in enumerate(operations):
        found += declared_enum(operation, NODE_OPERATIONS, path.index(position))
    found += duplicates(operations, identity, path, declared=True)
    found = only_declared(found)
    prepare, unprepare = "NodePrepareResources", "NodeUnprepareResources"
    if prepare in operations and unprepare not in operations and "*" not in operations:
        detail = f"{prepare} cannot be skipped unless {unprepare} is also skipped"
        found.append(invalid(path, operations, detail))
    return found
