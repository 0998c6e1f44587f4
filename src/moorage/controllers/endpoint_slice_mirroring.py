"""Endpoint slices of Endpoints that users make, for services that select no pods.

Everything that forwards connections reads EndpointSlices only. So the Endpoints of such a service,
which name addresses outside the cluster, get slices with the same addresses. Endpoints that say
`endpointslice.kubernetes.io/skip-mirror: "true"`, or that programs use to elect a leader, get none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from ipaddress import ip_address
from typing import Any, ClassVar, Final

from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core.service import Endpoints, Service
from moorage.api.discovery import (
    IPV4,
    IPV6,
    MANAGED_BY_LABEL,
    SERVICE_NAME_LABEL,
    Endpoint,
    EndpointPort,
    EndpointSlice,
)
from moorage.api.errors import DecodeError
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, Delete, Target, Update
from moorage.controllers.controller import Answers, Controller, ObjectChange, Step
from moorage.controllers.controller_ref_manager import reference_to
from moorage.controllers.endpoint_slices import SERVICE, slices_by_service
from moorage.controllers.pod_control import draw_names

CONTROLLER: Final = "endpointslicemirroring-controller.k8s.io"
SKIP: Final = "endpointslice.kubernetes.io/skip-mirror"
LEADER: Final = "control-plane.alpha.kubernetes.io/leader"
ADDRESSES_MAX: Final = 1000  # of a subset; the others are left out, as in Kubernetes
NOT_COPIED: Final = (  # annotations
    "kubectl.kubernetes.io/last-applied-configuration",
    "endpoints.kubernetes.io/last-change-trigger-time",
)

Content = tuple[str, tuple[EndpointPort, ...], tuple[Endpoint, ...]]  # type, ports, endpoints


class EndpointSliceMirroringController(Controller):
    """Keeps the slices of Endpoints that nobody derives from pods."""

    name: ClassVar[str] = "endpointslice-mirroring-controller"
    kinds = (Endpoints, Service, EndpointSlice)

    def add_indexes(self, objects: Indexer) -> None:
        """Add the indexes that the plan needs."""
        objects.index(EndpointSlice, SERVICE, slices_by_service)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Return the Endpoints of a change: those with the name of its service."""
        value = change.value
        if isinstance(value, EndpointSlice):
            if value.metadata.labels.get(MANAGED_BY_LABEL) != CONTROLLER:
                return ()
            name = value.metadata.labels.get(SERVICE_NAME_LABEL, "")
            return ((value.metadata.namespace, name),) if name else ()
        return (object_key(value),)

    def reconcile(
        self,
        objects: Indexer,
        key: ObjectKey,
        now: Timestamp,
        answers: Answers,
    ) -> Iterable[Step]:
        """Yield what makes the slices say what the Endpoints say."""
        endpoints, service = objects.get(Endpoints, *key), objects.get(Service, *key)
        left = sorted(
            (
                each
                for each in objects.by_index(EndpointSlice, SERVICE, "/".join(key))
                if each.metadata.labels.get(MANAGED_BY_LABEL) == CONTROLLER
            ),
            key=object_key,
        )
        if endpoints is not None and service is not None and _is_mirrored(endpoints, service):
            yield from _steps(objects, endpoints, left)
        yield from (Delete(Target.of(each)) for each in left)


def _is_mirrored(endpoints: Endpoints, service: Service) -> bool:
    metadata = endpoints.metadata
    return (
        not service.spec.selector
        and metadata.deletion_timestamp is None
        and metadata.labels.get(SKIP) != "true"
        and LEADER not in metadata.annotations
    )


def _steps(objects: Indexer, endpoints: Endpoints, left: list[EndpointSlice]) -> Iterator[Step]:
    """Yield the writes of the slices that there should be, and take those that stay from `left`."""
    metadata = endpoints.metadata
    own = {SERVICE_NAME_LABEL: metadata.name, MANAGED_BY_LABEL: CONTROLLER}
    labels = {**metadata.labels, **own}
    annotations = {k: v for k, v in metadata.annotations.items() if k not in NOT_COPIED}
    names = _names(objects, endpoints)
    known = {(each.address_type, _form(each.ports)): each for each in reversed(left)}
    kept_names: set[str] = set()
    for address_type, ports, found in _contents(endpoints):
        old = known.get((address_type, _form(ports)))
        if old is None:
            made = ObjectMeta(
                name=next(names),
                generate_name=f"{metadata.name}-",
                namespace=metadata.namespace,
                labels=labels,
                annotations=annotations,
                owner_references=(reference_to(endpoints),),
            )
            yield Create(
                EndpointSlice(
                    metadata=made, address_type=address_type, endpoints=found, ports=ports
                )
            )
            continue
        kept_names.add(old.metadata.name)
        kept = replace(old.metadata, labels=labels, annotations=annotations)
        changed = replace(old, metadata=kept, endpoints=found)
        if changed != old:
            yield Update(changed)
    left[:] = [each for each in left if each.metadata.name not in kept_names]


def _form(ports: tuple[EndpointPort, ...]) -> tuple[Any, ...]:
    return tuple((port.name, port.port, port.protocol, port.app_protocol) for port in ports)


def _contents(endpoints: Endpoints) -> Iterator[Content]:
    """Yield what the slices have: one for each type of addresses and list of ports."""
    found: dict[tuple[str, tuple[Any, ...]], tuple[tuple[EndpointPort, ...], list[Endpoint]]] = {}
    for subset in endpoints.subsets:
        if not isinstance(subset, Mapping):
            continue
        ports = tuple(_port(each) for each in subset.get("ports") or ())
        known = [(each, True) for each in subset.get("addresses") or ()]
        known += [(each, False) for each in subset.get("notReadyAddresses") or ()]
        for address, is_ready in known[:ADDRESSES_MAX]:
            ip = str(address.get("ip", ""))
            address_type = _type_of(ip)
            if address_type:
                key = address_type, tuple((p.name, p.port, p.protocol) for p in ports)
                listed = found.setdefault(key, (ports, []))[1]
                listed.append(_endpoint(ip, address, is_ready=is_ready))
    for (address_type, _), (ports, listed) in found.items():
        yield address_type, ports, tuple(listed)


def _port(tree: Any) -> EndpointPort:
    """Return a port as the server stores it in a slice."""
    port: EndpointPort = _decoded(tree, EndpointPort)
    return replace(port, name=port.name or "", protocol=port.protocol or "TCP")


def _type_of(address: str) -> str:
    try:
        return IPV6 if ip_address(address).version == 6 else IPV4
    except ValueError:
        return ""


def _endpoint(ip: str, address: Mapping[str, Any], *, is_ready: bool) -> Endpoint:
    tree = {
        "addresses": [ip],
        "conditions": {"ready": is_ready},
        "hostname": address.get("hostname") or None,
        "nodeName": address.get("nodeName") or None,
        "targetRef": address.get("targetRef"),
    }
    made: Endpoint = _decoded({k: v for k, v in tree.items() if v is not None}, Endpoint)
    return made


def _decoded(tree: Any, struct: type[Any]) -> Any:
    try:
        return decode_tree(tree, struct).value
    except DecodeError:
        return struct()  # Validation refuses such Endpoints; the store may have some from before.


def _names(objects: Indexer, endpoints: Endpoints) -> Iterator[str]:
    namespace, prefix = endpoints.metadata.namespace, f"{endpoints.metadata.name}-"

    def is_taken(name: str) -> bool:
        return objects.get(EndpointSlice, namespace, name) is not None

    return draw_names(prefix, (endpoints.metadata.uid, prefix), is_taken)
