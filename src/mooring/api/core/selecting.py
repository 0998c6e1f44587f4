"""Services and ReplicationControllers (core/v1), as far as they decide where pods go.

Mooring's server has neither. The scheduler of a real cluster reads both: pods that one of them
selects are spread over nodes and zones.
"""

from __future__ import annotations

from msgspec import field

from mooring.api.kinds import Kind
from mooring.api.meta import ObjectMeta
from mooring.api.structs import Open, always

API_VERSION = "v1"


class ServiceSpec(Open, frozen=True, gc=False):
    """Which pods answer for a service."""

    selector: dict[str, str] = field(default_factory=dict)


class Service(Open, frozen=True, gc=False):
    """A name and an address for pods."""

    api_version: str = always(API_VERSION)
    kind: str = always("Service")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ServiceSpec = always(ServiceSpec())


class ReplicationControllerSpec(Open, frozen=True, gc=False):
    """Which pods are counted."""

    selector: dict[str, str] = field(default_factory=dict)


class ReplicationController(Open, frozen=True, gc=False):
    """What there was before replica sets."""

    api_version: str = always(API_VERSION)
    kind: str = always("ReplicationController")
    metadata: ObjectMeta = always(ObjectMeta())
    spec: ReplicationControllerSpec = always(ReplicationControllerSpec())


FOREIGN_KINDS: tuple[Kind, ...] = tuple(
    Kind(
        api_version=API_VERSION,
        name=struct.__name__,
        plural=plural,
        namespaced=True,
        struct=struct,
        hub_version=API_VERSION,
        has_status=True,
        short_names=(short_name,),
    )
    for struct, plural, short_name in (
        (ReplicationController, "replicationcontrollers", "rc"),
        (Service, "services", "svc"),
    )
)
