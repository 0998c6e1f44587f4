"""The kinds of resource.k8s.io in all their versions."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mooring.api.kinds import Kind
from mooring.api.resource import v1, v1alpha3, v1beta1

V1BETA2 = "resource.k8s.io/v1beta2"


def _versions(
    structs: dict[str, type[Struct]],
    plural: str,
    *,
    namespaced: bool = False,
    has_status: bool = False,
    hub_version: str = v1.API_VERSION,
    extension_in: str = "",
) -> Iterator[Kind]:
    for api_version, struct in structs.items():
        yield Kind(
            api_version=api_version,
            name=struct.__name__,
            plural=plural,
            namespaced=namespaced,
            struct=struct,
            hub_version=hub_version,
            has_status=has_status,
            is_extension=api_version == extension_in,
        )


KINDS: tuple[Kind, ...] = (
    *_versions(
        dict.fromkeys([v1.API_VERSION, V1BETA2, v1beta1.API_VERSION], v1.DeviceClass),
        "deviceclasses",
    ),
    *_versions(
        {
            v1.API_VERSION: v1.ResourceClaim,
            V1BETA2: v1.ResourceClaim,
            v1beta1.API_VERSION: v1beta1.ResourceClaim,
        },
        "resourceclaims",
        namespaced=True,
        has_status=True,
    ),
    *_versions(
        {
            v1.API_VERSION: v1.ResourceClaimTemplate,
            V1BETA2: v1.ResourceClaimTemplate,
            v1beta1.API_VERSION: v1beta1.ResourceClaimTemplate,
        },
        "resourceclaimtemplates",
        namespaced=True,
    ),
    *_versions(
        {
            v1.API_VERSION: v1.ResourceSlice,
            V1BETA2: v1.ResourceSlice,
            v1beta1.API_VERSION: v1beta1.ResourceSlice,
        },
        "resourceslices",
    ),
    *_versions(
        dict.fromkeys([v1.API_VERSION, V1BETA2, v1alpha3.API_VERSION], v1.DeviceTaintRule),
        "devicetaintrules",
        has_status=True,
    ),
    *_versions(
        dict.fromkeys([v1alpha3.API_VERSION, V1BETA2], v1alpha3.ResourcePoolStatusRequest),
        "resourcepoolstatusrequests",
        has_status=True,
        hub_version=v1alpha3.API_VERSION,
        extension_in=V1BETA2,
    ),
)
