"""API resources of the server, with their verbs and versions.

# review: a resource that is only created, answered at once and never stored
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import NamedTuple

from msgspec import Struct

from moorage.api.catalogue import SERVED
from moorage.api.kinds import Kind
from moorage.apiserver.http.status import About
from moorage.validation.custom_resources.definition import CompiledDefinition

EVENT_TTL_S = 3600


class Resource(Struct, frozen=True, eq=False, dict=True):
    """One resource of a group, in all versions in which it is served."""

    group: str
    plural: str
    kinds: Mapping[str, Kind]  # by version
    subresources: frozenset[str]
    ttl_s: int | None = None  # after which objects expire, if they do
    definition: CompiledDefinition | None = None  # of a custom resource

    @cached_property
    def any_kind(self) -> Kind:
        """One of the kinds, for their common properties."""
        return next(iter(self.kinds.values()))

    @cached_property
    def namespaced(self) -> bool:
        """Whether objects are in namespaces."""
        return self.any_kind.namespaced

    @cached_property
    def hub_version(self) -> str:
        """The version that objects are stored in."""
        return self.any_kind.hub_version

    @cached_property
    def hub_struct(self) -> type[Struct]:
        """The struct that objects are stored as."""
        if self.definition is not None:
            return self.definition.struct
        return _HUBS[self.hub_version, self.any_kind.name].struct

    @cached_property
    def returns_deleted(self) -> bool:
        """Whether a delete returns the object, and not a Status."""
        return self.definition is None and self.plural in _RETURNED

    @cached_property
    def is_made_by_update(self) -> bool:
        """Whether an update of a missing object creates it."""
        return self.definition is None and self.plural in _MADE_BY_UPDATE

    @cached_property
    def holds_namespaces(self) -> bool:
        """Whether its objects are the namespaces."""
        return (self.group, self.plural) == ("", "namespaces")

    @cached_property
    def verbs(self) -> tuple[str, ...]:
        """The verbs that it supports."""
        return CUSTOM_VERBS if self.definition is not None else verbs_of(self.plural)

    @cached_property
    def categories(self) -> tuple[str, ...]:
        """The categories that it belongs to."""
        names = None if self.definition is None else self.definition.names
        return categories_of(self.group, self.plural) if names is None else names.categories

    @cached_property
    def singular(self) -> str:
        """The name of one object on the command line."""
        names = None if self.definition is None else self.definition.names
        return self.any_kind.name.lower() if names is None else names.singular

    def subresources_in(self, version: str) -> frozenset[str]:
        """Return the subresources of a version."""
        defined = self.definition
        return self.subresources if defined is None else defined.versions[version].subresources

    @cached_property
    def about(self) -> About:
        """The resource in messages."""
        return About(self.plural, self.any_kind.name, self.group)

    @cached_property
    def prefix(self) -> str:
        """The prefix of the keys of its objects."""
        group = self.hub_version.rpartition("/")[0]  # events of both groups are the same objects
        return f"/registry/{group or 'core'}/{self.plural}/"

    def key(self, namespace: str, name: str) -> str:
        """Return the key of an object."""
        return f"{self.prefix}{namespace}/{name}" if self.namespaced else f"{self.prefix}{name}"

    def below(self, namespace: str) -> str:
        """Return the prefix of the keys in a namespace, or of all keys."""
        return f"{self.prefix}{namespace}/" if namespace else self.prefix


class Resources:
    """All resources of a server, served or not."""

    def __init__(
        self,
        kinds: Iterable[Kind] = SERVED,
        *,
        serves: Callable[[Kind], bool] = lambda _: True,
        event_ttl_s: int | None = EVENT_TTL_S,
    ) -> None:
        listed = tuple(kinds)
        self._all = _by_name(listed, event_ttl_s)
        self._resources = _by_name(filter(serves, listed), event_ttl_s)
        self._custom: dict[tuple[str, str], Resource] = {}
        self.generation = 0  # how often custom resources changed

    def set_custom(self, resources: Iterable[Resource]) -> None:
        """Serve these custom resources, and no others; kinds of the server come first."""
        self._custom = {
            (resource.group, resource.plural): resource
            for resource in resources
            if (resource.group, resource.plural) not in self._all
        }
        self.generation += 1

    @property
    def custom(self) -> Iterable[Resource]:
        """The custom resources."""
        return self._custom.values()

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a resource, if it is served in the version."""
        resource = self._resources.get((group, plural)) or self._custom.get((group, plural))
        return resource if resource is not None and version in resource.kinds else None

    def of(self, group: str, plural: str) -> Resource:
        """Return a resource that exists, served or not."""
        return self._all[group, plural]

    def all(self) -> Iterator[Resource]:
        """Return all resources, served or not."""
        return iter((*self._all.values(), *self._custom.values()))

    def __iter__(self) -> Iterator[Resource]:
        return iter((*self._resources.values(), *self._custom.values()))

    def versions(self, group: str) -> list[str]:
        """Return the served versions of a group."""
        return sorted({version for r in self if r.group == group for version in r.kinds})


_MADE_BY_UPDATE = frozenset(("endpoints", "events", "leases", "limitranges", "services"))
_RETURNED = frozenset(
    {
        "deviceclasses",
        "namespaces",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourcepoolstatusrequests",
        "resourcequotas",
        "resourceslices",
        "serviceaccounts",
        "services",
        "storageclasses",
    }
)

_HUBS = {(kind.api_version, kind.name): kind for kind in SERVED}

# Besides status, which kinds declare.
_MORE_SUBRESOURCES = {
    "Deployment": ("scale",),
    "CertificateSigningRequest": ("approval",),
    "Pod": (
        *("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "portforward"),
        "resize",
    ),
    "ReplicaSet": ("scale",),
    "ReplicationController": ("scale",),
    "StatefulSet": ("scale",),
    "Namespace": ("finalize",),
    "Node": ("proxy",),
    "ServiceAccount": ("token",),
}


def _by_name(kinds: Iterable[Kind], event_ttl_s: int | None) -> dict[tuple[str, str], Resource]:
    found: dict[tuple[str, str], dict[str, Kind]] = {}
    for kind in kinds:
        found.setdefault((kind.group, kind.plural), {})[kind.version] = kind
    return {
        key: Resource(
            *key,
            versions,
            _subresources(versions.values()),
            event_ttl_s if key[1] == "events" else None,
        )
        for key, versions in found.items()
    }


def _subresources(kinds: Iterable[Kind]) -> frozenset[str]:
    names: set[str] = set()
    for kind in kinds:
        names.update(_MORE_SUBRESOURCES.get(kind.name, ()))
        if kind.has_status:
            names.add("status")
    return frozenset(names)


# --- verbs, subresources and reviews --------------------------------------------------------------

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
CUSTOM_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
PART_VERBS = ("get", "patch", "update")
CREATE = ("create",)

# Other resources support all verbs.
_VERBS = {
    "bindings": CREATE,
    "namespaces": tuple(verb for verb in ALL_VERBS if verb != "deletecollection"),
}

_CATEGORIES = {
    ("", "pods"): ("all",),
    ("", "services"): ("all",),
    ("", "replicationcontrollers"): ("all",),
    ("apiregistration.k8s.io", "apiservices"): ("api-extensions",),
    **dict.fromkeys(
        (
            ("admissionregistration.k8s.io", "mutatingadmissionpolicies"),
            ("admissionregistration.k8s.io", "mutatingadmissionpolicybindings"),
            ("admissionregistration.k8s.io", "mutatingwebhookconfigurations"),
            ("admissionregistration.k8s.io", "validatingadmissionpolicies"),
            ("admissionregistration.k8s.io", "validatingadmissionpolicybindings"),
            ("admissionregistration.k8s.io", "validatingwebhookconfigurations"),
        ),
        ("api-extensions",),
    ),
    ("apps", "daemonsets"): ("all",),
    ("apps", "deployments"): ("all",),
    ("apps", "replicasets"): ("all",),
    ("apps", "statefulsets"): ("all",),
    ("autoscaling", "horizontalpodautoscalers"): ("all",),
    ("batch", "cronjobs"): ("all",),
    ("batch", "jobs"): ("all",),
    ("apiextensions.k8s.io", "customresourcedefinitions"): ("api-extensions",),
}


class Subresource(NamedTuple):
    """The verbs and the kind of a subresource; by default, its resource's kind."""

    verbs: tuple[str, ...] = PART_VERBS
    group: str = ""
    version: str = ""
    kind: str = ""


_PARTS = {
    "attach": Subresource(("create", "get"), kind="PodAttachOptions"),
    "binding": Subresource(CREATE, kind="Binding"),
    "eviction": Subresource(CREATE, "policy", "v1", "Eviction"),
    "exec": Subresource(("create", "get"), kind="PodExecOptions"),
    "finalize": Subresource(("update",)),
    "log": Subresource(("get",)),
    "portforward": Subresource(("create", "get"), kind="PodPortForwardOptions"),
    "proxy": Subresource(("get",), kind="NodeProxyOptions"),
    "scale": Subresource(PART_VERBS, "autoscaling", "v1", "Scale"),
    "token": Subresource(CREATE, "authentication.k8s.io", "v1", "TokenRequest"),
}


class Review(NamedTuple):
    """A kind that is created for its answer and never stored."""

    group: str
    plural: str
    kind: str
    namespaced: bool = False
    version: str = "v1"
    verbs: tuple[str, ...] = CREATE


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
    """Return the verbs of a resource."""
    return _VERBS.get(plural, ALL_VERBS)


def categories_of(group: str, plural: str) -> tuple[str, ...]:
    """Return the categories of a resource."""
    return _CATEGORIES.get((group, plural), ())


def subresource_of(subresource: str) -> Subresource:
    """Return the verbs and the kind of a subresource."""
    return _PARTS.get(subresource, Subresource())
