"""Defaults and rules of the arguments of the scheduler's plugins.

Unlike in API objects, a field of a disabled feature is an error here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec.structs import replace

from moorage.api import scheduler_plugin_args as api
from moorage.api.core.placement import PreferredSchedulingTerm, TopologySpreadConstraint
from moorage.api.field_path import Path
from moorage.api.gates import Gate, Gates
from moorage.api.node_affinity import read_node_selector, read_node_term
from moorage.api.scheduler_config import duration_ns
from moorage.api.scheduler_plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PluginArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from moorage.kit.go_duration import duration_text
from moorage.validation.errors import (
    OMITTED,
    ErrorList,
    ErrorType,
    FieldError,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)
from moorage.validation.field_rules import label_name, value_or

FILTER_TIMEOUT = "10s"
BINDING_TIMEOUT = "10m0s"
BINDING_TIMEOUT_MIN_NS = 1_000_000_000
WEIGHT_MAX = 100
SHAPE_SCORE_MAX = 10
BIND_TIMEOUT_S = 600

CPU_AND_MEMORY = (ResourceSpec(name="cpu", weight=1), ResourceSpec(name="memory", weight=1))
LESS_IS_BETTER = (
    UtilizationShapePoint(utilization=0, score=SHAPE_SCORE_MAX),
    UtilizationShapePoint(utilization=100, score=0),
)
STRATEGIES = (api.LEAST_ALLOCATED, api.MOST_ALLOCATED, api.REQUESTED_TO_CAPACITY_RATIO)
ACTIONS = ("DoNotSchedule", "ScheduleAnyway")


# --- defaults -------------------------------------------------------------------------------------


def default_args(args: PluginArgs, gates: Gates) -> PluginArgs:
    """Return the arguments with Kubernetes' defaults."""
    match args:
        case DefaultPreemptionArgs():
            return replace(
                args,
                min_candidate_nodes_percentage=value_or(args.min_candidate_nodes_percentage, 10),
                min_candidate_nodes_absolute=value_or(args.min_candidate_nodes_absolute, 100),
            )
        case DynamicResourcesArgs():
            return default_dynamic_resources_args(args, gates=gates)
        case InterPodAffinityArgs():
            weight = value_or(args.hard_pod_affinity_weight, 1)
            return replace(args, hard_pod_affinity_weight=weight)
        case NodeResourcesFitArgs():
            return replace(args, scoring_strategy=_default_strategy(args.scoring_strategy))
        case NodeResourcesBalancedAllocationArgs():
            return replace(args, resources=_weighted(args.resources))
        case PodTopologySpreadArgs():
            return replace(args, defaulting_type=args.defaulting_type or api.SYSTEM_DEFAULTING)
        case VolumeBindingArgs():
            timeout = value_or(args.bind_timeout_seconds, BIND_TIMEOUT_S)
            return replace(args, bind_timeout_seconds=timeout, shape=args.shape or LESS_IS_BETTER)
        case NodeAffinityArgs():
            return args


def default_dynamic_resources_args(
    args: DynamicResourcesArgs, *, gates: Gates
) -> DynamicResourcesArgs:
    """Return the arguments with the timeouts of enabled features set."""
    if args.filter_timeout is None and gates.enabled(Gate.DRA_SCHEDULER_FILTER_TIMEOUT):
        args = replace(args, filter_timeout=FILTER_TIMEOUT)
    if args.binding_timeout is None and _waits_for_binding(gates):
        args = replace(args, binding_timeout=BINDING_TIMEOUT)
    return args


def _default_strategy(strategy: ScoringStrategy | None) -> ScoringStrategy:
    strategy = strategy or ScoringStrategy(type=api.LEAST_ALLOCATED)
    return replace(strategy, resources=_weighted(strategy.resources))


def _weighted(resources: Sequence[ResourceSpec]) -> tuple[ResourceSpec, ...]:
    given = tuple(each if each.weight else replace(each, weight=1) for each in resources)
    return given or CPU_AND_MEMORY


# --- rules ----------------------------------------------------------------------------------------


def validate_args(plugin: str, args: PluginArgs, path: Path, gates: Gates) -> ErrorList:
    """Return the errors of arguments with defaults."""
    if isinstance(args, DynamicResourcesArgs):
        return validate_dynamic_resources_args(args, path, gates=gates)
    return _RULES[plugin](args, path)


def validate_dynamic_resources_args(
    args: DynamicResourcesArgs, path: Path, *, gates: Gates
) -> ErrorList:
    """Return the errors of DynamicResourcesArgs."""
    found: ErrorList = []
    if args.filter_timeout is not None:
        filter_path, nanoseconds = path.child("filterTimeout"), duration_ns(args.filter_timeout)
        if not gates.enabled(Gate.DRA_SCHEDULER_FILTER_TIMEOUT):
            detail = "DRASchedulingFilterTimeout feature gate is disabled"
            found.append(forbidden(filter_path, detail))
        elif nanoseconds < 0:
            text = duration_text(nanoseconds)
            found.append(invalid(filter_path, text, "must be zero or positive"))
    if args.binding_timeout is not None:
        binding_path, nanoseconds = path.child("bindingTimeout"), duration_ns(args.binding_timeout)
        if not _waits_for_binding(gates):
            detail = (
                "DRADeviceBindingConditions or DRAResourceClaimDeviceStatus "
                "feature gate is disabled"
            )
            found.append(forbidden(binding_path, detail))
        elif nanoseconds < BINDING_TIMEOUT_MIN_NS:
            text = duration_text(nanoseconds)
            found.append(invalid(binding_path, text, "must be at least 1 second"))
    return found


def _waits_for_binding(gates: Gates) -> bool:
    return gates.enabled(Gate.DRA_DEVICE_BINDING_CONDITIONS) and gates.enabled(
        Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS
    )


def _preemption(args: DefaultPreemptionArgs, path: Path) -> ErrorList:
    found: ErrorList = []
    percentage, absolute = args.min_candidate_nodes_percentage, args.min_candidate_nodes_absolute
    assert percentage is not None
    assert absolute is not None
    by_percentage = path.child("minCandidateNodesPercentage")
    by_number = path.child("minCandidateNodesAbsolute")
    if not 0 <= percentage <= 100:
        found.append(invalid(by_percentage, percentage, "not in valid range [0, 100]"))
    if absolute < 0:
        found.append(invalid(by_number, absolute, "not in valid range [0, inf)"))
    if percentage == absolute == 0:
        text = "cannot be zero at the same time as "
        found.append(invalid(by_percentage, 0, f"{text}minCandidateNodesAbsolute"))
        found.append(invalid(by_number, 0, f"{text}minCandidateNodesPercentage"))
    return found


def _pod_affinity(args: InterPodAffinityArgs, path: Path) -> ErrorList:
    weight = args.hard_pod_affinity_weight or 0
    if 0 <= weight <= WEIGHT_MAX:
        return []
    detail = f"not in valid range [0, {WEIGHT_MAX}]"
    return [invalid(path.child("hardPodAffinityWeight"), weight, detail)]


def _node_affinity(args: NodeAffinityArgs, path: Path) -> ErrorList:
    affinity = args.added_affinity
    if affinity is None:
        return []
    found: ErrorList = []
    place = path.child("addedAffinity")
    wanted = affinity.required_during_scheduling_ignored_during_execution
    if wanted is not None:
        below = place.child("requiredDuringSchedulingIgnoredDuringExecution")
        for term in read_node_selector(wanted).terms:
            found += [_error_of_fault(below, text) for text in term.faults]
    below = place.child("preferredDuringSchedulingIgnoredDuringExecution")
    for number, each in enumerate(affinity.preferred_during_scheduling_ignored_during_execution):
        if not _is_idle(each):
            found += [
                _error_of_fault(below, text)
                for text in read_node_term(each.preference, f"[{number}]").faults
            ]
    return found


def _is_idle(term: PreferredSchedulingTerm) -> bool:
    preference = term.preference
    return term.weight == 0 or not (preference.match_expressions or preference.match_fields)


def _error_of_fault(path: Path, fault: str) -> FieldError:
    """Return a fault that names its own place as an error below a path."""
    place, _, body = fault.partition(": ")
    words, _, detail = body.partition(": ")
    kind = ErrorType.NOT_SUPPORTED if words == "Unsupported value" else ErrorType.INVALID
    if words == "Required value":
        kind = ErrorType.REQUIRED
    for name in place.removeprefix(".").replace("[", ".[").removeprefix(".").split("."):
        is_index = name.startswith("[")
        path = path.index(int(name.strip("[]"))) if is_index else path.child(name)
    return FieldError(kind, path, detail, OMITTED)


def _fit(args: NodeResourcesFitArgs, path: Path) -> ErrorList:
    found: ErrorList = []
    for number, name in enumerate(args.ignored_resources):
        found += label_name(name, path.child("ignoredResources").index(number))
    for number, group in enumerate(args.ignored_resource_groups):
        place = path.child("ignoredResourceGroups").index(number)
        if "/" in group:
            found.append(invalid(place, group, "resource group name can't contain '/'"))
        found += label_name(group, place)
    strategy, place = args.scoring_strategy, path.child("scoringStrategy")
    assert strategy is not None
    if strategy.type not in STRATEGIES:
        found.append(not_supported(place.child("type"), strategy.type, STRATEGIES))
    for number, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= WEIGHT_MAX:
            detail = f"resource weight of {resource.name} not in valid range (0, {WEIGHT_MAX}]"
            below = place.child("resources").index(number).child("weight")
            found.append(invalid(below, resource.weight, detail))
    return found + _ratio(strategy, place.child("requestedToCapacityRatio"))


def _ratio(strategy: ScoringStrategy, path: Path) -> ErrorList:
    ratio = strategy.requested_to_capacity_ratio
    if strategy.type == api.REQUESTED_TO_CAPACITY_RATIO:
        if ratio is None:
            return [required(path, "must be specified when type is RequestedToCapacityRatio")]
        return _shape(ratio.shape, path.child("shape"))
    if ratio is not None:
        return [forbidden(path, "must be nil when type is not RequestedToCapacityRatio")]
    return []


def _shape(shape: Sequence[UtilizationShapePoint], path: Path) -> ErrorList:
    if not shape:
        return [required(path, "at least one point must be specified")]
    found: ErrorList = []
    for number in range(1, len(shape)):
        if shape[number - 1].utilization >= shape[number].utilization:
            place = path.index(number).child("utilization")
            detail = "values must be sorted in increasing order"
            found.append(invalid(place, shape[number].utilization, detail))
            break
    for number, point in enumerate(shape):
        place = path.index(number)
        if not 0 <= point.utilization <= 100:
            detail = "not in valid range [0, 100]"
            found.append(invalid(place.child("utilization"), point.utilization, detail))
        if not 0 <= point.score <= SHAPE_SCORE_MAX:
            detail = f"not in valid range [0, {SHAPE_SCORE_MAX}]"
            found.append(invalid(place.child("score"), point.score, detail))
    return found


def _balanced(args: NodeResourcesBalancedAllocationArgs, path: Path) -> ErrorList:
    found: ErrorList = []
    seen: set[str] = set()
    for number, resource in enumerate(args.resources):
        place = path.child("resources").index(number)
        if resource.name in seen:
            found.append(duplicate(place.child("name"), resource.name))
        seen.add(resource.name)
        if resource.weight != 1:
            found.append(invalid(place.child("weight"), resource.weight, "must be 1"))
    return found


def _spread(args: PodTopologySpreadArgs, path: Path) -> ErrorList:
    found: ErrorList = []
    kind, constraints = args.defaulting_type, args.default_constraints
    place = path.child("defaultingType")
    if kind not in (api.SYSTEM_DEFAULTING, api.LIST_DEFAULTING):
        supported = (api.SYSTEM_DEFAULTING, api.LIST_DEFAULTING)
        found.append(not_supported(place, kind, supported))
    elif kind == api.SYSTEM_DEFAULTING and constraints:
        found.append(invalid(place, kind, "when .defaultConstraints are not empty"))
    for number, constraint in enumerate(constraints):
        below = path.child("defaultConstraints").index(number)
        found += _constraint(constraint, below)
        key = (constraint.topology_key, constraint.when_unsatisfiable)
        if any(key == (e.topology_key, e.when_unsatisfiable) for e in constraints[:number]):
            found.append(duplicate(below, f"{{{key[0]}, {key[1]}}}"))
    return found


def _constraint(constraint: TopologySpreadConstraint, path: Path) -> ErrorList:
    found: ErrorList = []
    if constraint.max_skew <= 0:
        detail = "not in valid range (0, inf)"
        found.append(invalid(path.child("maxSkew"), constraint.max_skew, detail))
    key = constraint.topology_key
    if not key:
        found.append(required(path.child("topologyKey"), "can not be empty"))
    else:
        found += label_name(key, path.child("topologyKey"))
    action = constraint.when_unsatisfiable
    if not action:
        found.append(required(path.child("whenUnsatisfiable"), "can not be empty"))
    elif action not in ACTIONS:
        found.append(not_supported(path.child("whenUnsatisfiable"), action, ACTIONS))
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        found.append(forbidden(path.child("labelSelector"), detail))
    return found


def _volumes(args: VolumeBindingArgs, path: Path) -> ErrorList:
    found: ErrorList = []
    seconds = args.bind_timeout_seconds or 0
    if seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        found.append(invalid(path.child("bindTimeoutSeconds"), seconds, detail))
    return found + _shape(args.shape or (), path.child("shape"))


_RULES: Mapping[str, Callable[[Any, Path], ErrorList]] = {
    api.DEFAULT_PREEMPTION: _preemption,
    api.INTER_POD_AFFINITY: _pod_affinity,
    api.NODE_AFFINITY: _node_affinity,
    api.NODE_RESOURCES_BALANCED_ALLOCATION: _balanced,
    api.NODE_RESOURCES_FIT: _fit,
    api.POD_TOPOLOGY_SPREAD: _spread,
    api.VOLUME_BINDING: _volumes,
}
