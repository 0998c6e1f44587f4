"""HorizontalPodAutoscalers in both versions, and conversion between these.

v1 knows one metric, the use of CPU. What else v2 has travels through v1 in annotations, in the form
that v1 has for it, so that a client of v1 that writes an object back loses nothing.
"""

from __future__ import annotations

import json
from typing import Any

from msgspec.structs import replace

from moorage.api.autoscaling import v2
from moorage.api.codec import decode_tree, to_tree
from moorage.api.errors import DecodeError
from moorage.api.kinds import Kind, declare_versions
from moorage.api.meta import Json, ObjectMeta
from moorage.api.structs import Int32, Int64, Open, always, named
from moorage.api.timestamp import Timestamp

V1 = "autoscaling/v1"

METRICS = "autoscaling.alpha.kubernetes.io/metrics"  # annotations
CURRENT_METRICS = "autoscaling.alpha.kubernetes.io/current-metrics"
CONDITIONS = "autoscaling.alpha.kubernetes.io/conditions"
BEHAVIOR = "autoscaling.alpha.kubernetes.io/behavior"
_ANNOTATIONS = frozenset({METRICS, CURRENT_METRICS, CONDITIONS, BEHAVIOR})


# --- v1: what differs from v2 ------------------------------------------------------------------


class HorizontalPodAutoscalerSpec(Open, frozen=True, gc=False):
    """What to scale, within which bounds, by which use of CPU."""

    scale_target_ref: v2.CrossVersionObjectReference = always(v2.CrossVersionObjectReference())
    min_replicas: Int32 | None = None
    max_replicas: Int32 = always(0)
    target_cpu_utilization_percentage: Int32 | None = named("targetCPUUtilizationPercentage", None)


class HorizontalPodAutoscalerStatus(Open, frozen=True, gc=False):
    """How many pods there are and should be."""

    observed_generation: Int64 | None = None
    last_scale_time: Timestamp | None = None
    current_replicas: Int32 = always(0)
    desired_replicas: Int32 = always(0)
    current_cpu_utilization_percentage: Int32 | None = named(
        "currentCPUUtilizationPercentage", None
    )


class HorizontalPodAutoscaler(Open, frozen=True, gc=False):
    """Scales a workload by its use of CPU."""

    api_version: str = always(V1)
    kind: str = always("HorizontalPodAutoscaler")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: HorizontalPodAutoscalerSpec = always(HorizontalPodAutoscalerSpec())
    status: HorizontalPodAutoscalerStatus = always(HorizontalPodAutoscalerStatus())


KINDS: tuple[Kind, ...] = tuple(
    replace(kind, short_names=("hpa",))
    for kind in declare_versions(
        {
            v2.API_VERSION: v2.HorizontalPodAutoscaler,
            V1: HorizontalPodAutoscaler,
        },
        "horizontalpodautoscalers",
        hub_version=v2.API_VERSION,
        namespaced=True,
        has_status=True,
    )
)


# --- conversion --------------------------------------------------------------------------------


def to_hub(value: Any) -> v2.HorizontalPodAutoscaler:
    """Return an autoscaler as v2 has it."""
    if not isinstance(value, HorizontalPodAutoscaler):
        return replace(value, api_version=v2.API_VERSION)  # type: ignore[no-any-return]
    spec, status, kept = value.spec, value.status, value.metadata.annotations
    percent = spec.target_cpu_utilization_percentage
    own = () if percent is None else (v2.cpu_metric(percent),)
    metrics = (*map(_metric_from_v1, _read(kept, METRICS, list)), *own)
    current = status.current_cpu_utilization_percentage
    current_metrics = tuple(map(_status_from_v1, _read(kept, CURRENT_METRICS, list)))
    if not current_metrics and current is not None:
        current_metrics = (_cpu_status(current),)
    annotations = {key: text for key, text in kept.items() if key not in _ANNOTATIONS}
    return v2.HorizontalPodAutoscaler(
        metadata=replace(value.metadata, annotations=annotations),
        spec=v2.HorizontalPodAutoscalerSpec(
            scale_target_ref=spec.scale_target_ref,
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            metrics=metrics or (v2.cpu_metric(v2.DEFAULT_CPU_UTILIZATION),),
            behavior=_read(kept, BEHAVIOR, dict) or None,
        ),
        status=v2.HorizontalPodAutoscalerStatus(
            observed_generation=status.observed_generation,
            last_scale_time=status.last_scale_time,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            current_metrics=current_metrics or None,
            conditions=_conditions(_read(kept, CONDITIONS, list)),
        ),
    )


def from_hub(value: v2.HorizontalPodAutoscaler, api_version: str) -> Any:
    """Return a stored autoscaler in another version."""
    if api_version != V1:
        return replace(value, api_version=api_version)
    spec, status = value.spec, value.status
    percents = [p for p in map(_cpu_percent, spec.metrics) if p is not None]
    used = [p for p in map(_cpu_used, status.current_metrics or ()) if p is not None]
    others = [_metric_to_v1(metric) for metric in spec.metrics if _cpu_percent(metric) is None]
    written: dict[str, Any] = {
        METRICS: others,
        CURRENT_METRICS: _measured_besides(status.current_metrics or (), used),
        BEHAVIOR: spec.behavior,
        CONDITIONS: [to_tree(condition) for condition in status.conditions],
    }
    annotations = {
        key: text for key, text in value.metadata.annotations.items() if key not in _ANNOTATIONS
    }
    annotations |= {key: _text(tree) for key, tree in written.items() if tree}
    return HorizontalPodAutoscaler(
        metadata=replace(value.metadata, annotations=annotations),
        spec=HorizontalPodAutoscalerSpec(
            scale_target_ref=spec.scale_target_ref,
            min_replicas=spec.min_replicas,
            max_replicas=spec.max_replicas,
            target_cpu_utilization_percentage=percents[0] if percents else None,
        ),
        status=HorizontalPodAutoscalerStatus(
            observed_generation=status.observed_generation,
            last_scale_time=status.last_scale_time,
            current_replicas=status.current_replicas,
            desired_replicas=status.desired_replicas,
            current_cpu_utilization_percentage=used[0] if used else None,
        ),
    )


def _cpu_status(percent: int) -> dict[str, Any]:
    current = {"averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "current": current}}


def _cpu_percent(metric: Any) -> int | None:
    match metric:
        case {"type": "Resource", "resource": {"name": "cpu", "target": {**target}}}:
            percent = target.get("averageUtilization")
            return percent if isinstance(percent, int) else None
    return None


def _cpu_used(metric: Any) -> int | None:
    match metric:
        case {"type": "Resource", "resource": {"name": "cpu", "current": {**current}}}:
            percent = current.get("averageUtilization")
            return percent if isinstance(percent, int) else None
    return None


def _measured_besides(metrics: tuple[Json, ...], used: list[int]) -> list[Json]:
    """Return what was measured, if it is more than v1 has a field for."""
    if used and metrics == (_cpu_status(used[0]),):
        return []
    return [_status_to_v1(metric) for metric in metrics]


def _conditions(trees: list[Any]) -> tuple[v2.HorizontalPodAutoscalerCondition, ...]:
    try:
        return tuple(decode_tree(tree, v2.HorizontalPodAutoscalerCondition).value for tree in trees)
    except DecodeError:
        return ()


def _read(annotations: dict[str, str], key: str, wanted: type) -> Any:
    """Return the JSON of an annotation; text that is no such JSON counts as nothing."""
    try:
        tree = json.loads(annotations.get(key) or "null")
    except (ValueError, RecursionError):
        return wanted()
    return tree if isinstance(tree, wanted) else wanted()


def _text(tree: Any) -> str:
    return json.dumps(tree, separators=(",", ":"))


# The names that v1 has for what a metric of v2 targets, and for what was measured.
_TARGETS = {"averageUtilization": "targetAverageUtilization", "averageValue": "targetAverageValue"}
_MEASURED = {
    "averageUtilization": "currentAverageUtilization",
    "averageValue": "currentAverageValue",
}


def _metric_to_v1(metric: Any) -> Any:
    return _converted(metric, "target", {**_TARGETS, "value": "targetValue"})


def _status_to_v1(metric: Any) -> Any:
    return _converted(metric, "current", {**_MEASURED, "value": "currentValue"})


def _converted(metric: Any, part: str, names: dict[str, str]) -> Any:
    if not isinstance(metric, dict):
        return metric
    result: dict[str, Any] = {"type": metric.get("type", "")}
    for key, source in metric.items():
        if key == "type" or not isinstance(source, dict):
            continue
        flat = {name: source[name] for name in ("name", "container") if name in source}
        identifier = source.get("metric") or {}
        if identifier:
            flat["metricName"] = identifier.get("name", "")
            if identifier.get("selector") is not None:
                flat["metricSelector" if key == "external" else "selector"] = identifier["selector"]
        if key == "object":
            flat["target"] = source.get("describedObject") or {}
        values = {k: v for k, v in (source.get(part) or {}).items() if k != "type"}
        own = names | ({"averageValue": "averageValue"} if key == "object" else {})
        flat |= {own[k]: v for k, v in values.items() if k in own}
        result[key] = flat
    return result


def _metric_from_v1(metric: Any) -> Any:
    return _restored(metric, "target", {**_TARGETS, "value": "targetValue"})


def _status_from_v1(metric: Any) -> Any:
    return _restored(metric, "current", {**_MEASURED, "value": "currentValue"})


def _restored(metric: Any, part: str, names: dict[str, str]) -> Any:
    if not isinstance(metric, dict):
        return {"type": ""}
    result: dict[str, Any] = {"type": metric.get("type", "")}
    for key, flat in metric.items():
        if key == "type" or not isinstance(flat, dict):
            continue
        source = {name: flat[name] for name in ("name", "container") if name in flat}
        if "metricName" in flat:
            selector = flat.get("metricSelector" if key == "external" else "selector")
            source["metric"] = {"name": flat["metricName"]}
            if selector is not None:
                source["metric"]["selector"] = selector
        if key == "object":
            source["describedObject"] = flat.get("target") or {}
        own = names | ({"averageValue": "averageValue"} if key == "object" else {})
        values = {k: flat[name] for k, name in own.items() if name in flat}
        if part == "target":
            values["type"] = _target_type(values)
        source[part] = values
        result[key] = source
    return result


def _target_type(values: dict[str, Any]) -> str:
    if "averageUtilization" in values:
        return "Utilization"
    return "Value" if "value" in values and "averageValue" not in values else "AverageValue"
