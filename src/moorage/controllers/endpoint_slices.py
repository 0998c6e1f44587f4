"""Endpoint slices: the addresses of the pods that a service selects.

A pod is an endpoint once it has an address. The endpoint is ready if the pod is, or if the service
publishes addresses that are not ready. Pods whose named target port has different numbers are in
different slices. A slice has at most ENDPOINTS_MAX endpoints. This controller changes only slices
that it created and that the service owns.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar, Final

from msgspec.structs import replace

from moorage.api.core.namespace import ObjectReference
from moorage.api.core.node import Node
from moorage.api.core.pod import FAILED, SUCCEEDED, Pod
from moorage.api.core.service import EXTERNAL_NAME, Service, ServicePort
from moorage.api.discovery import (
    IPV4,
    MANAGED_BY_LABEL,
    SERVICE_NAME_LABEL,
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
)
from moorage.api.labels import exactly
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, Delete, Target, Update
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.controller_ref_manager import index_by_namespace, reference_to
from moorage.controllers.pod_control import draw_names, is_ready

ENDPOINTS_MAX: Final = 100  # of a slice
CONTROLLER: Final = "endpointslice-controller.k8s.io"
HEADLESS_LABEL: Final = "service.kubernetes.io/headless"
ZONE: Final = "topology.kubernetes.io/zone"
SERVICE: Final = "service"  # the index of slices by their service

Ports = tuple[EndpointPort, ...]
Subset = tuple[Ports, list[Endpoint]]  # endpoints with the same ports


class EndpointSliceController(Controller):
    """Maintains the endpoint slices of services."""

    name: ClassVar[str] = "endpointslice-controller"
    kinds = (Service, Pod, EndpointSlice, Node)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        index_by_namespace(objects, Service, Pod)
        objects.index(EndpointSlice, SERVICE, slices_by_service)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the services that a change affects: those that select a pod, or did."""
        match change.value:
            case Service():
                return (object_key(change.value),)
            case EndpointSlice():
                name = change.value.metadata.labels.get(SERVICE_NAME_LABEL)
                return ((change.value.metadata.namespace, name),) if name else ()
            case Pod() if _matters(change):
                return self._of_pod(objects, change)
        return ()

    def _of_pod(self, objects: Indexer, change: ObjectChange) -> list[ObjectKey]:
        services = objects.by_index(Service, "namespace", change.value.metadata.namespace)
        labels = [pod.metadata.labels for pod in change.states]
        found = []
        for service in services:
            wanted = service.spec.selector
            if wanted and any(map(exactly(wanted).matches, labels)):
                found.append(object_key(service))
        return sorted(found)

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield the writes that bring the slices of a service up to date."""
        service = objects.get(Service, *key)
        known = [
            each
            for each in objects.by_index(EndpointSlice, SERVICE, "/".join(key))
            if each.metadata.labels.get(MANAGED_BY_LABEL) == CONTROLLER
        ]
        if service is None or not service.spec.selector or service.spec.type == EXTERNAL_NAME:
            yield from (Delete(Target.of(each)) for each in known)
            return
        if service.metadata.deletion_timestamp is None:
            yield from _plan(objects, service, sorted(known, key=object_key))


def slices_by_service(value: EndpointSlice) -> tuple[str, ...]:
    """Return the service of a slice, as the key of an index."""
    name = value.metadata.labels.get(SERVICE_NAME_LABEL)
    return (f"{value.metadata.namespace}/{name}",) if name else ()


def _matters(change: ObjectChange) -> bool:
    """Return whether a change of a pod can affect its endpoint."""
    old, new = change.old, change.new
    if old is None or new is None:
        return True
    return _essence(old) != _essence(new)


def _essence(pod: Pod) -> tuple[object, ...]:
    metadata, status = pod.metadata, pod.status
    return (
        metadata.labels,
        metadata.deletion_timestamp is not None,
        pod.spec.node_name,
        status.phase,
        status.pod_ip,
        is_ready(pod),
    )


# --- endpoints ---------------------------------------------------------------------------------


def _plan(objects: Indexer, service: Service, known: list[EndpointSlice]) -> Iterator[Step]:
    wanted = _subsets(objects, service)
    names = _names(objects, service)
    left = list(known)
    for ports, endpoints in wanted:
        groups = [
            tuple(endpoints[start : start + ENDPOINTS_MAX])
            for start in range(0, max(1, len(endpoints)), ENDPOINTS_MAX)
        ]
        same = [each for each in left if each.ports == ports and each.address_type == IPV4]
        for group in groups:
            found = same.pop(0) if same else None
            if found is None:
                yield Create(_slice(service, next(names), ports, group))
                continue
            left.remove(found)
            changed = replace(found, endpoints=group, metadata=_with_labels(found, service))
            if changed != found:
                yield Update(changed)
    yield from (Delete(Target.of(each)) for each in left)


def _subsets(objects: Indexer, service: Service) -> list[Subset]:
    """Return the endpoints of a service, in the order of pods' names, by their ports."""
    selector = exactly(service.spec.selector)
    found: dict[tuple[object, ...], Subset] = {}
    pods = objects.by_index(Pod, "namespace", service.metadata.namespace)
    for pod in sorted(pods, key=object_key):
        if selector.matches(pod.metadata.labels) and _is_endpoint(pod, service):
            endpoint = endpoint_of(objects, service, pod)
            ports = ports_of(service, pod)
            key = tuple((each.name, each.port) for each in ports)
            found.setdefault(key, (ports, []))[1].append(endpoint)
    # A service without pods gets an empty slice, which shows that the controller has seen it.
    return list(found.values()) or [((), [])]


def _is_endpoint(pod: Pod, service: Service) -> bool:
    if not pod.status.pod_ip or pod.status.phase in (SUCCEEDED, FAILED):
        return False
    is_going = pod.metadata.deletion_timestamp is not None
    return not is_going or service.spec.publish_not_ready_addresses or is_ready(pod)


def endpoint_of(objects: Indexer, service: Service, pod: Pod) -> Endpoint:
    """Return the endpoint of a pod."""
    is_going = pod.metadata.deletion_timestamp is not None
    serving = is_ready(pod)
    ready = service.spec.publish_not_ready_addresses or (serving and not is_going)
    named = bool(pod.spec.hostname) and pod.spec.subdomain == service.metadata.name
    node = objects.get(Node, "", pod.spec.node_name) if pod.spec.node_name else None
    zone = None if node is None else node.metadata.labels.get(ZONE)
    return Endpoint(
        addresses=(pod.status.pod_ip,),
        conditions=EndpointConditions(ready=ready, serving=serving, terminating=is_going),
        hostname=pod.spec.hostname if named else None,
        target_ref=ObjectReference(
            kind="Pod",
            namespace=pod.metadata.namespace,
            name=pod.metadata.name,
            uid=pod.metadata.uid,
        ),
        node_name=pod.spec.node_name or None,
        zone=zone,
    )


def ports_of(service: Service, pod: Pod) -> Ports:
    """Return the ports of a service on a pod, without those that the pod does not have."""
    found = []
    for port in service.spec.ports:
        number = _number(port, pod)
        if number is not None:
            found.append(
                EndpointPort(
                    name=port.name,
                    protocol=port.protocol or "TCP",
                    port=number,
                    app_protocol=port.app_protocol,
                )
            )
    return tuple(found)


def _number(port: ServicePort, pod: Pod) -> int | None:
    target = port.target_port
    if isinstance(target, int):
        return target or port.port
    for container in pod.spec.containers:
        for listed in container.ports:
            if listed.name == target and (listed.protocol or "TCP") == (port.protocol or "TCP"):
                return listed.container_port
    return None


# --- slices ------------------------------------------------------------------------------------


def _slice(
    service: Service, name: str, ports: Ports, endpoints: tuple[Endpoint, ...]
) -> EndpointSlice:
    metadata = ObjectMeta(
        name=name,
        generate_name=f"{service.metadata.name}-",
        namespace=service.metadata.namespace,
        labels=_labels(service),
        owner_references=(reference_to(service),),
    )
    return EndpointSlice(metadata=metadata, address_type=IPV4, endpoints=endpoints, ports=ports)


def _labels(service: Service) -> dict[str, str]:
    own = {SERVICE_NAME_LABEL: service.metadata.name, MANAGED_BY_LABEL: CONTROLLER}
    if service.spec.is_headless:
        own[HEADLESS_LABEL] = ""
    return {**service.metadata.labels, **own}


def _with_labels(found: EndpointSlice, service: Service) -> ObjectMeta:
    return replace(found.metadata, labels=_labels(service))


def _names(objects: Indexer, service: Service) -> Iterator[str]:
    namespace, prefix = service.metadata.namespace, f"{service.metadata.name}-"

    def is_taken(name: str) -> bool:
        return objects.get(EndpointSlice, namespace, name) is not None

    return draw_names(prefix, (service.metadata.uid, prefix), is_taken)
