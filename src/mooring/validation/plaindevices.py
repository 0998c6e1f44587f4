"""Devices that are plainly good: the cheapest question, asked first.

Devices are the bulk of what a cluster holds, and nearly all of them are fine: they have names,
plain attributes and capacities, and nothing else. That is settled here for all devices of a slice
at once; the rules themselves, and the paths for their errors, are for the rest.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from itertools import chain
from operator import attrgetter

from msgspec.structs import astuple

from mooring.api.names import byte_length
from mooring.api.resource.v1 import Device, DeviceAttribute
from mooring.api.semver import matches_api_rule
from mooring.validation.checks import is_good_label, is_good_qualified_name

ATTRIBUTES_AND_CAPACITIES_MAX = 32
ATTRIBUTE_VALUE_MAX_BYTES = 64
# No character has more than four bytes.
_SURELY_SHORT = ATTRIBUTE_VALUE_MAX_BYTES // 4

_rarely_used = attrgetter(
    "taints", "consumes_counters", "binding_conditions", "binding_failure_conditions",
    "node_allocatable_resources", "node_name", "node_selector", "all_nodes",
)  # fmt: skip
_UNUSED = _rarely_used(Device())


def are_plainly_good(devices: tuple[Device, ...]) -> bool:
    """Tell, for most good devices of a slice for one node, that they break no rule.

    False settles nothing.
    """
    # Most names repeat from device to device: each is looked at once.
    names: set[str] = set()
    keys: set[str] = set()
    for device in devices:
        attributes, capacity = device.attributes, device.capacity
        if _rarely_used(device) != _UNUSED:
            return False
        if len(attributes) + len(capacity) > ATTRIBUTES_AND_CAPACITIES_MAX:
            return False
        names.add(device.name)
        keys.update(attributes, capacity)
        for entry in capacity.values():
            if entry.request_policy is not None:
                return False
    return (
        len(names) == len(devices)
        and all(map(is_good_label, names))
        and all(map(is_good_qualified_name, keys))
        and _have_plain_values(chain.from_iterable(d.attributes.values() for d in devices))
    )


def _have_plain_values(attributes: Iterable[DeviceAttribute]) -> bool:
    """Tell whether each attribute has one value that is no list, and that is good."""
    # One loop over plain tuples: this is where validating a fleet spends its time.
    for values in map(astuple, attributes):
        if values.count(None) != 7:
            return False
        text = values[2]
        if text is not None:
            if len(text) > _SURELY_SHORT and byte_length(text) > ATTRIBUTE_VALUE_MAX_BYTES:
                return False
        elif values[0] is None and values[1] is None:
            version = values[3]
            if version is None or not _is_good_version(version):
                return False
    return True


@lru_cache(maxsize=1024)
def _is_good_version(text: str) -> bool:
    return byte_length(text) <= ATTRIBUTE_VALUE_MAX_BYTES and matches_api_rule(text)
