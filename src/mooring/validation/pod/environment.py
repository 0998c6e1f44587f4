"""Rules for environment variables: names, and where values come from."""

from __future__ import annotations

from collections.abc import Iterable

from mooring.api.core.container import Container
from mooring.api.fieldpath import Path
from mooring.validation.checks import label
from mooring.validation.errors import Errors, invalid, not_found, required
from mooring.validation.pod.downward import ENV_FIELDS, check_field, check_resource
from mooring.validation.pod.field_rules import (
    Tree,
    config_key,
    given,
    no_backsteps,
    object_name,
    object_name_prefix,
    variable_name,
)

_NO_SOURCE = (
    "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
    "`fileKeyRef`"
)
_NO_SOURCE_OF_MANY = "must specify one of: `configMapRef` or `secretRef`"
_SEVERAL = "may not have more than one field specified at a time"


def check_environment(container: Container, path: Path) -> Errors:
    """Check the variables of a container, and what many are taken from at once."""
    found: Errors = []
    for position, variable in enumerate(container.env):
        place = path.child("env").index(position)
        name = variable.get("name", "")
        found += variable_name(name, place.child("name")) if name else given({}, ("name",), place)
        if "valueFrom" in variable:
            found += _check_source(variable, place.child("valueFrom"))
    return found + _check_sources_of_many(container.env_from, path.child("envFrom"))


def _check_source(variable: Tree, path: Path) -> Errors:
    source = variable["valueFrom"]
    found: Errors = []
    if "fieldRef" in source:
        found += check_field(source["fieldRef"], ENV_FIELDS, path.child("fieldRef"))
    if "resourceFieldRef" in source:
        place = path.child("resourceFieldRef")
        found += check_resource(source["resourceFieldRef"], place, in_volume=False)
    for name in ("configMapKeyRef", "secretKeyRef"):
        if name in source:
            found += _check_key(source[name], path.child(name))
    if "fileKeyRef" in source:
        found += _check_file_key(source["fileKeyRef"], path.child("fileKeyRef"))
    if not source:
        found.append(invalid(path, "", _NO_SOURCE))
    elif variable.get("value"):
        found.append(invalid(path, "", "may not be specified when `value` is not empty"))
    elif len(source) > 1:
        found.append(invalid(path, "", _SEVERAL))
    return found


def _check_key(selector: Tree, path: Path) -> Errors:
    found = object_name(selector.get("name", ""), path.child("name"))
    key = selector.get("key", "")
    return found + (config_key(key, path.child("key")) if key else [required(path.child("key"))])


def _check_file_key(selector: Tree, path: Path) -> Errors:
    found = given(selector, ("key", "volumeName", "path"), path)
    found += variable_name(selector.get("key", ""), path.child("key"))
    if selector.get("volumeName"):
        found += label(selector["volumeName"], path.child("volumeName"))
    return found + no_backsteps(selector.get("path", ""), path.child("path"))


def _check_sources_of_many(sources: tuple[Tree, ...], path: Path) -> Errors:
    found: Errors = []
    for position, source in enumerate(sources):
        place = path.index(position)
        found += variable_name(source.get("prefix", ""), place.child("prefix"))
        chosen = [name for name in ("configMapRef", "secretRef") if name in source]
        for name in chosen:
            found += _check_reference(source[name], place.child(name, "name"))
        if not chosen:
            found.append(invalid(path, "", _NO_SOURCE_OF_MANY))
        elif len(chosen) > 1:
            found.append(invalid(path, "", _SEVERAL))
    return found


def _check_reference(reference: Tree, path: Path) -> Errors:
    name = reference.get("name", "")
    return object_name_prefix(name, path) if name else [required(path)]


def check_file_volumes(
    containers: Iterable[tuple[Container, Path]], volumes: tuple[Tree, ...]
) -> Errors:
    """Check that variables from files name empty folders that the pod has."""
    by_name = {volume.get("name", ""): volume for volume in volumes}
    found: Errors = []
    for container, path in containers:
        for position, variable in enumerate(container.env):
            reference = variable.get("valueFrom", {}).get("fileKeyRef")
            if reference is None:
                continue
            name = reference.get("volumeName", "")
            place = path.child("env").index(position).child("valueFrom", "fileKeyRef", "volumeName")
            if name not in by_name:
                found.append(not_found(place, name))
            elif "emptyDir" not in by_name[name]:
                detail = "referenced volume must be of type emptyDir"
                found.append(invalid(place, name, detail))
    return found
