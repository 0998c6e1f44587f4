"""What every object carries: identity, labels, owners, conditions (meta/v1)."""

from __future__ import annotations

from typing import Any

from msgspec import Raw, field
from msgspec.structs import replace

from moorage.api.structs import NULL, Closed, Int64, always, named
from moorage.api.timestamp import Timestamp


class OwnerReference(Closed, frozen=True, gc=False):
    """The object that owns this one."""

    api_version: str = always("")
    kind: str = always("")
    name: str = always("")
    uid: str = always("")
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ManagedFieldsEntry(Closed, frozen=True, gc=False):
    """Which fields a manager owns, for server-side apply."""

    manager: str = ""
    operation: str = ""
    api_version: str = ""
    time: Timestamp | None = None
    fields_type: str = ""
    fields_v1: Raw = named("fieldsV1", NULL)
    subresource: str = ""


class ObjectMeta(Closed, frozen=True, gc=False):
    """The identity of an object and what hangs on it."""

    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    self_link: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: Int64 = 0
    creation_timestamp: Timestamp | None = None
    deletion_timestamp: Timestamp | None = None
    deletion_grace_period_seconds: Int64 | None = None
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    owner_references: tuple[OwnerReference, ...] = ()
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[ManagedFieldsEntry, ...] = ()


def without_managed_fields(value: Any) -> Any:
    """Return an object without its managedFields, which only the server reads.

    An update that has none leaves those of the server as they are.
    """
    metadata = getattr(value, "metadata", None)
    if not isinstance(metadata, ObjectMeta) or not metadata.managed_fields:
        return value
    return replace(value, metadata=replace(metadata, managed_fields=()))


def namespaced_name(metadata: ObjectMeta) -> str:
    """Return the key of an object among those of its kind: `default/claim`, `node-1`."""
    return f"{metadata.namespace}/{metadata.name}" if metadata.namespace else metadata.name


def object_text(value: Any) -> str:
    """Return the kind, the name and the uid of any object, also of a malformed one, for logs."""
    metadata = getattr(value, "metadata", None)
    kind = getattr(value, "kind", "") or type(value).__name__
    namespace, name, uid = (
        getattr(metadata, each, "") or "" for each in ("namespace", "name", "uid")
    )
    return identity_text(kind, namespace, name, uid)


def identity_text(kind: object, namespace: object, name: object, uid: object = "") -> str:
    """Return what logs call an object: `Pod default/web (uid 1234)`."""
    where = f"{namespace}/{name}" if namespace else f"{name}"
    return f"{kind} {where}" + (f" (uid {uid})" if uid else "")


class ListMeta(Closed, frozen=True, gc=False):
    """The place of a list in the history of the store."""

    self_link: str = ""
    resource_version: str = ""
    continue_: str = named("continue", "")
    remaining_item_count: Int64 | None = None


class Condition(Closed, frozen=True, gc=False):
    """One observed aspect of an object's state."""

    type: str = always("")
    status: str = always("")
    observed_generation: Int64 = 0
    last_transition_time: Timestamp | None = always(None)
    reason: str = always("")
    message: str = always("")


class LabelSelectorRequirement(Closed, frozen=True, gc=False):
    """One expression of a label selector."""

    key: str = always("")
    operator: str = always("")
    values: tuple[str, ...] = ()


class LabelSelector(Closed, frozen=True, gc=False):
    """A query over labels; the empty one selects everything."""

    match_labels: dict[str, str] = field(default_factory=dict)
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class GroupResource(Closed, frozen=True, gc=False):
    """A resource of a group."""

    group: str = always("")
    resource: str = always("")


Json = Any  # a JSON value of any shape: None, bool, int, float, str, list, dict
