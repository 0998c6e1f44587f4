"""Rules that many fields of pods share: paths, file modes, users, object names, the downward API.

# tree: a JSON part of a pod as `moorage.api.go_types` leaves it: each value has the type of its
# field, and an       empty field may be absent
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from moorage.api import names
from moorage.api.field_path import Path
from moorage.api.names import byte_length
from moorage.api.quantity import Quantity
from moorage.kit.go_quote import go_quote
from moorage.validation.errors import ErrorList, invalid, not_supported, required, too_long
from moorage.validation.field_rules import each_invalid, label_name

Tree = Mapping[str, Any]

FILE_MODE_MAX = 0o777
ID_MAX = 2**31 - 1

_FILE_MODE = "must be a number between 0 and 0777 (octal), both inclusive"


def require(tree: Tree, fields: Iterable[str], path: Path) -> ErrorList:
    """Validate that fields are not empty."""
    return [required(path.child(name)) for name in fields if not tree.get(name)]


def one_of(value: Any, supported: Sequence[str], path: Path) -> ErrorList:
    """Validate an optional value that must be one of the supported ones."""
    if value is None or value in supported:
        return []
    return [not_supported(path, value, sorted(supported))]


def required_one_of(value: str, supported: tuple[str, ...], path: Path) -> ErrorList:
    """Validate a required value that must be one of the supported ones."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]


def in_range(value: int, low: int, high: int, path: Path) -> ErrorList:
    """Validate a number."""
    if low <= value <= high:
        return []
    return [invalid(path, value, f"must be between {low} and {high}, inclusive")]


# --- files --------------------------------------------------------------------------------


def no_backsteps(target: str, path: Path) -> ErrorList:
    """Validate that a path has no '..'."""
    if ".." in target.split("/"):
        return [invalid(path, target, "must not contain '..'")]
    return []


def descending_path(target: str, path: Path) -> ErrorList:
    """Validate a relative path without '..'."""
    found: ErrorList = []
    if target.startswith("/"):
        found.append(invalid(path, target, "must be a relative path"))
    return found + no_backsteps(target, path)


def local_path(target: str, path: Path) -> ErrorList:
    """Validate the path of a file in a volume; names that start with two dots are reserved."""
    found = descending_path(target, path)
    if target.startswith("..") and not target.startswith("../"):
        found.append(invalid(path, target, "must not start with '..'"))
    return found


def file_mode(mode: int | None, path: Path) -> ErrorList:
    """Validate the permissions of files."""
    if mode is None or 0 <= mode <= FILE_MODE_MAX:
        return []
    return [invalid(path, mode, _FILE_MODE)]


def user_id(number: int | None, path: Path) -> ErrorList:
    """Validate the number of a user or group."""
    return [] if number is None else in_range(number, 0, ID_MAX, path)


# --- names --------------------------------------------------------------------------------


def variable_name(name: str, path: Path) -> ErrorList:
    """Validate the name of an environment variable."""
    return each_invalid(path, name, names.variable_name(name))


def config_key(key: str, path: Path) -> ErrorList:
    """Validate a key of a ConfigMap or Secret."""
    return each_invalid(path, key, names.config_key(key))


def object_name(name: str, path: Path) -> ErrorList:
    """Validate the name of another object, which need not exist."""
    return each_invalid(path, name, names.dns1123_subdomain(name))


def object_name_prefix(name: str, path: Path) -> ErrorList:
    """Validate the name of an object, which may end with a hyphen."""
    shown = f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name
    return each_invalid(path, name, names.dns1123_subdomain(shown))


# --- the downward API ---------------------------------------------------------------------

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


def validate_volume_file(file: Tree, path: Path) -> ErrorList:
    """Validate a file that holds a field or a resource of its pod."""
    found = require(file, ("path",), path) + local_path(file.get("path", ""), path.child("path"))
    field, resource = file.get("fieldRef"), file.get("resourceFieldRef")
    if field is not None:
        found += validate_field(field, VOLUME_FIELDS, path.child("fieldRef"))
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            found.append(invalid(path, "resource", detail))
    elif resource is not None:
        found += validate_resource(resource, path.child("resourceFieldRef"), in_volume=True)
    else:
        found.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return found + file_mode(file.get("mode"), path.child("mode"))


def validate_field(selector: Tree, allowed: Collection[str], path: Path) -> ErrorList:
    """Validate a selector of a field of a pod."""
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
    """Return why a field is not one of a pod, or ""."""
    if version != "v1":
        return f"unsupported pod version: {version}"
    if subscript is not None:
        return "" if field in _MAPS else f"field label does not support subscript: {written}"
    if field in _KNOWN_FIELDS or field in _RENAMED:
        return ""
    return f"field label not supported: {written}"


def validate_resource(selector: Tree, path: Path, *, in_volume: bool) -> ErrorList:
    """Validate a selector of a resource of a container; a volume must name which."""
    resource = selector.get("resource", "")
    found: ErrorList = []
    if in_volume and not selector.get("containerName"):
        found.append(required(path.child("containerName")))
    elif not resource:
        found.append(required(path.child("resource")))
    elif resource not in _RESOURCES and not resource.startswith(_HUGE_PAGES):
        found.append(not_supported(path.child("resource"), resource, _RESOURCES))
    return found + _validate_divisor(resource, selector.get("divisor", "0"), path.child("divisor"))


def _validate_divisor(resource: str, divisor: str, path: Path) -> ErrorList:
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


_SIGNER_FORM = "must be a fully qualified domain and path of the form 'example.com/signer-name'"


_DOMAIN = "should be a domain with at least two segments separated by dots"


_SIGNER_PATH_MAX = names.SUBDOMAIN_MAX + names.LABEL_MAX + 1


_SIGNER_MAX = names.SUBDOMAIN_MAX + _SIGNER_PATH_MAX + 1


def validate_signer(name: str, path: Path) -> ErrorList:
    """Validate the name of a signer: a domain and a path."""
    if not name:
        return [required(path)]
    domain, _, rest = name.partition("/")
    if name.count("/") != 1:
        return [invalid(path, name, _SIGNER_FORM)]
    found: ErrorList = []
    if byte_length(domain) > names.SUBDOMAIN_MAX:
        found.append(too_long(path, names.SUBDOMAIN_MAX))
    found += _first_bad(domain, names.dns1123_label, path)
    if "." not in domain:
        found.append(invalid(path, domain, _DOMAIN))
    found += _first_bad(rest, names.dns1123_subdomain, path)
    if byte_length(name) > _SIGNER_MAX:
        found.append(too_long(path, _SIGNER_MAX))
    return found


def _first_bad(text: str, check: Callable[[str], list[str]], path: Path) -> ErrorList:
    """Return the errors of the first invalid part between dots."""
    for part in text.split("."):
        messages = [f"validating label {go_quote(part)}: {message}" for message in check(part)]
        if messages:
            return each_invalid(path, text, messages)
    return []
