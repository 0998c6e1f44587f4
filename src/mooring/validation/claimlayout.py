"""Specs of claim templates as Kubernetes shows them in errors, in the form of `golayout`."""

from __future__ import annotations

from typing import Any

from mooring.api.codec import to_tree
from mooring.api.resource.v1 import ResourceClaimTemplateSpec
from mooring.validation.golayout import Layouts


def internal_template(spec: ResourceClaimTemplateSpec) -> dict[str, Any]:
    """Return the fields of a spec in Kubernetes' internal form."""
    tree = to_tree(spec)
    # Metadata is embedded in the Go struct, and has names of its own for its fields.
    metadata: dict[str, Any] = tree.get("metadata") or {}
    return {**metadata, "Spec": _LAYOUTS.shown(tree.get("spec"), "ResourceClaimSpec")}


_LAYOUTS = Layouts("""\
ResourceClaimSpec Devices:DeviceClaim
DeviceClaim Requests:[DeviceRequest Constraints:[DeviceConstraint Config:[DeviceClaimConfiguration
DeviceRequest Name:s Exactly:*ExactDeviceRequest FirstAvailable:[DeviceSubRequest
ExactDeviceRequest DeviceClassName:s Selectors:[DeviceSelector AllocationMode:s Count:i
    AdminAccess:*b Tolerations:[DeviceToleration Capacity:*CapacityRequirements
    DerivedAttributes:[DeviceDerivedAttribute
DeviceSubRequest Name:s DeviceClassName:s Selectors:[DeviceSelector AllocationMode:s Count:i
    Tolerations:[DeviceToleration Capacity:*CapacityRequirements
    DerivedAttributes:[DeviceDerivedAttribute
CapacityRequirements Requests:{q
DeviceSelector CEL:*CELDeviceSelector
CELDeviceSelector Expression:s
DeviceDerivedAttribute Name:s Expression:s
DeviceConstraint Requests:[s MatchAttribute:*s DistinctAttribute:*s
DeviceClaimConfiguration Requests:[s Opaque:*OpaqueDeviceConfiguration
OpaqueDeviceConfiguration Driver:s Parameters:any
DeviceToleration Key:s Operator:s Value:s Effect:s TolerationSeconds:*i""")
