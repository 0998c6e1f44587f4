"""Amounts of node resources that containers and pods ask for."""

from __future__ import annotations

from msgspec import field

from mooring.api.quantity import Quantity
from mooring.api.structs import Open, always

ResourceList = dict[str, Quantity]

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"
HUGE_PAGES_PREFIX = "hugepages-"


class ContainerClaim(Open, frozen=True, gc=False):
    """A claim of the pod, or one request of it, that a container uses."""

    name: str = always("")
    request: str = ""


class ResourceRequirements(Open, frozen=True, gc=False):
    """What a container, or a whole pod, needs and may take."""

    limits: ResourceList = field(default_factory=dict)
    requests: ResourceList = field(default_factory=dict)
    claims: tuple[ContainerClaim, ...] = ()
