"""Which plugins run at which extension point of a profile, and what of that is not modelled.

The plugins of a profile come from its `plugins`, merged with Kubernetes' defaults. `multiPoint`
stands for all extension points that a plugin has; a point's own list overrides it:

1. plugins that both name, in the order of the point's own list,
2. those of `multiPoint` that the point does not disable,
3. the others of the point's own list.

Kubernetes lets one take plugins apart, and some of them then fail for every pod. Such profiles, and
plugins that are not Kubernetes' own, are refused with the place and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from moorage.api.field_path import Path
from moorage.api.scheduler_config import Plugins, PluginSet
from moorage.validation.scheduler_plugins import ALL, POINTS

MULTI_POINT: Final = "multiPoint"

# By plugin: the extension points that it has in Kubernetes 1.37.
_TABLE = """
DefaultBinder bind
DefaultPreemption preEnqueue postFilter podGroupPostFilter
DynamicResources preEnqueue preFilter filter postFilter score reserve preBind podGroupPostFilter
GangScheduling preEnqueue permit
ImageLocality score
InterPodAffinity preFilter filter preScore score
NodeAffinity preFilter filter preScore score
NodeDeclaredFeatures preFilter filter
NodeName preFilter filter
NodePorts preFilter filter
NodeResourcesBalancedAllocation preScore score
NodeResourcesFit preFilter filter preScore score placementScore
NodeUnschedulable preFilter filter
NodeVolumeLimits preFilter filter
PodGroupPodsCount placementScore
PodTopologySpread preFilter filter preScore score
PrioritySort queueSort
SchedulingGates preEnqueue
TaintToleration preFilter filter preScore score
TopologyPlacementGenerator placementGenerate
VolumeBinding preFilter filter preScore score reserve preBind
VolumeRestrictions preFilter filter
VolumeZone preFilter filter
"""
POINTS_OF: Mapping[str, frozenset[str]] = {
    name: frozenset(points)
    for name, *points in (line.split() for line in _TABLE.strip().splitlines())
}
VOLUME_PLUGINS: Final = ("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone")

# Plugins of which all these points are on, or none.
_TOGETHER: Mapping[str, tuple[str, ...]] = {
    "DynamicResources": ("preEnqueue", "preFilter", "filter", "reserve", "preBind"),
    "GangScheduling": ("preEnqueue", "permit"),
}
# Scores that do without what the plugin finds out at PreScore.
_WITHOUT_PRE_SCORE = ("NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation")

ExtensionPoints = Mapping[str, Mapping[str, int]]  # by point: plugins in order, with weights


def expand(plugins: Plugins) -> ExtensionPoints:
    """Return the plugins at each point; those that do not exist, or have no such point, are out."""
    sets = {point: getattr(plugins, field) for field, point in POINTS}
    every = sets.pop(MULTI_POINT)
    weights = {each.name: each.weight or 1 for each in reversed(every.enabled)}
    return {
        point: {name: _weight(name, own, weights) for name in _names(point, own, every)}
        for point, own in sets.items()
    }


def _names(point: str, own: PluginSet, every: PluginSet) -> Iterator[str]:
    names = [each.name for each in own.enabled if has_point(each.name, point)]
    off = {each.name for each in own.disabled}
    spread = [each.name for each in every.enabled if has_point(each.name, point)]
    spread = [] if ALL in off else [name for name in spread if name not in off]
    yield from (name for name in names if name in spread)
    yield from (name for name in spread if name not in names)
    yield from (name for name in names if name not in spread)


def _weight(name: str, own: PluginSet, weights: Mapping[str, int]) -> int:
    found = next((each for each in own.enabled if each.name == name), None)
    if found is None:
        return weights[name]
    return found.weight or 1


def has_point(plugin: str, point: str) -> bool:
    """Return whether a plugin has an extension point."""
    return point in POINTS_OF.get(plugin, ())


# --- what is refused ------------------------------------------------------------------------------


def refused_plugins(plugins: Plugins, path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the places in a profile's plugins that cannot be obeyed, with the reason."""
    for field, point in POINTS:
        yield from _refused_names(point, getattr(plugins, field), path.child(point))
    points = expand(plugins)
    if [*points["queueSort"]] != ["PrioritySort"]:
        yield path.child("queueSort"), "PrioritySort must be enabled, and is the only plugin for it"
    if [*points["bind"]] != ["DefaultBinder"]:
        yield path.child("bind"), "DefaultBinder must be enabled, and is the only plugin for it"
    yield from _refused_parts(points, path)


def _refused_names(point: str, own: PluginSet, path: Path) -> Iterator[tuple[Path, str]]:
    seen: set[str] = set()
    for number, each in enumerate(own.enabled):
        place, name = path.child("enabled").index(number), each.name
        if name not in POINTS_OF:
            yield (
                place,
                f'plugin "{name}" does not exist: only the plugins of Kubernetes can be run',
            )
        elif point != MULTI_POINT and not has_point(name, point):
            yield place, f'plugin "{name}" does not extend {_interface(point)} plugin'
        elif name in seen:
            yield place, f'plugin "{name}" already registered'
        seen.add(name)


def _interface(point: str) -> str:
    return f"{point[0].upper()}{point[1:]}Plugin"


def _refused_parts(points: ExtensionPoints, path: Path) -> Iterator[tuple[Path, str]]:
    for name, needed in _TOGETHER.items():
        off = [point for point in needed if name not in points[point]]
        if 0 < len(off) < len(needed):
            on = [point for point in needed if point not in off]
            text = f"{name} cannot be off here while it is on at {', '.join(on)}"
            yield path.child(off[0]), text
    for name in points["filter"]:
        if has_point(name, "preFilter") and name not in points["preFilter"]:
            yield path.child("preFilter"), f"{name} cannot be off here while it is on at filter"
    for name in points["score"]:
        is_needed = has_point(name, "preScore") and name not in _WITHOUT_PRE_SCORE
        if is_needed and name not in points["preScore"]:
            yield path.child("preScore"), f"{name} cannot be off here while it is on at score"
    for point in ("postFilter", "podGroupPostFilter"):
        names = [*points[point]]
        if names == ["DefaultPreemption", "DynamicResources"]:
            yield path.child(point), "DynamicResources must come before DefaultPreemption"
    if "DefaultPreemption" in points["postFilter"] and (
        "DefaultPreemption" not in points["preEnqueue"]
    ):
        text = "DefaultPreemption cannot be off here while it is on at postFilter"
        yield path.child("preEnqueue"), text
