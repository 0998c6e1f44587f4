"""Rules for where a container sees the volumes of its pod: as folders, or as block devices."""

from __future__ import annotations

from mooring.api.core.container import Container
from mooring.api.fieldpath import Path
from mooring.validation.errors import (
    Errors,
    duplicate,
    forbidden,
    invalid,
    not_found,
    required,
)
from mooring.validation.pod.field_rules import Tree, choice, descending_path, given, no_backsteps
from mooring.validation.pod.volumes import Volumes

PROPAGATIONS = ("Bidirectional", "HostToContainer", "None")
BIND_OPTIONS = ("nodev", "noexec", "nosuid")
RECURSIVE_READ_ONLY = ("Disabled", "Enabled", "IfPossible")

_NOT_A_CLAIM = (
    "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
)


def check_mounts(container: Container, volumes: Volumes, path: Path) -> Errors:
    """Check the mounts and block devices of a container."""
    mounted = {m.get("name", ""): m.get("mountPath", "") for m in container.volume_mounts}
    devices = {d.get("name", ""): d.get("devicePath", "") for d in container.volume_devices}
    found: Errors = []
    taken: set[str] = set()
    for position, mount in enumerate(container.volume_mounts):
        place = path.child("volumeMounts").index(position)
        found += _check_place(mount, volumes, place, taken)
        found += _check_not_device(mount, devices, place)
        found += _check_sub_path(mount, place)
        found += _check_options(mount, container, place)
        found += _check_bind_options(mount, volumes, place.child("bindMountOptions"))
    return found + _check_devices(container, volumes, mounted, path.child("volumeDevices"))


def _check_place(mount: Tree, volumes: Volumes, path: Path, taken: set[str]) -> Errors:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    found = given(mount, ("name",), path)
    if name not in volumes:
        found.append(not_found(path.child("name"), name))
    found += given(mount, ("mountPath",), path)
    if target in taken:
        found.append(invalid(path.child("mountPath"), target, "must be unique"))
    taken.add(target)
    return found


def _check_not_device(mount: Tree, devices: dict[str, str], path: Path) -> Errors:
    name, target = mount.get("name", ""), mount.get("mountPath", "")
    found: Errors = []
    if name in devices:
        detail = "must not already exist in volumeDevices"
        found.append(invalid(path.child("name"), name, detail))
    if target in devices.values():
        detail = "must not already exist as a path in volumeDevices"
        found.append(invalid(path.child("mountPath"), target, detail))
    return found


def _check_sub_path(mount: Tree, path: Path) -> Errors:
    """Check the part of a volume that is mounted; Kubernetes does not say in which mount."""
    mounts = path.parent or path
    target, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    found = descending_path(target, mounts.child("subPath"))
    if target and expression:
        detail = "subPathExpr and subPath are mutually exclusive"
        found.append(invalid(path.child("subPathExpr"), expression, detail))
    return found + descending_path(expression, mounts.child("subPathExpr"))


def _check_options(mount: Tree, container: Container, path: Path) -> Errors:
    mounts = path.parent or path
    propagation, place = mount.get("mountPropagation"), mounts.child("mountPropagation")
    found = choice(propagation, PROPAGATIONS, place)
    security = container.security_context or {}
    if propagation == "Bidirectional" and not security.get("privileged"):
        detail = "Bidirectional mount propagation is available only to privileged containers"
        found.append(forbidden(place, detail))
    return found + _check_recursive(mount, propagation, mounts.child("recursiveReadOnly"))


def _check_recursive(mount: Tree, propagation: str | None, path: Path) -> Errors:
    value = mount.get("recursiveReadOnly")
    found = choice(value, RECURSIVE_READ_ONLY, path)
    if found or value in (None, "Disabled"):
        return found
    if not mount.get("readOnly"):
        found.append(forbidden(path, "may only be specified when readOnly is true"))
    if propagation not in (None, "None"):
        detail = "may only be specified when mountPropagation is None or not specified"
        found.append(forbidden(path, detail))
    return found


def _check_bind_options(mount: Tree, volumes: Volumes, path: Path) -> Errors:
    options = mount.get("bindMountOptions", [])
    found: Errors = []
    for position, option in enumerate(options):
        found += choice(option, BIND_OPTIONS, path.index(position))
        if option in options[:position]:
            found.append(duplicate(path.index(position), option))
    if options and "image" in volumes.get(mount.get("name", ""), ()):
        detail = "bindMountOptions may not be used with image volumes"
        found.append(invalid(path, options, detail))
    return found


# --- block devices --------------------------------------------------------------------------------


def _check_devices(
    container: Container, volumes: Volumes, mounted: dict[str, str], path: Path
) -> Errors:
    found: Errors = []
    names: set[str] = set()
    targets: set[str] = set()
    for position, device in enumerate(container.volume_devices):
        place = path.index(position)
        name, target = device.get("name", ""), device.get("devicePath", "")
        found += _check_device_name(name, volumes, place.child("name"), names)
        found += _check_device_path(target, place.child("devicePath"), targets)
        if name in mounted:
            detail = "must not already exist in volumeMounts"
            found.append(invalid(place.child("name"), name, detail))
        if target in mounted.values():
            detail = "must not already exist as a path in volumeMounts"
            found.append(invalid(place.child("devicePath"), target, detail))
        names |= {name} if name else set()
    return found


def _check_device_name(name: str, volumes: Volumes, path: Path, taken: set[str]) -> Errors:
    found: Errors = []
    if not name:
        found.append(required(path))
    if name in taken:
        found.append(invalid(path, name, "must be unique"))
    volume = volumes.get(name)
    if volume is None:
        found.append(not_found(path, name))
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        found.append(invalid(path, name, _NOT_A_CLAIM))
    return found


def _check_device_path(target: str, path: Path, taken: set[str]) -> Errors:
    found: Errors = []
    if not target:
        found.append(required(path))
    if target in taken:
        found.append(invalid(path, target, "must be unique"))
    if target and no_backsteps(target, path):
        found.append(invalid(path, target, "can not contain backsteps ('..')"))
    else:
        taken.add(target)
    return found
