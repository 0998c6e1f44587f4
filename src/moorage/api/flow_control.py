"""flowcontrol.apiserver.k8s.io/v1: which requests share which part of a server."""

from __future__ import annotations

from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Closed, Int32, always
from moorage.api.timestamp import Timestamp

GROUP = "flowcontrol.apiserver.k8s.io"
API_VERSION = f"{GROUP}/v1"


class PriorityLevelConfigurationReference(Closed, frozen=True, gc=False):
    """The priority level of the requests of a flow schema."""

    name: str = always("")


class FlowDistinguisherMethod(Closed, frozen=True, gc=False):
    """How the requests of a flow schema are told apart."""

    type: str = always("")


class UserSubject(Closed, frozen=True, gc=False):
    """A user, or all of them."""

    name: str = always("")


class GroupSubject(Closed, frozen=True, gc=False):
    """A group of users."""

    name: str = always("")


class ServiceAccountSubject(Closed, frozen=True, gc=False):
    """A service account, or all of a namespace."""

    namespace: str = always("")
    name: str = always("")


class Subject(Closed, frozen=True, gc=False):
    """Who makes a request: a user, a group or a service account."""

    kind: str = always("")
    user: UserSubject | None = None
    group: GroupSubject | None = None
    service_account: ServiceAccountSubject | None = None


class ResourcePolicyRule(Closed, frozen=True, gc=False):
    """Requests for resources."""

    verbs: tuple[str, ...] | None = always(None)
    api_groups: tuple[str, ...] | None = always(None)
    resources: tuple[str, ...] | None = always(None)
    cluster_scope: bool = False
    namespaces: tuple[str, ...] | None = always(None)


class NonResourcePolicyRule(Closed, frozen=True, gc=False):
    """Requests for paths."""

    verbs: tuple[str, ...] | None = always(None)
    non_resource_urls: tuple[str, ...] | None = always(None, name="nonResourceURLs")


class PolicyRulesWithSubjects(Closed, frozen=True, gc=False):
    """Requests of some subjects."""

    subjects: tuple[Subject, ...] | None = always(None)
    resource_rules: tuple[ResourcePolicyRule, ...] = ()
    non_resource_rules: tuple[NonResourcePolicyRule, ...] = ()


class FlowSchemaSpec(Closed, frozen=True, gc=False):
    """Which requests belong to a flow schema, and to which priority level they go."""

    priority_level_configuration: PriorityLevelConfigurationReference = always(
        PriorityLevelConfigurationReference()
    )
    matching_precedence: Int32 = always(0)
    distinguisher_method: FlowDistinguisherMethod | None = None
    rules: tuple[PolicyRulesWithSubjects, ...] = ()


class FlowSchemaCondition(Closed, frozen=True, gc=False):
    """One observed aspect of a flow schema."""

    type: str = ""
    status: str = ""
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class FlowSchemaStatus(Closed, frozen=True, gc=False):
    """What is known about a flow schema."""

    conditions: tuple[FlowSchemaCondition, ...] = ()


class FlowSchema(Closed, frozen=True, gc=False):
    """Requests that are treated alike."""

    api_version: str = always(API_VERSION)
    kind: str = always("FlowSchema")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: FlowSchemaSpec = always(FlowSchemaSpec())
    status: FlowSchemaStatus = always(FlowSchemaStatus())


class QueuingConfiguration(Closed, frozen=True, gc=False):
    """How requests wait."""

    queues: Int32 = always(0)
    hand_size: Int32 = always(0)
    queue_length_limit: Int32 = always(0)


class LimitResponse(Closed, frozen=True, gc=False):
    """What happens to requests for which there is no room."""

    type: str = always("")
    queuing: QueuingConfiguration | None = None


class LimitedPriorityLevelConfiguration(Closed, frozen=True, gc=False):
    """How much of a server a priority level may use."""

    nominal_concurrency_shares: Int32 | None = always(None)
    limit_response: LimitResponse = always(LimitResponse())
    lendable_percent: Int32 | None = None
    borrowing_limit_percent: Int32 | None = None


class ExemptPriorityLevelConfiguration(Closed, frozen=True, gc=False):
    """How much an exempt priority level leaves to others."""

    nominal_concurrency_shares: Int32 | None = None
    lendable_percent: Int32 | None = None


class PriorityLevelConfigurationSpec(Closed, frozen=True, gc=False):
    """Whether the requests of a priority level are limited, and how."""

    type: str = always("")
    limited: LimitedPriorityLevelConfiguration | None = None
    exempt: ExemptPriorityLevelConfiguration | None = None


class PriorityLevelConfigurationCondition(Closed, frozen=True, gc=False):
    """One observed aspect of a priority level."""

    type: str = ""
    status: str = ""
    last_transition_time: Timestamp | None = always(None)
    reason: str = ""
    message: str = ""


class PriorityLevelConfigurationStatus(Closed, frozen=True, gc=False):
    """What is known about a priority level."""

    conditions: tuple[PriorityLevelConfigurationCondition, ...] = ()


class PriorityLevelConfiguration(Closed, frozen=True, gc=False):
    """A part of a server that some requests share."""

    api_version: str = always(API_VERSION)
    kind: str = always("PriorityLevelConfiguration")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PriorityLevelConfigurationSpec = always(PriorityLevelConfigurationSpec())
    status: PriorityLevelConfigurationStatus = always(PriorityLevelConfigurationStatus())


KINDS: tuple[Kind, ...] = (
    declare_kind(FlowSchema, "flowschemas", namespaced=False, has_status=True),
    declare_kind(
        PriorityLevelConfiguration,
        "prioritylevelconfigurations",
        namespaced=False,
        has_status=True,
    ),
)
