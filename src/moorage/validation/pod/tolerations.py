"""Rules of tolerations, and which of them an update may change."""

from __future__ import annotations

from moorage.api import names
from moorage.api.core.placement import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE, Toleration
from moorage.api.core.pod import PodSpec
from moorage.api.field_path import Path
from moorage.validation.errors import ErrorList, forbidden, invalid, not_supported
from moorage.validation.field_rules import each, each_invalid, label_name


def validate_tolerations(tolerations: tuple[Toleration, ...], path: Path) -> ErrorList:
    """Validate tolerations."""
    return each(tolerations, _validate_toleration, path)


def _validate_toleration(toleration: Toleration, path: Path) -> ErrorList:
    found: ErrorList = []
    if toleration.key:
        found += label_name(toleration.key, path.child("key"))
    elif toleration.operator != "Exists":
        detail = (
            "operator must be Exists when `key` is empty, "
            'which means "match all values and all keys"'
        )
        found.append(invalid(path.child("operator"), toleration.operator, detail))
    if toleration.toleration_seconds is not None and toleration.effect != NO_EXECUTE:
        detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
        found.append(invalid(path.child("effect"), toleration.effect, detail))
    found += _validate_toleration_value(toleration, path)
    effects = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
    if toleration.effect and toleration.effect not in effects:
        found.append(not_supported(path.child("effect"), toleration.effect, effects))
    return found


def _validate_toleration_value(toleration: Toleration, path: Path) -> ErrorList:
    operator_path = path.child("operator")
    match toleration.operator:
        case "" | "Equal":
            messages = names.label_value(toleration.value)
            joined = [";".join(messages)] if messages else []
            return each_invalid(operator_path, toleration.value, joined)
        case "Exists" if toleration.value:
            detail = "value must be empty when `operator` is 'Exists'"
            return [invalid(operator_path, toleration.value, detail)]
        case "Exists":
            return []
        case "Lt" | "Gt":
            operators = ("Equal", "Exists", "Lt", "Gt")
            return [not_supported(operator_path, toleration.operator, operators)]
        case _:
            return [not_supported(operator_path, toleration.operator, ("Equal", "Exists"))]


def validate_added_tolerations(new: PodSpec, old: PodSpec, path: Path) -> ErrorList:
    """Validate that an update only adds tolerations, or changes their seconds."""
    kept = set(map(_without_seconds, new.tolerations))
    if any(_without_seconds(toleration) not in kept for toleration in old.tolerations):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        return [forbidden(path, detail)]
    return validate_tolerations(new.tolerations, path)


def _without_seconds(toleration: Toleration) -> tuple[str, str, str, str]:
    return toleration.key, toleration.operator, toleration.value, toleration.effect
