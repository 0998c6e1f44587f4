"""Resources of nodes and requests of pods, as integers: millis of a CPU, bytes, pieces, host ports.

    # requests: the resources that must be free on a node for a pod
    # requests on the node: the resources it counts for once it is there, with resizes and claims
    # non-zero requests: CPU and memory as scores count them, with a default for containers that
    #   request nothing

Sums are those of `moorage.claims.pod_resources`, of exact quantities, rounded up to base units at
the end. That costs a few µs for each container, once for each pod signature; nodes are then
compared by integers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from msgspec import Struct

from moorage.api import names
from moorage.api.core.pod import Pod
from moorage.api.core.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    HUGE_PAGES_PREFIX,
    MEMORY,
    ResourceList,
)
from moorage.api.quantity import Quantity
from moorage.claims.pod_resources import (
    SPEC_REQUESTS,
    RequestSources,
    has_pod_level_requests,
    requests_from,
)

ATTACHABLE_VOLUMES_PREFIX = "attachable-volumes-"
NATIVE_DOMAIN = "kubernetes.io/"
PERCENT = 100

# The resources that a container without requests counts for in scores.
DEFAULTS: ResourceList = {
    CPU: Quantity.from_milli(100),
    MEMORY: Quantity.from_int(200 * 1024 * 1024),
}

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - the default address of a host port
TCP = "TCP"

Port = tuple[str, int]  # protocol and number
HostPort = tuple[str, Port]  # address, protocol and number
# Used addresses by protocol and number, sorted; an address used twice is there twice.
UsedPorts = Mapping[Port, tuple[str, ...]]


class ResourceAmounts(Struct, frozen=True, gc=False):
    """Resources in base units; `others` has all but the first three, without zeros."""

    milli_cpu: int = 0
    memory: int = 0
    ephemeral_storage: int = 0
    others: Mapping[str, int] = {}


class NonZeroRequests(NamedTuple):
    """CPU and memory as scores count them."""

    milli_cpu: int
    memory: int


class FreeResources(NamedTuple):
    """The free resources of a node, in the form that filters and scores of most pods use.

    Most pods request some CPU and memory and nothing else that other pods could use. For them a
    few numbers decide, which are computed when a pod comes to the node or leaves it, and not for
    each kind of pods that is tried on it afterwards.
    """

    cpu_free: int
    memory_free: int
    pods_free: int
    cpu_left: int  # as scores count it
    memory_left: int
    cpu: int  # in all
    memory: int
    evenness: int  # how equally both are used


NOTHING_FREE = FreeResources(0, 0, 0, 0, 0, 0, 0, 0)


def resource_amounts(totals: ResourceList) -> ResourceAmounts:
    """Return quantities in base units, rounded up, without names that no node can have."""
    others = {
        name: quantity.value
        for name, quantity in totals.items()
        if name not in (CPU, MEMORY, EPHEMERAL_STORAGE) and is_scalar(name)
    }
    return ResourceAmounts(
        milli_cpu=totals.get(CPU, Quantity.ZERO).milli_value,
        memory=totals.get(MEMORY, Quantity.ZERO).value,
        ephemeral_storage=totals.get(EPHEMERAL_STORAGE, Quantity.ZERO).value,
        others={name: amount for name, amount in sorted(others.items()) if amount},
    )


def is_scalar(name: str) -> bool:
    """Return whether nodes count the resource: huge pages, extended and Kubernetes' own names."""
    return (
        name.startswith((HUGE_PAGES_PREFIX, ATTACHABLE_VOLUMES_PREFIX))
        or NATIVE_DOMAIN in name
        or names.is_extended_resource(name)
    )


def free_resources(
    allocatable: ResourceAmounts,
    pods_free: int,
    requested: ResourceAmounts,
    non_zero: NonZeroRequests,
) -> FreeResources:
    """Return the free part of a node's allocatable resources."""
    cpu, memory = allocatable.milli_cpu, allocatable.memory
    cpu_free, memory_free = cpu - requested.milli_cpu, memory - requested.memory
    is_odd = cpu_free < 0 or memory_free < 0 or not cpu or not memory
    return FreeResources(
        cpu_free,
        memory_free,
        pods_free,
        cpu - non_zero.milli_cpu,
        memory - non_zero.memory,
        cpu,
        memory,
        0 if is_odd else evenness(requested.milli_cpu, cpu, requested.memory, memory),
    )


def evenness(milli_cpu: int, cpu_total: int, memory: int, memory_total: int) -> int:
    """Return 100 if both are used in equal parts; less by half the gap."""
    cpu_part = milli_cpu / cpu_total if milli_cpu < cpu_total else 1.0
    memory_part = memory / memory_total if memory < memory_total else 1.0
    return int((1 - abs((cpu_part - memory_part) / 2)) * PERCENT)


# --- requests of pods ---------------------------------------------------------------------------


def requests_of(pod: Pod) -> ResourceAmounts:
    """Return the resources that must be free on a node for the pod."""
    return resource_amounts(requests_from(pod, SPEC_REQUESTS))


def requests_on_node(pod: Pod, *, with_claims: bool = True) -> ResourceAmounts:
    """Return the resources that the pod uses on its node.

    A pod that is being resized counts with the maximum of requested, allocated and used.
    With `with_claims` the node resources that its claims represent count, too.
    """
    return resource_amounts(requests_from(pod, _reading(pod, with_claims=with_claims)))


def non_zero_requests_on_node(pod: Pod, *, with_claims: bool = True) -> NonZeroRequests:
    """Return the resources that a pod on its node counts for in scores."""
    reading = _reading(pod, with_claims=with_claims)
    defaults = DEFAULTS
    if has_pod_level_requests(pod):
        totals = requests_from(pod, reading)
        defaults = {name: default for name, default in DEFAULTS.items() if name not in totals}
    return _non_zero(requests_from(pod, reading._replace(defaults=defaults)))


def non_zero_requests_of(pod: Pod) -> NonZeroRequests:
    """Return the resources that a pod without a node counts for in LeastAllocated.

    Kubernetes leaves out pod-level requests, here and only here.
    """
    return _non_zero(requests_from(pod, RequestSources(defaults=DEFAULTS, with_pod_level=False)))


def scored_requests_of(
    pod: Pod, resources: tuple[str, ...], *, as_fit: bool = False
) -> tuple[int, ...]:
    """Return how much of each resource a pod counts for in scores.

    NodeResourcesFit counts containers without requests by defaults, and no pod-level requests.
    """
    sources = RequestSources(defaults=DEFAULTS, with_pod_level=False) if as_fit else SPEC_REQUESTS
    totals = requests_from(pod, sources)
    return tuple(amount_of(name, totals) for name in resources)


def amount_of(name: str, totals: ResourceList) -> int:
    """Return an amount in base units: millis of a CPU, bytes, pieces."""
    quantity = totals.get(name, Quantity.ZERO)
    return quantity.milli_value if name == CPU else quantity.value


def _non_zero(totals: ResourceList) -> NonZeroRequests:
    cpu, memory = totals.get(CPU, Quantity.ZERO), totals.get(MEMORY, Quantity.ZERO)
    return NonZeroRequests(cpu.milli_value, memory.value)


def _reading(pod: Pod, *, with_claims: bool) -> RequestSources:
    claims = pod.status.node_allocatable_resource_claim_statuses if with_claims else None
    return RequestSources(claim_statuses=claims or (), with_status=True)


# --- host ports ---------------------------------------------------------------------------------


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports of containers and sidecars; other init containers do not last."""
    lasting = [container for container in pod.spec.init_containers if container.is_sidecar]
    return tuple(
        (port.host_ip or ALL_ADDRESSES, (port.protocol or TCP, port.host_port))
        for container in (*lasting, *pod.spec.containers)
        for port in container.ports
        if port.host_port > 0
    )


def is_port_free(wanted: HostPort, used: UsedPorts) -> bool:
    """Return whether no pod uses the port: all addresses and any one of them exclude each other."""
    address, port = wanted
    addresses = used.get(port)
    if not addresses:
        return True
    return address != ALL_ADDRESSES and address not in addresses and ALL_ADDRESSES not in addresses


def with_ports(used: UsedPorts, ports: tuple[HostPort, ...]) -> UsedPorts:
    """Return the used ports with these added."""
    result = dict(used)
    for address, port in ports:
        result[port] = tuple(sorted((*result.get(port, ()), address)))
    return result


def without_ports(used: UsedPorts, ports: tuple[HostPort, ...]) -> UsedPorts:
    """Return the used ports with these removed, each once."""
    result = dict(used)
    for address, port in ports:
        addresses = list(result.pop(port))
        addresses.remove(address)
        if addresses:
            result[port] = tuple(addresses)
    return result
