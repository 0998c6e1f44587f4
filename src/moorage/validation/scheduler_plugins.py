"""The plugins of a scheduler profile at each extension point: Kubernetes' defaults, merged.

A profile says what differs from the defaults. At each point, first what it disables is removed
(`*` for all), then what it enables replaces a default of the same name in its place, or comes last.
"""

from __future__ import annotations

from msgspec.structs import fields

from moorage.api.gates import Gate, Gates
from moorage.api.scheduler_config import Plugins, PluginSet, SchedulerPlugin

ALL = "*"

DYNAMIC_RESOURCES = SchedulerPlugin(name="DynamicResources", weight=2)

_DEFAULTS = (
    ("SchedulingGates", None),
    ("PrioritySort", None),
    ("NodeName", None),
    ("NodeUnschedulable", None),
    ("TaintToleration", 3),
    ("NodeAffinity", 2),
    ("NodePorts", None),
    ("NodeResourcesFit", 1),
    ("VolumeRestrictions", None),
    ("NodeVolumeLimits", None),
    ("VolumeBinding", None),
    ("VolumeZone", None),
    ("PodTopologySpread", 2),
    ("InterPodAffinity", 2),
    ("DefaultPreemption", None),
    ("NodeResourcesBalancedAllocation", 1),
    ("ImageLocality", 1),
    ("DefaultBinder", None),
)

POINTS: tuple[tuple[str, str], ...] = tuple(
    (field.name, field.encode_name) for field in fields(Plugins)
)


def default_plugins(gates: Gates) -> Plugins:
    """Return the plugins of a profile that says nothing, in Kubernetes' order."""
    enabled = [SchedulerPlugin(name=name, weight=weight) for name, weight in _DEFAULTS]
    if gates.enabled(Gate.NODE_DECLARED_FEATURES):
        enabled.append(SchedulerPlugin(name="NodeDeclaredFeatures"))
    if gates.enabled(Gate.DYNAMIC_RESOURCE_ALLOCATION):
        # An idle claim is rather deallocated than a pod preempted.
        enabled.insert(_position(enabled, "DefaultPreemption"), DYNAMIC_RESOURCES)
    if gates.enabled(Gate.GENERIC_WORKLOAD):
        enabled.append(SchedulerPlugin(name="GangScheduling"))
    if gates.enabled(Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING):
        enabled.append(SchedulerPlugin(name="TopologyPlacementGenerator"))
        enabled.append(SchedulerPlugin(name="PodGroupPodsCount", weight=1))
    return Plugins(multi_point=PluginSet(enabled=tuple(enabled)))


def merge_plugins(defaults: Plugins, custom: Plugins | None) -> Plugins:
    """Return the defaults with what a profile says about each extension point."""
    if custom is None:
        return defaults
    return Plugins(
        **{name: _merged(getattr(defaults, name), getattr(custom, name)) for name, _ in POINTS}
    )


def _merged(default: PluginSet, custom: PluginSet) -> PluginSet:
    off = tuple(SchedulerPlugin(name=each.name) for each in (*custom.disabled, *default.disabled))
    names = {each.name for each in off}
    own = {each.name: (place, each) for place, each in enumerate(custom.enabled)}
    enabled: list[SchedulerPlugin] = []
    replaced: set[int] = set()
    for each in () if ALL in names else default.enabled:
        if each.name in names:
            continue
        place, plugin = own.get(each.name, (None, each))
        if place is not None:
            replaced.add(place)
        enabled.append(plugin)
    # One that is there twice is kept, and refused later.
    enabled += [each for place, each in enumerate(custom.enabled) if place not in replaced]
    return PluginSet(enabled=tuple(enabled), disabled=off)


def _position(plugins: list[SchedulerPlugin], name: str) -> int:
    return next(place for place, each in enumerate(plugins) if each.name == name)
