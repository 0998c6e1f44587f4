"""Rules for claims of persistent volumes, as templates in pods and stateful sets have them."""

from __future__ import annotations

from typing import Any

from mooring.api import names
from mooring.api.codec import decode_tree
from mooring.api.fieldpath import Path
from mooring.api.meta import LabelSelector
from mooring.api.quantity import Quantity
from mooring.validation.checks import each_invalid
from mooring.validation.errors import Errors, forbidden, invalid, not_supported, required
from mooring.validation.labelselectors import check_label_selector, check_labels
from mooring.validation.metadata import check_annotations

Tree = dict[str, Any]

ACCESS_MODES = ("ReadOnlyMany", "ReadWriteMany", "ReadWriteOnce", "ReadWriteOncePod")
VOLUME_MODES = ("Block", "Filesystem")
CLAIM = "PersistentVolumeClaim"

_ALONE = "ReadWriteOncePod"


def check_claim_template(template: Tree, path: Path) -> Errors:
    """Check the template of a claim, which may have labels and annotations only."""
    metadata, place = template.get("metadata", {}), path.child("metadata")
    found = check_annotations(metadata.get("annotations", {}), place.child("annotations"))
    found += check_labels(metadata.get("labels", {}), place.child("labels"))
    for name in metadata:
        if name not in ("annotations", "labels"):
            found.append(forbidden(place.child(name), "cannot be set"))
    return found + check_claim_spec(template.get("spec", {}), path.child("spec"))


def check_claim_spec(spec: Tree, path: Path) -> Errors:
    """Check what a claim asks for."""
    found = _check_access_modes(spec.get("accessModes", ()), path.child("accessModes"))
    if "selector" in spec:
        selector = decode_tree(spec["selector"], LabelSelector).value
        found += check_label_selector(selector, path.child("selector"))
    requests = spec.get("resources", {}).get("requests", {})
    found += _check_storage(requests.get("storage"), path.child("resources").key("storage"))
    for name in ("storageClassName", "volumeAttributesClassName"):
        if spec.get(name):
            found += each_invalid(path.child(name), spec[name], names.dns1123_subdomain(spec[name]))
    mode = spec.get("volumeMode")
    if mode is not None and mode not in VOLUME_MODES:
        found.append(not_supported(path.child("volumeMode"), mode, VOLUME_MODES))
    return found + _check_sources(spec, path)


def _check_access_modes(modes: Any, path: Path) -> Errors:
    if not modes:
        return [required(path, "at least 1 access mode is required")]
    found: Errors = [
        not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES
    ]
    if _ALONE in modes and any(mode in ACCESS_MODES and mode != _ALONE for mode in modes):
        found.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def _check_storage(amount: str | None, path: Path) -> Errors:
    if amount is None:
        return [required(path)]
    quantity = Quantity.parse(amount)
    if quantity.sign <= 0:
        return [invalid(path, str(quantity), "must be greater than zero")]
    return []


def _check_sources(spec: Tree, path: Path) -> Errors:
    """Check what the volume is filled from: the old field, the new one, or both alike."""
    source, reference = spec.get("dataSource"), spec.get("dataSourceRef")
    found: Errors = []
    if source is not None:
        found += _check_source(source, path.child("dataSource"))
    if reference is not None:
        found += _check_source(reference, path.child("dataSourceRef"))
    if source is None or reference is None:
        return found
    if reference.get("namespace"):
        detail = "may not be specified when dataSourceRef.namespace is specified"
        found.append(invalid(path, str(path.child("dataSource")), detail))
    elif any(source.get(name) != reference.get(name) for name in ("apiGroup", "kind", "name")):
        found.append(invalid(path, str(path.child("dataSource")), "must match dataSourceRef"))
    return found


def _check_source(source: Tree, path: Path) -> Errors:
    found: Errors = [required(path.child(n)) for n in ("name", "kind") if not source.get(n)]
    group, kind = source.get("apiGroup") or "", source.get("kind", "")
    if not group and kind != CLAIM:
        detail = f"must be '{CLAIM}' when referencing the default apiGroup"
        found.append(invalid(path, kind, detail))
    if group:
        found += each_invalid(path.child("apiGroup"), group, names.dns1123_subdomain(group))
    namespace = source.get("namespace")
    if namespace:
        place = path.child("namespace")
        found += each_invalid(place, namespace, names.dns1123_label(namespace))
    return found
