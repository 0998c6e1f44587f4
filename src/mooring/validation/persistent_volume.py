"""Strategies of PersistentVolumes, PersistentVolumeClaims and StorageClasses."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mooring.api import names
from mooring.api.codec import decode_tree, to_tree
from mooring.api.core.persistent_volume import (
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
from mooring.api.core.placement import NodeSelector
from mooring.api.core.resources import ResourceList
from mooring.api.errors import ApiError
from mooring.api.field_path import Path, root
from mooring.api.raw_json import go_json
from mooring.api.storage import IMMEDIATE, WAIT_FOR_FIRST_CONSUMER, StorageClass
from mooring.validation.equality import semantic_equal
from mooring.validation.errors import ErrorList, forbidden, invalid, not_supported, required
from mooring.validation.field_rules import each_invalid, label_name, unchanged
from mooring.validation.go_layout import internal_form
from mooring.validation.pod.volumes import ACCESS_MODES, VOLUME_MODES, validate_claim_spec
from mooring.validation.selectors import validate_node_selector
from mooring.validation.strategy import Context, ObjectStrategy, Strategy

SPEC = root("spec")
STATUS = root("status")

_RECLAIM = ("Delete", "Recycle", "Retain")
_PROVISIONED = ("Delete", "Retain")
_IMMUTABLE = (
    "spec is immutable after creation except resources.requests and volumeAttributesClassName "
    "for bound claims\n"
)

# --- claims ------------------------------------------------------------------------------------


class PersistentVolumeClaimStrategy(ObjectStrategy[PersistentVolumeClaim]):
    """The strategy of PersistentVolumeClaims."""

    keeps_metadata_with_status = False

    def default(
        self,
        value: PersistentVolumeClaim,
        api_version: str,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> PersistentVolumeClaim:
        """Set the volume mode, the phase, and the two forms of a data source."""
        spec = value.spec
        source, reference = spec.data_source, spec.data_source_ref
        if source is None and isinstance(reference, dict) and not reference.get("namespace"):
            source = {k: v for k, v in reference.items() if k != "namespace"}
        elif reference is None and source is not None:
            reference = source
        spec = replace(
            spec,
            volume_mode=spec.volume_mode or FILESYSTEM,
            data_source=source,
            data_source_ref=reference,
        )
        status = replace(value.status, phase=value.status.phase or PENDING)
        return replace(value, spec=spec, status=status)

    def prepare_for_create(
        self, new: PersistentVolumeClaim, context: Context
    ) -> PersistentVolumeClaim:
        """Start as pending."""
        new = super().prepare_for_create(new, context)
        return replace(new, status=replace(new.status, phase=PENDING))

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
            found.append(forbidden(SPEC, _IMMUTABLE + _diff(before, after)))
        old_size, new_size = (_storage(each.spec.resources.requests) for each in (old, new))
        has_both = old_size is not None and new_size is not None
        if has_both and new_size < old_size:
            least = _storage(old.status.capacity)
            if least is None or new_size <= least:
                place = SPEC.child("resources", "requests", "storage")
                if least is not None:
                    found.append(forbidden(place, "field can not be less than status.capacity"))
        return found + unchanged(new.spec.volume_mode, old.spec.volume_mode, root("volumeMode"))


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


def _diff(old: PersistentVolumeClaimSpec, new: PersistentVolumeClaimSpec) -> str:
    """Return the diff of two specs as Kubernetes prints it."""
    header_lines = 2
    lines = difflib.unified_diff(_lines(old), _lines(new), n=3)
    return "".join(list(lines)[header_lines:])


def _lines(spec: PersistentVolumeClaimSpec) -> list[str]:
    text = go_json(internal_form(to_tree(spec), "PersistentVolumeClaimSpec"), indent=1)
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
            volume_mode=spec.volume_mode or FILESYSTEM,
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
        return found

    def validate_changes(self, new: PersistentVolume, old: PersistentVolume) -> ErrorList:
        """Validate that what the volume is stays."""
        found: ErrorList = []
        if _source_of(new.spec) != _source_of(old.spec):
            detail = "spec.persistentvolumesource is immutable after creation"
            found.append(forbidden(SPEC.child("persistentvolumesource"), detail))
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
        shown = {name: str(amount) for name, amount in capacity.items()}
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
        found += [required(path.child(field)) for field in fields if not source.get(field)]
    policy = spec.persistent_volume_reclaim_policy
    is_root = "hostPath" in given and not given["hostPath"].get("path", "").strip("/.")
    if policy == "Recycle" and is_root:
        place = SPEC.child("persistentVolumeReclaimPolicy")
        found.append(forbidden(place, "may not be 'recycle' for a hostPath mount of '/'"))
    return found


# --- storage classes ---------------------------------------------------------------------------

_BINDING_MODES = (IMMEDIATE, WAIT_FOR_FIRST_CONSUMER)
_PARAMETERS_MAX = 512
_PARAMETERS_BYTES_MAX = 256 * 1024


class StorageClassStrategy(ObjectStrategy[StorageClass]):
    """The strategy of StorageClasses."""

    namespaced = False

    def default(self, value: StorageClass, api_version: str, context: Context) -> StorageClass:  # noqa: ARG002
        """Set the reclaim policy and the binding mode."""
        return replace(
            value,
            reclaim_policy=value.reclaim_policy or "Delete",
            volume_binding_mode=value.volume_binding_mode or IMMEDIATE,
        )

    def validate_fields(self, new: StorageClass) -> ErrorList:
        """Validate the provisioner, the parameters and the policies."""
        found = _validate_provisioner(new.provisioner, root("provisioner"))
        found += _validate_parameters(new.parameters, root("parameters"))
        if new.reclaim_policy not in _PROVISIONED:
            found.append(not_supported(root("reclaimPolicy"), new.reclaim_policy, _PROVISIONED))
        mode = new.volume_binding_mode
        if mode not in _BINDING_MODES:
            found.append(not_supported(root("volumeBindingMode"), mode, _BINDING_MODES))
        return found

    def validate_changes(self, new: StorageClass, old: StorageClass) -> ErrorList:
        """Validate that what decides about volumes is unchanged."""
        found: ErrorList = []
        if new.parameters != old.parameters:
            found.append(forbidden(root("parameters"), "updates to parameters are forbidden."))
        if new.provisioner != old.provisioner:
            found.append(forbidden(root("provisioner"), "updates to provisioner are forbidden."))
        if new.reclaim_policy != old.reclaim_policy:
            detail = "updates to reclaimPolicy are forbidden."
            found.append(forbidden(root("reclaimPolicy"), detail))
        path = root("volumeBindingMode")
        return found + unchanged(new.volume_binding_mode, old.volume_binding_mode, path)


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


STORAGE_STRATEGIES: Mapping[str, Strategy[Any]] = {
    "PersistentVolume": PersistentVolumeStrategy(),
    "PersistentVolumeClaim": PersistentVolumeClaimStrategy(),
    "StorageClass": StorageClassStrategy(),
}
