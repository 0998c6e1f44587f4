"""Rules of object metadata and of conditions."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from msgspec.structs import fields, replace

from moorage.api import names
from moorage.api.field_path import Path, root
from moorage.api.meta import Condition, ManagedFieldsEntry, ObjectMeta, OwnerReference
from moorage.api.names import byte_length
from moorage.validation.errors import (
    ErrorList,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
    too_long,
)
from moorage.validation.field_rules import (
    each_invalid,
    is_good_label_name,
    label,
    label_name,
    validate_labels,
)

METADATA = root("metadata")
_ANNOTATIONS = METADATA.child("annotations")
_FINALIZERS = METADATA.child("finalizers")
_GENERATE_NAME = METADATA.child("generateName")
_NAME = METADATA.child("name")
_NAMESPACE = METADATA.child("namespace")
_OWNERS = METADATA.child("ownerReferences")
_MANAGED_FIELDS = METADATA.child("managedFields")

ANNOTATIONS_MAX_BYTES = 256 * 1024
REASON_MAX_BYTES = 1024
MESSAGE_MAX_BYTES = 32 * 1024
MANAGER_MAX_BYTES = 128
SUBRESOURCE_MAX_BYTES = 256

ORPHAN = "orphan"
FOREGROUND = "foregroundDeletion"
STANDARD_FINALIZERS = {"kubernetes", ORPHAN, FOREGROUND}

IMMUTABLE = "field is immutable"

_REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
_is_reason = re.compile(_REASON).fullmatch
_REASON_RULE = (
    "a condition reason must start with alphabetic character, optionally followed by a string of "
    "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
    "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', "
    f"regex used for validation is '{_REASON}')"
)

NameCheck = Callable[[str], list[str]]


def validate_metadata(
    meta: ObjectMeta,
    *,
    namespaced: bool,
    validate_name: NameCheck = names.dns1123_subdomain,
    validate_prefix: bool = True,
    declared_name: bool = False,
    qualified_finalizers: bool = True,
) -> ErrorList:
    """Validate the metadata of a new object."""
    found: ErrorList = []
    if meta.generate_name and validate_prefix:
        messages = validate_name(_masked(meta.generate_name))
        found += each_invalid(_GENERATE_NAME, meta.generate_name, messages)
    name_path = _NAME
    if meta.name:
        found += each_invalid(
            name_path, meta.name, validate_name(meta.name), declared=declared_name
        )
    else:
        found.append(required(name_path, "name or generateName is required"))
    return (
        found
        + _validate_namespace(meta, namespaced=namespaced)
        + _validate_common(meta)
        + _validate_finalizers(meta.finalizers)
        + (_validate_qualified(meta.finalizers) if qualified_finalizers else [])
    )


def validate_path_segments(meta: ObjectMeta, *, namespaced: bool) -> ErrorList:
    """Validate that the names of a stored object are valid path segments."""
    found: ErrorList = []
    if meta.generate_name:
        messages = names.path_segment_prefix(meta.generate_name)
        found += each_invalid(_GENERATE_NAME, meta.generate_name, messages)
    name_path = _NAME
    if meta.name:
        found += each_invalid(name_path, meta.name, names.path_segment(meta.name))
    else:
        found.append(required(name_path, "name or generateName is required"))
    found += _validate_namespace(meta, namespaced=namespaced)
    return found + _validate_finalizers(meta.finalizers)


def validate_metadata_update(
    new: ObjectMeta, old: ObjectMeta, *, qualified_finalizers: bool = True
) -> ErrorList:
    """Validate updated metadata."""
    found: ErrorList = []
    if old.deletion_timestamp is not None:
        found += _validate_no_new_finalizers(new, old)
    if not new.resource_version:
        path = METADATA.child("resourceVersion")
        found.append(invalid(path, new.resource_version, "must be specified for an update"))
    if new.generation < old.generation:
        path = METADATA.child("generation")
        found.append(invalid(path, new.generation, "must not be decremented"))
    if _fixed(new) != _fixed(old):
        found += _validate_fixed(new, old)
    found += _validate_common(new)
    return found + (_validate_qualified(new.finalizers) if qualified_finalizers else [])


def _fixed(meta: ObjectMeta) -> tuple[object, ...]:
    """Return what no update may change."""
    return (
        meta.name,
        meta.namespace,
        meta.uid,
        meta.creation_timestamp,
        meta.deletion_timestamp,
        meta.deletion_grace_period_seconds,
    )


_FIXED = (
    "name",
    "namespace",
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
)


def _validate_fixed(new: ObjectMeta, old: ObjectMeta) -> ErrorList:
    pairs = zip(_FIXED, _fixed(new), _fixed(old), strict=True)
    return [invalid(METADATA.child(name), now, IMMUTABLE) for name, now, was in pairs if now != was]


def next_generation(generation: int) -> int:
    """Return the next generation; as in Go it overflows, and is then rejected."""
    return (generation + 1 + 2**63) % 2**64 - 2**63


_TEMPLATE_FIELDS = {"labels", "annotations"}


def metadata_for_status(new: ObjectMeta, old: ObjectMeta) -> ObjectMeta:
    """Return the metadata that an update of the status may leave behind."""
    return replace(
        new,
        deletion_timestamp=old.deletion_timestamp,
        generation=old.generation,
        self_link=old.self_link,
        labels=old.labels,
        annotations=old.annotations,
        finalizers=old.finalizers,
        owner_references=old.owner_references,
    )


def validate_template_metadata(meta: ObjectMeta, path: Path) -> ErrorList:
    """Validate the metadata of a template, which may hold labels and annotations only."""
    found = validate_annotations(meta.annotations, path.child("annotations"))
    found += validate_labels(meta.labels, path.child("labels"))
    unset = ObjectMeta()
    for info in fields(ObjectMeta):
        if info.name not in _TEMPLATE_FIELDS and getattr(meta, info.name) != getattr(
            unset, info.name
        ):
            shown = "uID" if info.name == "uid" else info.encode_name
            found.append(forbidden(path.child(shown), "cannot be set"))
    return found


def validate_conditions(conditions: tuple[Condition, ...], path: Path) -> ErrorList:
    """Validate conditions: their fields, and that each type occurs once."""
    found: ErrorList = []
    types: set[str] = set()
    for position, condition in enumerate(conditions):
        place = path.index(position)
        if condition.type in types:
            found.append(duplicate(place, condition.type))
        types.add(condition.type)
        found += _validate_condition(condition, place)
    return found


def _validate_condition(condition: Condition, path: Path) -> ErrorList:
    found: ErrorList = []
    if condition.type:
        found += each_invalid(path.child("type"), condition.type, names.label_name(condition.type))
    else:
        found.append(required(path.child("type"), "is required"))
    if not condition.status:
        found.append(required(path.child("status")))
    elif condition.status not in ("True", "False", "Unknown"):
        statuses = ["False", "True", "Unknown"]
        found.append(not_supported(path.child("status"), condition.status, statuses))
    if condition.observed_generation < 0:
        detail = "must be greater than or equal to zero"
        found.append(
            invalid(path.child("observedGeneration"), condition.observed_generation, detail)
        )
    if condition.last_transition_time is None or condition.last_transition_time.is_zero:
        found.append(required(path.child("lastTransitionTime")))
    if not condition.reason:
        found.append(required(path.child("reason")))
    else:
        if not _is_reason(condition.reason):
            found.append(invalid(path.child("reason"), condition.reason, _REASON_RULE))
        if byte_length(condition.reason) > REASON_MAX_BYTES:
            found.append(too_long(path.child("reason"), REASON_MAX_BYTES))
    if byte_length(condition.message) > MESSAGE_MAX_BYTES:
        found.append(too_long(path.child("message"), MESSAGE_MAX_BYTES))
    return found


def _masked(prefix: str) -> str:
    """Return a name that a generateName ending in a dash could become."""
    if len(prefix) < 2 or not prefix.endswith("-"):
        return prefix
    # Kubernetes cuts off two bytes, which may leave half a character that fits no rule.
    return prefix.encode("utf-8", "surrogatepass")[:-2].decode(errors="replace") + "a"


def _validate_namespace(meta: ObjectMeta, *, namespaced: bool) -> ErrorList:
    path = _NAMESPACE
    if not namespaced:
        return [forbidden(path, "not allowed on this type")] if meta.namespace else []
    if not meta.namespace:
        return [required(path)]
    return label(meta.namespace, path)


def _validate_common(meta: ObjectMeta) -> ErrorList:
    found: ErrorList = []
    if meta.generation < 0:
        detail = "must be greater than or equal to 0"
        found.append(invalid(METADATA.child("generation"), meta.generation, detail))
    if meta.labels:
        found += validate_labels(meta.labels, METADATA.child("labels"))
    if meta.annotations:
        found += validate_annotations(meta.annotations, _ANNOTATIONS)
    if meta.owner_references:
        found += _validate_owners(meta.owner_references, _OWNERS)
    if meta.managed_fields:
        found += _validate_managed_fields(meta.managed_fields, _MANAGED_FIELDS)
    return found


def validate_annotations(annotations: dict[str, str], path: Path) -> ErrorList:
    """Validate the keys of annotations and their total size."""
    found: ErrorList = []
    for key in annotations:
        if not is_good_label_name(names.lowered(key)):
            found += each_invalid(path, key, names.label_name(names.lowered(key)))
    size = sum(byte_length(key) + byte_length(value) for key, value in annotations.items())
    if size > ANNOTATIONS_MAX_BYTES:
        found.append(too_long(path, ANNOTATIONS_MAX_BYTES))
    return found


def _validate_owners(owners: tuple[OwnerReference, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    controller = ""
    for position, owner in enumerate(owners):
        if not _is_good_owner(owner):
            found += _validate_owner(owner, path.index(position))
        if owner.controller:
            name = f"{owner.kind}/{owner.name}"
            if controller:
                detail = (
                    "Only one reference can have Controller set to true. "
                    f'Found "true" in references for {controller} and {name}'
                )
                found.append(invalid(path, owners, detail))
            else:
                controller = name
    return found


def _is_good_owner(owner: OwnerReference) -> bool:
    """Return whether there is surely nothing wrong."""
    version = owner.api_version
    if not (version and owner.kind and owner.name and owner.uid) or owner.kind == "Event":
        return False
    return version.count("/") <= 1 and not version.endswith("/")


def _validate_owner(owner: OwnerReference, path: Path) -> ErrorList:
    found: ErrorList = []
    if not owner.api_version:
        found.append(required(path.child("apiVersion"), "must not be empty"))
    elif owner.api_version.count("/") > 1 or owner.api_version.endswith("/"):
        detail = "must be <group>/<version> or <version>"
        found.append(invalid(path.child("apiVersion"), owner.api_version, detail))
    for field_name, value in (("kind", owner.kind), ("name", owner.name), ("uid", owner.uid)):
        if not value:
            found.append(required(path.child(field_name), "must not be empty"))
    if owner.kind == "Event" and owner.api_version in ("v1", "/v1"):
        found.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
    return found


def _validate_finalizers(finalizers: tuple[str, ...]) -> ErrorList:
    if not finalizers:
        return []
    found: ErrorList = []
    for finalizer in finalizers:
        found += label_name(finalizer, _FINALIZERS)
    if ORPHAN in finalizers and FOREGROUND in finalizers:
        detail = f"finalizer {ORPHAN} and {FOREGROUND} cannot be both set"
        found.append(invalid(_FINALIZERS, finalizers, detail))
    return found


def _validate_qualified(finalizers: tuple[str, ...]) -> ErrorList:
    path = _FINALIZERS
    detail = "name is neither a standard finalizer name nor is it fully qualified"
    return [
        invalid(path.index(position), finalizer, detail)
        for position, finalizer in enumerate(finalizers)
        if "/" not in finalizer and finalizer not in STANDARD_FINALIZERS
    ]


def _validate_no_new_finalizers(new: ObjectMeta, old: ObjectMeta) -> ErrorList:
    added = sorted(set(new.finalizers) - set(old.finalizers))
    if not added:
        return []
    shown = ", ".join(f'"{finalizer}"' for finalizer in added)
    detail = (
        "no new finalizers can be added if the object is being deleted, "
        f"found new finalizers []string{{{shown}}}"
    )
    return [forbidden(_FINALIZERS, detail)]


def unprintable_characters(text: str) -> Iterator[str]:
    """Yield a message for each character that cannot be printed; positions count bytes."""
    if text.isprintable():
        return
    position = 0
    for character in text:
        if not character.isprintable():
            yield f"invalid character U+{ord(character):04X} (at position {position})"
        position += byte_length(character)


_OPERATIONS = ["Apply", "Update"]


def _is_good_entry(entry: ManagedFieldsEntry) -> bool:
    """Return whether there is surely nothing wrong."""
    return (
        entry.operation in _OPERATIONS
        and entry.fields_type in ("", "FieldsV1")
        and entry.manager.isprintable()
        and byte_length(entry.manager) <= MANAGER_MAX_BYTES
        and byte_length(entry.subresource) <= SUBRESOURCE_MAX_BYTES
    )


def _validate_managed_fields(entries: tuple[ManagedFieldsEntry, ...], path: Path) -> ErrorList:
    found: ErrorList = []
    for position, entry in enumerate(entries):
        if _is_good_entry(entry):
            continue
        place = path.index(position)
        if not entry.operation:
            found.append(required(place.child("operation"), "must not be empty"))
        elif entry.operation not in _OPERATIONS:
            found.append(not_supported(place.child("operation"), entry.operation, _OPERATIONS))
        if entry.fields_type not in ("", "FieldsV1"):
            detail = "must be `FieldsV1`"
            found.append(invalid(place.child("fieldsType"), entry.fields_type, detail))
        if byte_length(entry.manager) > MANAGER_MAX_BYTES:
            found.append(too_long(place.child("manager"), MANAGER_MAX_BYTES))
        found += each_invalid(
            place.child("manager"), entry.manager, unprintable_characters(entry.manager)
        )
        if byte_length(entry.subresource) > SUBRESOURCE_MAX_BYTES:
            found.append(too_long(place.child("subresource"), SUBRESOURCE_MAX_BYTES))
    return found
