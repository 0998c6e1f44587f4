"""The strategy of StorageClasses."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from msgspec.structs import replace

from moorage.api.field_path import Path, root
from moorage.api.storage import IMMEDIATE, WAIT_FOR_FIRST_CONSUMER, StorageClass
from moorage.validation.errors import ErrorList, duplicate, invalid, not_supported, required
from moorage.validation.field_rules import label_name, value_or
from moorage.validation.metadata import IMMUTABLE
from moorage.validation.strategy import Context, ObjectStrategy

_PROVISIONED = ("Delete", "Retain")
_BINDING_MODES = (IMMEDIATE, WAIT_FOR_FIRST_CONSUMER)
_PARAMETERS_MAX = 512
_PARAMETERS_BYTES_MAX = 256 * 1024


class StorageClassStrategy(ObjectStrategy[StorageClass]):
    """The strategy of StorageClasses."""

    namespaced = False
    rechecks_metadata = True

    def default(self, value: StorageClass, api_version: str, context: Context) -> StorageClass:  # noqa: ARG002
        """Set the reclaim policy and the binding mode."""
        return replace(
            value,
            reclaim_policy=value_or(value.reclaim_policy, "Delete"),
            volume_binding_mode=value_or(value.volume_binding_mode, IMMEDIATE),
        )

    def validate_fields(self, new: StorageClass) -> ErrorList:
        """Validate the provisioner, the parameters and the policies."""
        found = _validate_provisioner(new.provisioner, root("provisioner"))
        found += _validate_parameters(new.parameters, root("parameters"))
        if new.reclaim_policy not in ("", *_PROVISIONED):
            found.append(not_supported(root("reclaimPolicy"), new.reclaim_policy, _PROVISIONED))
        mode = new.volume_binding_mode
        if mode not in _BINDING_MODES:
            found.append(not_supported(root("volumeBindingMode"), mode, _BINDING_MODES))
        return found + _validate_topologies(new.allowed_topologies, root("allowedTopologies"))

    def validate_changes(self, new: StorageClass, old: StorageClass) -> ErrorList:
        """Validate that what decides about volumes is unchanged."""
        return [
            invalid(root(name), None, IMMUTABLE, declared=True)
            for name, now, was in (
                ("parameters", new.parameters, old.parameters),
                ("provisioner", new.provisioner, old.provisioner),
                ("reclaimPolicy", new.reclaim_policy, old.reclaim_policy),
                ("volumeBindingMode", new.volume_binding_mode, old.volume_binding_mode),
            )
            if now != was
        ]


def _validate_topologies(terms: tuple[Any, ...], path: Path) -> ErrorList:
    """Validate the topologies in which volumes are made: labels, each with a set of values."""
    found: ErrorList = []
    # As in Kubernetes, a term without labels is the same as the terms that are yet to come.
    seen: list[dict[str, set[str]]] = [{}] if terms else []
    for position, term in enumerate(terms):
        place = path.index(position).child("matchLabelExpressions")
        wanted: dict[str, set[str]] = {}
        for number, expression in enumerate((term or {}).get("matchLabelExpressions") or ()):
            at, expression = place.index(number), expression or {}
            key, values = expression.get("key") or "", expression.get("values") or ()
            found += _validate_topology_values(values, at.child("values"))
            found += label_name(key, at.child("key"))
            if key in wanted:
                found.append(duplicate(at.child("key"), key))
            wanted[key] = set(values)
        if wanted in seen:
            found.append(duplicate(place, ""))
        seen.append(wanted)
    return found


def _validate_topology_values(values: Sequence[str], path: Path) -> ErrorList:
    if not values:
        return [required(path)]
    return [
        duplicate(path.index(position), value)
        for position, value in enumerate(values)
        if value in values[:position]
    ]


def _validate_provisioner(name: str, path: Path) -> ErrorList:
    return label_name(name.lower(), path) if name else [required(path)]


def _validate_parameters(parameters: dict[str, str], path: Path) -> ErrorList:
    if len(parameters) > _PARAMETERS_MAX:
        detail = f"must have at most {_PARAMETERS_MAX} items"
        return [invalid(path, len(parameters), detail)]
    found: ErrorList = []
    if "" in parameters:
        found.append(invalid(path, "", "field can not be empty."))
    size = sum(len(key.encode()) + len(value.encode()) for key, value in parameters.items())
    if size > _PARAMETERS_BYTES_MAX:
        found.append(invalid(path, size, f"must have at most {_PARAMETERS_BYTES_MAX} bytes"))
    return found
