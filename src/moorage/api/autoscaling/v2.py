"""autoscaling/v2: HorizontalPodAutoscalers, as they are stored."""

from __future__ import annotations

from typing import Any

from moorage.api.meta import Json, ObjectMeta
from moorage.api.structs import Int32, Int64, Open, always
from moorage.api.timestamp import Timestamp

API_VERSION = "autoscaling/v2"

DEFAULT_CPU_UTILIZATION = 80  # percent


class CrossVersionObjectReference(Open, frozen=True, gc=False):
    """The object that is scaled."""

    kind: str = always("")
    name: str = always("")
    api_version: str = ""


class HorizontalPodAutoscalerSpec(Open, frozen=True, gc=False):
    """What to scale, within which bounds, by which metrics."""

    scale_target_ref: CrossVersionObjectReference = always(CrossVersionObjectReference())
    min_replicas: Int32 | None = None
    max_replicas: Int32 = always(0)
    metrics: tuple[Json, ...] = ()
    behavior: Json = None


class HorizontalPodAutoscalerCondition(Open, frozen=True, gc=False):
    """One observed aspect of an autoscaler's state."""

    type: str = always("")
    status: str = always("")
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""
    observed_generation: Int64 | None = None


class HorizontalPodAutoscalerStatus(Open, frozen=True, gc=False):
    """How many pods there are and should be."""

    observed_generation: Int64 | None = None
    last_scale_time: Timestamp | None = None
    current_replicas: Int32 = 0
    desired_replicas: Int32 = always(0)
    current_metrics: tuple[Json, ...] | None = always(None)
    conditions: tuple[HorizontalPodAutoscalerCondition, ...] = ()


class HorizontalPodAutoscaler(Open, frozen=True, gc=False):
    """Scales a workload by metrics."""

    api_version: str = always(API_VERSION)
    kind: str = always("HorizontalPodAutoscaler")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: HorizontalPodAutoscalerSpec = always(HorizontalPodAutoscalerSpec())
    status: HorizontalPodAutoscalerStatus = always(HorizontalPodAutoscalerStatus())


def cpu_metric(percent: int) -> dict[str, Any]:
    """Return the metric of v2 that v1 has a field for."""
    target = {"type": "Utilization", "averageUtilization": percent}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}
