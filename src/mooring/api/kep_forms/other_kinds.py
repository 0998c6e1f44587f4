"""Kinds with a KEP form or two.

Pod                        the status of extended resources under the names of KEP-5004
PodGroup, Workload         scheduling.k8s.io/v1alpha2, the version of the concept page
ResourcePoolStatusRequest  the version and the driver name of the concept page
ResourceQuota              usage in the spec, and `request.deviceclass…` without its s
DeviceClass                CEL helpers that only Mooring has
DeviceTaintRule            selection by class and by CEL, which Kubernetes had until 1.34
"""

from __future__ import annotations

import re

from mooring.api.field_path import MapKey
from mooring.api.kep_forms.claims import warn_of_selectors
from mooring.api.kep_forms.trees import (
    RewriteNotes,
    Tree,
    each,
    is_absent,
    renamed,
    within,
    without,
)

_SLASHED = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?/[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_PREFIX = "request.deviceclass.resource.kubernetes.io/"
_EXTENSIONS = {"deviceClassName": "a class", "selectors": "CEL"}
_STATUS_PATH = ("status", "extendedResourceClaimStatus")


def rewrite_pod(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a Pod in its shipped form."""
    return within(tree, _STATUS_PATH, lambda status: _status(status, notes))


def _status(status: Tree, notes: RewriteNotes) -> Tree:
    if isinstance(status.get("requestMapping"), list) and is_absent(status, "requestMappings"):
        notes.warn(
            "request mapping",
            (*_STATUS_PATH, "requestMapping"),
            'stored as "requestMappings", the name that Kubernetes 1.37 has',
        )
        status = without(status, "requestMappings")
        status = renamed(status, {"requestMapping": "requestMappings"})
    return each(status, "requestMappings", lambda mapping, i: _mapping(mapping, i, notes))


def _mapping(mapping: Tree, position: int, notes: RewriteNotes) -> Tree:
    if "extendedResourceName" not in mapping or "resourceName" in mapping:
        return mapping
    notes.warn(
        "mapped resource name",
        (*_STATUS_PATH, "requestMappings", position, "extendedResourceName"),
        'stored as "resourceName", the name that Kubernetes 1.37 has',
    )
    return renamed(mapping, {"extendedResourceName": "resourceName"})


def rewrite_pod_group(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a PodGroup or Workload as it is, its old version noted."""
    if notes.version == "v1alpha2":
        notes.warn(
            "scheduling version",
            ("apiVersion",),
            f"Kubernetes 1.37 serves {tree['kind']} as scheduling.k8s.io/v1beta1 and v1alpha3",
        )
    return tree


def is_slashed_driver_name(name: str) -> bool:
    """Whether this is `example.com/gpu`, a name that no driver can have and no pool answers to."""
    return _SLASHED.fullmatch(name) is not None


def rewrite_pool_status_request(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a ResourcePoolStatusRequest as it is, its oddities noted."""
    if notes.version == "v1beta2":
        notes.warn(
            "pool status version",
            ("apiVersion",),
            "Kubernetes 1.37 serves ResourcePoolStatusRequest as resource.k8s.io/v1alpha3",
        )
    spec = tree.get("spec")
    driver = spec.get("driver") if isinstance(spec, dict) else None
    if isinstance(driver, str) and is_slashed_driver_name(driver):
        notes.warn(
            "pool status driver",
            ("spec", "driver"),
            f'no pool has a driver named "{driver}": '
            'in Kubernetes 1.37 a driver is named like a host, such as "gpu.example.com"',
        )
    return tree


def rewrite_quota(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a ResourceQuota in its shipped form."""
    return within(tree, ("spec",), lambda spec: _quota_spec(spec, notes))


def _quota_spec(spec: Tree, notes: RewriteNotes) -> Tree:
    if "used" in spec:
        notes.warn(
            "quota used", ("spec", "used"), "ignored: Kubernetes 1.37 counts usage in status.used"
        )
        spec = without(spec, "used")
    return within(spec, ("hard",), lambda hard: _hard(hard, notes))


def _hard(hard: Tree, notes: RewriteNotes) -> Tree:
    """Return the limits with `request.` as `requests.`, unless both are there."""
    names = {name: f"requests.{name.removeprefix('request.')}" for name in hard if _is_short(name)}
    names = {old: new for old, new in names.items() if new not in hard}
    for old, new in names.items():
        notes.warn(
            "quota request",
            ("spec", "hard", MapKey(old)),
            f'stored as "{new}", the name that Kubernetes 1.37 has',
        )
    return renamed(hard, names)


def _is_short(name: str) -> bool:
    return name.startswith(_PREFIX)


def rewrite_class(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a DeviceClass as it is, its helpers noted."""
    spec = tree.get("spec")
    if isinstance(spec, dict):
        warn_of_selectors(spec, ("spec",), notes)
    return tree


def rewrite_taint_rule(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a DeviceTaintRule as it is, its extensions noted."""
    spec = tree.get("spec")
    selector = spec.get("deviceSelector") if isinstance(spec, dict) else None
    if not isinstance(selector, dict):
        return tree
    at = ("spec", "deviceSelector")
    for field, means in _EXTENSIONS.items():
        if not is_absent(selector, field):
            notes.warn(
                f"taint rule {field}",
                (*at, field),
                f"selecting devices by {means} is an extension of Mooring: "
                "Kubernetes 1.37 selects by driver, pool and device",
            )
    warn_of_selectors(selector, at, notes)
    return tree
