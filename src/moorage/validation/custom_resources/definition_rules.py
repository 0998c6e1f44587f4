"""Rules for definitions of custom resources: names, versions, subresources, columns, conversion.

Kubernetes converts definitions to an older form for validation, in which everything that all
versions share is outside of the versions. Error paths show this form:
`spec.validation.openAPIV3Schema`, not `spec.versions[0].schema.openAPIV3Schema`.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

from moorage.api import names
from moorage.api.apiextensions import (
    APPROVED,
    CLUSTER,
    NAMESPACED,
    NONE,
    WEBHOOK,
    CustomResourceConversion,
    CustomResourceDefinition,
    CustomResourceDefinitionNames,
    CustomResourceDefinitionSpec,
    CustomResourceDefinitionVersion,
)
from moorage.api.field_path import Path, root
from moorage.api.json_schema import Schema
from moorage.cel.lang.errors import EvalError
from moorage.cel.library.urls import URLError, parse_request_uri
from moorage.validation.custom_resources.structural import structural
from moorage.validation.custom_resources.version_rules import (
    validate_column,
    validate_selectable,
    validate_subresources,
)
from moorage.validation.errors import (
    OMITTED,
    ErrorList,
    forbidden,
    invalid,
    not_supported,
    required,
    too_many,
)

SPEC = root("spec")
WARNING_BYTES_MAX = 256
VERSIONS_MAX = 64
_PROTECTED = (".k8s.io", ".kubernetes.io")
_REVIEW_VERSIONS = ("v1", "v1beta1")

T = TypeVar("T")


class Shared(NamedTuple):
    """A part of versions: its path in Kubernetes' errors, and the version that has it."""

    path: Path
    version: str  # "" for all versions
    value: Any


def shared(
    spec: CustomResourceDefinitionSpec, attribute: str, above: str, below: str
) -> Iterator[Shared]:
    """Yield a part of each version, or once if it is the same in all of them."""
    found = [getattr(version, attribute) for version in spec.versions]
    if found and all(each == found[0] for each in found):
        yield Shared(SPEC.child(above), "", found[0])
        return
    for index, (version, value) in enumerate(zip(spec.versions, found, strict=True)):
        yield Shared(SPEC.child("versions").index(index).child(below), version.name, value)


def schemas_of(spec: CustomResourceDefinitionSpec) -> Iterator[Shared]:
    """Yield the schemas of a definition, with the paths that errors name."""
    yield from shared(spec, "schema", "validation", "schema")


def schema_of(version: CustomResourceDefinitionVersion) -> Schema | None:
    """Return the schema of a version, if it has one."""
    tree: Schema | None = None if version.schema is None else version.schema.schema
    return tree


def has_status(version: CustomResourceDefinitionVersion) -> bool:
    """Return whether a version has the subresource /status."""
    return version.subresources is not None and version.subresources.status is not None


# --- spec -----------------------------------------------------------------------------------------


def validate_spec(spec: CustomResourceDefinitionSpec) -> ErrorList:
    """Validate a definition except for its schemas."""
    found = _validate_group(spec.group)
    if not spec.scope:
        found.append(required(SPEC.child("scope")))
    elif spec.scope not in (CLUSTER, NAMESPACED):
        found.append(not_supported(SPEC.child("scope"), spec.scope, (CLUSTER, NAMESPACED)))
    if len(spec.versions) > VERSIONS_MAX:
        return [*found, too_many(SPEC.child("versions"), len(spec.versions), VERSIONS_MAX)]
    found += _validate_versions(spec)
    found += _validate_parts(spec)
    for name in ("plural", "singular", "kind", "list_kind"):
        if not getattr(spec.names, name):
            shown = "listKind" if name == "list_kind" else name
            found.append(required(SPEC.child("names", shown)))
    found += validate_names(spec.names, SPEC.child("names"))
    if spec.preserve_unknown_fields:
        words = (
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in "
            "spec.versions[*].schema instead"
        )
        found.append(invalid(SPEC.child("preserveUnknownFields"), True, words))
    if spec.conversion is not None:
        found += _validate_conversion(spec.conversion, SPEC.child("conversion"))
    return found


def _validate_group(group: str) -> ErrorList:
    path = SPEC.child("group")
    if not group:
        return [required(path)]
    if faults := names.dns1123_subdomain(group):
        return [invalid(path, group, ",".join(faults))]
    if "." not in group:
        return [invalid(path, group, "should be a domain with at least one dot")]
    return []


def _validate_versions(spec: CustomResourceDefinitionSpec) -> ErrorList:
    found: ErrorList = []
    path = SPEC.child("versions")
    for part in schemas_of(spec):
        if part.value is None or part.value.schema is None:
            indexes = [i for i, v in enumerate(spec.versions) if part.version in ("", v.name)]
            for index in indexes:
                place = path.index(index).child("schema").child("openAPIV3Schema")
                found.append(required(place))
    for index, version in enumerate(spec.versions):
        if faults := names.dns1035_label(version.name):
            place = path.index(index).child("name")
            found.append(invalid(place, version.name, ",".join(faults)))
        for fault in _warning_faults(version):
            place = path.index(index).child("deprecationWarning")
            found.append(invalid(place, version.deprecation_warning, fault))
    listed = [version.name for version in spec.versions]
    if len(set(listed)) != len(listed):
        found.append(invalid(path, _go_versions(spec), "must contain unique version names"))
    if sum(version.storage for version in spec.versions) != 1:
        words = "must have exactly one version marked as storage version"
        found.append(invalid(path, _go_versions(spec), words))
    return found


def _go_versions(spec: CustomResourceDefinitionSpec) -> Any:
    """Return versions as Kubernetes prints them: without what all of them have in common."""
    if not spec.versions:
        return None
    first = spec.versions[0]
    common = {
        name: all(getattr(version, name) == getattr(first, name) for version in spec.versions)
        for name in _GO_PARTS
    }
    if not all(common.values()):
        return OMITTED  # Kubernetes prints whole schemas.
    return [
        {
            "Name": version.name,
            "Served": version.served,
            "Storage": version.storage,
            "Deprecated": version.deprecated,
            "DeprecationWarning": version.deprecation_warning,
            **dict.fromkeys(_GO_PARTS.values()),
        }
        for version in spec.versions
    ]


_GO_PARTS = {
    "schema": "Schema",
    "subresources": "Subresources",
    "additional_printer_columns": "AdditionalPrinterColumns",
    "selectable_fields": "SelectableFields",
}


def _warning_faults(version: CustomResourceDefinitionVersion) -> Iterator[str]:
    text = version.deprecation_warning
    if text is None:
        return
    if not version.deprecated:
        yield "can only be set for deprecated versions"
        return
    if len(text.encode()) > WARNING_BYTES_MAX:
        yield "must be <= 256 characters long"
    if not text:
        yield "must not be an empty string"
    for index, character in enumerate(text):
        if not character.isprintable() or unicodedata.category(character) == "Cc":
            place = len(text[:index].encode())
            yield (
                "must only contain printable UTF-8 characters; "
                f"non-printable character found at index {place}"
            )
            return


def _validate_parts(spec: CustomResourceDefinitionSpec) -> ErrorList:
    found: ErrorList = []
    for part in shared(spec, "subresources", "subresources", "subresources"):
        found += validate_subresources(part.value, part.path)
    columns = "additionalPrinterColumns"
    for part in shared(spec, "additional_printer_columns", columns, columns):
        for index, column in enumerate(part.value):
            found += validate_column(column, part.path.index(index))
    fields = "selectableFields"
    for part in shared(spec, "selectable_fields", fields, fields):
        if not part.value:
            continue
        for version in spec.versions:
            if part.version in ("", version.name):
                tree = schema_of(version)
                if tree is not None:
                    found += validate_selectable(part.value, structural(tree), part.path)
                break
    return found


def validate_names(given: CustomResourceDefinitionNames, path: Path) -> ErrorList:
    """Validate the names of a resource."""
    found: ErrorList = []
    mixed = "may have mixed case, but should otherwise match: "
    for name, value in (("plural", given.plural), ("singular", given.singular)):
        if value and (faults := names.dns1035_label(value)):
            found.append(invalid(path.child(name), value, ",".join(faults)))
    for name, value in (("kind", given.kind), ("listKind", given.list_kind)):
        if value and (faults := names.dns1035_label(value.lower())):
            found.append(invalid(path.child(name), value, mixed + ",".join(faults)))
    found += _validate_labels(given.short_names, path.child("shortNames"))
    if given.kind and given.kind == given.list_kind:
        words = "kind and listKind may not be the same"
        found.append(invalid(path.child("listKind"), given.list_kind, words))
    return found + _validate_labels(given.categories, path.child("categories"))


def _validate_labels(values: Sequence[str], path: Path) -> ErrorList:
    return [
        invalid(path.index(index), value, ",".join(faults))
        for index, value in enumerate(values)
        if (faults := names.dns1035_label(value))
    ]


# --- conversion -----------------------------------------------------------------------------------


def _validate_conversion(conversion: CustomResourceConversion, path: Path) -> ErrorList:
    found: ErrorList = []
    strategy = conversion.strategy
    if not strategy:
        found.append(required(path.child("strategy")))
    elif strategy not in (NONE, WEBHOOK):
        found.append(not_supported(path.child("strategy"), strategy, (NONE, WEBHOOK)))
    webhook = conversion.webhook
    config = None if webhook is None else webhook.client_config
    versions = () if webhook is None else webhook.conversion_review_versions
    if strategy != WEBHOOK:
        words = "should not be set when strategy is not set to Webhook"
        if config is not None:
            found.append(forbidden(path.child("webhookClientConfig"), words))
        if versions:
            found.append(forbidden(path.child("conversionReviewVersions"), words))
        return found
    where = path.child("webhookClientConfig")
    if config is None:
        found.append(required(where, "required when strategy is set to Webhook"))
    elif (config.url is None) == (config.service is None):
        found.append(required(where, "exactly one of url or service is required"))
    return found + _validate_reviews(versions, path.child("conversionReviewVersions"))


def _validate_reviews(versions: tuple[str, ...], path: Path) -> ErrorList:
    if not versions:
        return [required(path)]
    found: ErrorList = []
    for index, version in enumerate(versions):
        if version in versions[:index]:
            found.append(invalid(path.index(index), version, "duplicate version"))
            continue
        found += [invalid(path.index(index), version, w) for w in names.dns1035_label(version)]
    if not set(versions) & set(_REVIEW_VERSIONS):
        words = f"must include at least one of {', '.join(_REVIEW_VERSIONS)}"
        found.append(invalid(path, list(versions), words))
    return found


# --- stored versions, approval --------------------------------------------------------------------


def validate_stored(definition: CustomResourceDefinition) -> ErrorList:
    """Validate that no version is removed in which objects may be stored."""
    path = root("status").child("storedVersions")
    stored = list(definition.status.stored_versions or ())
    if not stored:
        return [invalid(path, None, "must have at least one stored version")]
    found: ErrorList = []
    named = {version.name for version in definition.spec.versions}
    for version in definition.spec.versions:
        if version.storage and version.name not in stored:
            words = f"must have the storage version {version.name}"
            found.append(invalid(path, stored, words))
    for index, name in enumerate(stored):
        if name not in named:
            words = (
                f"missing from spec.versions; {name} was previously a storage version, and must "
                "remain in spec.versions until a storage migration ensures no data remains "
                f"persisted in {name} and removes {name} from status.storedVersions"
            )
            found.append(invalid(path.index(index), name, words))
    return found


def validate_approval(
    new: CustomResourceDefinition, old: CustomResourceDefinition | None
) -> ErrorList:
    """Validate that a group of the Kubernetes community says who approved it."""
    if not is_protected(new.spec.group):
        return []
    state, reason = approval_state(new.metadata.annotations)
    if old is not None and approval_state(old.metadata.annotations)[0] == state:
        return []
    path = root("metadata").child("annotations").key(APPROVED)
    if state == "missing":
        return [required(path, reason)]
    if state == "invalid":
        return [invalid(path, new.metadata.annotations[APPROVED], reason)]
    return []


def is_protected(group: str) -> bool:
    """Return whether a group belongs to Kubernetes' community."""
    return group.endswith(_PROTECTED) or group in ("k8s.io", "kubernetes.io")


def approval_state(annotations: dict[str, str]) -> tuple[str, str]:
    """Return whether an API is approved, bypassed, missing or invalid, and why."""
    text = annotations.get(APPROVED, "")
    see = "see https://github.com/kubernetes/enhancements/pull/1111"
    if not text:
        return "missing", f'protected groups must have approval annotation "{APPROVED}", {see}'
    if text.startswith("unapproved"):
        return "bypassed", f'not approved: "{text}"'
    try:
        url = parse_request_uri(text)
        if url.host and url.scheme:
            return "approved", f"approved in {text}"
    except (URLError, EvalError):
        pass
    return "invalid", (
        f'protected groups must have approval annotation "{APPROVED}" with either a URL or a '
        f'reason starting with "unapproved", {see}'
    )
