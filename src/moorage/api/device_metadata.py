"""metadata.resource.k8s.io: what a container reads about its devices.

Drivers write these objects as JSON into files of the container; no server stores them. v1alpha1
and v1beta1 have the same layout.
"""

from __future__ import annotations

from msgspec import field

from moorage.api.kinds import Kind
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import DeviceAttribute, NetworkDeviceData
from moorage.api.structs import Open, always

API_VERSION = "metadata.resource.k8s.io/v1beta1"
V1ALPHA1 = "metadata.resource.k8s.io/v1alpha1"

ATTRIBUTES_MAX = 32


class DeviceMetadataDevice(Open, frozen=True, gc=False):
    """One device of a request."""

    driver: str = always("")
    pool: str = always("")
    name: str = always("")
    attributes: dict[str, DeviceAttribute] = field(default_factory=dict)
    network_data: NetworkDeviceData | None = None


class DeviceMetadataRequest(Open, frozen=True, gc=False):
    """The devices of one request, or subrequest (`request/subrequest`)."""

    name: str = always("")
    devices: tuple[DeviceMetadataDevice, ...] = ()


class DeviceMetadata(Open, frozen=True, gc=False):
    """The devices that a claim gives to the containers of a pod."""

    api_version: str = always(API_VERSION)
    kind: str = always("DeviceMetadata")
    metadata: ObjectMeta = always(ObjectMeta())
    pod_claim_name: str | None = None
    requests: tuple[DeviceMetadataRequest, ...] = ()


# Without a plural: no server serves them.
KINDS: tuple[Kind, ...] = tuple(
    Kind(
        api_version=api_version,
        name="DeviceMetadata",
        plural="",
        namespaced=False,
        struct=DeviceMetadata,
        hub_version=API_VERSION,
    )
    for api_version in (API_VERSION, V1ALPHA1)
)
