"""ResourceClaim and ResourceClaimTemplate: requests, constraints and derived attributes.

Derived attributes may have bare or hyphenated names: `shared-numa-node` is stored as
`derived/shared_numa_node`, because Kubernetes 1.37 requires a domain and a C identifier. The new
name must be unique: if two names would become the same, that is an error, and no name is changed.

CEL expressions may use helpers that only Moorage has. They are stored as written, with a warning;
the scan works on their text and skips strings.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from moorage.api.gates import Gate
from moorage.api.kep_forms.trees import (
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
from moorage.api.resource.v1 import ResourceClaim

_BELONG_UNDER_DEVICES = ("requests", "constraints", "config")

_NAME = re.compile(r"(?:(?P<domain>[^/]+)/)?(?P<identifier>[A-Za-z_][A-Za-z0-9_-]*)")

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


def rewrite_claim(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a ResourceClaim in its shipped form."""
    if notes.fits and _is_plain(tree.get("spec") or {}):
        return tree
    return within(tree, ("spec",), lambda spec: _spec(spec, ("spec",), notes))


def _is_plain(spec: Any) -> bool:
    """Return whether a spec that fits has nothing that a KEP may write differently."""
    devices = spec.get("devices") or {}
    if devices.get("constraints"):
        return False
    for request in devices.get("requests") or ():
        exactly = request.get("exactly")
        if exactly is None or "selectors" in exactly or "derivedAttributes" in exactly:
            return False
    return True


def is_shipped_claim(claim: ResourceClaim) -> bool:
    """Return whether a claim surely has nothing that a KEP writes differently."""
    devices = claim.spec.devices
    for request in devices.requests or ():
        exactly = request.exactly
        if exactly is None or request.first_available or exactly.derived_attributes:
            return False
        for selector in exactly.selectors:
            if selector.cel is None or _may_use_helpers(selector.cel.expression):
                return False
    names = _STANDARD_ATTRIBUTES
    return not any(
        each.match_attribute in names or each.distinct_attribute in names
        for each in devices.constraints
    )


def rewrite_template(tree: Tree, notes: RewriteNotes) -> Tree:
    """Return a ResourceClaimTemplate in its shipped form."""
    at = ("spec", "spec")
    return within(tree, at, lambda spec: _spec(spec, at, notes))


def _spec(spec: Tree, at: Segments, notes: RewriteNotes) -> Tree:
    spec = _gathered(spec, at, notes)
    return within(spec, ("devices",), lambda devices: _devices(devices, (*at, "devices"), notes))


def _gathered(spec: Tree, at: Segments, notes: RewriteNotes) -> Tree:
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


def _devices(devices: Tree, at: Segments, notes: RewriteNotes) -> Tree:
    devices = each(
        devices, "requests", lambda request, i: _request(request, (*at, "requests", i), notes)
    )
    is_flat = _is_flat(notes)
    written = derived_names(devices, at, is_flat=is_flat)
    changed = derived_renames(written, notes) if written else {}
    if changed:
        devices = rename_derived(devices, changed, is_flat=is_flat)

    # A claim that derives `k8s.io/pcieRoot` itself means its own attribute.
    standard = {old: new for old, new in _STANDARD_ATTRIBUTES.items() if old not in written}

    def constraint(tree: Tree, i: int) -> Tree:
        place = (*at, "constraints", i)
        _warn_of_rejected(tree, place, notes)
        tree = _standardised(tree, place, standard, notes)
        return _renamed(tree, changed)

    return each(devices, "constraints", constraint)


def _is_flat(notes: RewriteNotes) -> bool:
    """Whether a request itself has the fields that other versions have under exactly."""
    return notes.version == "v1beta1"


def _request(request: Tree, at: Segments, notes: RewriteNotes) -> Tree:
    is_flat = _is_flat(notes)
    if not is_flat:
        request = _exactly(request, at, notes)
    for place, ask in request_parts(request, at, is_flat=is_flat):
        warn_of_selectors(ask, place, notes)
        for i, attribute in objects(ask, "derivedAttributes"):
            where = (*place, "derivedAttributes", i, "expression")
            warn_of(attribute.get("expression"), where, notes)
    return request


def _exactly(request: Tree, at: Segments, notes: RewriteNotes) -> Tree:
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


def _warn_of_rejected(constraint: Tree, at: Segments, notes: RewriteNotes) -> None:
    for name, reason in _REJECTED.items():
        if name in constraint:
            notes.warn(f"constraint {name}", (*at, name), f"unknown field: {reason}")


def _standardised(tree: Tree, at: Segments, names: Mapping[str, str], notes: RewriteNotes) -> Tree:
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


# --- derived attributes ---------------------------------------------------------------------------


def stored_name(name: str) -> str:
    """Return the name that a derived attribute is stored under; itself where no rule fits."""
    match = _NAME.fullmatch(name)
    if match is None:
        return name
    return f"{match['domain'] or 'derived'}/{match['identifier'].replace('-', '_')}"


def request_parts(request: Tree, at: Segments, *, is_flat: bool) -> Iterator[tuple[Segments, Tree]]:
    """Give the parts of a request that ask for devices, with their places."""
    exactly = request if is_flat else request.get("exactly")
    if isinstance(exactly, dict):
        yield (at if is_flat else (*at, "exactly")), exactly
    for position, subrequest in objects(request, "firstAvailable"):
        yield (*at, "firstAvailable", position), subrequest


def derived_names(devices: Tree, at: Segments, *, is_flat: bool) -> dict[str, Segments]:
    """Return the derived names of a claim as written, each with its first place."""
    found: dict[str, Segments] = {}
    for i, request in objects(devices, "requests"):
        for place, ask in request_parts(request, (*at, "requests", i), is_flat=is_flat):
            for j, attribute in objects(ask, "derivedAttributes"):
                name = attribute.get("name")
                if isinstance(name, str):
                    found.setdefault(name, (*place, "derivedAttributes", j, "name"))
    return found


def derived_renames(written: Mapping[str, Segments], notes: RewriteNotes) -> dict[str, str]:
    """Return the names to be changed; none where two would become the same or the gate is off."""
    if not notes.gates.enabled(Gate.DRA_DERIVED_ATTRIBUTES):
        return {}
    stored = {name: stored_name(name) for name in written}
    if _collide(stored, written, notes):
        return {}
    changed = {name: new for name, new in stored.items() if new != name}
    for name, new in changed.items():
        notes.warn(
            "derived name",
            written[name],
            f'"{name}" is stored as "{new}": Kubernetes 1.37 wants a domain and a C identifier',
        )
    return changed


def _collide(
    stored: Mapping[str, str], written: Mapping[str, Segments], notes: RewriteNotes
) -> bool:
    """Note the names that would become the same as an earlier one; whether there are any."""
    first: dict[str, str] = {}
    for name, new in stored.items():
        earlier = first.setdefault(new, name)
        if earlier != name:
            notes.fail(
                written[name],
                f'"{name}" and "{earlier}" would both be stored as "{new}": rename one of them',
            )
    return len(first) < len(stored)


def rename_derived(devices: Tree, new: Mapping[str, str], *, is_flat: bool) -> Tree:
    """Return the claim's devices with its derived attributes renamed."""

    def attribute(tree: Tree, _: int) -> Tree:
        name = tree.get("name")
        return replaced(tree, "name", new[name]) if isinstance(name, str) and name in new else tree

    def ask(tree: Tree, _: int = 0) -> Tree:
        return each(tree, "derivedAttributes", attribute)

    def request(tree: Tree, _: int) -> Tree:
        tree = ask(tree) if is_flat else within(tree, ("exactly",), ask)
        return each(tree, "firstAvailable", ask)

    return each(devices, "requests", request)


# --- CEL helpers ----------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"""
      "(?:\\.|[^"\\])*" | '(?:\\.|[^'\\])*'       # a string: skipped whole
    | (?P<name>(?<![\w.])device\s*\.\s*name\b)
    | (?P<include>\.\s*include\s*\()
    """,
    re.VERBOSE | re.DOTALL,
)

_MESSAGES = {
    "name": (
        "device.name is an extension of Moorage: in Kubernetes 1.37 a device has driver, "
        "attributes, capacity and allowMultipleAllocations"
    ),
    "include": "include() is an alias of includes(), the function that Kubernetes 1.37 has",
}


def warn_of_selectors(holder: Tree, at: Segments, notes: RewriteNotes) -> None:
    """Warn about helpers in the CEL selectors of a request, class or rule."""
    for position, selector in objects(holder, "selectors"):
        cel = selector.get("cel")
        if isinstance(cel, dict):
            warn_of(cel.get("expression"), (*at, "selectors", position, "cel", "expression"), notes)


def _may_use_helpers(expression: str) -> bool:
    return "name" in expression or "include" in expression


def warn_of(expression: object, at: Segments, notes: RewriteNotes) -> None:
    """Warn about helpers in an expression."""
    if not isinstance(expression, str) or not _may_use_helpers(expression):
        return
    for token in _TOKEN.finditer(expression):
        if token.lastgroup is not None:
            notes.warn(f"cel {token.lastgroup}", at, _MESSAGES[token.lastgroup])
