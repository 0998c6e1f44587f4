"""Paths of fields in older versions of a kind: those that the user wrote."""

from __future__ import annotations

from moorage.api.field_path import Path, path_of
from moorage.api.kinds import Kind
from moorage.api.resource import v1beta1


def versioned_path(path: Path, kind: Kind) -> Path:
    """Return the path in the version that the user wrote for one in the hub version."""
    if kind.api_version != v1beta1.API_VERSION:
        return path
    segments = list(path.segments)
    match segments:
        case ["spec", "devices", int(), field, *_] if field not in ("name", "basic"):
            segments.insert(3, "basic")
        case ["spec", "devices", "requests", int(), "exactly", *_]:
            del segments[4]
        case ["spec", "spec", "devices", "requests", int(), "exactly", *_]:
            del segments[5]
    return path_of(segments)
