"""Profiles of a KubeSchedulerConfiguration: its plugins with their arguments, ready to run.

Everything in a configuration is obeyed, or `refusals` names it with the reason:

    # refused: what this scheduler cannot do as Kubernetes' would
    # accepted without effect: parallelism (nodes are filtered in one thread) and
    #   percentageOfNodesToScore (all nodes are considered), which only save Kubernetes time
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

from msgspec.structs import replace

from moorage.api.core.pod import DEFAULT_SCHEDULER
from moorage.api.field_path import Path, root
from moorage.api.gates import Gate, Gates
from moorage.api.scheduler_config import (
    KubeSchedulerConfiguration,
    KubeSchedulerProfile,
    Plugins,
    duration_ns,
)
from moorage.api.scheduler_plugin_args import (
    ARGS,
    DYNAMIC_RESOURCES,
    NODE_AFFINITY,
    NODE_RESOURCES_BALANCED_ALLOCATION,
    NODE_RESOURCES_FIT,
    SYSTEM_DEFAULTING,
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    VolumeBindingArgs,
)
from moorage.scheduler.framework import DEFAULT_PREEMPTION, GANG_SCHEDULING, SCHEDULING_GATES
from moorage.scheduler.plugins import Filter, Score, node_affinity, node_resources
from moorage.scheduler.plugins.extension_points import (
    POINTS_OF,
    VOLUME_PLUGINS,
    ExtensionPoints,
    expand,
    refused_plugins,
)
from moorage.scheduler.plugins.registry import (
    DEFAULT_PROFILE,
    FILTERS,
    FILTERS_AFTER_CLAIMS,
    SCORES,
    PlacementScores,
    Profile,
)
from moorage.scheduler.plugins.resource_scores import (
    balanced_scores,
    counts_cpu_and_memory,
    fit_scores,
)
from moorage.scheduler.pod_signature import PodReading
from moorage.scheduler.topology_spread import SYSTEM_SPREAD, DefaultSpread
from moorage.validation.scheduler_configuration import args_of, default_scheduler_configuration
from moorage.validation.scheduler_plugin_args import BIND_TIMEOUT_S, LESS_IS_BETTER

A = TypeVar("A")

FILTER_BY_NAME: Mapping[str, Filter] = {e.plugin: e for e in (*FILTERS, *FILTERS_AFTER_CLAIMS)}
SCORE_BY_NAME: Mapping[str, Score] = {each.plugin: each for each in SCORES}
NARROWING = ("NodeName", NODE_AFFINITY)  # name the only nodes of a pod at PreFilter

_EXTENDERS = "extenders are not called: only the plugins of Kubernetes decide where pods go"
_VOLUMES = "volumes are not bound by this scheduler, so only the default can be set"


class _Args:
    """The arguments of a profile with defaults, by their kind."""

    def __init__(self, profile: KubeSchedulerProfile) -> None:
        path = root("profiles")
        found = [args_of(each, path) for each in profile.plugin_config]
        self._found: dict[type[Any], Any] = {type(e): e for e in found if e is not None}

    def get(self, kind: type[A]) -> A:
        """Return the arguments of a kind; empty ones if the plugin is off."""
        found = self._found.get(kind)
        return kind() if found is None else found


def profiles_of(file: KubeSchedulerConfiguration | None, gates: Gates) -> tuple[Profile, ...]:
    """Return the profiles of a checked configuration as written, or the default one."""
    if file is None:
        return (DEFAULT_PROFILE,)
    return read_profiles(default_scheduler_configuration(file, gates=gates))


def read_profiles(file: KubeSchedulerConfiguration) -> tuple[Profile, ...]:
    """Return the profiles of a configuration with defaults, of which nothing is refused."""
    return tuple(map(_profile, file.profiles))


def _profile(profile: KubeSchedulerProfile) -> Profile:
    points = expand(profile.plugins or Plugins())
    args = _Args(profile)
    before, after = _filters(points, args)
    claims = args.get(DynamicResourcesArgs)
    preemption = args.get(DefaultPreemptionArgs)
    return Profile(
        reading=_reading(profile, points, args),
        filters=before,
        filters_after_claims=after,
        scores=tuple(_scores(points, args)),
        claims_are_filtered=DYNAMIC_RESOURCES in points["filter"],
        claims_weight=points["score"].get(DYNAMIC_RESOURCES, 0),
        deallocates=DYNAMIC_RESOURCES in points["postFilter"],
        preempts=DEFAULT_PREEMPTION in points["postFilter"],
        groups_deallocate=DYNAMIC_RESOURCES in points["podGroupPostFilter"],
        groups_preempt=DEFAULT_PREEMPTION in points["podGroupPostFilter"],
        candidates_min=_or(preemption.min_candidate_nodes_absolute, 100),
        candidates_percent=_or(preemption.min_candidate_nodes_percentage, 10),
        placement_scores=_placement_scores(points, args),
        has_placements="TopologyPlacementGenerator" in points["placementGenerate"],
        filter_timeout_s=_seconds(claims.filter_timeout, 0.0),
        binding_timeout_s=_seconds(claims.binding_timeout, 600.0),
    )


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _seconds(text: str | None, default: float) -> float:
    return default if text is None else duration_ns(text) / 1e9


def _filters(points: ExtensionPoints, args: _Args) -> tuple[tuple[Filter, ...], tuple[Filter, ...]]:
    """Return the filters before claims, and those after them."""
    fit, affinity = args.get(NodeResourcesFitArgs), args.get(NodeAffinityArgs)
    own = {
        **FILTER_BY_NAME,
        NODE_RESOURCES_FIT: node_resources.fit_filter(
            fit.ignored_resources, fit.ignored_resource_groups
        ),
        NODE_AFFINITY: node_affinity.affinity_filter(affinity.added_affinity),
    }
    names = [*points["filter"]]
    place = names.index(DYNAMIC_RESOURCES) if DYNAMIC_RESOURCES in names else len(names)
    before = tuple(own[name] for name in names[:place] if name in own)
    return before, tuple(own[name] for name in names[place:] if name in own)


def _scores(points: ExtensionPoints, args: _Args) -> Iterator[Score]:
    """Yield the scores with their weights; some plugins have one for each sort of pods."""
    affinity = args.get(NodeAffinityArgs)
    for name, weight in points["score"].items():
        found: tuple[Score, ...] = (SCORE_BY_NAME[name],) if name in SCORE_BY_NAME else ()
        if name == NODE_RESOURCES_FIT:
            found = fit_scores(args.get(NodeResourcesFitArgs).scoring_strategy)
        elif name == NODE_RESOURCES_BALANCED_ALLOCATION:
            found = balanced_scores(args.get(NodeResourcesBalancedAllocationArgs).resources)
        elif name == NODE_AFFINITY:
            found = (node_affinity.affinity_score(affinity.added_affinity),)
        yield from (
            each if each.weight == weight else each._replace(weight=weight) for each in found
        )


def _reading(profile: KubeSchedulerProfile, points: ExtensionPoints, args: _Args) -> PodReading:
    spread, near = args.get(PodTopologySpreadArgs), args.get(InterPodAffinityArgs)
    strategy = args.get(NodeResourcesFitArgs).scoring_strategy
    balanced = args.get(NodeResourcesBalancedAllocationArgs).resources
    scored = {
        NODE_RESOURCES_FIT: () if strategy is None else strategy.resources,
        NODE_RESOURCES_BALANCED_ALLOCATION: balanced,
    }
    is_system = spread.defaulting_type in ("", SYSTEM_DEFAULTING)
    return PodReading(
        scheduler_name=profile.scheduler_name or DEFAULT_SCHEDULER,
        default_spread=SYSTEM_SPREAD if is_system else DefaultSpread(spread.default_constraints),
        required_affinity_weight=_or(near.hard_pod_affinity_weight, 1),
        ignores_placed_preferences=near.ignore_preferred_terms_of_existing_pods,
        has_gates=SCHEDULING_GATES in points["preEnqueue"],
        checks_volumes=any(name in points["filter"] for name in VOLUME_PLUGINS),
        narrowed_by=tuple(name for name in NARROWING if name in points["preFilter"]),
        scored_resources=tuple(
            (plugin, tuple(each.name for each in resources))
            for plugin, resources in scored.items()
            if not counts_cpu_and_memory(resources)
        ),
    )


def _placement_scores(points: ExtensionPoints, args: _Args) -> PlacementScores:
    weights = points["placementScore"]
    scores = PlacementScores(
        weights.get("PodGroupPodsCount", 0), weights.get(NODE_RESOURCES_FIT, 0)
    )
    strategy = args.get(NodeResourcesFitArgs).scoring_strategy
    if strategy is None:
        return scores
    resources = tuple((each.name, each.weight) for each in strategy.resources)
    return replace(scores, resources=resources)


# --- what is refused ------------------------------------------------------------------------------


def refusals(file: KubeSchedulerConfiguration, gates: Gates) -> list[str]:
    """Return what a configuration with defaults asks for that cannot be obeyed, with reasons."""
    found: list[tuple[Path, str]] = []
    if file.extenders:
        found.append((root("extenders"), _EXTENDERS))
    for number, profile in enumerate(file.profiles):
        path = root("profiles").index(number)
        plugins = profile.plugins or Plugins()
        found += refused_plugins(plugins, path.child("plugins"))
        found += _refused_groups(plugins, path.child("plugins"), gates)
        found += _refused_args(profile, path.child("pluginConfig"))
    return [f"{path}: {text}" for path, text in found]


def _refused_groups(plugins: Plugins, path: Path, gates: Gates) -> Iterator[tuple[Path, str]]:
    points = expand(plugins)
    gated = {
        GANG_SCHEDULING: ("permit", Gate.GENERIC_WORKLOAD),
        "TopologyPlacementGenerator": (
            "placementGenerate",
            Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
        ),
    }
    for name, (point, gate) in gated.items():
        if name in points[point] and not gates.enabled(gate):
            yield path.child(point), f"{name} needs the feature gate {gate}, which is off"
    is_on = gates.enabled(Gate.GENERIC_WORKLOAD)
    if is_on and GANG_SCHEDULING not in points["permit"]:
        text = f"{GANG_SCHEDULING} cannot be off while the feature gate GenericWorkload is on"
        yield path.child("permit"), text


def _refused_args(profile: KubeSchedulerProfile, path: Path) -> Iterator[tuple[Path, str]]:
    for number, config in enumerate(profile.plugin_config):
        place = path.index(number)
        if config.name not in POINTS_OF:
            text = "does not exist: only the plugins of Kubernetes can be run"
            yield place, f'plugin "{config.name}" {text}'
        elif config.name not in ARGS and config.args is not None:
            yield place.child("args"), f'plugin "{config.name}" has no arguments'
        args = args_of(config, place)
        if isinstance(args, VolumeBindingArgs):
            if args.bind_timeout_seconds not in (None, BIND_TIMEOUT_S):
                yield place.child("args", "bindTimeoutSeconds"), _VOLUMES
            if args.shape not in (None, LESS_IS_BETTER):
                yield place.child("args", "shape"), _VOLUMES
