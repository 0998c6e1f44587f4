"""What clients may do with each resource and its parts.

# part: a subresource, such as pods/status
# review: a question that is answered at once and never stored
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mooring.api.kinds import Kind

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
PART_VERBS = ("get", "patch", "update")
CREATE = ("create",)

# The other resources know all verbs.
_VERBS = {
    "bindings": CREATE,
    "namespaces": tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
}

_CATEGORIES = {
    ("", "pods"): ("all",),
    ("apps", "daemonsets"): ("all",),
    ("apps", "deployments"): ("all",),
    ("apps", "replicasets"): ("all",),
    ("apps", "statefulsets"): ("all",),
    ("batch", "jobs"): ("all",),
}


class Served(Protocol):
    """One resource of a group, in all versions in which it is served."""

    @property
    def group(self) -> str:
        """The API group; empty for core."""

    @property
    def plural(self) -> str:
        """What it is called in paths."""

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """The kinds of its objects, by version."""

    @property
    def subresources(self) -> frozenset[str]:
        """The parts of its objects that are served."""


class Part(NamedTuple):
    """What a subresource takes and gives: objects of its resource's kind, if none is named."""

    verbs: tuple[str, ...] = PART_VERBS
    group: str = ""
    version: str = ""
    kind: str = ""


_PARTS = {
    "attach": Part(("create", "get"), kind="PodAttachOptions"),
    "binding": Part(CREATE, kind="Binding"),
    "eviction": Part(CREATE, "policy", "v1", "Eviction"),
    "exec": Part(("create", "get"), kind="PodExecOptions"),
    "finalize": Part(("update",)),
    "log": Part(("get",)),
    "scale": Part(PART_VERBS, "autoscaling", "v1", "Scale"),
    "token": Part(CREATE, "authentication.k8s.io", "v1", "TokenRequest"),
}


class Review(NamedTuple):
    """A kind that is only ever created, to get its answer back."""

    group: str
    plural: str
    kind: str
    namespaced: bool = False
    version: str = "v1"


AUTHENTICATION = "authentication.k8s.io"
AUTHORIZATION = "authorization.k8s.io"

REVIEWS = (
    Review(AUTHENTICATION, "selfsubjectreviews", "SelfSubjectReview"),
    Review(AUTHENTICATION, "tokenreviews", "TokenReview"),
    Review(AUTHORIZATION, "localsubjectaccessreviews", "LocalSubjectAccessReview", True),
    Review(AUTHORIZATION, "selfsubjectaccessreviews", "SelfSubjectAccessReview"),
    Review(AUTHORIZATION, "selfsubjectrulesreviews", "SelfSubjectRulesReview"),
    Review(AUTHORIZATION, "subjectaccessreviews", "SubjectAccessReview"),
)


def verbs_of(plural: str) -> tuple[str, ...]:
    """Return what may be done with a resource."""
    return _VERBS.get(plural, ALL_VERBS)


def categories_of(group: str, plural: str) -> tuple[str, ...]:
    """Return the names under which a resource is found together with others."""
    return _CATEGORIES.get((group, plural), ())


def part_of(subresource: str) -> Part:
    """Return what may be done with a subresource."""
    return _PARTS.get(subresource, Part())


def version_order(version: str) -> tuple[int, int, int]:
    """Return the place of a version: v1 before v1beta2 before v1beta1 before v1alpha3."""
    major, stage, minor = version.removeprefix("v"), 0, "0"
    for rank, word in ((1, "beta"), (2, "alpha")):
        if word in major:
            major, _, minor = major.partition(word)
            stage = rank
    return (stage, -int(major), -int(minor))
