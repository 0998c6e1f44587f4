"""Writes as values: a controller plans them without I/O, and something else carries them out.

A write names its object by kind, namespace and name. Where it must only meet the object that was
looked at, it says which: by `uid`, or by `revision` (the resource version).
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from mooring.api.meta import ObjectMeta


class Target(Struct, frozen=True):
    """Which object is meant; with `uid`, only this one and none made anew under its name."""

    struct: type[Any]
    namespace: str
    name: str
    uid: str = ""

    @classmethod
    def of(cls, value: Any) -> Target:
        """Return the target that is this object."""
        metadata: ObjectMeta = value.metadata
        return cls(type(value), metadata.namespace, metadata.name, metadata.uid)


class Create(Struct, frozen=True):
    """Make an object; that it is there already is for the planner to see next time."""

    value: Any


class Update(Struct, frozen=True):
    """Replace an object, or a part of it, if it still is the version that `value` was made from."""

    value: Any
    subresource: str = ""


class Patch(Struct, frozen=True):
    """Change fields by a JSON merge patch; with a resource version in it, only of that version."""

    target: Target
    body: dict[str, Any]
    subresource: str = ""


class Apply(Struct, frozen=True):
    """Say which fields shall be as they are in `body`, as a field manager (server-side apply)."""

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
    propagation: str = ""  # Background, Foreground, Orphan; empty: as the kind has it


class Tell(Struct, frozen=True):
    """Record an event about an object."""

    about: Any  # the object
    reason: str
    message: str
    action: str = ""
    is_warning: bool = False


Write = Create | Update | Patch | Apply | Delete | Tell


class LookAgain(Struct, frozen=True):
    """Nothing to write now: look at this key again after a while."""

    key: tuple[str, str]  # namespace, name
    after_s: float
