"""Feature gates: which parts of Dynamic Resource Allocation are switched on.

A gate has a history: at which version it came, at which stage, on or off by default, locked or
not. Three things decide whether it is on:

1. the preset: `moorage` has on whatever the emulated version knows (and, unless named, off what
   lacks something it needs), `kubernetes-1.37` has Kubernetes' own defaults of that version;
2. AllAlpha and AllBeta, which set every gate of that stage that is not named itself;
3. the gates that are named.

A setting that is not allowed is rejected with Kubernetes' message: a locked gate, a gate that the
emulated version does not know yet, a gate that is on while one that it needs is off.

Every gate of Kubernetes is accepted, so that flags can be shared with a cluster. Those that switch
something in Moorage are members of `Gate`; the others are inert: they are checked in the same way,
and a note says that setting one has no effect.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pkgutil import get_data
from typing import NamedTuple

from moorage.api.errors import GateError
from moorage.kit.go_quote import go_quote

BINARY_MINOR = 37
EMULATED_MINOR_MIN = 34


# --- the history of gates: gates.txt --------------------------------------------------------------


class Gate(StrEnum):
    """A feature gate that switches something in Moorage, by Kubernetes' name."""

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
    WORKLOAD_WITH_JOB = "WorkloadWithJob"


class Stage(StrEnum):
    """The maturity of a gate's feature, as Kubernetes names it."""

    PRE_ALPHA = "PRE-ALPHA"
    ALPHA = "ALPHA"
    BETA = "BETA"
    GA = ""
    DEPRECATED = "DEPRECATED"


class Spec(NamedTuple):
    """The state of a gate from Kubernetes 1.<minor> on."""

    minor: int
    stage: Stage
    default: bool
    locked: bool = False
    # Holds only where every server of the control plane is at least 1.<this>.
    compatible_minor: int = 0


_STAGES = {"A": Stage.ALPHA, "B": Stage.BETA, "G": Stage.GA, "D": Stage.DEPRECATED}


def _rows() -> Iterator[tuple[str, tuple[Spec, ...], tuple[str, ...]]]:
    """row = name *( " " spec ) [ " needs" *( " " name ) ]"""
    data = get_data("moorage.api", "gates.txt")
    assert data is not None
    for line in data.decode().splitlines():
        if not line.startswith("#"):
            declared, _, needs = line.partition(" needs ")
            name, *specs = declared.split()
            yield name, tuple(map(_spec, specs)), tuple(needs.split())


def _spec(text: str) -> Spec:
    """spec = stage minor ( "+" / "-" ) [ "!" ] [ "@" compatible-minor ]"""
    text, _, compatible_minor = text.partition("@")
    bare = text.removesuffix("!")
    return Spec(
        int(bare[1:-1]),
        _STAGES[bare[0]],
        default=bare[-1] == "+",
        locked=text != bare,
        compatible_minor=int(compatible_minor or 0),
    )


# By name: the history of each gate, oldest first, and the gates that must be on if it is on.
HISTORY_BY_NAME: Mapping[str, tuple[Spec, ...]] = {name: specs for name, specs, _ in _rows()}
NEEDS_BY_NAME: Mapping[str, tuple[str, ...]] = {name: needs for name, _, needs in _rows() if needs}

HISTORY: Mapping[Gate, tuple[Spec, ...]] = {gate: HISTORY_BY_NAME[gate] for gate in Gate}
NEEDS: Mapping[Gate, tuple[Gate, ...]] = {
    gate: tuple(map(Gate, NEEDS_BY_NAME[gate])) for gate in Gate if gate in NEEDS_BY_NAME
}
# The gates of Kubernetes that switch nothing in Moorage.
INERT: Mapping[str, tuple[Spec, ...]] = {
    name: specs for name, specs in HISTORY_BY_NAME.items() if name not in set(Gate)
}


# --- gates that are on ----------------------------------------------------------------------------


class Preset(StrEnum):
    """The state of gates that are not named."""

    MOORAGE = "moorage"
    KUBERNETES = "kubernetes-1.37"


_NOT_YET = Spec(0, Stage.PRE_ALPHA, default=False)
_NAME_MAX = 100  # longer names are compared no further

# The stage that a collective gate sets.
_COLLECTIVE = {Gate.ALL_ALPHA: Stage.ALPHA, Gate.ALL_BETA: Stage.BETA}


class Versions(NamedTuple):
    """The version to behave as, and the oldest one in the control plane, as minors of 1.x."""

    emulated: int = BINARY_MINOR
    compatible: int = BINARY_MINOR - 1


CURRENT = Versions()


def spec_of(gate: str, versions: Versions = CURRENT) -> Spec:
    """Return the spec of a gate at these versions."""
    emulated, compatible = versions
    for spec in reversed(HISTORY_BY_NAME[gate]):
        if spec.minor <= emulated and spec.compatible_minor <= compatible:
            return spec
    return _NOT_YET


@dataclass(frozen=True, slots=True)
class Gates:
    """The gates that are on; hot code may ask `Gate.X in gates.on` itself."""

    on: frozenset[Gate]
    versions: Versions = CURRENT
    # Gates of Kubernetes that were set and switch nothing in Moorage, in the order given.
    inert: tuple[str, ...] = field(default=(), compare=False)
    preset: Preset = field(default=Preset.MOORAGE, compare=False)  # what they were made from

    def enabled(self, gate: Gate) -> bool:
        """Whether a gate is on."""
        return gate in self.on

    def names(self) -> tuple[str, ...]:
        """The names of the gates that are on, sorted."""
        return tuple(sorted(gate.value for gate in self.on))

    def notes(self) -> tuple[str, ...]:
        """Notes for whoever set the gates."""
        return tuple(f"feature gate {name} has no effect in Moorage" for name in self.inert)

    def __str__(self) -> str:
        """The gates as a flag that sets each of them: `A=true,B=false`."""
        return ",".join(f"{gate}={_bool_text(gate in self.on)}" for gate in known(self.versions))

    @classmethod
    def parse(
        cls,
        flag: str = "",
        *,
        preset: Preset | str = Preset.MOORAGE,
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
        preset: Preset | str = Preset.MOORAGE,
        emulated_version: str = f"1.{BINARY_MINOR}",
        min_compatibility_version: str | None = None,
        unlocked: bool = False,
    ) -> Gates:
        """Return the preset's gates changed by the wanted ones, or raise GateError.

        `unlocked` lets tests switch gates that Kubernetes has locked.
        """
        versions = _versions(emulated_version, min_compatibility_version)
        named = _named(wanted, versions, unlocked=unlocked)
        preset = _preset(preset)
        state = _preset_state(preset, versions)
        state.update(_collective_state(named, versions))
        state.update(named)
        if preset is Preset.MOORAGE:
            _switch_off_dependents(state, named)
        _check_needs(state)
        on = frozenset(gate for gate in HISTORY if state[gate])
        return cls(on, versions, tuple(name for name in named if name in INERT), preset)


def known(versions: Versions = CURRENT) -> tuple[Gate, ...]:
    """Return the gates that exist at these versions, in the table's order."""
    return tuple(gate for gate in HISTORY if spec_of(gate, versions).stage is not Stage.PRE_ALPHA)


def _preset_state(preset: Preset, versions: Versions) -> dict[str, bool]:
    specs = {name: spec_of(name, versions) for name in HISTORY_BY_NAME}
    if preset is Preset.MOORAGE:
        return {name: spec.stage is not Stage.PRE_ALPHA for name, spec in specs.items()}
    return {name: spec.default for name, spec in specs.items()}


def _collective_state(named: Mapping[str, bool], versions: Versions) -> dict[str, bool]:
    """Return what AllAlpha and AllBeta set."""
    state: dict[str, bool] = {}
    for collective, stage in _COLLECTIVE.items():
        if collective in named:
            members = (name for name in HISTORY_BY_NAME if spec_of(name, versions).stage is stage)
            state.update({name: named[collective] for name in members if name not in _COLLECTIVE})
    return state


def _named(wanted: Mapping[str, bool], versions: Versions, *, unlocked: bool) -> dict[str, bool]:
    """Return the wanted gates, or raise GateError with all that cannot be set."""
    faults: list[str] = []
    for name, is_on in wanted.items():
        if name not in HISTORY_BY_NAME:
            # Kubernetes looks no further after a gate that it does not know.
            raise _fault([*faults, _unrecognized(name)])
        fault = _setting_fault(name, versions, is_on=is_on, unlocked=unlocked)
        if fault:
            faults.append(fault)
    if faults:
        raise _fault(faults)
    return dict(wanted)


def _unrecognized(name: str) -> str:
    """Return the error for an unknown gate, with the nearest name."""
    fact = f"unrecognized feature gate: {name}"
    by_lower = {known_name.lower(): known_name for known_name in HISTORY_BY_NAME}
    near = difflib.get_close_matches(name.lower()[:_NAME_MAX], by_lower, n=1)
    return f"{fact}; did you mean {by_lower[near[0]]}?" if near else fact


def _setting_fault(name: str, versions: Versions, *, is_on: bool, unlocked: bool) -> str:
    """Return why a gate cannot be set like this; empty where it can."""
    spec = spec_of(name, versions)
    attempt = f"cannot set feature gate {name} to {_bool_text(is_on)}"
    if spec.locked and spec.default != is_on and not unlocked:
        return f"{attempt}, feature is locked to {_bool_text(spec.default)}"
    if spec.stage is Stage.PRE_ALPHA:
        return (
            f"{attempt}, feature is PreAlpha at emulated version 1.{versions.emulated}, "
            f"min compatibility version 1.{versions.compatible}"
        )
    return ""


def _switch_off_dependents(state: dict[str, bool], named: Mapping[str, bool]) -> None:
    """Switch off gates that are not named and lack a gate they need.

    Moorage has everything on; whoever switches one feature off need not know what builds on it.
    """
    while off := [gate for gate in NEEDS_BY_NAME if gate not in named and _lacks(gate, state)]:
        state.update(dict.fromkeys(off, False))


def _lacks(gate: str, state: Mapping[str, bool]) -> bool:
    return state[gate] and not all(state[need] for need in NEEDS_BY_NAME[gate])


def _check_needs(state: Mapping[str, bool]) -> None:
    """Raise GateError where a gate is on and one that it needs is off."""
    faults: list[str] = []
    for gate, needs in NEEDS_BY_NAME.items():
        off = [str(need) for need in needs if not state[need]] if state[gate] else []
        if off:
            faults.append(
                f"{gate} is enabled, but depends on features that are disabled: [{' '.join(off)}]"
            )
    if faults:
        raise _fault(faults)


def _fault(faults: list[str]) -> GateError:
    return GateError(faults[0] if len(faults) == 1 else f"[{', '.join(faults)}]")


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
        raise GateError(
            f"invalid value of {name}={value}, "
            f"err: strconv.ParseBool: parsing {go_quote(value)}: invalid syntax"
        )
    return name, _BOOLS[value]


def _bool_text(value: bool) -> str:
    return "true" if value else "false"
