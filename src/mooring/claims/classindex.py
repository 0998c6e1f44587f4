"""Which device class stands behind an extended resource.

A class is meant by the name that it gives itself (spec.extendedResourceName) and, always, by
`deviceclass.resource.kubernetes.io/<class>`. Where several classes give themselves the same name
the newest is meant, so that one class can take over from another; of classes of one age it is the
first by name. The answer depends on the classes alone, never on the order in which they came.
"""

from __future__ import annotations

from datetime import datetime

from mooring.api import names
from mooring.api.resource.v1 import DEVICE_CLASS_RESOURCE_PREFIX, DeviceClass
from mooring.api.timestamp import NO_TIME


def is_device_resource(name: str) -> bool:
    """Tell whether a resource of this name can be backed by devices of a class."""
    return name.startswith(DEVICE_CLASS_RESOURCE_PREFIX) or names.is_extended_resource(name)


def implicit_name(class_name: str) -> str:
    """Return the resource that every class is meant by."""
    return DEVICE_CLASS_RESOURCE_PREFIX + class_name


class ClassIndex:
    """Finds classes by resource; follows the classes of the cluster one change at a time."""

    def __init__(self) -> None:
        self._classes: dict[str, DeviceClass] = {}
        # resource -> names of the classes that give themselves this name
        self._claimants: dict[str, set[str]] = {}
        # resource -> the one of them that is meant
        self._meant: dict[str, DeviceClass] = {}

    def put_class(self, device_class: DeviceClass) -> None:
        """Take a new class, or the new state of one."""
        name = device_class.metadata.name
        self.remove_class(name)
        self._classes[name] = device_class
        resource = device_class.spec.extended_resource_name
        if resource is not None:
            self._claimants.setdefault(resource, set()).add(name)
            self._decide(resource)

    def remove_class(self, name: str) -> None:
        """Forget a class, if it is there."""
        removed = self._classes.pop(name, None)
        if removed is None or removed.spec.extended_resource_name is None:
            return
        resource = removed.spec.extended_resource_name
        self._claimants[resource].discard(name)
        self._decide(resource)

    def class_for(self, resource: str) -> DeviceClass | None:
        """Return the class that is meant by the resource."""
        if resource.startswith(DEVICE_CLASS_RESOURCE_PREFIX):
            return self._classes.get(resource.removeprefix(DEVICE_CLASS_RESOURCE_PREFIX))
        return self._meant.get(resource)

    def resources(self) -> list[str]:
        """Return the resources that classes give themselves the names of."""
        return sorted(self._meant)

    def has_class(self, name: str) -> bool:
        """Tell whether there is a class of this name."""
        return name in self._classes

    def explicit_name(self, class_name: str) -> str | None:
        """Return the resource name that a class gives itself, meant by it or not."""
        found = self._classes.get(class_name)
        return None if found is None else found.spec.extended_resource_name

    def _decide(self, resource: str) -> None:
        claimants = self._claimants[resource]
        if not claimants:
            del self._claimants[resource]
            self._meant.pop(resource, None)
            return
        # max() keeps the first of equals, which is the first by name.
        self._meant[resource] = max(
            (self._classes[name] for name in sorted(claimants)), key=_created_at
        )


def _created_at(device_class: DeviceClass) -> datetime:
    return (device_class.metadata.creation_timestamp or NO_TIME).instant
