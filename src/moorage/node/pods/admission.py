"""Whether a node admits a pod that was bound to it, with the kubelet's messages (pure).

The scheduler checked all of this before; but pods may be bound by hand, and nodes change.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

from msgspec.structs import replace

from moorage.api.core import Container, Node, Pod
from moorage.api.core.pod import FAILED, PodExtendedResourceClaimStatus
from moorage.api.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from moorage.api.labels import exactly
from moorage.api.node_affinity import read_node_selector
from moorage.api.quantity import Quantity
from moorage.api.timestamp import Timestamp
from moorage.claims.pod_resources import is_huge_page, pod_requests
from moorage.kit.go_quote import go_quote
from moorage.node.pods.pod_record import Termination
from moorage.node.runtime.contract import is_id_part

OPERATING_SYSTEM = "linux"
ADMISSION_PREFIX = "Pod was rejected: "

# What Kubernetes calls safe: it belongs to the IPC or network namespace of a pod.
_SAFE_SYSCTLS = frozenset(
    {
        "kernel.shm_rmid_forced",
        "net.ipv4.ip_local_port_range",
        "net.ipv4.ip_local_reserved_ports",
        "net.ipv4.ip_unprivileged_port_start",
        "net.ipv4.ping_group_range",
        "net.ipv4.tcp_fin_timeout",
        "net.ipv4.tcp_keepalive_intvl",
        "net.ipv4.tcp_keepalive_probes",
        "net.ipv4.tcp_keepalive_time",
        "net.ipv4.tcp_notsent_lowat",
        "net.ipv4.tcp_rmem",
        "net.ipv4.tcp_slow_start_after_idle",
        "net.ipv4.tcp_syncookies",
        "net.ipv4.tcp_wmem",
    }
)

Amounts = Mapping[str, int]  # in the whole units that scheduling counts in


class AdmissionRejection(NamedTuple):
    """Why a node rejects a pod."""

    reason: str
    message: str


# Kubernetes' reason for whatever else keeps a pod out.
UNEXPECTED = AdmissionRejection(
    "UnexpectedAdmissionError", "the pod cannot be processed as its spec has it"
)


def check(pod: Pod, node: Node | None, used: Amounts) -> AdmissionRejection | None:
    """Return why a node rejects a pod, given the resources that others use, or None."""
    if node is None:
        return AdmissionRejection("InvalidNodeInfo", "Kubelet cannot get node info.")
    if not is_id_part(pod.metadata.uid):
        text = f"metadata.uid: Invalid value: {json.dumps(pod.metadata.uid[:128])}"
        return AdmissionRejection(
            "UnexpectedAdmissionError", f"{text}: it must be usable as a file name"
        )
    system = (pod.spec.os or {}).get("name", OPERATING_SYSTEM)
    if system != OPERATING_SYSTEM:
        text = "Failed to admit pod as the OS field doesn't match node OS"
        return AdmissionRejection("PodOSNotSupported", text)
    return _forbidden_sysctl(pod) or shortage(pod, node, used) or _elsewhere(pod, node)


def _forbidden_sysctl(pod: Pod) -> AdmissionRejection | None:
    """Reject a pod for a sysctl that is not its own: its network is the machine's."""
    context = pod.spec.security_context
    listed = context.get("sysctls") if isinstance(context, Mapping) else None
    for each in listed if isinstance(listed, list | tuple) else ():
        name = str(each.get("name", "")) if isinstance(each, Mapping) else ""
        normal = name.replace("/", ".")
        if normal in _SAFE_SYSCTLS and normal.startswith("net."):
            fact = "not allowed with host net enabled"
        elif normal in _SAFE_SYSCTLS and pod.spec.host_ipc:
            fact = "not allowed with host ipc enabled"
        elif normal not in _SAFE_SYSCTLS:
            fact = "not allowlisted"
        else:
            continue
        text = f"forbidden sysctl: {go_quote(normal[:256])} {fact}"
        return AdmissionRejection("SysctlForbidden", text)
    return None


def rejection(refusal: AdmissionRejection, now: Timestamp) -> Termination:
    """Return the termination of a rejected pod: it fails, and is not tried again."""
    message = f"{ADMISSION_PREFIX}{refusal.message}"
    return Termination(now, 0.0, FAILED, refusal.reason, message)


def demand(pod: Pod, node: Node | None) -> dict[str, int]:
    """Return the resources that a pod uses, except device and unknown resources."""
    known = {} if node is None else node.status.allocatable
    counted = _without_devices(pod, frozenset(known))
    statuses = pod.status.node_allocatable_resource_claim_statuses or ()
    amounts = {
        name: _amount(name, quantity) for name, quantity in pod_requests(counted, statuses).items()
    }
    return {**amounts, PODS: 1}


def shortage(pod: Pod, node: Node, used: Amounts) -> AdmissionRejection | None:
    """Reject a pod for missing resources: the number of pods first, then each resource."""
    amounts = demand(pod, node)
    first = (PODS, CPU, MEMORY, EPHEMERAL_STORAGE)
    for name in (*first, *sorted(amounts.keys() - set(first))):
        amount = amounts.get(name, 0)
        capacity = _amount(name, node.status.allocatable.get(name, Quantity.ZERO))
        taken = used.get(name, 0)
        if amount > 0 and amount > capacity - taken:
            text = (
                f"Node didn't have enough resource: {name}, requested: {amount}, used: {taken}, "
                f"capacity: {capacity}"
            )
            return AdmissionRejection(f"OutOf{name}", text)
    return None


def _elsewhere(pod: Pod, node: Node) -> AdmissionRejection | None:
    name, labels = node.metadata.name, node.metadata.labels
    affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    required = (
        None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    )
    matches = exactly(pod.spec.node_selector).matches(labels) and (
        required is None or read_node_selector(required).matches(name, labels)
    )
    return None if matches else AdmissionRejection("NodeAffinity", "Predicate NodeAffinity failed")


def _without_devices(pod: Pod, known: frozenset[str]) -> Pod:
    """Return a pod without extended resources that claims serve, or that the node lacks."""
    extended = pod.status.extended_resource_claim_status

    def counted(container: Container) -> Container:
        resources = container.resources
        requests = {
            name: quantity
            for name, quantity in resources.requests.items()
            if not _is_extended(name) or (name in known and not _serves(extended, container, name))
        }
        if len(requests) == len(resources.requests):
            return container
        return replace(container, resources=replace(resources, requests=requests))

    spec = replace(
        pod.spec,
        containers=tuple(map(counted, pod.spec.containers)),
        init_containers=tuple(map(counted, pod.spec.init_containers)),
    )
    return replace(pod, spec=spec)


def _serves(
    extended: PodExtendedResourceClaimStatus | None, container: Container, name: str
) -> bool:
    return extended is not None and any(
        (each.container_name, each.resource_name) == (container.name, name)
        for each in extended.request_mappings
    )


def _is_extended(name: str) -> bool:
    return name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and not is_huge_page(name)


def _amount(name: str, quantity: Quantity) -> int:
    return quantity.milli_value if name == CPU else quantity.value
