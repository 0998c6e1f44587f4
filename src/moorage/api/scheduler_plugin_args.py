"""kubescheduler.config.k8s.io/v1: the arguments of the scheduler's plugins.

A plugin has at most one kind of arguments, which is called after it. In the file the arguments may
leave out `apiVersion` and `kind`; if they are there, they must name that kind.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

from moorage.api.codec import decode_tree
from moorage.api.core.placement import NodeAffinity, TopologySpreadConstraint
from moorage.api.errors import DecodeError
from moorage.api.field_path import Place
from moorage.api.meta import Json
from moorage.api.structs import Closed, Int32, Int64, Open, always

API_VERSION = "kubescheduler.config.k8s.io/v1"
GROUP = API_VERSION.partition("/")[0]

DEFAULT_PREEMPTION = "DefaultPreemption"
DYNAMIC_RESOURCES = "DynamicResources"
INTER_POD_AFFINITY = "InterPodAffinity"
NODE_AFFINITY = "NodeAffinity"
NODE_RESOURCES_BALANCED_ALLOCATION = "NodeResourcesBalancedAllocation"
NODE_RESOURCES_FIT = "NodeResourcesFit"
POD_TOPOLOGY_SPREAD = "PodTopologySpread"
VOLUME_BINDING = "VolumeBinding"

LEAST_ALLOCATED = "LeastAllocated"
MOST_ALLOCATED = "MostAllocated"
REQUESTED_TO_CAPACITY_RATIO = "RequestedToCapacityRatio"

SYSTEM_DEFAULTING = "System"
LIST_DEFAULTING = "List"

A = TypeVar("A", bound=Closed)


class DefaultPreemptionArgs(Closed, frozen=True, gc=False):
    """How many nodes are enough to choose victims from."""

    api_version: str = always(API_VERSION)
    kind: str = always("DefaultPreemptionArgs")
    min_candidate_nodes_percentage: Int32 | None = None
    min_candidate_nodes_absolute: Int32 | None = None


class DynamicResourcesArgs(Closed, frozen=True, gc=False):
    """How long the plugin for claims may search a node and wait for devices."""

    api_version: str = always(API_VERSION)
    kind: str = always("DynamicResourcesArgs")
    filter_timeout: str | None = always(None)
    binding_timeout: str | None = None


class InterPodAffinityArgs(Closed, frozen=True, gc=False):
    """How much the terms of placed pods count in scores."""

    api_version: str = always(API_VERSION)
    kind: str = always("InterPodAffinityArgs")
    hard_pod_affinity_weight: Int32 | None = None
    ignore_preferred_terms_of_existing_pods: bool = always(False)


class NodeAffinityArgs(Closed, frozen=True, gc=False):
    """The nodes that all pods of the profile must, or should, go to."""

    api_version: str = always(API_VERSION)
    kind: str = always("NodeAffinityArgs")
    added_affinity: NodeAffinity | None = None


class ResourceSpec(Closed, frozen=True, gc=False):
    """A resource that counts in scores, and its weight."""

    name: str = always("")
    weight: Int64 = 0


class UtilizationShapePoint(Closed, frozen=True, gc=False):
    """The score, 0 to 10, of a resource that is used to this percentage."""

    utilization: Int32 = always(0)
    score: Int32 = always(0)


class RequestedToCapacityRatioParam(Closed, frozen=True, gc=False):
    """A function from utilization to scores, linear between its points."""

    shape: tuple[UtilizationShapePoint, ...] = ()


class ScoringStrategy(Closed, frozen=True, gc=False):
    """Whether nodes with more or with less in use are better, by which resources."""

    type: str = ""
    resources: tuple[ResourceSpec, ...] = ()
    requested_to_capacity_ratio: RequestedToCapacityRatioParam | None = None


class NodeResourcesFitArgs(Closed, frozen=True, gc=False):
    """Extended resources that nodes need not have, and how nodes are scored."""

    api_version: str = always(API_VERSION)
    kind: str = always("NodeResourcesFitArgs")
    ignored_resources: tuple[str, ...] = ()
    ignored_resource_groups: tuple[str, ...] = ()
    scoring_strategy: ScoringStrategy | None = None


class NodeResourcesBalancedAllocationArgs(Closed, frozen=True, gc=False):
    """The resources that should be used in equal parts."""

    api_version: str = always(API_VERSION)
    kind: str = always("NodeResourcesBalancedAllocationArgs")
    resources: tuple[ResourceSpec, ...] = ()


class PodTopologySpreadArgs(Closed, frozen=True, gc=False):
    """The constraints of pods that have none of their own."""

    api_version: str = always(API_VERSION)
    kind: str = always("PodTopologySpreadArgs")
    default_constraints: tuple[TopologySpreadConstraint, ...] = ()
    defaulting_type: str = ""


class VolumeBindingArgs(Closed, frozen=True, gc=False):
    """How long volumes may take to be bound, and how nodes are scored by storage."""

    api_version: str = always(API_VERSION)
    kind: str = always("VolumeBindingArgs")
    bind_timeout_seconds: Int64 | None = None
    shape: tuple[UtilizationShapePoint, ...] | None = None


PluginArgs = (
    DefaultPreemptionArgs
    | DynamicResourcesArgs
    | InterPodAffinityArgs
    | NodeAffinityArgs
    | NodeResourcesFitArgs
    | NodeResourcesBalancedAllocationArgs
    | PodTopologySpreadArgs
    | VolumeBindingArgs
)

ARGS: dict[str, type[Any]] = {
    DEFAULT_PREEMPTION: DefaultPreemptionArgs,
    DYNAMIC_RESOURCES: DynamicResourcesArgs,
    INTER_POD_AFFINITY: InterPodAffinityArgs,
    NODE_AFFINITY: NodeAffinityArgs,
    NODE_RESOURCES_BALANCED_ALLOCATION: NodeResourcesBalancedAllocationArgs,
    NODE_RESOURCES_FIT: NodeResourcesFitArgs,
    POD_TOPOLOGY_SPREAD: PodTopologySpreadArgs,
    VOLUME_BINDING: VolumeBindingArgs,
}


def read_args(plugin: str, tree: Json, struct: type[A]) -> tuple[A, tuple[Place, ...]]:
    """Return the arguments of a plugin, and the places of fields that they do not have.

    Raises DecodeError if these are arguments of another plugin, or none at all.
    """
    value, unknown = decode_tree({} if tree is None else tree, struct)
    kind, api_version = getattr(value, "kind", ""), getattr(value, "api_version", "")
    if kind != struct.__name__:
        raise DecodeError(
            f"args for plugin {plugin} were not of type {struct.__name__}.{GROUP}, "
            f"got {kind}.{api_version.partition('/')[0]}"
        )
    if api_version != API_VERSION:
        raise DecodeError(
            f'decoding args for plugin {plugin}: no kind "{kind}" is registered for version '
            f'"{api_version}" in scheme'
        )
    return value, (*unknown, *_left_over(value, ()))


def _left_over(value: Any, place: Place) -> Iterator[Place]:
    """Yield the places of fields that an open struct inside has, but does not declare."""
    if isinstance(value, tuple):
        for position, each in enumerate(value):
            yield from _left_over(each, (*place, position))
    elif isinstance(value, Closed):
        if isinstance(value, Open):
            yield from ((*place, name) for name in value.extra)
        for field, name in zip(
            value.__struct_fields__, value.__struct_encode_fields__, strict=True
        ):
            if field != "extra":
                yield from _left_over(getattr(value, field), (*place, name))
