"""The requests of the special claim, and which container is served by which of them.

For each resource, in the order of their names:

1. Every container that stays (regular ones and sidecars) gets a request of its own.
2. A plain init container is over before later containers start, so it uses the devices of those
   that stay from its own place on, as far as it needs them, and asks only for the rest.
3. Plain init containers run one after the other, so one request is enough for their rests: the
   largest, and of equal ones the first. All of them are mapped to it.

    # position: the place of a container among init containers and then regular ones
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from msgspec import Struct
from msgspec.structs import replace

from mooring.api.core.container import Container
from mooring.api.core.pod import Pod
from mooring.api.core.podstatus import ContainerExtendedResourceRequest
from mooring.api.resource.v1 import DeviceRequest, ExactDeviceRequest
from mooring.claims.classindex import ClassIndex

EXACT_COUNT = "ExactCount"

Mappings = tuple[ContainerExtendedResourceRequest, ...]


class ExtendedRequests(Struct, frozen=True):
    """Requests by name, and the mappings of containers to them."""

    requests: tuple[DeviceRequest, ...]
    mappings: Mappings


class _Ask(Struct, frozen=True):
    """How many devices more a container wants, under which name, and what it uses besides."""

    name: str
    count: int
    uses: tuple[str, ...]

    @property
    def all_uses(self) -> tuple[str, ...]:
        return (*self.uses, self.name) if self.count else self.uses


def extended_requests(pod: Pod, resources: Collection[str], index: ClassIndex) -> ExtendedRequests:
    """Return the requests for these resources of the pod; one without a class is left out."""
    requests: list[DeviceRequest] = []
    mappings: list[ContainerExtendedResourceRequest] = []
    for resource in sorted(resources):
        device_class = index.class_for(resource)
        if device_class is None:
            continue
        asks = _merged(_asks(pod, resource), _plain_positions(pod))
        class_name = device_class.metadata.name
        requests += [_request(ask, class_name) for ask in asks.values() if ask.count]
        mappings += _mappings(pod, resource, asks)
    requests.sort(key=lambda request: request.name)
    return ExtendedRequests(tuple(requests), tuple(mappings))


def _containers(pod: Pod) -> tuple[Container, ...]:
    return (*pod.spec.init_containers, *pod.spec.containers)


def _plain_positions(pod: Pod) -> list[int]:
    """Return where the init containers are that end before others start."""
    return [
        position
        for position, container in enumerate(pod.spec.init_containers)
        if not container.is_sidecar
    ]


def _asks(pod: Pod, resource: str) -> dict[int, _Ask]:
    """Return what each container asks for, by position: first those that stay, then the others."""
    containers = _containers(pod)
    plain = _plain_positions(pod)
    wanting = [place for place, each in enumerate(containers) if _count(each, resource)]
    asks = {
        position: _ask(position, containers[position], resource, ())
        for position in wanting
        if position not in plain
    }
    staying = tuple(asks.items())
    for position in wanting:
        if position in plain:
            later = [ask for place, ask in staying if place >= position]
            asks[position] = _ask(position, containers[position], resource, later)
    return asks


def _ask(position: int, container: Container, resource: str, reusable: Iterable[_Ask]) -> _Ask:
    missing = _count(container, resource)
    uses = []
    for ask in reusable:
        if missing <= 0:
            break
        uses.append(ask.name)
        missing -= ask.count
    # The number is the place among all resources that the container asks for.
    number = sorted(container.resources.requests).index(resource)
    name = f"container-{position}-request-{number}"
    return _Ask(name, max(missing, 0), tuple(uses))


def _merged(asks: dict[int, _Ask], plain: list[int]) -> dict[int, _Ask]:
    """Return the asks with those of plain init containers brought to the largest of them."""
    rests = [asks[position] for position in plain if position in asks and asks[position].count]
    if not rests:
        return asks
    largest = max(rests, key=lambda ask: ask.count)
    return {
        position: _pointed(ask, largest) if position in plain else ask
        for position, ask in asks.items()
    }


def _pointed(ask: _Ask, largest: _Ask) -> _Ask:
    """Return the ask of a plain init container as one that uses the largest request."""
    if ask is largest or not ask.count:
        return ask
    return replace(ask, count=0, uses=(*ask.uses, largest.name))


def _request(ask: _Ask, class_name: str) -> DeviceRequest:
    exactly = ExactDeviceRequest(
        device_class_name=class_name, allocation_mode=EXACT_COUNT, count=ask.count
    )
    return DeviceRequest(name=ask.name, exactly=exactly)


def _mappings(
    pod: Pod, resource: str, asks: dict[int, _Ask]
) -> list[ContainerExtendedResourceRequest]:
    containers = _containers(pod)
    return [
        ContainerExtendedResourceRequest(
            container_name=containers[position].name, resource_name=resource, request_name=name
        )
        for position, ask in asks.items()
        for name in ask.all_uses
    ]


def _count(container: Container, resource: str) -> int:
    quantity = container.resources.requests.get(resource)
    count = None if quantity is None else quantity.as_int64()
    return max(count or 0, 0)
