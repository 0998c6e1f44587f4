"""ReplicationControllers, which ReplicaSets replaced, and PodTemplates.

The scheduler reads ReplicationControllers: pods that one of them selects are spread over nodes and
zones.
"""

from __future__ import annotations

from msgspec import field

from moorage.api.core.pod import API_VERSION, PodTemplateSpec
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Int32, Int64, Open, always
from moorage.api.timestamp import Timestamp


class ReplicationControllerSpec(Open, frozen=True, gc=False):
    """The number of pods, and their template."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: dict[str, str] = field(default_factory=dict)
    template: PodTemplateSpec | None = None


class ReplicationControllerCondition(Open, frozen=True, gc=False):
    """One observed aspect of a controller's state."""

    type: str = always("")
    status: str = always("")
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class ReplicationControllerStatus(Open, frozen=True, gc=False):
    """How many pods there are, in which state."""

    replicas: Int32 = always(0)
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    observed_generation: Int64 = 0
    conditions: tuple[ReplicationControllerCondition, ...] = ()


class ReplicationController(Open, frozen=True, gc=False):
    """Keeps a number of equal pods running; ReplicaSets replaced it."""

    api_version: str = always(API_VERSION)
    kind: str = always("ReplicationController")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ReplicationControllerSpec = always(ReplicationControllerSpec())
    status: ReplicationControllerStatus = always(ReplicationControllerStatus())


class PodTemplate(Open, frozen=True, gc=False):
    """A stored template of pods."""

    api_version: str = always(API_VERSION)
    kind: str = always("PodTemplate")
    metadata: ObjectMeta = always(ObjectMeta())
    template: PodTemplateSpec = always(PodTemplateSpec())
