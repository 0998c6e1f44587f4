"""ResourceSlice, and kinds with a KEP form or two.

ResourceSlice              typed lists, plain capacities, node-allocatable mappings, no pool
Pod                        the status of extended resources under the names of KEP-5004
PodGroup, Workload         scheduling.k8s.io/v1alpha2, the version of the concept page
ResourcePoolStatusRequest  the version and the driver name of the concept page
ResourceQuota              usage in the spec, and `request.deviceclass…` without its s
DeviceClass                CEL helpers that only Moorage has
DeviceTaintRule            selection by class and by CEL, which Kubernetes had until 1.34
"""

from __future__ import annotations

import re

from moorage.api.field_path import MapKey
from moorage.api.kep_forms.claims import warn_of_selectors
from moorage.api.kep_forms.trees import (
    RewriteNotes,
    Segments,
    Tree,
    each,
    is_absent,
    objects,
    renamed,
    replaced,
    within,
    without,
)
from moorage.api.resource.v1 import ResourceSlice

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
    """Return a PodGroup or Workload unchanged; note its old version."""
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
    """Return a ResourcePoolStatusRequest unchanged; note its oddities."""
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
    """Return a DeviceClass unchanged; note its helpers."""
    spec = tree.get("spec")
    if isinstance(spec, dict):
        warn_of_selectors(spec, ("spec",), notes)
    return tree


def rewrite_taint_rule(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a DeviceTaintRule unchanged; note its extensions."""
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
                f"selecting devices by {means} is an extension of Moorage: "
                "Kubernetes 1.37 selects by driver, pool and device",
            )
    warn_of_selectors(selector, at, notes)
    return tree


# --- ResourceSlice --------------------------------------------------------------------------------
# Every slice passes through here, so a device without such a form costs only a few lookups.

_LISTS = {"bool": "bools", "int": "ints", "string": "strings", "version": "versions"}

_MAPPINGS = "nodeAllocatableResourceMappings"


def rewrite_slice(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a ResourceSlice in its shipped form."""
    return within(tree, ("spec",), lambda spec: _spec(spec, notes))


def is_shipped_slice(published: ResourceSlice) -> bool:
    """Return whether a slice surely has nothing that a KEP writes differently."""
    names: set[str] = set()
    for device in published.spec.devices or ():
        names.update(device.attributes)
    return bool(published.spec.pool.name) and "-" not in "".join(names)


def _spec(spec: Tree, notes: RewriteNotes) -> Tree:
    spec = _pooled(spec, notes)
    if notes.fits and not _has_hyphens(spec):
        return spec  # a tree that fits has no other such form
    if notes.version != "v1beta1":
        return each(
            spec, "devices", lambda device, i: _device(device, ("spec", "devices", i), notes)
        )

    def wrapped(device: Tree, i: int) -> Tree:
        at = ("spec", "devices", i, "basic")
        return within(device, ("basic",), lambda basic: _device(basic, at, notes))

    return each(spec, "devices", wrapped)


def _has_hyphens(spec: Tree) -> bool:
    """Return whether an attribute name may have a hyphen; any of v1beta1 may."""
    names: set[str] = set()
    for _, device in objects(spec, "devices"):
        if "basic" in device:
            return True
        if isinstance(attributes := device.get("attributes"), dict):
            names.update(attributes)
    return "-" in "".join(names)


def _pooled(spec: Tree, notes: RewriteNotes) -> Tree:
    """Return the spec with a pool for its node, if it has none."""
    node = spec.get("nodeName")
    if notes.is_part or not is_absent(spec, "pool") or not isinstance(node, str) or not node:
        return spec
    notes.warn(
        "no pool",
        ("spec", "pool"),
        f'stored as name "{node}", generation 1 and resourceSliceCount 1: '
        "Kubernetes 1.37 wants a pool",
    )
    return {**spec, "pool": {"name": node, "generation": 1, "resourceSliceCount": 1}}


def _device(device: Tree, at: Segments, notes: RewriteNotes) -> Tree:
    attributes = device.get("attributes")
    if notes.fits:  # only the names of attributes can have such a form
        if isinstance(attributes, dict) and "-" in "".join(attributes):
            _warn_of_hyphens(attributes, at, notes)
        return device
    if isinstance(attributes, dict):
        device = replaced(device, "attributes", _attributes(attributes, at, notes))
    capacity = device.get("capacity")
    if isinstance(capacity, dict):
        device = replaced(device, "capacity", _capacity(capacity, at, notes))
    if _MAPPINGS in device:
        return _node_allocatable(device, at, notes)
    return device


def _attributes(attributes: Tree, at: Segments, notes: RewriteNotes) -> Tree:
    if "-" in "".join(attributes):
        _warn_of_hyphens(attributes, at, notes)
    changed: Tree = {}
    for name, attribute in attributes.items():
        if isinstance(attribute, dict) and "list" in attribute:
            typed = _typed_list(attribute, (*at, "attributes", MapKey(name), "list"), notes)
            if typed is not attribute:
                changed[name] = typed
    return {**attributes, **changed} if changed else attributes


def _warn_of_hyphens(attributes: Tree, at: Segments, notes: RewriteNotes) -> None:
    for name in attributes:
        identifier = name.rpartition("/")[2]
        if "-" in identifier:  # A domain may have hyphens.
            notes.warn(
                "hyphenated attribute",
                (*at, "attributes", MapKey(name)),
                "a hyphen in the name is an extension of Moorage: Kubernetes 1.37 wants "
                f'a C identifier such as "{identifier.replace("-", "_")}"; '
                f'CEL reaches it by ["{identifier}"]',
            )


def _typed_list(attribute: Tree, at: Segments, notes: RewriteNotes) -> Tree:
    """Return the attribute with `list: {string: […]}` as `strings: […]`."""
    lists = attribute["list"]
    if not isinstance(lists, dict) or not lists:
        return attribute
    if not all(kind in _LISTS and isinstance(values, list) for kind, values in lists.items()):
        return attribute
    if not is_absent(attribute, *(_LISTS[kind] for kind in lists)):
        return attribute
    stored = {_LISTS[kind]: values for kind, values in lists.items()}
    notes.warn(
        "typed list",
        at,
        "a typed list is stored as ints, bools, strings or versions, "
        "the form that Kubernetes 1.37 has",
    )
    return {**without(attribute, "list"), **stored}


def _capacity(capacity: Tree, at: Segments, notes: RewriteNotes) -> Tree:
    changed: Tree = {}
    for name, value in capacity.items():
        if not isinstance(value, dict) and _is_quantity(value):
            changed[name] = {"value": value}
            notes.warn(
                "plain capacity",
                (*at, "capacity", MapKey(name)),
                'a plain quantity is stored as its "value", the form that Kubernetes 1.37 has',
            )
    return {**capacity, **changed} if changed else capacity


def _is_quantity(value: object) -> bool:
    """Return whether JSON can represent a quantity like this."""
    return isinstance(value, str | int | float) and not isinstance(value, bool)


def _node_allocatable(device: Tree, at: Segments, notes: RewriteNotes) -> Tree:
    """Return the device with its mappings as nodeAllocatableResources."""
    mappings = device[_MAPPINGS]
    if not isinstance(mappings, dict) or not is_absent(device, "nodeAllocatableResources"):
        return device
    if not all(mapping is None or isinstance(mapping, dict) for mapping in mappings.values()):
        return device
    notes.warn(
        "node allocatable mappings",
        (*at, _MAPPINGS),
        'stored as "nodeAllocatableResources", the form that Kubernetes 1.37 has',
    )
    stored = {
        name: {"mapping": _node_resource(mapping or {})} for name, mapping in mappings.items()
    }
    return {**without(device, _MAPPINGS), "nodeAllocatableResources": stored}


def _node_resource(mapping: Tree) -> Tree:
    """Return a mapping with its multiplier under the shipped name, by default 1."""
    multiplier = mapping.get("allocationMultiplier")
    name = "deviceMultiplier" if is_absent(mapping, "capacityKey") else "capacityMultiplier"
    stored = "1" if multiplier is None else multiplier
    return {**without(mapping, "allocationMultiplier"), name: stored}
