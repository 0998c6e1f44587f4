"""LimitRanges (core/v1): bounds and defaults for the resources of single objects."""

from __future__ import annotations

from msgspec import field

from moorage.api.core.resources import ResourceList
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Open, always

API_VERSION = "v1"


class LimitRangeItem(Open, frozen=True, gc=False):
    """The bounds for one type: Container, Pod or PersistentVolumeClaim."""

    type: str = always("")
    max: ResourceList = field(default_factory=dict)
    min: ResourceList = field(default_factory=dict)
    default: ResourceList = field(default_factory=dict)
    default_request: ResourceList = field(default_factory=dict)
    max_limit_request_ratio: ResourceList = field(default_factory=dict)


class LimitRangeSpec(Open, frozen=True, gc=False):
    """The bounds of a namespace."""

    limits: tuple[LimitRangeItem, ...] = always(())


class LimitRange(Open, frozen=True, gc=False):
    """Bounds and defaults for the resources of single objects of a namespace."""

    api_version: str = always(API_VERSION)
    kind: str = always("LimitRange")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: LimitRangeSpec = always(LimitRangeSpec())
