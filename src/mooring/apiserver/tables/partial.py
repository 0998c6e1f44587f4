"""Objects of which only the metadata is told, for clients that need no more."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from mooring.api.meta import ListMeta, ObjectMeta
from mooring.api.structs import Closed, always

VERSIONS = ("meta.k8s.io/v1", "meta.k8s.io/v1beta1")


class PartialObjectMetadata(Closed, frozen=True, gc=False):
    """The metadata of an object of any kind."""

    kind: str = always("PartialObjectMetadata")
    api_version: str = always(VERSIONS[0])
    metadata: ObjectMeta = always(ObjectMeta())


class PartialObjectMetadataList(Closed, frozen=True, gc=False):
    """The metadata of several objects."""

    kind: str = always("PartialObjectMetadataList")
    api_version: str = always(VERSIONS[0])
    metadata: ListMeta = always(ListMeta())
    items: tuple[PartialObjectMetadata, ...] = always(())


def metadata_of(value: Any, version: str) -> PartialObjectMetadata:
    """Return what is told of an object."""
    return PartialObjectMetadata(api_version=version, metadata=value.metadata)


def metadata_list(
    values: Iterable[Any], metadata: ListMeta, version: str
) -> PartialObjectMetadataList:
    """Return what is told of several objects."""
    items = tuple(metadata_of(value, version) for value in values)
    return PartialObjectMetadataList(api_version=version, metadata=metadata, items=items)
