"""The kinds of scheduling.k8s.io in all their versions."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from mooring.api.kinds import Kind, declare_kind
from mooring.api.scheduling import v1, v1alpha2, v1beta1


def _versions(
    structs: dict[str, type[Struct]], plural: str, *, hub_version: str, has_status: bool = False
) -> Iterator[Kind]:
    for api_version, struct in structs.items():
        yield Kind(
            api_version=api_version,
            name=struct.__name__,
            plural=plural,
            namespaced=True,
            struct=struct,
            hub_version=hub_version,
            has_status=has_status,
            is_extension=api_version == v1alpha2.API_VERSION,  # gone from Kubernetes 1.37
        )


KINDS: tuple[Kind, ...] = (
    declare_kind(v1.PriorityClass, "priorityclasses", "pc", namespaced=False),
    *_versions(
        {
            v1beta1.API_VERSION: v1beta1.PodGroup,
            v1beta1.V1ALPHA3: v1beta1.PodGroup,
            v1alpha2.API_VERSION: v1alpha2.PodGroup,
        },
        "podgroups",
        hub_version=v1beta1.API_VERSION,
        has_status=True,
    ),
    *_versions(
        {
            v1beta1.API_VERSION: v1beta1.Workload,
            v1beta1.V1ALPHA3: v1beta1.Workload,
            v1alpha2.API_VERSION: v1alpha2.Workload,
        },
        "workloads",
        hub_version=v1beta1.API_VERSION,
    ),
    *_versions(
        {v1beta1.V1ALPHA3: v1beta1.CompositePodGroup},
        "compositepodgroups",
        hub_version=v1beta1.V1ALPHA3,
        has_status=True,
    ),
)
