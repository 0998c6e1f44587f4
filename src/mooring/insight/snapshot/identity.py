"""Who an object is: the uid that stands in where no server has given one.

Ownership and reservations go by uid, so an object without one would own what every other such
object owns. The stand-in follows from kind, namespace and name: the same files give the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mooring.api.meta import OwnerReference
from mooring.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference


def stand_in_uid(kind: str, namespace: str, name: str) -> str:
    """Return the uid of an object that no server has seen."""
    digest = hashlib.sha256("\0".join((kind, namespace, name)).encode("utf-8", "replace"))
    text = digest.hexdigest()
    # The version digit 8 says: made by a rule of one's own (RFC 9562).
    return f"{text[:8]}-{text[8:12]}-8{text[13:16]}-a{text[17:20]}-{text[20:32]}"


def identified(value: Any) -> Any:
    """Return the object with a uid; its own if it has one."""
    metadata = value.metadata
    if metadata.uid:
        return value
    uid = stand_in_uid(value.kind, metadata.namespace, metadata.name)
    return replace(value, metadata=replace(metadata, uid=uid))


def with_references(value: Any, uids: Mapping[tuple[str, str, str], str]) -> Any:
    """Return the object with the uids of what it refers to, where they are missing.

    `uids` has those of all objects, by kind, namespace and name.
    """
    owners: tuple[OwnerReference, ...] = value.metadata.owner_references
    if not all(owner.uid for owner in owners):
        filled = tuple(
            owner if owner.uid else replace(owner, uid=_uid(owner.kind, owner.name, value, uids))
            for owner in owners
        )
        value = replace(value, metadata=replace(value.metadata, owner_references=filled))
    if isinstance(value, ResourceClaim) and not all(c.uid for c in value.status.reserved_for):
        consumers = tuple(
            each if each.uid else replace(each, uid=_uid(_consumer(each), each.name, value, uids))
            for each in value.status.reserved_for
        )
        value = replace(value, status=replace(value.status, reserved_for=consumers))
    return value


def _consumer(reference: ResourceClaimConsumerReference) -> str:
    """Return the kind of a consumer of a claim."""
    return "PodGroup" if reference.resource == "podgroups" else "Pod"


def _uid(kind: str, name: str, of: Any, uids: Mapping[tuple[str, str, str], str]) -> str:
    """Return the uid of what an object refers to: in its namespace, or in none."""
    namespace = of.metadata.namespace
    found = uids.get((kind, namespace, name)) or uids.get((kind, "", name))
    return found or stand_in_uid(kind, namespace, name)


def is_new(value: Any) -> bool:
    """Tell whether no server has seen the object: its uid, if any, is our stand-in."""
    metadata = value.metadata
    if metadata.resource_version:
        return False
    return metadata.uid in ("", stand_in_uid(value.kind, metadata.namespace, metadata.name))
