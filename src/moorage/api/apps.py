"""apps/v1: the controllers that keep pods running, and Scale (autoscaling/v1), their size."""

from __future__ import annotations

from moorage.api.core.pod import PodTemplateSpec
from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import Json, LabelSelector, ObjectMeta
from moorage.api.structs import Int32, Int64, Open, always
from moorage.api.timestamp import Timestamp

API_VERSION = "apps/v1"


class ControllerCondition(Open, frozen=True, gc=False):
    """One observed aspect of a controller's state."""

    type: str = always("")
    status: str = always("")
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class DeploymentCondition(Open, frozen=True, gc=False):
    """One observed aspect of a deployment's state."""

    type: str = always("")
    status: str = always("")
    last_update_time: Timestamp | None = always(None)
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class UpdateStrategy(Open, frozen=True, gc=False):
    """How old pods are replaced by new ones."""

    type: str = ""
    rolling_update: Json = None


class DeploymentSpec(Open, frozen=True, gc=False):
    """How many pods of which template, and how they are replaced."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = always(None)
    template: PodTemplateSpec = always(PodTemplateSpec())
    strategy: UpdateStrategy = always(UpdateStrategy())
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None
    paused: bool = False
    progress_deadline_seconds: Int32 | None = None


class DeploymentStatus(Open, frozen=True, gc=False):
    """How many pods there are, in which state."""

    observed_generation: Int64 = 0
    replicas: Int32 = 0
    updated_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    unavailable_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    conditions: tuple[DeploymentCondition, ...] = ()
    collision_count: Int32 | None = None


class Deployment(Open, frozen=True, gc=False):
    """Pods that are all alike, and replaced step by step when the template changes."""

    api_version: str = always(API_VERSION)
    kind: str = always("Deployment")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: DeploymentSpec = always(DeploymentSpec())
    status: DeploymentStatus = always(DeploymentStatus())


class ReplicaSetSpec(Open, frozen=True, gc=False):
    """How many pods of which template."""

    replicas: Int32 | None = None
    min_ready_seconds: Int32 = 0
    selector: LabelSelector | None = always(None)
    template: PodTemplateSpec = always(PodTemplateSpec())


class ReplicaSetStatus(Open, frozen=True, gc=False):
    """How many pods there are, in which state."""

    replicas: Int32 = always(0)
    fully_labeled_replicas: Int32 = 0
    ready_replicas: Int32 = 0
    available_replicas: Int32 = 0
    terminating_replicas: Int32 | None = None
    observed_generation: Int64 = 0
    conditions: tuple[ControllerCondition, ...] = ()


class ReplicaSet(Open, frozen=True, gc=False):
    """Pods that are all alike."""

    api_version: str = always(API_VERSION)
    kind: str = always("ReplicaSet")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ReplicaSetSpec = always(ReplicaSetSpec())
    status: ReplicaSetStatus = always(ReplicaSetStatus())


class DaemonSetSpec(Open, frozen=True, gc=False):
    """The template of which every node gets one pod."""

    selector: LabelSelector | None = always(None)
    template: PodTemplateSpec = always(PodTemplateSpec())
    update_strategy: UpdateStrategy = always(UpdateStrategy())
    min_ready_seconds: Int32 = 0
    revision_history_limit: Int32 | None = None


class DaemonSetStatus(Open, frozen=True, gc=False):
    """On how many nodes there are pods, in which state."""

    current_number_scheduled: Int32 = always(0)
    number_misscheduled: Int32 = always(0)
    desired_number_scheduled: Int32 = always(0)
    number_ready: Int32 = always(0)
    observed_generation: Int64 = 0
    updated_number_scheduled: Int32 = 0
    number_available: Int32 = 0
    number_unavailable: Int32 = 0
    collision_count: Int32 | None = None
    conditions: tuple[ControllerCondition, ...] = ()


class DaemonSet(Open, frozen=True, gc=False):
    """One pod on every node."""

    api_version: str = always(API_VERSION)
    kind: str = always("DaemonSet")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: DaemonSetSpec = always(DaemonSetSpec())
    status: DaemonSetStatus = always(DaemonSetStatus())


class StatefulSetSpec(Open, frozen=True, gc=False):
    """How many numbered pods of which template."""

    replicas: Int32 | None = None
    selector: LabelSelector | None = always(None)
    template: PodTemplateSpec = always(PodTemplateSpec())
    volume_claim_templates: tuple[Json, ...] = ()
    service_name: str = always("")
    pod_management_policy: str = ""
    update_strategy: UpdateStrategy = always(UpdateStrategy())
    revision_history_limit: Int32 | None = None
    min_ready_seconds: Int32 = 0
    persistent_volume_claim_retention_policy: Json = None
    ordinals: Json = None


class StatefulSetStatus(Open, frozen=True, gc=False):
    """How many pods there are, in which state."""

    observed_generation: Int64 = 0
    replicas: Int32 = always(0)
    ready_replicas: Int32 = 0
    current_replicas: Int32 = 0
    updated_replicas: Int32 = 0
    current_revision: str = ""
    update_revision: str = ""
    collision_count: Int32 | None = None
    conditions: tuple[ControllerCondition, ...] = ()
    available_replicas: Int32 = always(0)


class StatefulSet(Open, frozen=True, gc=False):
    """Pods with numbers and storage of their own."""

    api_version: str = always(API_VERSION)
    kind: str = always("StatefulSet")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: StatefulSetSpec = always(StatefulSetSpec())
    status: StatefulSetStatus = always(StatefulSetStatus())


class ControllerRevision(Open, frozen=True, gc=False):
    """One state of the template of a stateful set or a daemon set."""

    api_version: str = always(API_VERSION)
    kind: str = always("ControllerRevision")
    metadata: ObjectMeta = always(ObjectMeta())
    data: Json = None
    revision: Int64 = always(0)


# --- autoscaling/v1: a part of controllers, never stored --------------------------------------

SCALE_API_VERSION = "autoscaling/v1"


class ScaleSpec(Open, frozen=True, gc=False):
    """The desired number of pods."""

    replicas: Int32 = 0


class ScaleStatus(Open, frozen=True, gc=False):
    """How many pods there are, and by which labels they are found."""

    replicas: Int32 = always(0)
    selector: str = ""


class Scale(Open, frozen=True, gc=False):
    """The number of pods of a controller."""

    api_version: str = always(SCALE_API_VERSION)
    kind: str = always("Scale")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ScaleSpec = always(ScaleSpec())
    status: ScaleStatus = always(ScaleStatus())


SCALE = declare_kind(Scale, "")

KINDS: tuple[Kind, ...] = (
    declare_kind(ControllerRevision, "controllerrevisions"),
    declare_kind(DaemonSet, "daemonsets", "ds", has_status=True),
    declare_kind(Deployment, "deployments", "deploy", has_status=True),
    declare_kind(ReplicaSet, "replicasets", "rs", has_status=True),
    declare_kind(StatefulSet, "statefulsets", "sts", has_status=True),
    SCALE,
)
