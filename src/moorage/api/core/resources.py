"""Resource requirements of containers and pods (core/v1)."""

from __future__ import annotations

from msgspec import field

from moorage.api.quantity import Quantity
from moorage.api.structs import Open, always

ResourceList = dict[str, Quantity]

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"


class ContainerClaim(Open, frozen=True, gc=False):
    """A claim of the pod, or one of its requests, that a container uses."""

    name: str = always("")
    request: str = ""


class ResourceRequirements(Open, frozen=True, gc=False):
    """The resource requests, limits and claims of a container or pod."""

    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()
