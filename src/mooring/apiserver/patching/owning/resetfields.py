"""Fields that a request cannot change, whoever sends it: they are never owned by it.

The main resource leaves status alone, the status subresource all but status; what of metadata
it leaves alone differs by kind.
"""

from __future__ import annotations

from functools import cache

from mooring.api.kinds import Kind
from mooring.apiserver.patching import elements
from mooring.apiserver.patching.fieldset import FieldSet

_STATUS, _SPEC, _METADATA = "status", "spec", "metadata"

# Of metadata, what the status subresource leaves alone; for other kinds nothing.
_METADATA_OF_STATUS: dict[str, tuple[str, ...]] = {
    "CompositePodGroup": (_METADATA,),
    "Deployment": ("metadata.labels",),
    "DeviceTaintRule": (_METADATA,),
    "Pod": ("metadata.deletionTimestamp", "metadata.ownerReferences"),
    "PodGroup": (_METADATA,),
    "ResourceClaim": (_METADATA,),
    "ResourcePoolStatusRequest": (_METADATA,),
}


def reset_fields(kind: Kind, subresource: str) -> FieldSet:
    """Return the fields that requests to a resource or subresource never own."""
    return _reset_fields(kind.name, kind.has_status, subresource)


@cache
def _reset_fields(name: str, has_status: bool, subresource: str) -> FieldSet:
    match subresource:
        case "" if has_status:
            texts: tuple[str, ...] = (_STATUS,)
        case "finalize":
            texts = (_STATUS,)
        case "status":
            texts = (_SPEC, *_METADATA_OF_STATUS.get(name, ()))
        case _:
            texts = ()
    return FieldSet.of(*(tuple(map(elements.field, text.split("."))) for text in texts))
