"""Reads the items of dumps into objects that share what they have in common.

Most attributes are the same for thousands of devices; as objects of their own they would take a
tenth of a large cluster's memory.
"""

from __future__ import annotations

from typing import Any

from moorage.api.documents import Tree
from moorage.api.object_reader import ReadObject
from moorage.api.plain_reader import PlainItems
from moorage.api.resource.v1 import DeviceAttribute, ResourceSlice
from moorage.validation.strategy import Context

ATTRIBUTES_SHARED_MAX = 4096


class SharingItemReader(PlainItems):
    """Reads items; devices of all slices share equal attributes."""

    def __init__(self, context: Context) -> None:
        super().__init__(context.gates, extensions=context.extensions)
        self._attributes: dict[DeviceAttribute, DeviceAttribute] = {}

    def read_json(self, text: bytes) -> ReadObject | None:
        """Return the object of JSON text without spaces; None in doubt."""
        return self._shared(super().read_json(text))

    def read_tree(self, tree: Tree) -> ReadObject | None:
        """Return the object of a tree; None if it describes none."""
        return self._shared(super().read_tree(tree))

    def share(self, value: Any) -> None:
        """Let the devices of a slice share their attributes with others; leave other kinds."""
        if not isinstance(value, ResourceSlice):
            return
        known = self._attributes
        for device in value.spec.devices or ():
            attributes = device.attributes
            for name, attribute in attributes.items():
                if attribute in known:
                    attributes[name] = known[attribute]
                elif len(known) < ATTRIBUTES_SHARED_MAX:
                    known[attribute] = attribute

    def _shared(self, reading: ReadObject | None) -> ReadObject | None:
        if reading is not None:
            self.share(reading.value)
        return reading
