"""Derived attributes with bare or hyphenated names, and the constraints that name them.

`shared-numa-node` is stored as `derived/shared_numa_node`, the kind of name that Kubernetes 1.37
wants. The new name must mean one thing only: two names that would become the same are an error,
and then no name of the claim is changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from mooring.api.gates import Gate
from mooring.api.seedforms.notes import Notes, Segments
from mooring.api.seedforms.trees import Tree, each, objects, replaced, within

_NAME = re.compile(r"(?:(?P<domain>[^/]+)/)?(?P<identifier>[A-Za-z_][A-Za-z0-9_-]*)")


def stored_name(name: str) -> str:
    """Return the name that a derived attribute is stored under; itself where no rule fits."""
    match = _NAME.fullmatch(name)
    if match is None:
        return name
    return f"{match['domain'] or 'derived'}/{match['identifier'].replace('-', '_')}"


def asks(request: Tree, at: Segments, *, is_flat: bool) -> Iterator[tuple[Segments, Tree]]:
    """Give the parts of a request that ask for devices, with their places."""
    exactly = request if is_flat else request.get("exactly")
    if isinstance(exactly, dict):
        yield (at if is_flat else (*at, "exactly")), exactly
    for position, subrequest in objects(request, "firstAvailable"):
        yield (*at, "firstAvailable", position), subrequest


def names(devices: Tree, at: Segments, *, is_flat: bool) -> dict[str, Segments]:
    """Return the derived names of a claim as written, each with its first place."""
    found: dict[str, Segments] = {}
    for i, request in objects(devices, "requests"):
        for place, ask in asks(request, (*at, "requests", i), is_flat=is_flat):
            for j, attribute in objects(ask, "derivedAttributes"):
                name = attribute.get("name")
                if isinstance(name, str):
                    found.setdefault(name, (*place, "derivedAttributes", j, "name"))
    return found


def renames(written: Mapping[str, Segments], notes: Notes) -> dict[str, str]:
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


def _collide(stored: Mapping[str, str], written: Mapping[str, Segments], notes: Notes) -> bool:
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


def rename(devices: Tree, new: Mapping[str, str], *, is_flat: bool) -> Tree:
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
