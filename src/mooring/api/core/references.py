"""References from one object to another (core/v1)."""

from __future__ import annotations

from mooring.api.structs import Open


class ObjectReference(Open, frozen=True, gc=False):
    """Any object, or a part of one."""

    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    api_version: str = ""
    resource_version: str = ""
    field_path: str = ""


class LocalObjectReference(Open, frozen=True, gc=False):
    """An object in the same namespace, of a kind that the place implies."""

    name: str = ""
