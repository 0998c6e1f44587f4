"""scheduling.k8s.io/v1alpha2, the form of Kubernetes 1.36.

Kubernetes 1.37 no longer serves it; the concept page still uses it, so we do. It differs from
v1beta1 in two places: a group names its template as `podGroupTemplateRef.workload`, and the
disruption mode is a string. Fields that came later are carried under their later names, so that
reading an object in this version and writing it back loses nothing.
"""

from __future__ import annotations

from moorage.api.meta import ObjectMeta
from moorage.api.scheduling.v1beta1 import (
    CompositePodGroupTemplate,
    PodGroupResourceClaim,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupStatus,
    TypedLocalObjectReference,
)
from moorage.api.structs import Int32, Open, always

API_VERSION = "scheduling.k8s.io/v1alpha2"

DISRUPT_POD = "Pod"
DISRUPT_POD_GROUP = "PodGroup"


class WorkloadPodGroupTemplateReference(Open, frozen=True, gc=False):
    """A template of a workload."""

    workload_name: str = always("")
    pod_group_template_name: str = always("")


class PodGroupTemplateReference(Open, frozen=True, gc=False):
    """The template that a group was made from."""

    workload: WorkloadPodGroupTemplateReference | None = always(None)


class PodGroupSpec(Open, frozen=True, gc=False):
    """How a group is scheduled, and what its pods share."""

    pod_group_template_ref: PodGroupTemplateReference | None = always(None)
    scheduling_policy: PodGroupSchedulingPolicy = always(PodGroupSchedulingPolicy())
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    parent_composite_pod_group_name: str | None = None
    preemption_policy: str | None = None


class PodGroup(Open, frozen=True, gc=False):
    """Pods that are scheduled together."""

    api_version: str = always(API_VERSION)
    kind: str = always("PodGroup")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PodGroupSpec = always(PodGroupSpec())
    status: PodGroupStatus = always(PodGroupStatus())


class PodGroupTemplate(Open, frozen=True, gc=False):
    """The group that a controller makes."""

    name: str = always("")
    scheduling_policy: PodGroupSchedulingPolicy = always(PodGroupSchedulingPolicy())
    scheduling_constraints: PodGroupSchedulingConstraints | None = always(None)
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: str | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class WorkloadSpec(Open, frozen=True, gc=False):
    """Templates of groups."""

    controller_ref: TypedLocalObjectReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] | None = always(None)
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()


class Workload(Open, frozen=True, gc=False):
    """Information for the scheduler about the pods of a controller."""

    api_version: str = always(API_VERSION)
    kind: str = always("Workload")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: WorkloadSpec = always(WorkloadSpec())
