"""node.k8s.io/v1: runtime classes, by which pods choose how their containers are run."""

from __future__ import annotations

from msgspec import field

from moorage.api.core.placement import Toleration
from moorage.api.core.resources import ResourceList
from moorage.api.kinds import Kind, declare_kind
from moorage.api.meta import ObjectMeta
from moorage.api.structs import Open, always

GROUP = "node.k8s.io"
API_VERSION = f"{GROUP}/v1"


class Overhead(Open, frozen=True, gc=False):
    """The resources a pod uses besides the requests of its containers."""

    pod_fixed: ResourceList = field(default_factory=dict)


class Scheduling(Open, frozen=True, gc=False):
    """The nodes that have the runtime, and what pods must tolerate to go there."""

    node_selector: dict[str, str] = field(default_factory=dict)
    tolerations: tuple[Toleration, ...] = ()


class RuntimeClass(Open, frozen=True, gc=False):
    """One way to run containers: a handler that nodes are configured with."""

    api_version: str = always(API_VERSION)
    kind: str = always("RuntimeClass")
    metadata: ObjectMeta = always(ObjectMeta())
    handler: str = always("")
    overhead: Overhead | None = None
    scheduling: Scheduling | None = None


KINDS: tuple[Kind, ...] = (declare_kind(RuntimeClass, "runtimeclasses", namespaced=False),)
