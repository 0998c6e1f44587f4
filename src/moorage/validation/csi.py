"""Strategies of CSI drivers, their nodes, and attachments of volumes."""

from __future__ import annotations

from msgspec.structs import replace

from moorage.api.csi import (
    CSIDriver,
    CSINode,
    CSINodeDriver,
    VolumeAttachment,
    VolumeAttributesClass,
)
from moorage.api.field_path import Path, root
from moorage.validation.errors import ErrorList, duplicate, forbidden, invalid, required
from moorage.validation.field_rules import driver_name, each, label_name, value_or
from moorage.validation.strategy import Context, ObjectStrategy

SPEC = root("spec")
NODE_ID_MAX_BYTES = 256
_ONE_SOURCE = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"


class CSIDriverStrategy(ObjectStrategy[CSIDriver]):
    """The strategy of CSIDrivers."""

    namespaced = False
    qualified_finalizers = False

    def default(self, value: CSIDriver, api_version: str, context: Context) -> CSIDriver:  # noqa: ARG002
        """Set every default."""
        spec = value.spec
        return replace(
            value,
            spec=replace(
                spec,
                attach_required=value_or(spec.attach_required, True),
                pod_info_on_mount=value_or(spec.pod_info_on_mount, False),
                storage_capacity=value_or(spec.storage_capacity, False),
                fs_group_policy=value_or(spec.fs_group_policy, "ReadWriteOnceWithFSType"),
                volume_lifecycle_modes=spec.volume_lifecycle_modes or ("Persistent",),
                requires_republish=value_or(spec.requires_republish, False),
                se_linux_mount=value_or(spec.se_linux_mount, False),
                prevent_pod_scheduling_if_missing=value_or(
                    spec.prevent_pod_scheduling_if_missing, False
                ),
            ),
        )


class CSINodeStrategy(ObjectStrategy[CSINode]):
    """The strategy of CSINodes."""

    namespaced = False
    qualified_finalizers = False

    def validate_fields(self, new: CSINode) -> ErrorList:
        """Validate the drivers."""
        path = SPEC.child("drivers")
        drivers = new.spec.drivers or ()
        found = each(drivers, _validate_driver, path)
        seen: set[str] = set()
        for place, driver in enumerate(drivers):
            if driver.name in seen:
                found.append(duplicate(path.index(place).child("name"), driver.name))
            seen.add(driver.name)
        return found


def _validate_driver(driver: CSINodeDriver, path: Path) -> ErrorList:
    found = driver_name(driver.name, path.child("name"))
    at = path.child("nodeID")
    if not driver.node_id:
        found.append(required(at))
    if len(driver.node_id.encode()) > NODE_ID_MAX_BYTES:
        detail = f"must be {NODE_ID_MAX_BYTES} characters or less"
        found.append(invalid(at, driver.node_id, detail))
    return found + each(driver.topology_keys or (), label_name, path.child("topologyKeys"))


class VolumeAttachmentStrategy(ObjectStrategy[VolumeAttachment]):
    """The strategy of VolumeAttachments."""

    namespaced = False
    qualified_finalizers = False

    def validate_fields(self, new: VolumeAttachment) -> ErrorList:
        """Validate who attaches what where."""
        spec, path = new.spec, SPEC.child("source")
        found = driver_name(spec.attacher, SPEC.child("attacher"))
        name, inline = spec.source.persistent_volume_name, spec.source.inline_volume_spec
        if name is None and inline is None:
            found.append(required(path, _ONE_SOURCE))
        elif name is not None and inline is not None:
            found.append(forbidden(path, _ONE_SOURCE))
        elif name == "":
            detail = "must specify non empty persistentVolumeName"
            found.append(required(path.child("persistentVolumeName"), detail))
        return found if spec.node_name else [*found, required(SPEC.child("nodeName"))]

    def validate_changes(self, new: VolumeAttachment, old: VolumeAttachment) -> ErrorList:
        """Validate that nothing but the status changes."""
        return [] if new.spec == old.spec else [invalid(SPEC, "<value>", "field is immutable")]


class VolumeAttributesClassStrategy(ObjectStrategy[VolumeAttributesClass]):
    """The strategy of VolumeAttributesClasses."""

    namespaced = False
    qualified_finalizers = False

    def validate_fields(self, new: VolumeAttributesClass) -> ErrorList:
        """Validate the driver, and that there are parameters."""
        found = driver_name(new.driver_name, root("driverName"))
        if not new.parameters:
            found.append(required(root("parameters"), "must contain at least one key/value pair"))
        return found

    def validate_changes(self, new: VolumeAttributesClass, old: VolumeAttributesClass) -> ErrorList:
        """Validate that nothing changes."""
        found: ErrorList = []
        if new.driver_name != old.driver_name:
            found.append(forbidden(root("driverName"), "updates to driverName are forbidden."))
        if new.parameters != old.parameters:
            found.append(forbidden(root("parameters"), "updates to parameters are forbidden."))
        return found
