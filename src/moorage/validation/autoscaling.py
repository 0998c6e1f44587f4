"""The strategy of HorizontalPodAutoscalers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.autoscaling.v2 import (
    DEFAULT_CPU_UTILIZATION,
    CrossVersionObjectReference,
    HorizontalPodAutoscaler,
    cpu_metric,
)
from moorage.api.field_path import Path, root
from moorage.api.quantity import Quantity
from moorage.validation.errors import ErrorList, forbidden, invalid, not_supported, required
from moorage.validation.field_rules import each_invalid, not_negative, value_or
from moorage.validation.pod.resources import validate_container_resource_name
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")

Tree = Mapping[str, Any]

_SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_SELECT = ("Disabled", "Max", "Min")
_POLICY_TYPES = ("Percent", "Pods")
_WINDOW_S_MAX, _PERIOD_S_MAX = 3600, 1800
_UP: Tree = {
    "stabilizationWindowSeconds": 0,
    "selectPolicy": "Max",
    "policies": [
        {"type": "Pods", "value": 4, "periodSeconds": 15},
        {"type": "Percent", "value": 100, "periodSeconds": 15},
    ],
}
_DOWN: Tree = {
    "selectPolicy": "Max",
    "policies": [{"type": "Percent", "value": 100, "periodSeconds": 15}],
}


class HorizontalPodAutoscalerStrategy(ObjectStrategy[HorizontalPodAutoscaler]):
    """The strategy of HorizontalPodAutoscalers."""

    tracks_generation = True
    keeps_metadata_with_status = False

    def default(
        self,
        value: HorizontalPodAutoscaler,
        api_version: str,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> HorizontalPodAutoscaler:
        """Set the minimum, the metric and the rules of scaling."""
        spec = value.spec
        behavior = spec.behavior
        if isinstance(behavior, dict):
            behavior = {
                "scaleUp": {**_UP, **(behavior.get("scaleUp") or {})},
                "scaleDown": {**_DOWN, **(behavior.get("scaleDown") or {})},
            }
        spec = replace(
            spec,
            min_replicas=value_or(spec.min_replicas, 1),
            metrics=spec.metrics or (cpu_metric(DEFAULT_CPU_UTILIZATION),),
            behavior=behavior,
        )
        return replace(value, spec=spec)

    def validate_fields(self, new: HorizontalPodAutoscaler) -> ErrorList:
        """Validate the spec."""
        spec = new.spec
        found = not_negative(spec.min_replicas, SPEC.child("minReplicas"))
        path = SPEC.child("maxReplicas")
        if spec.min_replicas is not None and spec.max_replicas < spec.min_replicas:
            detail = "must be greater than or equal to `minReplicas`"
            found.append(invalid(path, spec.max_replicas, detail))
        found += _validate_reference(spec.scale_target_ref, SPEC.child("scaleTargetRef"))
        metrics = SPEC.child("metrics")
        for position, metric in enumerate(spec.metrics):
            found += _validate_metric(metric, metrics.index(position))
        kinds = {metric.get("type") for metric in spec.metrics}
        if spec.min_replicas == 0 and not kinds & {"Object", "External"}:
            detail = (
                "must specify at least one Object or External metric to support scaling to zero "
                "replicas"
            )
            found.append(forbidden(metrics, detail))
        for name in ("scaleUp", "scaleDown"):
            rules = (spec.behavior or {}).get(name)
            if rules is not None:
                found += _validate_rules(rules, SPEC.child("behavior", name))
        if spec.max_replicas == 0:
            found.append(required(path, declared=True))
        elif spec.max_replicas < 0:
            detail = "must be greater than or equal to 1"
            found.append(invalid(path, spec.max_replicas, detail, declared=True))
        return found

    def validate_status(
        self,
        new: HorizontalPodAutoscaler,
        old: HorizontalPodAutoscaler,  # noqa: ARG002
    ) -> ErrorList:
        """Validate the counts of pods."""
        path = root("status")
        found = not_negative(new.status.current_replicas, path.child("currentReplicas"))
        return found + not_negative(new.status.desired_replicas, path.child("desiredReplicas"))


def _validate_reference(target: CrossVersionObjectReference, path: Path) -> ErrorList:
    found: ErrorList = []
    for name, text in (("kind", target.kind), ("name", target.name)):
        if not text:
            found.append(required(path.child(name)))
        else:
            found += each_invalid(path.child(name), text, names.path_segment(text))
    version = target.api_version
    place = path.child("apiVersion")
    if version.count("/") > 1:
        found.append(invalid(place, version, f"unexpected GroupVersion string: {version}"))
    elif "/" not in version:
        is_core = target.kind == "ReplicationController" and version == "v1"
        if not is_core:
            found.append(invalid(place, version, "apiVersion must specify API group"))
    return found


def _validate_metric(metric: Tree, path: Path) -> ErrorList:
    kind = metric.get("type") or ""
    found: ErrorList = []
    if not kind:
        found.append(required(path.child("type"), "must specify a metric source type"))
    if kind not in _SOURCES:
        return [*found, not_supported(path.child("type"), kind, tuple(_SOURCES))]
    field = _SOURCES[kind]
    source = metric.get(field)
    if source is None:
        detail = "must populate information for the given metric source"
        found.append(required(path.child(field), detail))
    else:
        found += _validate_source(kind, source, path.child(field))
    for other in _SOURCES.values():
        if other != field and metric.get(other) is not None:
            detail = "must populate the given metric source only"
            found.append(forbidden(path.child(other), detail))
    return found


def _validate_source(kind: str, source: Tree, path: Path) -> ErrorList:
    target = source.get("target") or {}
    found = _validate_target(target, path.child("target"))
    place = path.child("target")
    if kind in ("Resource", "ContainerResource"):
        if not source.get("name"):
            found.append(required(path.child("name"), "must specify a resource name"))
        if kind == "ContainerResource":
            found += _validate_container(source, path)
        has = [target.get(name) is not None for name in ("averageUtilization", "averageValue")]
        if not any(has):
            detail = "must set either a target raw value or a target utilization"
            found.append(required(place.child("averageUtilization"), detail))
        if all(has):
            detail = "may not set both a target raw value and a target utilization"
            found.append(forbidden(place.child("averageValue"), detail))
        return found
    metric = source.get("metric") or {}
    name = metric.get("name") or ""
    where = path.child("metric", "name")
    found += (
        each_invalid(where, name, names.path_segment(name))
        if name
        else [required(where, "must specify a metric name")]
    )
    if kind == "Object":
        described = source.get("describedObject") or {}
        for field in ("kind", "name"):
            if not described.get(field):
                found.append(required(path.child("describedObject", field)))
    is_without = target.get("averageValue") is None
    if kind == "Pods" and is_without:
        detail = "must specify a positive target averageValue"
        found.append(required(place.child("averageValue"), detail))
    elif kind != "Pods" and is_without and target.get("value") is None:
        detail = (
            "must set either a target value or averageValue"
            if kind == "Object"
            else "must set either a target value for metric or a per-pod target"
        )
        found.append(required(place.child("averageValue"), detail))
    if kind == "External" and not is_without and target.get("value") is not None:
        detail = "may not set both a target value for metric and a per-pod target"
        found.append(forbidden(place.child("value"), detail))
    return found


def _validate_container(source: Tree, path: Path) -> ErrorList:
    """Validate which resource of which container is measured."""
    name, container = source.get("name") or "", source.get("container") or ""
    found = validate_container_resource_name(name, path.child("name")) if name else []
    place = path.child("container")
    if container:
        return found + each_invalid(place, container, names.dns1123_label(container))
    return [*found, required(place, "must specify a container")]


def _validate_target(target: Tree, path: Path) -> ErrorList:
    kind = target.get("type") or ""
    found: ErrorList = []
    if not kind:
        found.append(required(path.child("type"), "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        detail = "must be either Utilization, Value, or AverageValue"
        found.append(invalid(path.child("type"), kind, detail))
    for name in ("value", "averageValue"):
        text = target.get(name)
        if text is not None and Quantity.parse(str(text)).sign <= 0:
            found.append(invalid(path.child(name), text, "must be positive"))
    percent = target.get("averageUtilization")
    if percent is not None and percent < 1:
        found.append(invalid(path.child("averageUtilization"), percent, "must be greater than 0"))
    return found


def _validate_rules(rules: Tree, path: Path) -> ErrorList:
    found: ErrorList = []
    window = rules.get("stabilizationWindowSeconds")
    place = path.child("stabilizationWindowSeconds")
    if window is not None and window < 0:
        found.append(invalid(place, window, "must be greater than or equal to zero"))
    if window is not None and window > _WINDOW_S_MAX:
        found.append(invalid(place, window, f"must be less than or equal to {_WINDOW_S_MAX}"))
    select = rules.get("selectPolicy")
    if select is not None and select not in _SELECT:
        found.append(not_supported(path.child("selectPolicy"), select, _SELECT))
    policies = rules.get("policies") or ()
    if not policies:
        found.append(required(path.child("policies"), "must specify at least one Policy"))
    for position, policy in enumerate(policies):
        found += _validate_policy(policy, path.child("policies").index(position))
    return found


def _validate_policy(policy: Tree, path: Path) -> ErrorList:
    found: ErrorList = []
    kind, value, period = (policy.get(n) for n in ("type", "value", "periodSeconds"))
    if kind not in _POLICY_TYPES:
        found.append(not_supported(path.child("type"), kind or "", _POLICY_TYPES))
    if (value or 0) <= 0:
        found.append(invalid(path.child("value"), value or 0, "must be greater than zero"))
    place = path.child("periodSeconds")
    if (period or 0) <= 0:
        found.append(invalid(place, period or 0, "must be greater than zero"))
    elif period is not None and period > _PERIOD_S_MAX:
        found.append(invalid(place, period, f"must be less than or equal to {_PERIOD_S_MAX}"))
    return found
