"""Decides which groups, versions and resources a server serves.

`--runtime-config` enables and disables groups, versions and resources:

    api/all=false,resource.k8s.io/v1=true                everything off but one version
    api/alpha=false                                      no version whose name has alpha
    resource.k8s.io/v1alpha3/devicetaintrules=false      one resource of a version
    v1=true                                              the core group

The most specific key wins: a resource, then a version, then api/ga, api/beta and api/alpha, then
api/all. By default, everything is served except old versions of mutating policies; with the preset
`kubernetes-1.37`, only stable versions are, as in Kubernetes. Resources whose feature gate is off
are never served. Stored objects are kept in any case.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from msgspec import Struct

from moorage.api.catalogue import SERVED
from moorage.api.gates import Gate, Gates, Preset
from moorage.api.kinds import Kind
from moorage.apiserver.errors import RuntimeConfigError
from moorage.apiserver.resources import REVIEWS, Review

ALL: Final = "api/all"
STAGES: Final = ("api/ga", "api/beta", "api/alpha")
# Resources that need a feature gate.
_GATED: Final = {
    ("scheduling.k8s.io", "compositepodgroups"): Gate.COMPOSITE_POD_GROUP,
    ("scheduling.k8s.io", "podgroups"): Gate.GENERIC_WORKLOAD,
    ("scheduling.k8s.io", "workloads"): Gate.GENERIC_WORKLOAD,
}
# Versions that are off by default, even if others of their stage are on.
_OFF: Final = frozenset(
    {("admissionregistration.k8s.io", "v1beta1"), ("admissionregistration.k8s.io", "v1alpha1")}
)
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
    """What is enabled and disabled, by key."""

    switches: Mapping[str, bool] = {}

    def serves(self, kind: Kind, gates: Gates) -> bool:
        """Return whether a kind is served in its version."""
        gate = _GATED.get((kind.group, kind.plural))
        if gate is not None and not gates.enabled(gate):
            return False
        return self._serves(kind.group, kind.version, kind.plural, gates.preset)

    def notes(self, gates: Gates) -> Iterator[str]:
        """Yield notes on enabled resources whose feature gate is off."""
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
        is_on = preset is Preset.MOORAGE and (group, version) not in _OFF
        by_default = is_on or stage == STAGES[0]
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
