"""Devices that are plainly good: the cheapest question, asked first.

Devices are the bulk of what a cluster holds, and nearly all of them are fine: they have names,
plain attributes and capacities, and nothing else. That is settled here for all devices of a slice
at once; the rules themselves, and the paths for their errors, are for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from mooring.api.names import byte_length
from mooring.api.resource.v1 import Device, DeviceAttribute
from mooring.api.semver import matches_api_rule
from mooring.validation.checks import is_good_label, is_good_qualified_name

ENTRIES_MAX = 32  # attributes and capacities of a device
VALUE_MAX_BYTES = 64
# No character has more than four bytes; longer texts are looked at once more.
_SURELY_SHORT = VALUE_MAX_BYTES // 4


def are_plainly_good(devices: tuple[Device, ...]) -> bool:
    """Tell, for most good devices, that they break no rule but perhaps that on their nodes.

    False settles nothing.
    """
    # Names of devices differ, those of attributes repeat: each is looked at once.
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
    """Tell whether all devices leave it to their slice which nodes they are for."""
    for device in devices:
        if (
            device.node_name is not None
            or device.node_selector is not None
            or device.all_nodes is not None
        ):
            return False
    return True


def _is_plain(device: Device) -> bool:
    """Tell whether a device has attributes and capacities, not too many, and nothing rare."""
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
    """Tell whether each attribute has one value that is no list, and that is good."""
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


@lru_cache(maxsize=1024)
def _is_good_version(text: str) -> bool:
    return byte_length(text) <= VALUE_MAX_BYTES and matches_api_rule(text)
