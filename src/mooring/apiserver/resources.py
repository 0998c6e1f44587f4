"""API resources of the server, with their verbs and versions.

# review: a resource that is only created, answered at once and never stored

`--runtime-config` switches groups, versions and resources on and off:

    api/all=false,resource.k8s.io/v1=true                everything off but one version
    api/alpha=false                                      no version whose name has alpha
    resource.k8s.io/v1alpha3/devicetaintrules=false      one resource of a version
    v1=true                                              the core group

The finer key wins: a resource, then a version, then api/ga, api/beta and api/alpha, then api/all.
Everything else is served; with the preset `kubernetes-1.37` only stable versions are, as in
Kubernetes. Resources of a feature whose gate is off are never served. Stored objects stay, served
or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct

from mooring.api.catalogue import SERVED
from mooring.api.gates import Gate, Gates, Preset
from mooring.api.kinds import Kind
from mooring.apiserver.errors import RuntimeConfigError
from mooring.apiserver.http.status import About

EVENT_TTL_S = 3600


class Resource(Struct, frozen=True, eq=False, dict=True):
    """One resource of a group, in all versions in which it is served."""

    group: str
    plural: str
    kinds: Mapping[str, Kind]  # by version
    subresources: frozenset[str]
    ttl_s: int | None = None  # after which objects expire, if they do

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
        return _HUBS[self.hub_version, self.any_kind.name].struct

    @cached_property
    def returns_deleted(self) -> bool:
        """Whether a delete returns the object, and not a Status."""
        return self.plural in _RETURNED

    @cached_property
    def is_made_by_update(self) -> bool:
        """Whether an update of a missing object creates it."""
        return self.plural in ("events", "leases")

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

    def find(self, group: str, version: str, plural: str) -> Resource | None:
        """Return a resource, if it is served in the version."""
        resource = self._resources.get((group, plural))
        return resource if resource is not None and version in resource.kinds else None

    def of(self, group: str, plural: str) -> Resource:
        """Return a resource that exists, served or not."""
        return self._all[group, plural]

    def all(self) -> Iterator[Resource]:
        """Return all resources, served or not."""
        return iter(self._all.values())

    def __iter__(self) -> Iterator[Resource]:
        return iter(self._resources.values())

    def versions(self, group: str) -> list[str]:
        """Return the served versions of a group."""
        found = {
            version for r in self._resources.values() if r.group == group for version in r.kinds
        }
        return sorted(found)


_RETURNED = frozenset(
    {
        "deviceclasses",
        "namespaces",
        "pods",
        "resourceclaims",
        "resourceclaimtemplates",
        "resourcepoolstatusrequests",
        "resourcequotas",
        "resourceslices",
        "serviceaccounts",
    }
)

_HUBS = {(kind.api_version, kind.name): kind for kind in SERVED}

# Besides status, which kinds declare.
_MORE_SUBRESOURCES = {
    "Deployment": ("scale",),
    "Pod": ("attach", "binding", "ephemeralcontainers", "eviction", "exec", "log", "resize"),
    "ReplicaSet": ("scale",),
    "StatefulSet": ("scale",),
    "Namespace": ("finalize",),
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
PART_VERBS = ("get", "patch", "update")
CREATE = ("create",)

# Other resources support all verbs.
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


def version_order(version: str) -> tuple[int, int, int]:
    """Return the sort key of a version: v1 before v1beta2 before v1beta1 before v1alpha3."""
    major, stage, minor = version.removeprefix("v"), 0, "0"
    for rank, word in ((1, "beta"), (2, "alpha")):
        if word in major:
            major, _, minor = major.partition(word)
            stage = rank
    return (stage, -int(major), -int(minor))


# --- runtime config -------------------------------------------------------------------------------

ALL: Final = "api/all"
STAGES: Final = ("api/ga", "api/beta", "api/alpha")
# Resources that need a feature gate.
_GATED: Final = {
    ("scheduling.k8s.io", "compositepodgroups"): Gate.COMPOSITE_POD_GROUP,
    ("scheduling.k8s.io", "podgroups"): Gate.GENERIC_WORKLOAD,
    ("scheduling.k8s.io", "workloads"): Gate.GENERIC_WORKLOAD,
}
_WORDS: Final = {
    "": True,
    "true": True,
    "1": True,
    "t": True,
    "false": False,
    "0": False,
    "f": False,
}


class RuntimeConfig(Struct, frozen=True):
    """Switches by key."""

    switches: Mapping[str, bool] = {}

    def serves(self, kind: Kind, gates: Gates) -> bool:
        """Return whether a kind is served in its version."""
        gate = _GATED.get((kind.group, kind.plural))
        if gate is not None and not gates.enabled(gate):
            return False
        return self._serves(kind.group, kind.version, kind.plural, gates.preset)

    def notes(self, gates: Gates) -> Iterator[str]:
        """Yield notes on resources that are switched on but whose feature gate is off."""
        for (group, plural), gate in _GATED.items():
            names = {
                key
                for kind in SERVED
                if (kind.group, kind.plural) == (group, plural)
                for key in (kind.api_version, f"{kind.api_version}/{plural}")
            }
            if not gates.enabled(gate) and any(self.switches.get(name) for name in names):
                yield f"{plural}.{group} is not served because feature gate {gate} is off"

    def reviews(self, gates: Gates, reviews: Iterable[Review] = REVIEWS) -> tuple[Review, ...]:
        """Return the reviews that are served."""
        preset = gates.preset
        return tuple(r for r in reviews if self._serves(r.group, r.version, r.plural, preset))

    def _serves(self, group: str, version: str, plural: str, preset: Preset) -> bool:
        name = f"{group}/{version}" if group else version
        stage = _stage_of(version)
        keys = (f"{name}/{plural}", name, stage, ALL)
        by_default = preset is Preset.MOORING or stage == STAGES[0]
        return next((self.switches[key] for key in keys if key in self.switches), by_default)


def read_runtime_config(text: str) -> RuntimeConfig:
    """Return a parsed list of KEY=BOOL, or raise RuntimeConfigError."""
    switches: dict[str, bool] = {}
    known = _known_keys()
    for part in filter(None, map(str.strip, text.split(","))):
        key, _, word = part.partition("=")
        value = _WORDS.get(word.strip().lower())
        if value is None:
            raise RuntimeConfigError(f"{key}: {word!r} is neither true nor false")
        key = key.strip().removeprefix("/")
        if key not in known:
            raise RuntimeConfigError(f"{key}: {_unknown(key, known)}")
        switches[key] = value
    return RuntimeConfig(switches)


def _known_keys() -> frozenset[str]:
    versions = {kind.api_version for kind in SERVED} | {f"{r.group}/{r.version}" for r in REVIEWS}
    resources = {f"{kind.api_version}/{kind.plural}" for kind in SERVED}
    resources |= {f"{r.group}/{r.version}/{r.plural}" for r in REVIEWS}
    return frozenset({ALL, *STAGES, *versions, *resources})


def _unknown(key: str, known: frozenset[str]) -> str:
    group = key.partition("/")[0]
    near = sorted(k for k in known if k.startswith(f"{group}/") and k.count("/") == 1)
    if not near:
        return f"unknown api group; besides groups there are {ALL}, {', '.join(STAGES)}"
    return f"no such version or resource; there are {', '.join(near)}"


def _stage_of(version: str) -> str:
    return next((stage for stage in STAGES[1:] if stage.removeprefix("api/") in version), STAGES[0])
