"""Writes as values: a controller plans them without I/O, and something else carries them out.

A write names its object by kind, namespace and name. A precondition restricts it to the object that
the planner saw: its `uid`, or its `revision` (the resource version).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from moorage.api.meta import ObjectMeta


class Target(Struct, frozen=True):
    """The object of a write; with `uid`, not another that was recreated under its name."""

    struct: type[Any]
    namespace: str
    name: str
    uid: str = ""

    @classmethod
    def of(cls, value: Any) -> Target:
        """Return the target for an object."""
        metadata: ObjectMeta = value.metadata
        return cls(type(value), metadata.namespace, metadata.name, metadata.uid)


class Create(Struct, frozen=True):
    """Create an object; if it exists already, the planner will see that next time."""

    value: Any


class Update(Struct, frozen=True):
    """Replace an object or a subresource, if it has the resource version of `value`."""

    value: Any
    subresource: str = ""
    with_status: bool = False  # the object and then its status; see `ApiClient.joins_status`


class Patch(Struct, frozen=True):
    """Apply a JSON merge patch; a resource version in it is a precondition."""

    target: Target
    body: dict[str, Any]
    subresource: str = ""


class Apply(Struct, frozen=True):
    """Apply fields as a field manager (server-side apply)."""

    target: Target
    body: dict[str, Any]
    manager: str
    subresource: str = ""
    force: bool = True


class Delete(Struct, frozen=True):
    """Delete an object."""

    target: Target
    revision: str = ""
    grace_s: int | None = None
    propagation: str = ""  # Background, Foreground, Orphan; empty: the kind's default


class RecordEvent(Struct, frozen=True):
    """Record an event about an object."""

    about: Any  # the object
    reason: str
    message: str
    action: str = ""
    is_warning: bool = False


Write = Create | Update | Patch | Apply | Delete | RecordEvent


class RequeueAfter(Struct, frozen=True):
    """Nothing to write now: reconcile this key again after a while."""

    key: tuple[str, str]  # namespace, name
    after_s: float
