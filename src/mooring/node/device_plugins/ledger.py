"""Which device is whose.

A device is taken from the moment that it is chosen, so that two pods which come together do not get
it both; once its plugin agreed it is held. Containers of one pod may hold the same device one after
the other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from msgspec import Struct

from mooring.node.contract import Given
from mooring.node.device_plugins.inventory import PluginDevice


class Key(NamedTuple):
    """Whose devices of which resource."""

    pod_uid: str
    container: str
    resource: str


class Allotment(Struct, frozen=True):
    """What one container has of one resource."""

    pod_uid: str
    container: str
    resource: str
    devices: tuple[PluginDevice, ...]  # as they were when they were given
    given: Given = Given()

    @property
    def key(self) -> Key:
        """Whose it is."""
        return Key(self.pod_uid, self.container, self.resource)

    @property
    def ids(self) -> tuple[str, ...]:
        """The devices by their names."""
        return tuple(each.id for each in self.devices)


class Ledger:
    """All devices that are taken or held."""

    def __init__(self, allotments: Iterable[Allotment] = ()) -> None:
        self._pods: dict[str, dict[tuple[str, str], Allotment]] = {}
        self._counts: dict[str, Counter[str]] = {}
        for each in allotments:
            self.hold(each)

    @property
    def pods(self) -> frozenset[str]:
        """The pods that hold devices."""
        return frozenset(self._pods)

    @property
    def allotments(self) -> tuple[Allotment, ...]:
        """All that is held."""
        return tuple(each for held in self._pods.values() for each in held.values())

    def taken(self, resource: str) -> frozenset[str]:
        """Return the devices of a resource that nobody else can have."""
        return frozenset(self._counts.get(resource, ()))

    def amounts(self) -> Mapping[str, int]:
        """Return how many devices of each resource are taken."""
        return {resource: len(counts) for resource, counts in self._counts.items()}

    def knows(self, resource: str) -> bool:
        """Whether anybody has devices of a resource."""
        return resource in self._counts

    def held(self, pod_uid: str, container: str, resource: str) -> Allotment | None:
        """Return what a container has of a resource."""
        return self._pods.get(pod_uid, {}).get((container, resource))

    def of(self, pod_uid: str, container: str) -> tuple[Allotment, ...]:
        """Return all that a container has."""
        held = self._pods.get(pod_uid, {})
        return tuple(each for (name, _), each in held.items() if name == container)

    def take(self, resource: str, ids: Iterable[str]) -> None:
        """Keep devices from others."""
        self._counts.setdefault(resource, Counter()).update(ids)

    def release(self, resource: str, ids: Iterable[str]) -> None:
        """Undo one `take`."""
        counts = self._counts[resource]
        counts.subtract(ids)
        for id_ in [id_ for id_, count in counts.items() if count <= 0]:
            del counts[id_]
        if not counts:
            del self._counts[resource]

    def hold(self, allotment: Allotment) -> None:
        """Give devices to a container."""
        key = (allotment.container, allotment.resource)
        assert key not in self._pods.get(allotment.pod_uid, {}), "a container gets them once"
        self.take(allotment.resource, allotment.ids)
        self._pods.setdefault(allotment.pod_uid, {})[key] = allotment

    def drop(self, pod_uid: str) -> bool:
        """Take all devices of a pod back; return whether it had any."""
        held = self._pods.pop(pod_uid, {})
        for each in held.values():
            self.release(each.resource, each.ids)
        return bool(held)

    def holders(self, resource: str, ids: frozenset[str]) -> frozenset[str]:
        """Return the pods that hold any of these devices."""
        return frozenset(
            each.pod_uid
            for each in self.allotments
            if each.resource == resource and not ids.isdisjoint(each.ids)
        )
