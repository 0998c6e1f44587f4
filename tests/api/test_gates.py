"""Feature gates: Kubernetes' history of each, and its message when one cannot be set."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.errors import GateError
from moorage.api.gates import (
    HISTORY,
    INERT,
    NEEDS,
    NEEDS_BY_NAME,
    Gate,
    Gates,
    Preset,
    Stage,
    Versions,
    known,
    spec_of,
)
from tests.corpus import corpus

EMULATED = ("1.34", "1.35", "1.36", "1.37")

# Not a gate of Dynamic Resource Allocation.
ELSEWHERE = {"DeclarativeValidationBeta"}


def kubernetes(flag: str = "", version: str = "1.37") -> Gates:
    return Gates.parse(flag, preset=Preset.KUBERNETES, emulated_version=version)


def test_table_agrees_with_kubernetes_1_37() -> None:
    gates = corpus("validation", "gates.json")
    recorded = {
        name: row for name, row in json.loads(gates.read_text()).items() if isinstance(row, dict)
    }
    for name in recorded.keys() - ELSEWHERE:
        spec = spec_of(Gate(name))
        ours = {"default": spec.default, "locked": spec.locked, "stage": spec.stage.value}
        assert ours == recorded[name], name


def test_every_gate_has_a_history_that_only_moves_forward() -> None:
    assert set(HISTORY) == set(Gate)
    for gate, history in HISTORY.items():
        assert [spec.minor for spec in history] == sorted(spec.minor for spec in history), gate
        locks = [spec.locked for spec in history]
        assert locks == sorted(locks), gate


def test_needs_are_sorted_by_name_and_never_less_mature_or_off_by_default() -> None:
    order = [Stage.PRE_ALPHA, Stage.ALPHA, Stage.BETA, Stage.GA]
    for gate, needs in NEEDS.items():
        assert list(needs) == sorted(needs, key=lambda need: need.value)
        for need in needs:
            ours, theirs = spec_of(gate), spec_of(need)
            assert order.index(ours.stage) <= order.index(theirs.stage), gate
            assert theirs.default or not ours.default, gate


def test_moorage_has_everything_on() -> None:
    assert Gates.parse().on == frozenset(Gate)


def test_kubernetes_preset_has_the_defaults_of_1_37() -> None:
    off = set(known()) - kubernetes().on
    assert {gate.value for gate in off} == {
        "AllAlpha",
        "AllBeta",
        "CompositePodGroup",
        "DRADerivedAttributes",
        "DRADeviceCompatibilityGroups",
        "DRAFractionalCapacityRange",
        "DRAListTypeAttributes",
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "DRAPartitionableDevicesType",
        "DRAResourcePoolStatus",
        "DRAWorkloadResourceClaims",
        "GenericWorkload",
        "PodGroupPreemptionPolicy",
        "TopologyAwareWorkloadScheduling",
        "WorkloadWithJob",
    }


def test_fractional_ranges_come_on_once_the_whole_control_plane_is_1_37() -> None:
    gates = Gates.parse(preset="kubernetes-1.37", min_compatibility_version="1.37")
    assert gates.enabled(Gate.DRA_FRACTIONAL_CAPACITY_RANGE)
    assert gates.versions == Versions(37, 37)


@pytest.mark.parametrize(
    ("version", "gate", "stage", "default", "locked"),
    [
        ("1.34", Gate.DYNAMIC_RESOURCE_ALLOCATION, Stage.GA, True, False),
        ("1.35", Gate.DYNAMIC_RESOURCE_ALLOCATION, Stage.GA, True, True),
        ("1.34", Gate.DRA_ADMIN_ACCESS, Stage.BETA, True, False),
        ("1.35", Gate.DRA_ADMIN_ACCESS, Stage.BETA, True, False),
        ("1.36", Gate.DRA_ADMIN_ACCESS, Stage.GA, True, True),
        ("1.36", Gate.DRA_PRIORITIZED_LIST, Stage.GA, True, False),
        ("1.37", Gate.DRA_PRIORITIZED_LIST, Stage.GA, True, True),
        ("1.35", Gate.DRA_EXTENDED_RESOURCE, Stage.ALPHA, False, False),
        ("1.36", Gate.DRA_EXTENDED_RESOURCE, Stage.BETA, True, False),
        ("1.36", Gate.DRA_RESOURCE_CLAIM_DEVICE_STATUS, Stage.BETA, True, False),
        ("1.36", Gate.DRA_DEVICE_TAINT_RULES, Stage.BETA, False, False),
        ("1.37", Gate.DRA_DEVICE_TAINT_RULES, Stage.GA, True, False),
        ("1.34", Gate.DRA_DEVICE_TAINT_RULES, Stage.PRE_ALPHA, False, False),
        ("1.36", Gate.DRA_DERIVED_ATTRIBUTES, Stage.PRE_ALPHA, False, False),
        ("1.34", Gate.NODE_DECLARED_FEATURES, Stage.PRE_ALPHA, False, False),
        ("1.37", Gate.NODE_DECLARED_FEATURES, Stage.GA, True, True),
        ("1.36", Gate.DRA_WORKLOAD_RESOURCE_CLAIMS, Stage.ALPHA, False, False),
    ],
)
def test_emulated_version_decides_stage_default_and_lock(
    version: str, gate: Gate, stage: Stage, default: bool, locked: bool
) -> None:
    gates = kubernetes(version=version)
    spec = spec_of(gate, gates.versions)
    assert (spec.stage, spec.default, spec.locked) == (stage, default, locked)
    assert gates.enabled(gate) == default


@pytest.mark.parametrize("version", EMULATED)
def test_moorage_has_on_what_the_emulated_version_knows(version: str) -> None:
    gates = Gates.parse(emulated_version=version)
    assert gates.on == frozenset(known(gates.versions))


@pytest.mark.parametrize(
    ("flag", "version", "text"),
    [
        (
            "DRAAdminAccess=false",
            "1.37",
            "cannot set feature gate DRAAdminAccess to false, feature is locked to true",
        ),
        ("X=true", "1.37", "unrecognized feature gate: X"),
        (
            "X=y",
            "1.37",
            'invalid value of X=y, err: strconv.ParseBool: parsing "y": invalid syntax',
        ),
        ("X", "1.37", "missing bool value for X"),
        ("DRADeviceTaints=true, Y ,X=true", "1.37", "missing bool value for Y"),
        (
            "DRADerivedAttributes=false",
            "1.36",
            (
                "cannot set feature gate DRADerivedAttributes to false, feature is PreAlpha at "
                "emulated version 1.36, min compatibility version 1.35"
            ),
        ),
        (
            "DRADeviceTaints=false",
            "1.37",
            (
                "DRADeviceTaintRules is enabled, but depends on features that are disabled: "
                "[DRADeviceTaints]"
            ),
        ),
        (
            "DRAPartitionableDevicesType=true,DRAPartitionableDevices=false",
            "1.37",
            (
                "DRAPartitionableDevicesType is enabled, but depends on features that are "
                "disabled: [DRAPartitionableDevices DRAResourcePoolStatus]"
            ),
        ),
        (
            "DRAAdminAccess=false,DRAExtendedResource=false",
            "1.37",
            (
                "[cannot set feature gate DRAAdminAccess to false, feature is locked to true, "
                "cannot set feature gate DRAExtendedResource to false, feature is locked to true]"
            ),
        ),
        (
            "",
            "1.33",
            (
                "[emulation version 1.33 is not between [1.34, 1.37.0], "
                "minCompatibilityVersion version 1.34 is not between [1.34, 1.33]]"
            ),
        ),
        ("", "1.38", "emulation version 1.38 is not between [1.34, 1.37.0]"),
        ("", "2.0", "'2.0' is not a version of Kubernetes such as 1.37"),
    ],
)
def test_refusals_use_the_words_of_kubernetes(flag: str, version: str, text: str) -> None:
    with pytest.raises(GateError) as refused:
        kubernetes(flag, version)
    assert str(refused.value) == text


def test_a_younger_control_plane_than_the_emulated_version_is_refused() -> None:
    with pytest.raises(GateError) as refused:
        Gates.parse(emulated_version="1.36", min_compatibility_version="1.37")
    assert str(refused.value) == "minCompatibilityVersion version 1.37 is not between [1.34, 1.36]"


def test_an_unknown_preset_names_the_ones_there_are() -> None:
    with pytest.raises(GateError, match=r"unknown preset .*: x; there are: moorage, kubernetes"):
        Gates.parse(preset="x")


def test_locked_gates_open_for_tests() -> None:
    gates = Gates.parse("DRAAdminAccess=false", unlocked=True)
    assert not gates.enabled(Gate.DRA_ADMIN_ACCESS)


def test_in_the_moorage_preset_a_feature_takes_what_builds_on_it_along() -> None:
    gates = Gates.parse("DRAPartitionableDevices=false")
    assert not gates.enabled(Gate.DRA_DEVICE_COMPATIBILITY_GROUPS)
    assert not gates.enabled(Gate.DRA_PARTITIONABLE_DEVICES_TYPE)
    assert gates.enabled(Gate.DRA_CONSUMABLE_CAPACITY)


def test_what_is_named_still_needs_what_it_needs() -> None:
    with pytest.raises(GateError, match="DRADeviceCompatibilityGroups is enabled, but depends on"):
        Gates.parse("DRAPartitionableDevices=false,DRADeviceCompatibilityGroups=true")
    with pytest.raises(GateError, match="DRADeviceCompatibilityGroups is enabled, but depends on"):
        Gates.parse("DRAPartitionableDevices=false,AllAlpha=true", preset=Preset.KUBERNETES)


def test_a_locked_gate_may_be_set_to_what_it_is() -> None:
    assert kubernetes("DRAAdminAccess=true") == kubernetes()


@pytest.mark.parametrize(
    "flag",
    ["AllAlpha=true,DRAListTypeAttributes=false", "DRAListTypeAttributes=false,AllAlpha=true"],
)
def test_a_named_gate_wins_over_all_alpha_in_any_order(flag: str) -> None:
    gates = kubernetes(f"{flag},AllBeta=true")
    assert gates.enabled(Gate.DRA_DERIVED_ATTRIBUTES)
    assert not gates.enabled(Gate.DRA_LIST_TYPE_ATTRIBUTES)


def test_all_alpha_alone_lacks_the_beta_gates_that_some_alpha_gates_need() -> None:
    with pytest.raises(GateError) as refused:
        kubernetes("AllAlpha=true")
    assert (
        "TopologyAwareWorkloadScheduling is enabled, but depends on features that are disabled: "
        "[GenericWorkload]"
    ) in str(refused.value)


def test_all_beta_takes_the_beta_gates_of_the_emulated_version() -> None:
    gates = kubernetes("AllBeta=true")
    assert gates.enabled(Gate.GENERIC_WORKLOAD)
    assert gates.enabled(Gate.DRA_FRACTIONAL_CAPACITY_RANGE)
    assert not gates.enabled(Gate.DRA_LIST_TYPE_ATTRIBUTES)


def test_all_alpha_off_is_not_the_kubernetes_preset() -> None:
    different = Gates.parse("AllAlpha=false").on ^ kubernetes().on
    assert different == {
        Gate.ALL_BETA,
        Gate.DRA_FRACTIONAL_CAPACITY_RANGE,
        Gate.DRA_WORKLOAD_RESOURCE_CLAIMS,
        Gate.GENERIC_WORKLOAD,
    }


@pytest.mark.parametrize("value", ["1", "t", "T", "TRUE", "true", "True", " true "])
def test_bools_are_spelled_as_go_reads_them(value: str) -> None:
    assert kubernetes(f" DRAListTypeAttributes = {value},").enabled(Gate.DRA_LIST_TYPE_ATTRIBUTES)


def test_a_mapping_gives_what_a_flag_gives() -> None:
    wanted = {"DRAListTypeAttributes": True, "DRAConsumableCapacity": True}
    assert Gates.from_mapping(wanted, preset="kubernetes-1.37") == kubernetes(
        "DRAListTypeAttributes=true,DRAConsumableCapacity=true"
    )


@given(st.sampled_from(EMULATED), st.sampled_from(list(Preset)))
def test_the_text_of_gates_gives_the_same_gates(version: str, preset: Preset) -> None:
    gates = Gates.parse(preset=preset, emulated_version=version)
    assert Gates.parse(str(gates), emulated_version=version) == gates


@given(st.text())
def test_any_text_gives_gates_or_a_gate_error(flag: str) -> None:
    with suppress(GateError):
        assert Gates.parse(flag).on <= frozenset(Gate)


def test_names_are_kubernetes_names_in_order() -> None:
    names = kubernetes().names()
    assert names == tuple(sorted(names))
    assert "DRAAdminAccess" in names
    assert "DRADerivedAttributes" not in names


@pytest.mark.parametrize(
    ("flag", "name"),
    [
        ("PodLevelResources=true", "PodLevelResources"),  # of Kubernetes itself
        ("WatchList=true", "WatchList"),  # of the API server's library
        ("CRDObservedGenerationTracking=false", "CRDObservedGenerationTracking"),  # of CRDs
        ("ContextualLogging=false", "ContextualLogging"),  # of all components
        ("CloudControllerManagerWebhook=true", "CloudControllerManagerWebhook"),
        ("ClientsAllowCBOR=true", "ClientsAllowCBOR"),  # of clients
    ],
)
@pytest.mark.parametrize("preset", list(Preset))
def test_other_gates_of_kubernetes_are_taken_and_noted(
    flag: str, name: str, preset: Preset
) -> None:
    gates = Gates.parse(flag, preset=preset)
    assert gates.notes() == (f"feature gate {name} has no effect in Moorage",)
    assert gates == Gates.parse(preset=preset)


def test_a_gate_that_switches_something_is_not_noted() -> None:
    assert Gates.parse("DRAListTypeAttributes=false,AllAlpha=false").notes() == ()


@pytest.mark.parametrize("version", EMULATED)
@pytest.mark.parametrize("preset", list(Preset))
def test_every_gate_may_be_set_to_its_default(version: str, preset: Preset) -> None:
    versions = Gates.parse(emulated_version=version).versions
    specs = {name: spec_of(name, versions) for name in (*HISTORY, *INERT)}
    wanted = {
        str(name): spec.default for name, spec in specs.items() if spec.stage is not Stage.PRE_ALPHA
    }
    gates = Gates.from_mapping(wanted, preset=preset, emulated_version=version)
    assert gates.on == kubernetes(version=version).on


@pytest.mark.parametrize(
    ("flag", "text"),
    [
        (
            "InOrderInformers=false",
            "cannot set feature gate InOrderInformers to false, feature is locked to true",
        ),
        (
            "GracefulNodeShutdown=false,WindowsGracefulNodeShutdown=false",
            (
                "GracefulNodeShutdownBasedOnPodPriority is enabled, but depends on features that "
                "are disabled: [GracefulNodeShutdown]"
            ),
        ),
        ("Imagevolume=true", "unrecognized feature gate: Imagevolume; did you mean ImageVolume?"),
        (
            "DRAListTypeAttribute=true",
            "unrecognized feature gate: DRAListTypeAttribute; did you mean DRAListTypeAttributes?",
        ),
    ],
)
def test_gates_without_effect_are_refused_as_kubernetes_refuses_them(flag: str, text: str) -> None:
    with pytest.raises(GateError) as refused:
        kubernetes(flag)
    assert str(refused.value) == text


def test_every_need_is_a_gate() -> None:
    names = {*map(str, HISTORY), *INERT}
    for gate, needs in NEEDS_BY_NAME.items():
        assert {gate, *needs} <= names
