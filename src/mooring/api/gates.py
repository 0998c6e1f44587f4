"""Feature gates: which parts of Dynamic Resource Allocation are switched on.

A gate has a history: at which version it came, at which stage, on or off by default, locked or
not. Three things decide whether it is on:

1. the preset: `mooring` has on whatever the emulated version knows (and, unless named, off what
   lacks something it needs), `kubernetes-1.37` has
   Kubernetes' own defaults of the emulated version;
2. AllAlpha and AllBeta, which set every gate of that stage that is not named itself;
3. the gates that are named.

What cannot be set is refused with Kubernetes' own words: a locked gate, a gate that the emulated
version does not know yet, a gate that is on while one that it needs is off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from mooring.api.errors import GateError

BINARY_MINOR = 37
EMULATED_MINOR_MIN = 34


class Gate(StrEnum):
    """A feature gate, by Kubernetes' name."""

    ALL_ALPHA = "AllAlpha"
    ALL_BETA = "AllBeta"
    COMPOSITE_POD_GROUP = "CompositePodGroup"
    DRA_ADMIN_ACCESS = "DRAAdminAccess"
    DRA_CONSUMABLE_CAPACITY = "DRAConsumableCapacity"
    DRA_DERIVED_ATTRIBUTES = "DRADerivedAttributes"
    DRA_DEVICE_BINDING_CONDITIONS = "DRADeviceBindingConditions"
    DRA_DEVICE_COMPATIBILITY_GROUPS = "DRADeviceCompatibilityGroups"
    DRA_DEVICE_TAINT_RULES = "DRADeviceTaintRules"
    DRA_DEVICE_TAINTS = "DRADeviceTaints"
    DRA_EXTENDED_RESOURCE = "DRAExtendedResource"
    DRA_FRACTIONAL_CAPACITY_RANGE = "DRAFractionalCapacityRange"
    DRA_LIST_TYPE_ATTRIBUTES = "DRAListTypeAttributes"
    DRA_NODE_ALLOCATABLE_RESOURCES = "DRANodeAllocatableResources"
    DRA_OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
    DRA_PARTITIONABLE_DEVICES = "DRAPartitionableDevices"
    DRA_PARTITIONABLE_DEVICES_TYPE = "DRAPartitionableDevicesType"
    DRA_PRIORITIZED_LIST = "DRAPrioritizedList"
    DRA_RESOURCE_CLAIM_DEVICE_STATUS = "DRAResourceClaimDeviceStatus"
    DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION = "DRAResourceClaimGranularStatusAuthorization"
    DRA_RESOURCE_POOL_STATUS = "DRAResourcePoolStatus"
    DRA_SCHEDULER_FILTER_TIMEOUT = "DRASchedulerFilterTimeout"
    DRA_WORKLOAD_RESOURCE_CLAIMS = "DRAWorkloadResourceClaims"
    DYNAMIC_RESOURCE_ALLOCATION = "DynamicResourceAllocation"
    GENERIC_WORKLOAD = "GenericWorkload"
    KUBELET_POD_RESOURCES_DYNAMIC_RESOURCES = "KubeletPodResourcesDynamicResources"
    KUBELET_POD_RESOURCES_GET = "KubeletPodResourcesGet"
    KUBELET_POD_RESOURCES_LIST_USE_ACTIVE_PODS = "KubeletPodResourcesListUseActivePods"
    NODE_DECLARED_FEATURES = "NodeDeclaredFeatures"
    POD_GROUP_PREEMPTION_POLICY = "PodGroupPreemptionPolicy"
    RESOURCE_HEALTH_STATUS = "ResourceHealthStatus"
    RESOURCE_HEALTH_STATUS_MESSAGE = "ResourceHealthStatusMessage"
    TOPOLOGY_AWARE_WORKLOAD_SCHEDULING = "TopologyAwareWorkloadScheduling"


class Stage(StrEnum):
    """How mature a gate's feature is, in Kubernetes' words."""

    PRE_ALPHA = "PRE-ALPHA"
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class Preset(StrEnum):
    """What the gates that nobody names are."""

    MOORING = "mooring"
    KUBERNETES = "kubernetes-1.37"


class Spec(NamedTuple):
    """What holds for a gate from Kubernetes 1.<minor> on."""

    minor: int
    stage: Stage
    default: bool
    locked: bool = False
    # Holds only where every server of the control plane is at least 1.<this>.
    compatible_minor: int = 0


_NOT_YET = Spec(0, Stage.PRE_ALPHA, default=False)


def _alpha(minor: int) -> Spec:
    return Spec(minor, Stage.ALPHA, default=False)


def _beta(minor: int, *, on: bool, compatible_minor: int = 0) -> Spec:
    return Spec(minor, Stage.BETA, default=on, compatible_minor=compatible_minor)


def _ga(minor: int, *, locked: bool) -> Spec:
    return Spec(minor, Stage.GA, default=True, locked=locked)


# Oldest first. Versions before 1.34 are kept because they tell what 1.34 inherits.
HISTORY: Mapping[Gate, tuple[Spec, ...]] = {
    Gate.ALL_ALPHA: (_alpha(0),),
    Gate.ALL_BETA: (_beta(0, on=False),),
    Gate.COMPOSITE_POD_GROUP: (_alpha(37),),
    Gate.DRA_ADMIN_ACCESS: (_alpha(32), _beta(34, on=True), _ga(36, locked=True)),
    Gate.DRA_CONSUMABLE_CAPACITY: (_alpha(34), _beta(36, on=True)),
    Gate.DRA_DERIVED_ATTRIBUTES: (_alpha(37),),
    Gate.DRA_DEVICE_BINDING_CONDITIONS: (_alpha(34), _beta(36, on=True)),
    Gate.DRA_DEVICE_COMPATIBILITY_GROUPS: (_alpha(37),),
    Gate.DRA_DEVICE_TAINT_RULES: (_alpha(35), _beta(36, on=False), _ga(37, locked=False)),
    Gate.DRA_DEVICE_TAINTS: (_alpha(33), _beta(36, on=True), _ga(37, locked=False)),
    Gate.DRA_EXTENDED_RESOURCE: (_alpha(34), _beta(36, on=True), _ga(37, locked=True)),
    Gate.DRA_FRACTIONAL_CAPACITY_RANGE: (
        _beta(37, on=False),
        _beta(37, on=True, compatible_minor=37),
    ),
    Gate.DRA_LIST_TYPE_ATTRIBUTES: (_alpha(36),),
    Gate.DRA_NODE_ALLOCATABLE_RESOURCES: (_alpha(36),),
    Gate.DRA_OPTIONAL_NODE_OPERATIONS: (_alpha(37),),
    Gate.DRA_PARTITIONABLE_DEVICES: (_alpha(33), _beta(36, on=True)),
    Gate.DRA_PARTITIONABLE_DEVICES_TYPE: (_alpha(37),),
    Gate.DRA_PRIORITIZED_LIST: (
        _alpha(33),
        _beta(34, on=True),
        _ga(36, locked=False),
        _ga(37, locked=True),
    ),
    Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS: (_alpha(32), _beta(33, on=True), _ga(37, locked=True)),
    Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION: (_beta(36, on=True),),
    Gate.DRA_RESOURCE_POOL_STATUS: (_alpha(36),),
    Gate.DRA_SCHEDULER_FILTER_TIMEOUT: (_beta(34, on=True),),
    Gate.DRA_WORKLOAD_RESOURCE_CLAIMS: (_alpha(36), _beta(37, on=False)),
    Gate.DYNAMIC_RESOURCE_ALLOCATION: (
        _alpha(26),
        _beta(32, on=False),
        _ga(34, locked=False),
        _ga(35, locked=True),
    ),
    Gate.GENERIC_WORKLOAD: (_alpha(35), _beta(37, on=False)),
    Gate.KUBELET_POD_RESOURCES_DYNAMIC_RESOURCES: (
        _alpha(27),
        _beta(34, on=True),
        _ga(36, locked=True),
    ),
    Gate.KUBELET_POD_RESOURCES_GET: (_alpha(27), _beta(34, on=True), _ga(36, locked=True)),
    Gate.KUBELET_POD_RESOURCES_LIST_USE_ACTIVE_PODS: (
        Spec(0, Stage.GA, default=False),
        Spec(34, Stage.DEPRECATED, default=True),
    ),
    Gate.NODE_DECLARED_FEATURES: (_alpha(35), _beta(36, on=True), _ga(37, locked=True)),
    Gate.POD_GROUP_PREEMPTION_POLICY: (_alpha(37),),
    Gate.RESOURCE_HEALTH_STATUS: (_alpha(31), _beta(36, on=True)),
    Gate.RESOURCE_HEALTH_STATUS_MESSAGE: (_beta(36, on=True),),
    Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: (_alpha(36),),
}

_DRA = Gate.DYNAMIC_RESOURCE_ALLOCATION

# A gate that is on needs all of these on. Sorted by name, as Kubernetes reports them.
NEEDS: Mapping[Gate, tuple[Gate, ...]] = {
    Gate.COMPOSITE_POD_GROUP: (
        Gate.GENERIC_WORKLOAD,
        Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING,
    ),
    Gate.DRA_ADMIN_ACCESS: (_DRA,),
    Gate.DRA_CONSUMABLE_CAPACITY: (_DRA,),
    Gate.DRA_DERIVED_ATTRIBUTES: (_DRA,),
    Gate.DRA_DEVICE_BINDING_CONDITIONS: (Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS, _DRA),
    Gate.DRA_DEVICE_COMPATIBILITY_GROUPS: (Gate.DRA_PARTITIONABLE_DEVICES, _DRA),
    Gate.DRA_DEVICE_TAINT_RULES: (Gate.DRA_DEVICE_TAINTS,),
    Gate.DRA_DEVICE_TAINTS: (_DRA,),
    Gate.DRA_EXTENDED_RESOURCE: (_DRA,),
    Gate.DRA_FRACTIONAL_CAPACITY_RANGE: (Gate.DRA_CONSUMABLE_CAPACITY,),
    Gate.DRA_LIST_TYPE_ATTRIBUTES: (_DRA,),
    Gate.DRA_NODE_ALLOCATABLE_RESOURCES: (_DRA,),
    Gate.DRA_OPTIONAL_NODE_OPERATIONS: (_DRA, Gate.NODE_DECLARED_FEATURES),
    Gate.DRA_PARTITIONABLE_DEVICES: (_DRA,),
    Gate.DRA_PARTITIONABLE_DEVICES_TYPE: (
        Gate.DRA_PARTITIONABLE_DEVICES,
        Gate.DRA_RESOURCE_POOL_STATUS,
        _DRA,
    ),
    Gate.DRA_PRIORITIZED_LIST: (_DRA,),
    Gate.DRA_RESOURCE_CLAIM_GRANULAR_STATUS_AUTHORIZATION: (
        Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS,
        _DRA,
    ),
    Gate.DRA_RESOURCE_POOL_STATUS: (_DRA,),
    Gate.DRA_SCHEDULER_FILTER_TIMEOUT: (_DRA,),
    Gate.DRA_WORKLOAD_RESOURCE_CLAIMS: (_DRA, Gate.GENERIC_WORKLOAD),
    Gate.POD_GROUP_PREEMPTION_POLICY: (Gate.GENERIC_WORKLOAD,),
    Gate.RESOURCE_HEALTH_STATUS: (_DRA,),
    Gate.RESOURCE_HEALTH_STATUS_MESSAGE: (Gate.RESOURCE_HEALTH_STATUS,),
    Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: (Gate.GENERIC_WORKLOAD,),
}

# The stage that a collective gate sets.
_COLLECTIVE = {Gate.ALL_ALPHA: Stage.ALPHA, Gate.ALL_BETA: Stage.BETA}


class Versions(NamedTuple):
    """The version to behave as, and the oldest one in the control plane, as minors of 1.x."""

    emulated: int = BINARY_MINOR
    compatible: int = BINARY_MINOR - 1


CURRENT = Versions()


def spec_of(gate: Gate, versions: Versions = CURRENT) -> Spec:
    """Return what holds for a gate at these versions."""
    emulated, compatible = versions
    for spec in reversed(HISTORY[gate]):
        if spec.minor <= emulated and spec.compatible_minor <= compatible:
            return spec
    return _NOT_YET


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates that are on; hot code may ask `Gate.X in gates.on` itself."""

    on: frozenset[Gate]
    versions: Versions = CURRENT

    def enabled(self, gate: Gate) -> bool:
        """Whether a gate is on."""
        return gate in self.on

    def names(self) -> tuple[str, ...]:
        """The names of the gates that are on, sorted."""
        return tuple(sorted(gate.value for gate in self.on))

    def __str__(self) -> str:
        """The gates as a flag that sets each of them: `A=true,B=false`."""
        return ",".join(f"{gate}={_bool_text(gate in self.on)}" for gate in known(self.versions))

    @classmethod
    def parse(
        cls,
        flag: str = "",
        *,
        preset: Preset | str = Preset.MOORING,
        emulated_version: str = f"1.{BINARY_MINOR}",
        min_compatibility_version: str | None = None,
        unlocked: bool = False,
    ) -> Gates:
        """Return the gates of a flag like `A=true,B=false`, or raise GateError."""
        return cls.from_mapping(
            _parse_flag(flag),
            preset=preset,
            emulated_version=emulated_version,
            min_compatibility_version=min_compatibility_version,
            unlocked=unlocked,
        )

    @classmethod
    def from_mapping(
        cls,
        wanted: Mapping[str, bool],
        *,
        preset: Preset | str = Preset.MOORING,
        emulated_version: str = f"1.{BINARY_MINOR}",
        min_compatibility_version: str | None = None,
        unlocked: bool = False,
    ) -> Gates:
        """Return the preset's gates changed by the wanted ones, or raise GateError.

        `unlocked` lets tests switch gates that Kubernetes has locked.
        """
        versions = _versions(emulated_version, min_compatibility_version)
        named = _named(wanted, versions, unlocked=unlocked)
        state = _preset_state(_preset(preset), versions)
        state.update(_collective_state(named, versions))
        state.update(named)
        if _preset(preset) is Preset.MOORING:
            _switch_off_dependents(state, named)
        _check_needs(state)
        return cls(frozenset(gate for gate, is_on in state.items() if is_on), versions)


def known(versions: Versions = CURRENT) -> tuple[Gate, ...]:
    """Return the gates that exist at these versions, in the table's order."""
    return tuple(gate for gate in HISTORY if spec_of(gate, versions).stage is not Stage.PRE_ALPHA)


def _preset_state(preset: Preset, versions: Versions) -> dict[Gate, bool]:
    if preset is Preset.MOORING:
        existing = frozenset(known(versions))
        return {gate: gate in existing for gate in HISTORY}
    return {gate: spec_of(gate, versions).default for gate in HISTORY}


def _collective_state(named: Mapping[Gate, bool], versions: Versions) -> dict[Gate, bool]:
    """Return what AllAlpha and AllBeta set."""
    state: dict[Gate, bool] = {}
    for collective, stage in _COLLECTIVE.items():
        if collective in named:
            members = (gate for gate in HISTORY if spec_of(gate, versions).stage is stage)
            state.update({gate: named[collective] for gate in members if gate not in _COLLECTIVE})
    return state


def _named(wanted: Mapping[str, bool], versions: Versions, *, unlocked: bool) -> dict[Gate, bool]:
    """Return the wanted gates, or raise GateError with all that cannot be set."""
    named: dict[Gate, bool] = {}
    faults: list[str] = []
    for name, is_on in wanted.items():
        gate = _gate(name)
        if gate is None:
            # Kubernetes looks no further after a gate that it does not know.
            raise _fault([*faults, f"unrecognized feature gate: {name}"])
        fault = _setting_fault(gate, versions, is_on=is_on, unlocked=unlocked)
        if fault:
            faults.append(fault)
        named[gate] = is_on
    if faults:
        raise _fault(faults)
    return named


def _setting_fault(gate: Gate, versions: Versions, *, is_on: bool, unlocked: bool) -> str:
    """Return why a gate cannot be set like this; empty where it can."""
    spec = spec_of(gate, versions)
    attempt = f"cannot set feature gate {gate} to {_bool_text(is_on)}"
    if spec.locked and spec.default != is_on and not unlocked:
        return f"{attempt}, feature is locked to {_bool_text(spec.default)}"
    if spec.stage is Stage.PRE_ALPHA:
        return (
            f"{attempt}, feature is PreAlpha at emulated version 1.{versions.emulated}, "
            f"min compatibility version 1.{versions.compatible}"
        )
    return ""


def _switch_off_dependents(state: dict[Gate, bool], named: Mapping[Gate, bool]) -> None:
    """Switch off what nobody asked for and what lacks something it needs.

    Mooring has everything on; who switches one feature off need not know what builds on it.
    """
    off = [gate for gate in NEEDS if state[gate] and gate not in named and _lacks(gate, state)]
    while off:
        state.update(dict.fromkeys(off, False))
        off = [gate for gate in NEEDS if state[gate] and gate not in named and _lacks(gate, state)]


def _lacks(gate: Gate, state: Mapping[Gate, bool]) -> bool:
    return any(not state[need] for need in NEEDS[gate])


def _check_needs(state: Mapping[Gate, bool]) -> None:
    """Raise GateError where a gate is on and one that it needs is off."""
    faults: list[str] = []
    for gate, needs in NEEDS.items():
        off = [need.value for need in needs if not state[need]] if state[gate] else []
        if off:
            faults.append(
                f"{gate} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
            )
    if faults:
        raise _fault(faults)


def _fault(faults: list[str]) -> GateError:
    return GateError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


def _gate(name: str) -> Gate | None:
    try:
        return Gate(name)
    except ValueError:
        return None


def _preset(name: Preset | str) -> Preset:
    try:
        return Preset(name)
    except ValueError:
        choices = ", ".join(preset.value for preset in Preset)
        raise GateError(f"unknown preset of feature gates: {name}; there are: {choices}") from None


def _versions(emulated_version: str, min_compatibility_version: str | None) -> Versions:
    """Return the versions to behave as, or raise GateError where they are out of range."""
    emulated = _minor(emulated_version)
    faults: list[str] = []
    floor = EMULATED_MINOR_MIN
    if not floor <= emulated <= BINARY_MINOR:
        faults.append(
            f"emulation version 1.{emulated} is not between [1.{floor}, 1.{BINARY_MINOR}.0]"
        )
    compatible = max(emulated - 1, floor)
    if min_compatibility_version is not None:
        compatible = _minor(min_compatibility_version)
    if not floor <= compatible <= emulated:
        faults.append(
            f"minCompatibilityVersion version 1.{compatible} "
            f"is not between [1.{floor}, 1.{emulated}]"
        )
    if faults:
        raise _fault(faults)
    return Versions(emulated, compatible)


def _minor(version: str) -> int:
    """version = ["v"] "1." minor ["." patch]"""
    parts = version.removeprefix("v").split(".")
    is_version = len(parts) in (2, 3) and all(part.isascii() and part.isdigit() for part in parts)
    if not is_version or parts[0] != "1" or len(version) > 16:
        raise GateError(f"{version[:40]!r} is not a version of Kubernetes such as 1.{BINARY_MINOR}")
    return int(parts[1])


def _parse_flag(flag: str) -> dict[str, bool]:
    """flag = [ gate *( "," gate ) ];  gate = name "=" bool"""
    return dict(_parse_setting(setting) for setting in flag.split(",") if setting)


# The spellings that Go's strconv.ParseBool takes.
_BOOLS = dict.fromkeys(("1", "t", "T", "TRUE", "true", "True"), True) | dict.fromkeys(
    ("0", "f", "F", "FALSE", "false", "False"), False
)


def _parse_setting(setting: str) -> tuple[str, bool]:
    name, equals, value = (part.strip() for part in setting.partition("="))
    if not equals:
        raise GateError(f"missing bool value for {name}")
    if value not in _BOOLS:
        quoted = value.replace("\\", "\\\\").replace('"', '\\"')
        raise GateError(
            f"invalid value of {name}={value}, "
            f'err: strconv.ParseBool: parsing "{quoted}": invalid syntax'
        )
    return name, _BOOLS[value]


def _bool_text(value: bool) -> str:
    return "true" if value else "false"
