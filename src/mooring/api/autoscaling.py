"""autoscaling/v1: how many pods a controller keeps. It is a part of controllers, never stored."""

from __future__ import annotations

from mooring.api.kinds import Kind
from mooring.api.meta import ObjectMeta
from mooring.api.structs import Int32, Open, always

API_VERSION = "autoscaling/v1"


class ScaleSpec(Open, frozen=True, gc=False):
    """How many pods are wanted."""

    replicas: Int32 = 0


class ScaleStatus(Open, frozen=True, gc=False):
    """How many pods there are, and by which labels they are found."""

    replicas: Int32 = always(0)
    selector: str = ""


class Scale(Open, frozen=True, gc=False):
    """The number of pods of a controller."""

    api_version: str = always(API_VERSION)
    kind: str = always("Scale")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ScaleSpec = always(ScaleSpec())
    status: ScaleStatus = always(ScaleStatus())


SCALE = Kind(
    api_version=API_VERSION,
    name="Scale",
    plural="",
    namespaced=True,
    struct=Scale,
    hub_version=API_VERSION,
)

KINDS: tuple[Kind, ...] = (SCALE,)
