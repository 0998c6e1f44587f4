"""Rules for what a container may learn of its pod: fields and resources, by name."""

from __future__ import annotations

from collections.abc import Collection

from mooring.api.fieldpath import Path
from mooring.api.quantity import Quantity
from mooring.validation.checks import label_name
from mooring.validation.errors import Errors, invalid, not_supported, required
from mooring.validation.pod.field_rules import Tree, file_mode, given, local_path

ENV_FIELDS = (
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
    "spec.nodeName",
    "spec.serviceAccountName",
    "status.hostIP",
    "status.hostIPs",
    "status.podIP",
    "status.podIPs",
)
VOLUME_FIELDS = (
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
)
_MAPS = ("metadata.annotations", "metadata.labels")
_KNOWN_FIELDS = frozenset(
    (*ENV_FIELDS, *VOLUME_FIELDS, "spec.restartPolicy", "spec.schedulerName", "status.phase")
)
_RENAMED = {"spec.host": "spec.nodeName"}

_RESOURCES = (
    "limits.cpu",
    "limits.ephemeral-storage",
    "limits.memory",
    "requests.cpu",
    "requests.ephemeral-storage",
    "requests.memory",
)
_HUGE_PAGES = ("limits.hugepages-", "requests.hugepages-")
_BYTES = ("1", "1k", "1M", "1G", "1T", "1P", "1E", "1Ki", "1Mi", "1Gi", "1Ti", "1Pi", "1Ei")


def check_volume_file(file: Tree, path: Path) -> Errors:
    """Check a file that holds a field or a resource of its pod."""
    found = given(file, ("path",), path) + local_path(file.get("path", ""), path.child("path"))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        found += check_field(field, VOLUME_FIELDS, path.child("fieldRef"))
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(invalid(path, "resource", detail))
    elif resource is not None:
        found += check_resource(resource, path.child("resourceFieldRef"), in_volume=True)
    else:
        found.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return found + file_mode(file.get("mode"), path.child("mode"))


def check_field(selector: Tree, allowed: Collection[str], path: Path) -> Errors:
    """Check a selector of a field of a pod."""
    for name in ("apiVersion", "fieldPath"):
        if not selector.get(name):
            return [required(path.child(name))]
    version, written = selector["apiVersion"], selector["fieldPath"]
    field, subscript = _split(written)
    problem = _unconvertible(version, written, field, subscript)
    if problem:
        detail = f"error converting fieldPath: {problem}"
        return [invalid(path.child("fieldPath"), written, detail)]
    field = _RENAMED.get(field, field)
    if subscript is not None:
        is_label = field == "metadata.labels"
        return label_name(subscript if is_label else subscript.lower(), path)
    if field not in allowed:
        return [not_supported(path.child("fieldPath"), field, sorted(allowed))]
    return []


def _split(field_path: str) -> tuple[str, str | None]:
    """field_path: field ["['" key "']"]."""
    if not field_path.endswith("']"):
        return field_path, None
    field, opening, key = field_path.removesuffix("']").partition("['")
    return (field, key) if field and opening else (field_path, None)


def _unconvertible(version: str, written: str, field: str, subscript: str | None) -> str:
    """Return why a field is none of a pod; nothing if it is one."""
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        return "" if field in _MAPS else f"field label does not support subscript: {written}"
    if field in _KNOWN_FIELDS or field in _RENAMED:
        return ""
    return f"field label not supported: {written}"


def check_resource(selector: Tree, path: Path, *, in_volume: bool) -> Errors:
    """Check a selector of a resource of a container; a volume must name which."""
    resource = selector.get("resource", "")
    found: Errors = []
    if in_volume and not selector.get("containerName"):
        found.append(required(path.child("containerName")))
    elif not resource:
        found.append(required(path.child("resource")))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        found.append(not_supported(path.child("resource"), resource, _RESOURCES))
    return found + _check_divisor(resource, selector.get("divisor", "0"), path.child("divisor"))


def _check_divisor(resource: str, divisor: str, path: Path) -> Errors:
    if Quantity.parse(divisor).is_zero:
        return []
    allowed: tuple[str, ...] = _BYTES
    kind = resource.partition(".")[2]
    if resource in _RESOURCES and kind == "cpu":
        allowed, noun = ("1m", "1"), "cpu"
    elif resource in _RESOURCES:
        noun = "memory" if kind == "memory" else "local ephemeral storage"
    elif resource.startswith(_HUGE_PAGES):
        noun = "hugepages"
    else:
        return []
    if divisor in allowed:
        return []
    shown = ", ".join(allowed) if allowed is _BYTES else " and ".join(allowed)
    detail = f"only divisor's values {shown} are supported with the {noun} resource"
    return [invalid(path, resource, detail)]
