"""Every kind, verb and user against a table that was written by hand: matrix.txt."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import pytest

from moorage.api.catalogue import ASKED
from moorage.apiserver.auth.access import (
    Access,
    Allowed,
    PathAccess,
    ResourceAccess,
)
from moorage.apiserver.auth.users import User
from moorage.apiserver.http.messages import Target
from moorage.apiserver.resources import Resources
from tests.apiserver.cast import TEAM, USERS, Cluster, cluster

VERBS = {
    "g": "get",
    "l": "list",
    "w": "watch",
    "c": "create",
    "u": "update",
    "p": "patch",
    "d": "delete",
    "x": "deletecollection",
}
NAMED = ("get", "update", "patch", "delete")
SHORT = {"*": "glwcupdx", "R": "glw", "W": "cupdx", "-": ""}
NAMESPACED = {(r.group, r.plural) for r in Resources() if r.namespaced} | {
    (kind.group, kind.plural) for kind in ASKED if kind.namespaced
}


class Row(NamedTuple):
    """What each user may do with a resource, or with a path."""

    thing: str
    cells: dict[str, str]

    @property
    def is_path(self) -> bool:
        return self.thing.startswith("/")


def expanded(cell: str) -> str:
    return "".join(SHORT.get(letter, letter) for letter in cell)


def read_matrix() -> list[Row]:
    text = (Path(__file__).parent / "matrix.txt").read_text()
    lines = [line.split() for line in text.splitlines() if line and not line.startswith("#")]
    users = lines[0][1:]
    assert users == list(USERS)
    rows = []
    for thing, *cells in lines[1:]:
        assert len(cells) == len(users), thing
        rows.append(Row(thing, dict(zip(users, map(expanded, cells), strict=True))))
    return rows


MATRIX = read_matrix()
WORLD = cluster()


def target_of(thing: str, verb: str, *, name: str = "one", namespace: str = TEAM) -> Target:
    """Return what a request of the verb is about."""
    thing, _, place = thing.partition("@")
    group, plural, *parts = thing.split("/")
    group = "" if group == "core" else group
    subresource = parts[0] if parts else ""
    own = {"nodes": "node-a", "namespaces": namespace, "leases": "node-a" if place else name}
    name = own.get(plural, name) if verb in NAMED or subresource else ""
    if (group, plural) not in NAMESPACED:
        # What is about a namespace counts as in it.
        namespace = name if plural == "namespaces" else ""
    return Target(group, "v1", plural, place or namespace, name, subresource)


def access_of(row: Row, user: User, verb: str, *, namespace: str = TEAM) -> Access:
    if row.is_path:
        return PathAccess(user, verb, row.thing)
    target = target_of(row.thing, verb, namespace=namespace)
    return ResourceAccess(
        user,
        verb,
        target.group,
        target.resource,
        target.subresource,
        target.namespace,
        target.name,
    )


def allowed(access: Access, world: Cluster = WORLD) -> bool:
    return isinstance(world.authorizer.authorize(access), Allowed)


def letters(row: Row, user: User, *, namespace: str = TEAM) -> str:
    asked = "g" if row.is_path else VERBS
    return "".join(
        letter
        for letter in asked
        if allowed(access_of(row, user, VERBS[letter], namespace=namespace))
    )


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.thing)
def test_users_may_do_what_the_table_says(row: Row, user: str) -> None:
    assert letters(row, USERS[user]) == "".join(c for c in VERBS if c in row.cells[user])


def test_the_table_has_every_resource_and_subresource() -> None:
    served = {
        "/".join(filter(None, (r.group or "core", r.plural, part)))
        for r in Resources()
        for part in ("", *r.subresources)
    }
    served |= {f"{kind.group}/{kind.plural}" for kind in ASKED if kind.plural}
    assert served <= {row.thing for row in MATRIX}


def test_the_table_is_as_large_as_it_is_said_to_be() -> None:
    resources = [row for row in MATRIX if not row.is_path]
    paths = [row for row in MATRIX if row.is_path]
    assert len(resources) * len(VERBS) * len(USERS) + len(paths) * len(USERS) >= 4_000


@pytest.mark.parametrize("user", ["view", "edit", "admin"])
@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.thing)
def test_a_role_in_a_namespace_says_nothing_of_others(row: Row, user: str) -> None:
    everybody = "".join(c for c in VERBS if c in row.cells["authenticated"])
    assert letters(row, USERS[user], namespace="elsewhere") == everybody


@pytest.mark.parametrize(
    "resource",
    [
        *("secrets", "configmaps", "resourceclaims", "serviceaccounts", "pods", "resourceslices"),
        *("persistentvolumeclaims", "persistentvolumes"),
    ],
)
@pytest.mark.parametrize("verb", ["get", "update", "patch", "list", "watch"])
def test_a_node_reaches_nothing_of_another_node(resource: str, verb: str) -> None:
    group = "resource.k8s.io" if resource in ("resourceclaims", "resourceslices") else ""
    namespace = "" if resource in ("resourceslices", "persistentvolumes") else TEAM
    access = ResourceAccess(
        USERS["node"], verb, group, resource, namespace=namespace, name="foreign"
    )
    assert not allowed(access)
