"""Table printers of core, scheduling, node.k8s.io, coordination and rbac, and of plain kinds."""

from __future__ import annotations

from typing import Any

from moorage.api.core import Event, Node, ResourceQuota
from moorage.api.core.pod import DISRUPTION_TARGET
from moorage.api.quantity import Quantity
from moorage.api.rbac import ClusterRoleBinding, RoleBinding, Subject
from moorage.api.scheduling.v1beta1 import (
    INITIALLY_SCHEDULED,
    CompositePodGroup,
    PodGroup,
    PriorityClass,
)
from moorage.api.timestamp import NO_TIME, Timestamp
from moorage.apiserver.tables.columns import (
    AGE,
    CREATED_AT,
    NAME,
    NONE,
    UNKNOWN,
    Cell,
    Column,
    Printer,
    age,
    named_and_aged,
    number,
    text,
    wide,
)

ROLE_PREFIX = "node-role.kubernetes.io/"
ROLE_LABEL = "kubernetes.io/role"

# --- nodes ------------------------------------------------------------------------------------


def _node(node: Node, now: Timestamp) -> list[Cell]:
    software = node.status.node_info
    architecture = f" ({software.architecture})" if software.architecture else ""
    return [
        node.metadata.name,
        _node_status(node),
        ",".join(sorted(_roles(node))) or NONE,
        age(node.metadata.creation_timestamp, now),
        software.kubelet_version,
        _address(node, "InternalIP"),
        _address(node, "ExternalIP"),
        software.os_image or UNKNOWN,
        (software.kernel_version or UNKNOWN) + architecture,
        software.container_runtime_version or UNKNOWN,
    ]


def _node_status(node: Node) -> str:
    ready = {c.status == "True" for c in node.status.conditions if c.type == "Ready"}
    status = "Unknown" if not ready else "Ready" if True in ready else "NotReady"
    return f"{status},SchedulingDisabled" if node.spec.unschedulable else status


def _roles(node: Node) -> set[str]:
    labels = node.metadata.labels
    roles = {key.removeprefix(ROLE_PREFIX) for key in labels if key.startswith(ROLE_PREFIX)}
    return (roles | {labels.get(ROLE_LABEL, "")}) - {""}


def _address(node: Node, kind: str) -> str:
    return next((a.address for a in node.status.addresses if a.type == kind), NONE)


NODE = Printer(
    (
        NAME,
        text("Status", "Whether the node is ready, and whether pods may be put on it."),
        text("Roles", "Roles that the node's labels give it."),
        AGE,
        text("Version", "Version of the node's kubelet."),
        wide("Internal-IP", "First address of the node within the cluster."),
        wide("External-IP", "First address of the node from outside."),
        wide("OS-Image", "Operating system of the node."),
        wide("Kernel-Version", "Kernel of the node, and its architecture."),
        wide("Container-Runtime", "Program that runs the node's containers, and its version."),
    ),
    _node,
)

# --- events -----------------------------------------------------------------------------------


def _event(event: Event, now: Timestamp) -> list[Cell]:
    about = event.involved_object
    kind = about.kind.lower()
    first, last, count = _when(event, now)
    return [
        last,
        event.type,
        event.reason,
        f"{kind}/{about.name}" if about.name else kind,
        about.field_path,
        _source(event),
        event.message.strip(),
        first,
        count,
        event.metadata.name,
    ]


def _when(event: Event, now: Timestamp) -> tuple[str, str, int]:
    """Return when the event was seen first and last, and how often."""
    first = age(_known(event.first_timestamp) or event.event_time, now)
    if event.series is not None:
        return first, age(event.series.last_observed_time, now), event.series.count
    last = _known(event.last_timestamp)
    return first, first if last is None else age(last, now), event.count or 1


def _known(when: Timestamp | None) -> Timestamp | None:
    return None if when is None or when.is_zero else when


def _source(event: Event) -> str:
    component = event.source.component or event.reporting_controller
    host = event.source.host or event.reporting_instance
    return f"{component}, {host}" if host else component


EVENT = Printer(
    (
        text("Last Seen", "Time since the event was seen last."),
        text("Type", "Normal or Warning."),
        text("Reason", "Why it happened, in one word."),
        text("Object", "What the event is about."),
        wide("Subobject", "Part of the object that the event is about."),
        wide("Source", "Who reported the event."),
        text("Message", "What happened."),
        wide("First Seen", "Time since the event was seen first."),
        wide("Count", "How often the event was seen."),
        Column(name="Name", format="name", description=NAME.description, priority=1),
    ),
    _event,
)

# --- namespaces, quotas, data -----------------------------------------------------------------


NAMESPACE = named_and_aged(
    (text("Status", "Whether the namespace is in use."),), lambda value: [value.status.phase]
)


def _quota(quota: ResourceQuota) -> list[Cell]:
    hard, used = quota.status.hard, quota.status.used
    shown = {name: f"{name}: {used.get(name, Quantity.ZERO)}/{hard[name]}" for name in sorted(hard)}
    return [
        ", ".join(text for name, text in shown.items() if not name.startswith("limits.")),
        ", ".join(text for name, text in shown.items() if name.startswith("limits.")),
    ]


RESOURCE_QUOTA = named_and_aged(
    (
        text("Request", "What is used of what may be requested or made."),
        text("Limit", "What is used of what limits may add up to."),
    ),
    _quota,
)

_DATA = text("Data", "Number of entries.")

CONFIG_MAP = named_and_aged((_DATA,), lambda config: [len(config.data) + len(config.binary_data)])

SECRET = named_and_aged(
    (text("Type", "What the data is for."), _DATA),
    lambda secret: [secret.type, len(secret.data)],
)

# --- only the age -----------------------------------------------------------------------------

PLAIN = named_and_aged((), lambda _: [])


def _name_and_date(value: Any, _: Timestamp) -> list[Cell]:
    return [value.metadata.name, str(value.metadata.creation_timestamp or NO_TIME)]


# Kinds for which Kubernetes has no printer.
UNKNOWN_KIND = Printer(
    (NAME, CREATED_AT),
    _name_and_date,
)

# --- scheduling -------------------------------------------------------------------------------


def _priority_class(value: PriorityClass, now: Timestamp) -> list[Cell]:
    return [
        value.metadata.name,
        value.value,
        value.global_default,
        age(value.metadata.creation_timestamp, now),
        value.preemption_policy or "",
    ]


PRIORITY_CLASS = Printer(
    (
        NAME,
        number("Value", "The priority."),
        Column(
            name="Global-Default",
            type="boolean",
            description="Whether pods that name no class get this priority.",
        ),
        AGE,
        text("PreemptionPolicy", "Whether pods of the class may push others off a node."),
    ),
    _priority_class,
)

_POLICY = text("Policy", "Whether members are scheduled one by one or all together.")
_WORKLOAD = text("Workload", "Workload whose template the group was made from.")


def _template(group: PodGroup | CompositePodGroup) -> list[Cell]:
    """Return the policy and the workload of a group."""
    spec = group.spec
    return [
        "Basic" if spec.scheduling_policy.gang is None else "Gang",
        NONE if spec.workload_ref is None else spec.workload_ref.workload_name,
    ]


def _group_status(group: PodGroup) -> str:
    conditions = {condition.type: condition for condition in group.status.conditions}
    if (disruption := conditions.get(DISRUPTION_TARGET)) is not None:
        return disruption.reason
    scheduled = conditions.get(INITIALLY_SCHEDULED)
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.status == "True" else "Unschedulable"


POD_GROUP = named_and_aged(
    (_POLICY, _WORKLOAD, text("Status", "Whether the group got its nodes.")),
    lambda group: [*_template(group), _group_status(group)],
)

COMPOSITE_POD_GROUP = named_and_aged((_POLICY, _WORKLOAD), _template)

# --- runtime classes ----------------------------------------------------------------------------


RUNTIME_CLASS = named_and_aged(
    (text("Handler", "Runtime that nodes are configured with."),), lambda value: [value.handler]
)

# --- coordination and rbac --------------------------------------------------------------------


LEASE = named_and_aged(
    (text("Holder", "Who has the lease."),), lambda lease: [lease.spec.holder_identity or ""]
)


def _binding(binding: RoleBinding | ClusterRoleBinding, now: Timestamp) -> list[Cell]:
    role, subjects = binding.role_ref, binding.subjects
    return [
        binding.metadata.name,
        f"{role.kind}/{role.name}",
        age(binding.metadata.creation_timestamp, now),
        _names(subjects, "User"),
        _names(subjects, "Group"),
        ", ".join(f"{s.namespace}/{s.name}" for s in subjects if s.kind == "ServiceAccount"),
    ]


def _names(subjects: tuple[Subject, ...], kind: str) -> str:
    return ", ".join(subject.name for subject in subjects if subject.kind == kind)


ROLE_BINDING = Printer(
    (
        NAME,
        text("Role", "Role that is given."),
        AGE,
        wide("Users", "Users that get the role."),
        wide("Groups", "Groups that get the role."),
        wide("ServiceAccounts", "Service accounts that get the role."),
    ),
    _binding,
)
