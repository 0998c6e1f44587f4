"""Rules that apps and batch share: pod templates, selectors, update strategies.

# amount: a number of pods, or a percentage of them: 1, "25%"
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from moorage.api.apps import UpdateStrategy
from moorage.api.core.pod import PodTemplateSpec
from moorage.api.field_path import Path, root
from moorage.api.labels import Selector
from moorage.api.meta import LabelSelector
from moorage.validation.errors import (
    ErrorList,
    FieldError,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import not_negative, unchanged, validate_labels
from moorage.validation.metadata import validate_annotations as validate_annotation_names
from moorage.validation.pod.annotations import validate_template_annotations
from moorage.validation.pod.spec import validate_pod_spec
from moorage.validation.pod.strategy import drop_disabled_spec
from moorage.validation.pod.warnings import template_warnings
from moorage.validation.selectors import is_empty, selector_of, validate_label_selector
from moorage.validation.strategy import Context, ObjectStrategy

W = TypeVar("W", bound=Struct)

_NOT_SELECTED = "`selector` does not match template `labels`"


class TemplateStrategy(ObjectStrategy[W]):
    """The strategy of kinds with a pod template."""

    tracks_generation = True
    keeps_metadata_with_status = False
    set_defaults: Callable[[W], W]

    def default(self, value: W, api_version: str, context: Context) -> W:  # noqa: ARG002
        """Set every default."""
        return self.set_defaults(value)

    def validate_changes(self, new: W, old: W) -> ErrorList:
        """Validate that the selector is unchanged."""
        after, before = _spec(new), _spec(old)
        return unchanged(after.selector, before.selector, root("spec").child("selector"))

    def warnings_on_create(self, new: W) -> list[str]:
        """Return warnings about the template."""
        return template_warnings(_spec(new).template, "spec.template")

    def warnings_on_update(self, new: W, old: W) -> list[str]:
        """Return warnings about the template of a changed spec."""
        return [] if _spec(new) == _spec(old) else self.warnings_on_create(new)

    def drop_disabled_fields(self, new: W, old: W | None, context: Context) -> W:
        """Drop disabled fields of the template."""
        made: Any = new
        before: Any = old
        template: PodTemplateSpec = made.spec.template
        pod_spec = drop_disabled_spec(
            template.spec, None if before is None else before.spec.template.spec, context.gates
        )
        if pod_spec is template.spec:
            return new
        return replace(new, spec=replace(made.spec, template=replace(template, spec=pod_spec)))


def _spec(value: Any) -> Any:
    return value.spec


def validate_template(template: PodTemplateSpec, path: Path) -> ErrorList:
    """Validate a template by the rules of pods."""
    # Kubernetes omits `metadata` in these two paths.
    found = validate_labels(template.metadata.labels, path.child("labels"))
    annotations_path = path.child("annotations")
    found += validate_annotation_names(template.metadata.annotations, annotations_path)
    found += validate_template_annotations(template, path)
    found += validate_pod_spec(template.spec, None, path.child("spec"))
    if template.spec.ephemeral_containers:
        detail = "ephemeral containers not allowed in pod template"
        found.append(forbidden(path.child("spec", "ephemeralContainers"), detail))
    return found


def validate_running(template: PodTemplateSpec, kind: str, path: Path) -> ErrorList:
    """Validate that the pods of a template run until their controller deletes them."""
    found: ErrorList = []
    policy = template.spec.restart_policy
    if policy != "Always":
        found.append(not_supported(path.child("spec", "restartPolicy"), policy, ("Always",)))
    if template.spec.active_deadline_seconds is not None:
        place = path.child("spec", "activeDeadlineSeconds")
        found.append(forbidden(place, f"activeDeadlineSeconds in {kind} is not Supported"))
    return found


def validate_selector(selector: LabelSelector | None, kind: str, path: Path) -> ErrorList:
    """Validate a required selector, which must not be empty."""
    if selector is None:
        return [required(path)]
    found = validate_label_selector(selector, path)
    if is_empty(selector):
        found.append(invalid(path, selector, f"empty selector is invalid for {kind}"))
    return found


def validate_selected(
    selector: LabelSelector | None, template: PodTemplateSpec, unreadable: str, path: Path
) -> tuple[ErrorList, Selector | None]:
    """Validate that the selector matches the template; also return it, if it is valid."""
    readable = selector_of(selector)
    if readable is None:
        return [invalid(path.child("selector"), selector, unreadable)], None
    if readable.is_empty or readable.matches(template.metadata.labels):
        return [], readable
    return [_not_selected(template, path)], readable


def validate_matching(
    selector: LabelSelector | None, template: PodTemplateSpec, path: Path
) -> ErrorList:
    """Validate a selector, if it is set, and that it matches the template."""
    found = [] if selector is None else validate_label_selector(selector, path.child("selector"))
    readable = selector_of(selector)
    if readable is not None and not readable.matches(template.metadata.labels):
        found.append(_not_selected(template, path))
    return found


def _not_selected(template: PodTemplateSpec, path: Path) -> FieldError:
    labels = dict(sorted(template.metadata.labels.items()))
    return invalid(path.child("template", "metadata", "labels"), labels or None, _NOT_SELECTED)


# --- status -------------------------------------------------------------------------------


def validate_counts(status: Any, names: Iterable[str], path: Path) -> ErrorList:
    """Validate that no count is negative."""
    counts = _by_name(status)
    found: ErrorList = []
    for name in names:
        found += not_negative(counts[name], path.child(name))
    return found


def validate_at_most(status: Any, names: Iterable[str], path: Path) -> ErrorList:
    """Validate that no count is greater than status.replicas."""
    counts = _by_name(status)
    detail = "cannot be greater than status.replicas"
    return [
        invalid(path.child(name), counts[name], detail)
        for name in names
        if counts[name] > status.replicas
    ]


def validate_collisions(count: int | None, before: int | None, path: Path) -> ErrorList:
    """Validate that the collision count never decreases."""
    if before is None or (count is not None and count >= before):
        return []
    return [invalid(path.child("collisionCount"), count or 0, "cannot be decremented")]


def _by_name(status: Any) -> dict[str, Any]:
    names = zip(status.__struct_encode_fields__, status.__struct_fields__, strict=True)
    return {encoded: getattr(status, name) for encoded, name in names}


# --- update strategies --------------------------------------------------------------------

_PERCENT = "[0-9]+%"
_is_percent = re.compile(_PERCENT).fullmatch
_PERCENT_RULE = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    f"(e.g. '1%',  or '93%', regex used for validation is '{_PERCENT}')"
)
_NO_AMOUNT = "must be an integer or percentage (e.g '5%%')"

ROLLING = "RollingUpdate"
RECREATE = "Recreate"
ON_DELETE = "OnDelete"

Limits = dict[str, Any]


def validate_deployment_strategy(strategy: UpdateStrategy, path: Path) -> ErrorList:
    """Validate the update strategy of a Deployment."""
    match strategy.type:
        case "Recreate":
            if strategy.rolling_update is None:
                return []
            detail = f"may not be specified when strategy `type` is '{RECREATE}'"
            return [forbidden(path.child("rollingUpdate"), detail)]
        case "RollingUpdate":
            return _validate_limits(strategy, _validate_deployment_limits, path)
        case _:
            return [not_supported(path, _internal(strategy, _LIMITS), (RECREATE, ROLLING))]


def validate_daemon_strategy(strategy: UpdateStrategy, path: Path) -> ErrorList:
    """Validate the update strategy of a DaemonSet."""
    match strategy.type:
        case "OnDelete":
            return []
        case "RollingUpdate":
            return _validate_limits(strategy, _validate_daemon_limits, path)
        case _:
            return [not_supported(path, _internal(strategy, _LIMITS), (ROLLING, ON_DELETE))]


def validate_stateful_strategy(strategy: UpdateStrategy, path: Path) -> ErrorList:
    """Validate the update strategy of a StatefulSet."""
    match strategy.type:
        case "":
            return [required(path)]
        case "RollingUpdate":
            if strategy.rolling_update is None:
                return []
            return _validate_limits(strategy, _validate_stateful_limits, path)
        case "OnDelete":
            if strategy.rolling_update is None:
                return []
            detail = f"only allowed for updateStrategy '{ROLLING}'"
            shown = _internal(strategy, _STATEFUL_LIMITS)["RollingUpdate"]
            return [invalid(path.child("rollingUpdate"), shown, detail)]
        case _:
            detail = f"must be '{ROLLING}' or '{ON_DELETE}'"
            return [invalid(path, _internal(strategy, _STATEFUL_LIMITS), detail)]


def _validate_limits(
    strategy: UpdateStrategy, check: Callable[[Limits, Path], ErrorList], path: Path
) -> ErrorList:
    limits = strategy.rolling_update
    place = path.child("rollingUpdate")
    if limits is None:
        return [required(place)]
    if not isinstance(limits, dict):
        return [invalid(place, limits, "must be a map")]
    return check(limits, place)


def _validate_deployment_limits(limits: Limits, path: Path) -> ErrorList:
    unavailable, surge = limits.get("maxUnavailable"), limits.get("maxSurge")
    place = path.child("maxUnavailable")
    found = validate_amount(unavailable, place) + validate_amount(surge, path.child("maxSurge"))
    if _number(unavailable) == 0 and _number(surge) == 0:
        found.append(invalid(place, unavailable, "may not be 0 when `maxSurge` is 0"))
    return found + validate_share(unavailable, place)


def _validate_daemon_limits(limits: Limits, path: Path) -> ErrorList:
    unavailable, surge = limits.get("maxUnavailable"), limits.get("maxSurge")
    place, surge_place = path.child("maxUnavailable"), path.child("maxSurge")
    found = validate_amount(unavailable, place) + validate_amount(surge, surge_place)
    found += validate_share(unavailable, place) + validate_share(surge, surge_place)
    if _number(unavailable) != 0 and _number(surge) != 0:
        found.append(invalid(surge_place, surge, "may not be set when maxUnavailable is non-zero"))
    elif _number(unavailable) == 0 and _number(surge) == 0:
        found.append(required(place, "cannot be 0 when maxSurge is 0"))
    return found


def _validate_stateful_limits(limits: Limits, path: Path) -> ErrorList:
    partition = limits.get("partition")
    found: ErrorList = []
    if isinstance(partition, int):
        found += not_negative(partition, path.child("partition"))
    unavailable = limits.get("maxUnavailable")
    if unavailable is None:
        return found
    place = path.child("maxUnavailable")
    found += validate_amount(unavailable, place)
    if _number(unavailable) == 0:
        found.append(invalid(place, unavailable, "cannot be 0"))
    return found + validate_share(unavailable, place)


def validate_amount(amount: Any, path: Path) -> ErrorList:
    """Validate a number that is not negative, or a percentage."""
    match amount:
        case str():
            return [] if _is_percent(amount) else [invalid(path, amount, _PERCENT_RULE)]
        case int() if not isinstance(amount, bool):
            return not_negative(amount, path)
        case None:
            return []  # It is zero.
        case _:
            return [invalid(path, amount, _NO_AMOUNT)]


def validate_share(amount: Any, path: Path) -> ErrorList:
    """Validate that a percentage is no more than the whole."""
    if isinstance(amount, str) and _is_percent(amount) and _number(amount) > 100:
        return [invalid(path, amount, "must not be greater than 100%")]
    return []


def _number(amount: Any) -> int:
    """Return the number of an amount, or 0."""
    if isinstance(amount, str):
        digits = amount.removesuffix("%")
        is_number = digits.isascii() and digits.isdigit()
        return int(digits[:20]) if is_number else 0
    return amount if isinstance(amount, int) else 0


# The limits of an update strategy in the order of Go, with what Go prints for those not set.
_LIMITS = {"maxUnavailable": 0, "maxSurge": 0}
_STATEFUL_LIMITS = {"partition": 0, "maxUnavailable": None}


def _internal(strategy: UpdateStrategy, unset: Mapping[str, Any]) -> dict[str, Any]:
    """Return the strategy as Kubernetes prints it in errors: with the names of its Go fields."""
    limits = strategy.rolling_update
    if isinstance(limits, dict):
        ordered = {name: limits.get(name, value) for name, value in unset.items()}
        limits = {f"{name[:1].upper()}{name[1:]}": limit for name, limit in ordered.items()}
    return {"Type": strategy.type, "RollingUpdate": limits}
