"""What the table of built-in kinds says of each kind is true of the code and of the docs."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import moorage
from moorage.api.built_in_kinds import BUILT_IN_KINDS, BuiltInKind, Role
from moorage.api.catalogue import CATALOGUE, KINDS

PACKAGE = Path(moorage.__file__).parent
DOCS = PACKAGE.parents[1] / "docs"
# Those that do what objects ask for. Tables and selectors only show objects.
ACTORS = ("apiserver", "claims", "cluster", "controllers", "node", "scheduler")
SHOWING = ("apiserver/tables", "apiserver/verbs/field_labels.py", "apiserver/verbs/list.py")
# The server acts on these two without a struct: a request for the one is a call, and the other is
# kept and expires.
WITHOUT_STRUCT = {"Event", "Binding"}
# Stored for others, but who may write them is decided here.
GUARDED = {"CertificateSigningRequest", "ClusterTrustBundle"}


@cache
def names_used() -> dict[str, set[str]]:
    """Return the modules that use each name, imported or as a plural in a string."""
    found: dict[str, set[str]] = {}
    for part in ACTORS:
        for path in (PACKAGE / part).rglob("*.py"):
            module = str(path.relative_to(PACKAGE))
            if module.startswith(SHOWING):
                continue
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.ImportFrom):
                    for alias in node.names:
                        found.setdefault(alias.name, set()).add(module)
                elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                    found.setdefault(node.value, set()).add(module)
    return found


def served(kind: BuiltInKind) -> bool:
    return any((version, kind.name) in CATALOGUE for version in kind.api_versions)


def ids(kind: BuiltInKind) -> str:
    return kind.name


def test_kinds_are_listed_once_per_group() -> None:
    names = [(kind.api_versions[0].rpartition("/")[0], kind.name) for kind in BUILT_IN_KINDS]
    assert len(names) == len(set(names))


def test_kinds_that_act_or_are_stored_are_served_and_refused_ones_are_not() -> None:
    for kind in BUILT_IN_KINDS:
        assert served(kind) is (kind.role is not Role.REFUSED), kind.name


def test_every_kind_of_a_server_is_in_the_table() -> None:
    listed = {(version, kind.name) for kind in BUILT_IN_KINDS for version in kind.api_versions}
    ours = {
        (kind.api_version, kind.name)
        for kind in KINDS
        if kind.plural and not kind.is_extension and kind.version != "v1alpha2"
    }
    assert ours <= listed


@pytest.mark.parametrize(
    "kind", [k for k in BUILT_IN_KINDS if k.role is Role.ACTS and served(k)], ids=ids
)
def test_something_reads_a_kind_that_acts(kind: BuiltInKind) -> None:
    plurals = {each.plural for each in KINDS if each.name == kind.name}
    users = names_used().get(kind.name, set()).union(*(names_used().get(p, ()) for p in plurals))
    assert users or kind.name in WITHOUT_STRUCT


@pytest.mark.parametrize("kind", [k for k in BUILT_IN_KINDS if k.role is Role.DATA], ids=ids)
def test_nothing_reads_a_kind_that_is_data_only(kind: BuiltInKind) -> None:
    users = names_used().get(kind.name, set())
    assert not users or kind.name in GUARDED


@pytest.mark.parametrize(
    ("role", "heading"),
    [(Role.DATA, "Some kinds are stored only"), (Role.REFUSED, "Some kinds are refused")],
)
def test_the_page_of_differences_names_them(role: Role, heading: str) -> None:
    text = (DOCS / "differences.md").read_text(encoding="utf-8")
    section = text.partition(f"### {heading}\n")[2].partition("\n### ")[0]
    listed = set(re.findall(r"`([A-Z][A-Za-z]+)`", section.partition("\n\n")[0] + section))
    wanted = {kind.name for kind in BUILT_IN_KINDS if kind.role is role}
    assert listed == wanted
