"""Kinds of scheduling, node.k8s.io, coordination and rbac as rows, and those with only an age."""

from __future__ import annotations

from typing import Any

from mooring.api.coordination import Lease
from mooring.api.core.podstatus import DISRUPTION_TARGET
from mooring.api.rbac import ClusterRoleBinding, RoleBinding, Subject
from mooring.api.runtimeclass import RuntimeClass
from mooring.api.scheduling.v1 import PriorityClass
from mooring.api.scheduling.v1beta1 import (
    INITIALLY_SCHEDULED,
    CompositePodGroup,
    PodGroup,
    WorkloadReference,
)
from mooring.api.timestamp import NO_TIME, Timestamp
from mooring.apiserver.tables.ages import age
from mooring.apiserver.tables.columns import (
    AGE,
    NAME,
    NONE,
    Cell,
    Column,
    Printer,
    number,
    text,
    wide,
)

# --- only the age -----------------------------------------------------------------------------


def _name_and_age(value: Any, now: Timestamp) -> list[Cell]:
    return [value.metadata.name, age(value.metadata.creation_timestamp, now)]


PLAIN = Printer((NAME, AGE), _name_and_age)


def _name_and_date(value: Any, _: Timestamp) -> list[Cell]:
    return [value.metadata.name, str(value.metadata.creation_timestamp or NO_TIME)]


# What Kubernetes has no printer for.
UNKNOWN_KIND = Printer(
    (NAME, Column(name="Created At", type="date", description="When the object was created.")),
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


def _pod_group(group: PodGroup, now: Timestamp) -> list[Cell]:
    spec = group.spec
    return [
        group.metadata.name,
        "Basic" if spec.scheduling_policy.gang is None else "Gang",
        _workload(spec.workload_ref),
        _group_status(group),
        age(group.metadata.creation_timestamp, now),
    ]


def _workload(reference: WorkloadReference | None) -> str:
    return NONE if reference is None else reference.workload_name


def _group_status(group: PodGroup) -> str:
    conditions = {condition.type: condition for condition in group.status.conditions}
    if (disruption := conditions.get(DISRUPTION_TARGET)) is not None:
        return disruption.reason
    scheduled = conditions.get(INITIALLY_SCHEDULED)
    if scheduled is None:
        return "Pending"
    return "Scheduled" if scheduled.status == "True" else "Unschedulable"


POD_GROUP = Printer(
    (NAME, _POLICY, _WORKLOAD, text("Status", "Whether the group got its nodes."), AGE),
    _pod_group,
)


def _composite_pod_group(group: CompositePodGroup, now: Timestamp) -> list[Cell]:
    spec = group.spec
    return [
        group.metadata.name,
        "Basic" if spec.scheduling_policy.gang is None else "Gang",
        _workload(spec.workload_ref),
        age(group.metadata.creation_timestamp, now),
    ]


COMPOSITE_POD_GROUP = Printer((NAME, _POLICY, _WORKLOAD, AGE), _composite_pod_group)

# --- runtime classes ----------------------------------------------------------------------------


def _runtime_class(value: RuntimeClass, now: Timestamp) -> list[Cell]:
    return [value.metadata.name, value.handler, age(value.metadata.creation_timestamp, now)]


RUNTIME_CLASS = Printer(
    (NAME, text("Handler", "Runtime that nodes are configured with."), AGE), _runtime_class
)

# --- coordination and rbac --------------------------------------------------------------------


def _lease(lease: Lease, now: Timestamp) -> list[Cell]:
    created = lease.metadata.creation_timestamp
    return [lease.metadata.name, lease.spec.holder_identity or "", age(created, now)]


LEASE = Printer((NAME, text("Holder", "Who has the lease."), AGE), _lease)


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
