"""scheduling.k8s.io/v1beta1, and v1alpha3, which has the same layout; PriorityClass of v1.

CompositePodGroup exists in v1alpha3 only; it is here because it is made of the same parts.
"""

from __future__ import annotations

from moorage.api.codec import decode_tree
from moorage.api.meta import Condition, Json, ObjectMeta
from moorage.api.structs import Int32, Open, always

GROUP = "scheduling.k8s.io"
API_VERSION = "scheduling.k8s.io/v1beta1"
V1ALPHA3 = "scheduling.k8s.io/v1alpha3"
V1 = "scheduling.k8s.io/v1"  # of PriorityClass

PROTECTION_FINALIZER = "scheduling.k8s.io/podgroup-protection"
PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"
PREEMPT_NEVER = "Never"

HIGHEST_USER_PRIORITY = 1_000_000_000
SYSTEM_CRITICAL_PRIORITY = 2 * HIGHEST_USER_PRIORITY

INITIALLY_SCHEDULED = "PodGroupInitiallyScheduled"


# --- policies -----------------------------------------------------------------------------


class BasicSchedulingPolicy(Open, frozen=True, gc=False):
    """Each pod, or group, on its own."""


class GangSchedulingPolicy(Open, frozen=True, gc=False):
    """At least this many pods together, or none."""

    min_count: Int32 = always(0)


class PodGroupSchedulingPolicy(Open, frozen=True, gc=False):
    """How the pods of a group are scheduled: exactly one is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: GangSchedulingPolicy | None = None


class CompositeGangSchedulingPolicy(Open, frozen=True, gc=False):
    """At least this many groups together, or none."""

    min_group_count: Int32 = always(0)


class CompositePodGroupSchedulingPolicy(Open, frozen=True, gc=False):
    """How the groups of a composite group are scheduled: exactly one is set."""

    basic: BasicSchedulingPolicy | None = None
    gang: CompositeGangSchedulingPolicy | None = None


class TopologyConstraint(Open, frozen=True, gc=False):
    """A node label of which all pods of a group must see the same value."""

    key: str = always("")


class PodGroupSchedulingConstraints(Open, frozen=True, gc=False):
    """Constraints on where the pods of a group run."""

    topology: tuple[TopologyConstraint, ...] = ()


class EmptyMode(Open, frozen=True, gc=False):
    """A mode without settings."""


class DisruptionMode(Open, frozen=True, gc=False):
    """Whether members are disrupted one by one or all together: exactly one is set."""

    single: EmptyMode | None = None
    all: EmptyMode | None = None


class PodGroupResourceClaim(Open, frozen=True, gc=False):
    """A claim that the pods of a group share."""

    name: str = always("")
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


# --- PodGroup -----------------------------------------------------------------------------


class WorkloadReference(Open, frozen=True, gc=False):
    """The template that a group was made from."""

    workload_name: str = always("")
    template_name: str = always("")


class PodGroupSpec(Open, frozen=True, gc=False):
    """How a group is scheduled, and what its pods share."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = None
    scheduling_policy: PodGroupSchedulingPolicy = always(PodGroupSchedulingPolicy())
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class PodGroupResourceClaimStatus(Open, frozen=True, gc=False):
    """The claim that was made for an entry of the group; without a name none was needed."""

    name: str = always("")
    resource_claim_name: str | None = None


class PodGroupStatus(Open, frozen=True, gc=False):
    """The progress of a group."""

    conditions: tuple[Condition, ...] = ()
    resource_claim_statuses: tuple[PodGroupResourceClaimStatus, ...] = ()


class PodGroup(Open, frozen=True, gc=False):
    """Pods that are scheduled together."""

    api_version: str = always(API_VERSION)
    kind: str = always("PodGroup")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PodGroupSpec = always(PodGroupSpec())
    status: PodGroupStatus = always(PodGroupStatus())


# --- CompositePodGroup --------------------------------------------------------------------


class CompositePodGroupSpec(Open, frozen=True, gc=False):
    """How the groups of a composite group are scheduled."""

    parent_composite_pod_group_name: str | None = None
    workload_ref: WorkloadReference | None = always(None)
    scheduling_policy: CompositePodGroupSchedulingPolicy = always(
        CompositePodGroupSchedulingPolicy()
    )
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroupStatus(Open, frozen=True, gc=False):
    """The progress of a composite group."""

    conditions: tuple[Condition, ...] = ()


class CompositePodGroup(Open, frozen=True, gc=False):
    """Groups that are scheduled together."""

    api_version: str = always(V1ALPHA3)
    kind: str = always("CompositePodGroup")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: CompositePodGroupSpec = always(CompositePodGroupSpec())
    status: CompositePodGroupStatus = always(CompositePodGroupStatus())


# --- Workload -----------------------------------------------------------------------------


class PodGroupTemplate(Open, frozen=True, gc=False):
    """The group that a controller makes."""

    name: str = always("")
    scheduling_policy: PodGroupSchedulingPolicy = always(PodGroupSchedulingPolicy())
    scheduling_constraints: PodGroupSchedulingConstraints | None = always(None)
    resource_claims: tuple[PodGroupResourceClaim, ...] = ()
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None


class CompositePodGroupTemplate(Open, frozen=True, gc=False):
    """The composite group that a controller makes, and the groups in it.

    Structs here never hold structs of their own kind, so that whoever walks their declarations
    comes to an end. Composite templates within one are therefore kept as JSON; `children` reads
    them.
    """

    name: str = always("")
    scheduling_policy: CompositePodGroupSchedulingPolicy = always(
        CompositePodGroupSchedulingPolicy()
    )
    scheduling_constraints: PodGroupSchedulingConstraints | None = None
    disruption_mode: DisruptionMode | None = None
    priority_class_name: str = ""
    priority: Int32 | None = None
    preemption_policy: str | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] = ()
    composite_pod_group_templates: tuple[Json, ...] = ()

    @property
    def children(self) -> tuple[CompositePodGroupTemplate, ...]:
        """The composite templates within this one; reading them may raise DecodeError."""
        trees = self.composite_pod_group_templates
        return tuple(decode_tree(tree, CompositePodGroupTemplate).value for tree in trees)


class TypedLocalObjectReference(Open, frozen=True, gc=False):
    """An object of any kind in the same namespace."""

    api_group: str = ""
    kind: str = always("")
    name: str = always("")


class WorkloadSpec(Open, frozen=True, gc=False):
    """Templates: of groups or of composite groups, never both."""

    controller_ref: TypedLocalObjectReference | None = None
    pod_group_templates: tuple[PodGroupTemplate, ...] | None = always(None)
    composite_pod_group_templates: tuple[CompositePodGroupTemplate, ...] = ()


class Workload(Open, frozen=True, gc=False):
    """Information for the scheduler about the pods of a controller."""

    api_version: str = always(API_VERSION)
    kind: str = always("Workload")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: WorkloadSpec = always(WorkloadSpec())


# --- PriorityClass ----------------------------------------------------------------------


class PriorityClass(Open, frozen=True, gc=False):
    """A name for a priority."""

    api_version: str = always(V1)
    kind: str = always("PriorityClass")
    metadata: ObjectMeta = always(ObjectMeta())
    value: Int32 = always(0)
    global_default: bool = False
    description: str = ""
    preemption_policy: str | None = None
