"""ResourceClaim and ResourceClaimTemplate: requests and constraints where the KEPs write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mooring.api.seedforms import derived
from mooring.api.seedforms.expressions import warn_of, warn_of_selectors
from mooring.api.seedforms.notes import Notes, Segments
from mooring.api.seedforms.trees import Tree, each, is_absent, objects, replaced, within, without

_BELONG_UNDER_DEVICES = ("requests", "constraints", "config")

_STANDARD_ATTRIBUTES = {"k8s.io/pcieRoot": "resource.kubernetes.io/pcieRoot"}

_REJECTED = {
    "cel": (
        "KEP-5254 proposed it and was rejected; give the requests a common derivedAttributes "
        "entry and name it in matchAttribute"
    ),
    "matchSemantics": (
        "KEP-5491 rejected it; matchAttribute alone asks for a value that all devices share"
    ),
    "distinctSemantics": (
        "KEP-5491 rejected it; distinctAttribute alone asks for values that no two devices share"
    ),
    "semantics": (
        "KEP-5491 rejected it; matchAttribute alone asks for a value that all devices share, "
        "distinctAttribute for values that no two devices share"
    ),
}


def rewrite_claim(tree: Tree, notes: Notes) -> Tree:
    """Return a ResourceClaim in its shipped form."""
    if notes.fits and _is_plain(tree.get("spec") or {}):
        return tree
    return within(tree, ("spec",), lambda spec: _spec(spec, ("spec",), notes))


def _is_plain(spec: Any) -> bool:
    """Tell of a spec that fits whether it has nothing that a KEP may write otherwise."""
    devices = spec.get("devices") or {}
    if devices.get("constraints"):
        return False
    for request in devices.get("requests") or ():
        exactly = request.get("exactly")
        if exactly is None or "selectors" in exactly or "derivedAttributes" in exactly:
            return False
    return True


def rewrite_template(tree: Tree, notes: Notes) -> Tree:
    """Return a ResourceClaimTemplate in its shipped form."""
    at = ("spec", "spec")
    return within(tree, at, lambda spec: _spec(spec, at, notes))


def _spec(spec: Tree, at: Segments, notes: Notes) -> Tree:
    spec = _gathered(spec, at, notes)
    return within(spec, ("devices",), lambda devices: _devices(devices, (*at, "devices"), notes))


def _gathered(spec: Tree, at: Segments, notes: Notes) -> Tree:
    """Return the spec with its requests, constraints and config moved under devices."""
    strays = [name for name in _BELONG_UNDER_DEVICES if isinstance(spec.get(name), list)]
    if not ("requests" in strays or "constraints" in strays) or not is_absent(spec, "devices"):
        return spec
    notes.warn(
        "no devices",
        at,
        f"{' and '.join(strays)} moved under devices, where Kubernetes 1.37 has them",
    )
    devices = {name: spec[name] for name in strays}
    return {**without(spec, "devices", *strays), "devices": devices}


def _devices(devices: Tree, at: Segments, notes: Notes) -> Tree:
    devices = each(
        devices, "requests", lambda request, i: _request(request, (*at, "requests", i), notes)
    )
    is_flat = _is_flat(notes)
    written = derived.names(devices, at, is_flat=is_flat)
    changed = derived.renames(written, notes) if written else {}
    if changed:
        devices = derived.rename(devices, changed, is_flat=is_flat)

    # A claim that derives `k8s.io/pcieRoot` itself means its own attribute.
    standard = {old: new for old, new in _STANDARD_ATTRIBUTES.items() if old not in written}

    def constraint(tree: Tree, i: int) -> Tree:
        place = (*at, "constraints", i)
        _warn_of_rejected(tree, place, notes)
        tree = _standardised(tree, place, standard, notes)
        return _renamed(tree, changed)

    return each(devices, "constraints", constraint)


def _is_flat(notes: Notes) -> bool:
    """Whether a request itself has the fields that other versions have under exactly."""
    return notes.version == "v1beta1"


def _request(request: Tree, at: Segments, notes: Notes) -> Tree:
    is_flat = _is_flat(notes)
    if not is_flat:
        request = _exactly(request, at, notes)
    for place, ask in derived.asks(request, at, is_flat=is_flat):
        warn_of_selectors(ask, place, notes)
        for i, attribute in objects(ask, "derivedAttributes"):
            where = (*place, "derivedAttributes", i, "expression")
            warn_of(attribute.get("expression"), where, notes)
    return request


def _exactly(request: Tree, at: Segments, notes: Notes) -> Tree:
    """Return the request with the derivedAttributes beside exactly moved into it."""
    exactly, attributes = request.get("exactly"), request.get("derivedAttributes")
    if not isinstance(attributes, list) or not isinstance(exactly, dict):
        return request
    if not is_absent(exactly, "derivedAttributes"):
        return request
    notes.warn(
        "derivedAttributes beside exactly",
        (*at, "derivedAttributes"),
        "moved into exactly, where Kubernetes 1.37 has it",
    )
    exactly = {**exactly, "derivedAttributes": attributes}
    return {**without(request, "derivedAttributes"), "exactly": exactly}


def _warn_of_rejected(constraint: Tree, at: Segments, notes: Notes) -> None:
    for name, reason in _REJECTED.items():
        if name in constraint:
            notes.warn(f"constraint {name}", (*at, name), f"unknown field: {reason}")


def _standardised(tree: Tree, at: Segments, names: Mapping[str, str], notes: Notes) -> Tree:
    """Return the constraint with the KEPs' names of standard attributes replaced."""
    for field in ("matchAttribute", "distinctAttribute"):
        name = tree.get(field)
        if isinstance(name, str) and name in names:
            notes.warn(
                "standard attribute",
                (*at, field),
                f'"{name}" is stored as "{names[name]}", the name that Kubernetes 1.37 has',
            )
    return _renamed(tree, names)


def _renamed(constraint: Tree, names: Mapping[str, str]) -> Tree:
    for field in ("matchAttribute", "distinctAttribute"):
        name = constraint.get(field)
        if isinstance(name, str) and name in names:
            constraint = replaced(constraint, field, names[name])
    return constraint
