"""Pods and the templates they are made from (core/v1)."""

from __future__ import annotations

from msgspec import field

from mooring.api.core.container import Container, EphemeralContainer
from mooring.api.core.placement import Affinity, Toleration, TopologySpreadConstraint
from mooring.api.core.podstatus import PodStatus
from mooring.api.core.references import LocalObjectReference
from mooring.api.core.resources import ResourceList, ResourceRequirements
from mooring.api.meta import Json, ObjectMeta
from mooring.api.structs import Int32, Int64, Open, always, named

API_VERSION = "v1"

MIRROR_POD_ANNOTATION = "kubernetes.io/config.mirror"
DEFAULT_SCHEDULER = "default-scheduler"


class PodResourceClaim(Open, frozen=True, gc=False):
    """A claim that the pod uses: an existing one, or one to be made from a template."""

    name: str = always("")
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class PodSchedulingGate(Open, frozen=True, gc=False):
    """Something that must happen before the pod is scheduled."""

    name: str = always("")


class PodSchedulingGroup(Open, frozen=True, gc=False):
    """The group that the pod is scheduled with."""

    pod_group_name: str | None = None


class PodSpec(Open, frozen=True, gc=False):
    """What a pod should be."""

    volumes: tuple[Json, ...] = ()
    init_containers: tuple[Container, ...] = ()
    containers: tuple[Container, ...] = always(())
    ephemeral_containers: tuple[EphemeralContainer, ...] = ()
    restart_policy: str = ""
    termination_grace_period_seconds: Int64 | None = None
    active_deadline_seconds: Int64 | None = None
    dns_policy: str = ""
    node_selector: dict[str, str] = field(default_factory=dict)
    service_account_name: str = ""
    service_account: str = ""
    automount_service_account_token: bool | None = None
    node_name: str = ""
    host_network: bool = False
    host_pid: bool = named("hostPID", False)
    host_ipc: bool = named("hostIPC", False)
    share_process_namespace: bool | None = None
    security_context: Json = None
    image_pull_secrets: tuple[LocalObjectReference, ...] = ()
    hostname: str = ""
    subdomain: str = ""
    affinity: Affinity | None = None
    scheduler_name: str = ""
    tolerations: tuple[Toleration, ...] = ()
    host_aliases: tuple[Json, ...] = ()
    priority_class_name: str = ""
    priority: Int32 | None = None
    dns_config: Json = None
    readiness_gates: tuple[Json, ...] = ()
    runtime_class_name: str | None = None
    enable_service_links: bool | None = None
    preemption_policy: str | None = None
    overhead: ResourceList = field(default_factory=dict)
    topology_spread_constraints: tuple[TopologySpreadConstraint, ...] = ()
    set_hostname_as_fqdn: bool | None = named("setHostnameAsFQDN", None)
    os: Json = None
    host_users: bool | None = None
    scheduling_gates: tuple[PodSchedulingGate, ...] = ()
    resource_claims: tuple[PodResourceClaim, ...] = ()
    resources: ResourceRequirements | None = None
    hostname_override: str | None = None
    scheduling_group: PodSchedulingGroup | None = None
    eviction_responders: tuple[Json, ...] = ()


class Pod(Open, frozen=True, gc=False):
    """Containers that run together on one node."""

    api_version: str = always(API_VERSION)
    kind: str = always("Pod")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: PodSpec = always(PodSpec())
    status: PodStatus = always(PodStatus())


class PodTemplateSpec(Open, frozen=True, gc=False):
    """The pod that a controller makes."""

    metadata: ObjectMeta = always(ObjectMeta())
    spec: PodSpec = always(PodSpec())
