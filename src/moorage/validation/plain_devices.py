"""Plain devices, which need no further validation: a fast path for most devices of a cluster.

Nearly all devices have a name, attributes with one value each and capacities, and nothing else.
Such devices are checked here for a whole slice at once. The rules themselves, which know the paths
of errors, check the rest. A device that uses a field not named in `_CHECKED` is not plain: a new
field needs no change here, and its rules are never skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from operator import attrgetter
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import fields

from moorage.api.names import byte_length
from moorage.api.resource.v1 import Device, DeviceAttribute, DeviceCapacity
from moorage.api.semver import matches_api_rule
from moorage.kit.remembered import remembered
from moorage.validation.field_rules import is_good_label, is_good_qualified_name

ENTRIES_MAX = 32  # attributes and capacities of a device
VALUE_MAX_BYTES = 64
# No character has more than four bytes; longer texts are looked at once more.
_SURELY_SHORT = VALUE_MAX_BYTES // 4


# The structs of a device, where it has them, and their fields that the functions below check.
# Any value of bindsToNode and allowMultipleAllocations is valid.
_CHECKED: tuple[tuple[type[Struct], Callable[[Device], Iterable[Struct]], str], ...] = (
    (
        Device,
        lambda device: (device,),
        (
            "name attributes capacity consumes_counters node_name node_selector all_nodes taints "
            "binds_to_node binding_conditions binding_failure_conditions "
            "allow_multiple_allocations node_allocatable_resources"
        ),
    ),
    (
        DeviceAttribute,
        lambda device: device.attributes.values(),
        (
            "int_value bool_value string_value version_value "
            "int_values bool_values string_values version_values"
        ),
    ),
    (DeviceCapacity, lambda device: device.capacity.values(), "value request_policy"),
)


class UncheckedFields(NamedTuple):
    """Fields of a struct that this module does not check: a device that uses one is not plain."""

    structs_of: Callable[[Device], Iterable[Struct]]
    read: attrgetter[object]
    unset: object

    @classmethod
    def of(
        cls, struct: type[Struct], structs_of: Callable[[Device], Iterable[Struct]], checked: str
    ) -> UncheckedFields | None:
        """Return the unchecked fields of a struct, if it has any."""
        others = [info.name for info in fields(struct) if info.name not in checked.split()]
        if not others:
            return None
        read = attrgetter(*others)
        return cls(structs_of, read, read(struct()))

    def used_by(self, devices: Iterable[Device]) -> bool:
        """Whether a device has a value in one of the fields."""
        return any(
            self.read(struct) != self.unset
            for device in devices
            for struct in self.structs_of(device)
        )


_UNCHECKED = tuple(found for each in _CHECKED if (found := UncheckedFields.of(*each)) is not None)


def are_plainly_good(devices: tuple[Device, ...]) -> bool:
    """Whether devices are plain and valid, apart from the nodes they name.

    False decides nothing.
    """
    if any(unchecked.used_by(devices) for unchecked in _UNCHECKED):
        return False
    # Names of devices differ, those of attributes repeat: each is checked once.
    names: set[str] = set()
    keys: set[str] = set()
    for device in devices:
        if not (_is_plain(device) and _have_plain_values(device.attributes.values())):
            return False
        names.add(device.name)
        keys.update(device.attributes, device.capacity)
    return (
        len(names) == len(devices)
        and all(map(is_good_label, names))
        and all(map(is_good_qualified_name, keys))
    )


def name_no_nodes(devices: tuple[Device, ...]) -> bool:
    """Whether all devices leave it to their slice which nodes they are for."""
    for device in devices:
        if (
            device.node_name is not None
            or device.node_selector is not None
            or device.all_nodes is not None
        ):
            return False
    return True


def _is_plain(device: Device) -> bool:
    """Whether a device has attributes and capacities, not too many, and nothing else."""
    if (
        device.taints
        or device.consumes_counters
        or device.binding_conditions
        or device.binding_failure_conditions
        or device.node_allocatable_resources
        or len(device.attributes) + len(device.capacity) > ENTRIES_MAX
    ):
        return False
    for capacity in device.capacity.values():  # noqa: SIM110 - all() takes twice as long.
        if capacity.request_policy is not None:
            return False
    return True


def _have_plain_values(attributes: Iterable[DeviceAttribute]) -> bool:
    """Whether each attribute has one valid value that is no list."""
    # This is where validating a fleet spends its time: fields are read one by one, because
    # nothing that handles several at once is as fast.
    for attribute in attributes:
        if (text := attribute.string_value) is not None:
            if len(text) > _SURELY_SHORT and (len(text) > VALUE_MAX_BYTES or not text.isascii()):
                return False
            if (
                attribute.int_value is not None
                or attribute.bool_value is not None
                or attribute.version_value is not None
            ):
                return False
        elif (text := attribute.version_value) is not None:
            if attribute.int_value is not None or attribute.bool_value is not None:
                return False
            if not _is_good_version(text):
                return False
        elif (attribute.int_value is None) is (attribute.bool_value is None):
            return False
        if (
            attribute.int_values is not None
            or attribute.bool_values is not None
            or attribute.string_values is not None
            or attribute.version_values is not None
        ):
            return False
    return True


@remembered(1024, VALUE_MAX_BYTES)
def _is_good_version(text: str) -> bool:
    return byte_length(text) <= VALUE_MAX_BYTES and matches_api_rule(text)
