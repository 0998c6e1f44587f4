"""Strategies of PersistentVolumes and PersistentVolumeClaims."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from moorage.api import names
from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.persistent_volume import (
    BETA_STORAGE_CLASS,
    BOUND,
    FILESYSTEM,
    PENDING,
    RETAIN,
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeSpec,
)
from moorage.api.core.placement import NodeSelector
from moorage.api.core.resources import ResourceList
from moorage.api.errors import ApiError
from moorage.api.field_path import Path, root
from moorage.api.raw_json import go_json
from moorage.validation.equality import semantic_equal
from moorage.validation.errors import (
    ErrorList,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import each_invalid, unchanged, value_or
from moorage.validation.go_layout import internal_form
from moorage.validation.pod.volumes import (
    ACCESS_MODES,
    CLAIM,
    VOLUME_MODES,
    validate_claim_spec,
    validate_host_path,
)
from moorage.validation.selectors import validate_node_selector
from moorage.validation.storage_class import StorageClassStrategy
from moorage.validation.strategy import Context, ObjectStrategy, Strategy

SPEC = root("spec")
STATUS = root("status")

_RECLAIM = ("Delete", "Recycle", "Retain")
_SOURCE_STAYS = "spec.persistentvolumesource is immutable after creation\n"
_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims\n"
)

# --- claims ------------------------------------------------------------------------------------


class PersistentVolumeClaimStrategy(ObjectStrategy[PersistentVolumeClaim]):
    """The strategy of PersistentVolumeClaims."""

    keeps_metadata_with_status = False
    rechecks_metadata = True

    def default(
        self,
        value: PersistentVolumeClaim,
        api_version: str,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> PersistentVolumeClaim:
        """Set the volume mode and the phase."""
        spec = replace(value.spec, volume_mode=value_or(value.spec.volume_mode, FILESYSTEM))
        status = replace(value.status, phase=value.status.phase or PENDING)
        return replace(value, spec=spec, status=status)

    def prepare_for_create(
        self, new: PersistentVolumeClaim, context: Context
    ) -> PersistentVolumeClaim:
        """Start as pending, with both forms of a data source."""
        new = super().prepare_for_create(new, context)
        spec = _with_data_sources(new.spec, keep=False)
        return replace(new, spec=spec, status=replace(new.status, phase=PENDING))

    def prepare_for_update(
        self, new: PersistentVolumeClaim, old: PersistentVolumeClaim, context: Context
    ) -> PersistentVolumeClaim:
        """Keep the status; set both forms of a data source."""
        new = super().prepare_for_update(new, old, context)
        had_source = old.spec.data_source is not None or old.spec.data_source_ref is not None
        return replace(new, spec=_with_data_sources(new.spec, keep=had_source))

    def validate_fields(self, new: PersistentVolumeClaim) -> ErrorList:
        """Validate the spec."""
        return validate_claim_spec(to_tree(new.spec), SPEC)

    def validate_changes(self, new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> ErrorList:
        """Validate that only the volume's name and, of bound claims, the size changed."""
        after, before = _comparable(new, old), old.spec
        if not before.volume_name:
            before = replace(before, volume_name=after.volume_name)
        found: ErrorList = []
        if not semantic_equal(after, before):
            found.append(forbidden(SPEC, _IMMUTABLE + _diff(_internal(before), _internal(after))))
        old_size, new_size = (_storage(each.spec.resources.requests) for each in (old, new))
        has_both = old_size is not None and new_size is not None
        if has_both and new_size < old_size:
            least = _storage(old.status.capacity)
            if least is None or new_size <= least:
                place = SPEC.child("resources", "requests", "storage")
                if least is not None:
                    found.append(forbidden(place, "field can not be less than status.capacity"))
        return found + unchanged(new.spec.volume_mode, old.spec.volume_mode, root("volumeMode"))

    def validate_status(self, new: PersistentVolumeClaim, old: PersistentVolumeClaim) -> ErrorList:  # noqa: ARG002
        """Validate how the claim is resized."""
        status = new.status
        path = STATUS.child("allocatedResourceStatuses")
        found: ErrorList = []
        for name, progress in status.allocated_resource_statuses.items():
            found += _validate_resource_name(name, path)
            if progress not in _RESIZE_STATUSES:
                found.append(not_supported(path, name, _RESIZE_STATUSES))
        path = STATUS.child("allocatedResources")
        for name, amount in status.allocated_resources.items():
            wrong = _validate_resource_name(name, path)
            if not wrong and amount.sign < 0:
                detail = "must be greater than or equal to 0"
                wrong = [invalid(path.key(name), str(amount), detail)]
            found += wrong
        return found


_RESIZE_STATUSES = (
    *("ControllerResizeInProgress", "ControllerResizeInfeasible"),
    *("NodeResizeInProgress", "NodeResizeInfeasible", "NodeResizePending"),
)
_LEGACY_SOURCES = ((None, CLAIM), ("", CLAIM), ("snapshot.storage.k8s.io", "VolumeSnapshot"))


def _with_data_sources(spec: PersistentVolumeClaimSpec, *, keep: bool) -> PersistentVolumeClaimSpec:
    """Return a spec in which the two forms of a data source complete each other.

    Only the newer one may be anything but a claim or a snapshot: in the older one, such a source
    is dropped, unless the claim already has one.
    """
    source, reference = spec.data_source, spec.data_source_ref
    if reference is None and isinstance(source, dict):
        is_legacy = (source.get("apiGroup"), source.get("kind")) in _LEGACY_SOURCES
        source = {"apiGroup": None, **source} if keep or is_legacy else None
        reference = source
    elif source is None and isinstance(reference, dict) and not reference.get("namespace"):
        reference = {"apiGroup": None, **reference}
        source = {name: value for name, value in reference.items() if name != "namespace"}
    return replace(spec, data_source=source, data_source_ref=reference)


def _validate_resource_name(name: str, path: Path) -> ErrorList:
    """Validate a name of what a claim may have: storage, or anything with a domain."""
    found = each_invalid(path, name, names.label_name(name))
    is_own = "/" not in name or name.startswith("kubernetes.io/")
    return (
        [not_supported(path, name, ("storage",))]
        if not found and is_own and name != "storage"
        else found
    )


def _comparable(
    new: PersistentVolumeClaim, old: PersistentVolumeClaim
) -> PersistentVolumeClaimSpec:
    """Return the new spec with the old values where they may differ."""
    spec, before = new.spec, old.spec
    if new.status.phase == BOUND and spec.resources.requests:
        requests = dict(spec.resources.requests)
        if "storage" in before.resources.requests:
            requests["storage"] = before.resources.requests["storage"]
        spec = replace(
            spec,
            resources=replace(spec.resources, requests=requests),
            volume_attributes_class_name=before.volume_attributes_class_name,
        )
    has_no_class = before.storage_class_name is None
    if has_no_class and BETA_STORAGE_CLASS not in old.metadata.annotations:
        spec = replace(spec, storage_class_name=None)  # It may be set once.
    return spec


def _storage(amounts: ResourceList) -> Any:
    return amounts.get("storage")


def _internal(spec: PersistentVolumeClaimSpec) -> dict[str, Any]:
    return internal_form(to_tree(spec), "PersistentVolumeClaimSpec")


def _diff(old: dict[str, Any], new: dict[str, Any]) -> str:
    """Return the diff of two parts of an object as Kubernetes prints it."""
    header_lines = 2
    lines = difflib.unified_diff(_lines(old), _lines(new), n=3)
    return "".join(list(lines)[header_lines:])


def _lines(part: dict[str, Any]) -> list[str]:
    text = go_json(part, indent=1)
    return [f"{line}\n" for line in text.split("\n")]


# --- volumes -----------------------------------------------------------------------------------

_SOURCES = (
    *("gcePersistentDisk", "awsElasticBlockStore", "hostPath", "glusterfs", "nfs", "rbd", "iscsi"),
    *("cinder", "cephfs", "fc", "flocker", "flexVolume", "azureFile", "vsphereVolume", "quobyte"),
    *("azureDisk", "photonPersistentDisk", "portworxVolume", "scaleIO", "local", "storageos"),
    "csi",
)
_REQUIRED: Mapping[str, tuple[str, ...]] = {
    "hostPath": ("path",),
    "local": ("path",),
    "nfs": ("server", "path"),
    "csi": ("driver", "volumeHandle"),
}


class PersistentVolumeStrategy(ObjectStrategy[PersistentVolume]):
    """The strategy of PersistentVolumes."""

    namespaced = False
    keeps_metadata_with_status = False
    rechecks_metadata = True

    def default(
        self,
        value: PersistentVolume,
        api_version: str,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> PersistentVolume:
        """Set the reclaim policy, the volume mode and the phase."""
        spec = value.spec
        path = spec.host_path
        if isinstance(path, dict) and path.get("type") is None:
            path = {**path, "type": ""}
        spec = replace(
            spec,
            host_path=path,
            persistent_volume_reclaim_policy=spec.persistent_volume_reclaim_policy or RETAIN,
            volume_mode=value_or(spec.volume_mode, FILESYSTEM),
        )
        status = replace(value.status, phase=value.status.phase or PENDING)
        return replace(value, spec=spec, status=status)

    def prepare_for_create(self, new: PersistentVolume, context: Context) -> PersistentVolume:
        """Start as pending."""
        new = super().prepare_for_create(new, context)
        now = context.now.truncated()
        return replace(
            new, status=replace(new.status, phase=PENDING, last_phase_transition_time=now)
        )

    def prepare_for_status_update(
        self, new: PersistentVolume, old: PersistentVolume, context: Context
    ) -> PersistentVolume:
        """Keep the spec; note when the phase changed."""
        after = super().prepare_for_status_update(new, old, context)
        changed = after.status.last_phase_transition_time != old.status.last_phase_transition_time
        if after.status.phase == old.status.phase or changed:
            return after
        now = context.now.truncated()
        return replace(after, status=replace(after.status, last_phase_transition_time=now))

    def validate_fields(self, new: PersistentVolume) -> ErrorList:
        """Validate the spec."""
        spec = new.spec
        found = _validate_modes(spec) + _validate_capacity(spec.capacity, SPEC.child("capacity"))
        policy = spec.persistent_volume_reclaim_policy
        if policy not in _RECLAIM:
            place = SPEC.child("persistentVolumeReclaimPolicy")
            found.append(not_supported(place, policy, _RECLAIM))
        found += _validate_affinity(spec) + _validate_source(spec)
        if spec.storage_class_name:
            name = spec.storage_class_name
            found += each_invalid(
                SPEC.child("storageClassName"), name, names.dns1123_subdomain(name)
            )
        if spec.volume_mode not in (None, *VOLUME_MODES):
            found.append(not_supported(SPEC.child("volumeMode"), spec.volume_mode, VOLUME_MODES))
        return found + _validate_attributes_class(spec)

    def validate_changes(self, new: PersistentVolume, old: PersistentVolume) -> ErrorList:
        """Validate that what the volume is stays."""
        found: ErrorList = []
        sources = _source_of(new.spec), _source_of(old.spec)
        if sources[0] != sources[1]:
            changes = _diff(*(internal_form(s, "PersistentVolumeSource") for s in sources[::-1]))
            found.append(forbidden(SPEC.child("persistentvolumesource"), _SOURCE_STAYS + changes))
        found += unchanged(new.spec.volume_mode, old.spec.volume_mode, root("volumeMode"))
        if old.spec.node_affinity is not None:
            affinities = (new.spec.node_affinity, old.spec.node_affinity)
            found += unchanged(*affinities, root("nodeAffinity"))
        return found


def _source_of(spec: PersistentVolumeSpec) -> dict[str, Any]:
    tree = to_tree(spec)
    return {name: tree[name] for name in _SOURCES if name in tree}


def _validate_modes(spec: PersistentVolumeSpec) -> ErrorList:
    path = SPEC.child("accessModes")
    modes = spec.access_modes
    if not modes:
        return [required(path)]
    found: ErrorList = [
        not_supported(path, mode, ACCESS_MODES) for mode in modes if mode not in ACCESS_MODES
    ]
    if "ReadWriteOncePod" in modes and len(set(modes) & set(ACCESS_MODES)) > 1:
        found.append(forbidden(path, "may not use ReadWriteOncePod with other access modes"))
    return found


def _validate_capacity(capacity: ResourceList, path: Path) -> ErrorList:
    found: ErrorList = [] if capacity else [required(path)]
    if set(capacity) != {"storage"}:
        shown = {name: str(capacity[name]) for name in sorted(capacity)}
        found.append(not_supported(path, shown, ("storage",)))
    for name, amount in capacity.items():
        if amount.sign <= 0:
            found.append(invalid(path.key(name), str(amount), "must be greater than zero"))
    return found


def _validate_affinity(spec: PersistentVolumeSpec) -> ErrorList:
    path = SPEC.child("nodeAffinity")
    if spec.node_affinity is None:
        return [required(path, "Local volume requires node affinity")] if spec.local else []
    wanted = spec.node_affinity.get("required")
    place = path.child("required")
    if wanted is None:
        return [required(place, "must specify required node constraints")]
    try:
        selector = decode_tree(wanted, NodeSelector).value
    except ApiError as error:
        return [invalid(place, wanted, str(error))]
    return validate_node_selector(selector, place)


def _validate_attributes_class(spec: PersistentVolumeSpec) -> ErrorList:
    name = spec.volume_attributes_class_name
    if name is None:
        return []
    path = SPEC.child("volumeAttributesClassName")
    if name:
        found = each_invalid(path, name, names.dns1123_subdomain(name))
    else:
        found = [required(path, "an empty string is disallowed")]
    if spec.csi is None:
        detail = "has to be specified when using volumeAttributesClassName"
        found.append(required(SPEC.child("csi"), detail))
    return found


def _validate_source(spec: PersistentVolumeSpec) -> ErrorList:
    given = _source_of(spec)
    if not given:
        return [required(SPEC, "must specify a volume type")]
    found: ErrorList = []
    for position, (name, source) in enumerate(given.items()):
        path = SPEC.child(name)
        if position:
            found.append(forbidden(path, "may not specify more than 1 volume type"))
            continue
        fields = _REQUIRED.get(name, ())
        missing = [required(path.child(field)) for field in fields if not source.get(field)]
        found += missing
        if name == "hostPath" and not missing:
            found += validate_host_path(source, path)
    policy = spec.persistent_volume_reclaim_policy
    is_root = "hostPath" in given and not given["hostPath"].get("path", "").strip("/.")
    if policy == "Recycle" and is_root:
        place = SPEC.child("persistentVolumeReclaimPolicy")
        found.append(forbidden(place, "may not be 'recycle' for a hostPath mount of '/'"))
    return found


STORAGE_STRATEGIES: Mapping[str, Strategy[Any]] = {
    "PersistentVolume": PersistentVolumeStrategy(),
    "PersistentVolumeClaim": PersistentVolumeClaimStrategy(),
    "StorageClass": StorageClassStrategy(),
}
