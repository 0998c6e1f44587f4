"""ResourceSlice: typed lists, plain capacities, node-allocatable mappings and the missing pool.

Every slice passes through here, so a device without such a form costs only a few lookups.
"""

from __future__ import annotations

from mooring.api.field_path import MapKey
from mooring.api.kep_forms.trees import (
    RewriteNotes,
    Segments,
    Tree,
    each,
    is_absent,
    objects,
    replaced,
    within,
    without,
)

_LISTS = {"bool": "bools", "int": "ints", "string": "strings", "version": "versions"}

_MAPPINGS = "nodeAllocatableResourceMappings"


def rewrite_slice(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a ResourceSlice in its shipped form."""
    return within(tree, ("spec",), lambda spec: _spec(spec, notes))


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
                "a hyphen in the name is an extension of Mooring: Kubernetes 1.37 wants "
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
    stored = {name: {"mapping": _mapping(mapping or {})} for name, mapping in mappings.items()}
    return {**without(device, _MAPPINGS), "nodeAllocatableResources": stored}


def _mapping(mapping: Tree) -> Tree:
    """Return a mapping with its multiplier under the shipped name, by default 1."""
    multiplier = mapping.get("allocationMultiplier")
    name = "deviceMultiplier" if is_absent(mapping, "capacityKey") else "capacityMultiplier"
    stored = "1" if multiplier is None else multiplier
    return {**without(mapping, "allocationMultiplier"), name: stored}
