"""The kinds of resource.k8s.io in all their versions, and conversion between these.

Objects are stored in the hub version of their kind: v1alpha3 for ResourcePoolStatusRequest, v1 for
all other kinds. v1beta2 and v1alpha3 share v1's layout, so only their apiVersion changes; v1beta1
has its own structs.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from moorage.api.kinds import Kind, declare_versions
from moorage.api.resource import v1, v1alpha3, v1beta1
from moorage.api.structs import unchecked

V1BETA2 = "resource.k8s.io/v1beta2"


KINDS: tuple[Kind, ...] = (
    *declare_versions(
        dict.fromkeys([v1.API_VERSION, V1BETA2, v1beta1.API_VERSION], v1.DeviceClass),
        "deviceclasses",
        hub_version=v1.API_VERSION,
    ),
    *declare_versions(
        {
            v1.API_VERSION: v1.ResourceClaim,
            V1BETA2: v1.ResourceClaim,
            v1beta1.API_VERSION: v1beta1.ResourceClaim,
        },
        "resourceclaims",
        hub_version=v1.API_VERSION,
        namespaced=True,
        has_status=True,
    ),
    *declare_versions(
        {
            v1.API_VERSION: v1.ResourceClaimTemplate,
            V1BETA2: v1.ResourceClaimTemplate,
            v1beta1.API_VERSION: v1beta1.ResourceClaimTemplate,
        },
        "resourceclaimtemplates",
        hub_version=v1.API_VERSION,
        namespaced=True,
    ),
    *declare_versions(
        {
            v1.API_VERSION: v1.ResourceSlice,
            V1BETA2: v1.ResourceSlice,
            v1beta1.API_VERSION: v1beta1.ResourceSlice,
        },
        "resourceslices",
        hub_version=v1.API_VERSION,
    ),
    *declare_versions(
        dict.fromkeys([v1.API_VERSION, V1BETA2, v1alpha3.API_VERSION], v1.DeviceTaintRule),
        "devicetaintrules",
        hub_version=v1.API_VERSION,
        has_status=True,
    ),
    *declare_versions(
        dict.fromkeys([v1alpha3.API_VERSION, V1BETA2], v1alpha3.ResourcePoolStatusRequest),
        "resourcepoolstatusrequests",
        has_status=True,
        hub_version=v1alpha3.API_VERSION,
        extension_in=V1BETA2,
    ),
)


# --- conversion --------------------------------------------------------------------------------


def to_hub(value: Any, hub_version: str) -> Any:
    """Return the object in its hub version."""
    match value:
        case v1beta1.ResourceSlice():
            converted: Struct = v1.ResourceSlice(
                metadata=value.metadata, spec=_slice_spec_to_v1(value.spec)
            )
        case v1beta1.ResourceClaim():
            converted = v1.ResourceClaim(
                metadata=value.metadata, spec=_claim_spec_to_v1(value.spec), status=value.status
            )
        case v1beta1.ResourceClaimTemplate():
            spec = v1.ResourceClaimTemplateSpec(
                metadata=value.spec.metadata, spec=_claim_spec_to_v1(value.spec.spec)
            )
            converted = v1.ResourceClaimTemplate(metadata=value.metadata, spec=spec)
        case _:
            converted = value
    kind = type(value).__name__
    if (value.api_version, value.kind) == (hub_version, kind):
        return converted
    return replace(converted, api_version=hub_version, kind=kind)


def from_hub(value: Any, api_version: str) -> Any:
    """Return a hub object in another version of its group."""
    if api_version != v1beta1.API_VERSION:
        return replace(value, api_version=api_version)
    match value:
        case v1.ResourceSlice():
            return v1beta1.ResourceSlice(
                metadata=value.metadata, spec=_slice_spec_to_v1beta1(value.spec)
            )
        case v1.ResourceClaim():
            return v1beta1.ResourceClaim(
                metadata=value.metadata,
                spec=_claim_spec_to_v1beta1(value.spec),
                status=value.status,
            )
        case v1.ResourceClaimTemplate():
            spec = v1beta1.ResourceClaimTemplateSpec(
                metadata=value.spec.metadata, spec=_claim_spec_to_v1beta1(value.spec.spec)
            )
            return v1beta1.ResourceClaimTemplate(metadata=value.metadata, spec=spec)
        case _:
            return replace(value, api_version=api_version)


# --- slices -------------------------------------------------------------------------------

_new_device = unchecked(v1.Device)


def _slice_spec_to_v1(spec: v1beta1.ResourceSliceSpec) -> v1.ResourceSliceSpec:
    return v1.ResourceSliceSpec(
        **{
            **asdict(spec),
            "node_name": spec.node_name or None,
            "all_nodes": spec.all_nodes or None,
            "devices": None if spec.devices is None else tuple(map(_device_to_v1, spec.devices)),
        }
    )


def _device_to_v1(device: v1beta1.Device) -> v1.Device:
    found: v1.Device = _new_device(
        name=device.name, **asdict(device.basic or v1beta1.BasicDevice())
    )
    return found


def _slice_spec_to_v1beta1(spec: v1.ResourceSliceSpec) -> v1beta1.ResourceSliceSpec:
    devices = spec.devices
    return v1beta1.ResourceSliceSpec(
        **{
            **asdict(spec),
            "node_name": spec.node_name or "",
            "all_nodes": bool(spec.all_nodes),
            "devices": None if devices is None else tuple(map(_device_to_v1beta1, devices)),
        }
    )


def _device_to_v1beta1(device: v1.Device) -> v1beta1.Device:
    rest = asdict(device)
    name = rest.pop("name")
    return v1beta1.Device(name=name, basic=v1beta1.BasicDevice(**rest))


# --- claims -------------------------------------------------------------------------------


def _claim_spec_to_v1(spec: v1beta1.ResourceClaimSpec) -> v1.ResourceClaimSpec:
    requests = spec.devices.requests
    devices = v1.DeviceClaim(
        requests=None if requests is None else tuple(map(_request_to_v1, requests)),
        constraints=spec.devices.constraints,
        config=spec.devices.config,
    )
    return v1.ResourceClaimSpec(devices=devices)


def _request_to_v1(request: v1beta1.DeviceRequest) -> v1.DeviceRequest:
    """Return the request with its own fields, if any is set, moved below `exactly`."""
    exactly = None
    if _asks_by_itself(request):
        exactly = v1.ExactDeviceRequest(
            device_class_name=request.device_class_name,
            selectors=request.selectors or (),
            allocation_mode=request.allocation_mode,
            count=request.count,
            admin_access=request.admin_access,
            tolerations=request.tolerations or (),
            capacity=request.capacity,
            derived_attributes=request.derived_attributes or (),
        )
    return v1.DeviceRequest(
        name=request.name, exactly=exactly, first_available=request.first_available
    )


def _asks_by_itself(request: v1beta1.DeviceRequest) -> bool:
    return (
        request.device_class_name != ""
        or request.allocation_mode != ""
        or request.count != 0
        or request.selectors is not None
        or request.admin_access is not None
        or request.tolerations is not None
        or request.capacity is not None
        or request.derived_attributes is not None
    )


def _claim_spec_to_v1beta1(spec: v1.ResourceClaimSpec) -> v1beta1.ResourceClaimSpec:
    requests = spec.devices.requests
    devices = v1beta1.DeviceClaim(
        requests=None if requests is None else tuple(map(_request_to_v1beta1, requests)),
        constraints=spec.devices.constraints,
        config=spec.devices.config,
    )
    return v1beta1.ResourceClaimSpec(devices=devices)


def _request_to_v1beta1(request: v1.DeviceRequest) -> v1beta1.DeviceRequest:
    exactly = request.exactly
    if exactly is None:
        return v1beta1.DeviceRequest(name=request.name, first_available=request.first_available)
    return v1beta1.DeviceRequest(
        name=request.name,
        first_available=request.first_available,
        device_class_name=exactly.device_class_name,
        selectors=exactly.selectors or None,
        allocation_mode=exactly.allocation_mode,
        count=exactly.count,
        admin_access=exactly.admin_access,
        tolerations=exactly.tolerations or None,
        capacity=exactly.capacity,
        derived_attributes=exactly.derived_attributes or None,
    )
