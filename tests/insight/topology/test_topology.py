"""Devices stand where their attributes say, with whoever has them."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.allocator.features import ALL_FEATURES
from moorage.api.core.placement import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import (
    DeviceClass,
    DeviceTaint,
    DeviceTaintRule,
    DeviceTaintRuleSpec,
    DeviceTaintSelector,
)
from moorage.hardware import Catalogue, NumaNodeForm
from moorage.insight.devices import DeviceState, usage_of
from moorage.insight.snapshot.snapshot import Snapshot
from moorage.insight.topology import topology
from moorage.insight.topology.model import Partitions
from tests.insight.topologies import (
    GPU,
    claim,
    counters,
    device,
    drawn,
    item_of,
    node,
    outline,
    partition,
    result,
    share,
    shareable,
    slice_of,
)

NUMA = "resource.kubernetes.io/numaNode"
ROOT = "resource.kubernetes.io/pcieRoot"
PROFILES = Catalogue().names

# --- places ------------------------------------------------------------------------------------


def test_levels_are_there_only_where_they_are_known() -> None:
    found = drawn(
        slice_of(
            device("loose"),
            device("root", {ROOT: "pci0000:10"}),
            device("numa", {NUMA: 1}),
            device("socket", {"socketID": 0}),
            device("all", {"socketID": 0, NUMA: 0, ROOT: "pci0000:20"}),
        )
    )
    assert outline(found.machines[0]) == [
        "loose",
        ["socket 0", "socket", ["NUMA node 0", ["PCIe root pci0000:20", "all"]]],
        ["NUMA node 1", "numa"],
        ["PCIe root pci0000:10", "root"],
    ]


@pytest.mark.parametrize(
    ("driver", "name"),
    [
        ("gpu.nvidia.com", "numa"),
        ("gpu.nvidia.com", "gpu.nvidia.com/numa"),
        ("gpu.amd.com", "numaNode"),
        ("dra.net", "dra.net/numaNode"),
        ("sriovnetwork.k8snetworkplumbingwg.io", "dra.net/numaNode"),
        ("dra.cpu", "dra.cpu/numaNodeID"),
        ("dra.cpu", "numaNodeID"),
        ("dra.memory", "dra.memory/numaNode"),
    ],
)
def test_names_that_drivers_have_today_are_known(driver: str, name: str) -> None:
    found = drawn(slice_of(device("d", {name: 3}), driver=driver))
    assert outline(found.machines[0]) == [["NUMA node 3", "d"]]


@pytest.mark.parametrize("value", [-1, 4096, "0", ["a"]])
def test_a_value_that_cannot_be_meant_is_passed_over(value: object) -> None:
    found = drawn(slice_of(device("d", {NUMA: value, "numaNode": 2})))
    assert outline(found.machines[0]) == [["NUMA node 2", "d"]]


def test_a_device_with_several_numa_nodes_stands_in_the_first() -> None:
    found = drawn(slice_of(device("d", {NUMA: [6, 4, 5]})))
    assert outline(found.machines[0]) == [["NUMA node 6", "d"]]
    assert item_of(found, "d").place.numa_nodes == (6, 4, 5)


def test_a_device_of_a_whole_socket_stands_in_the_socket() -> None:
    found = drawn(slice_of(device("d", {NUMA: [0, 1], "socketID": 0})))
    assert outline(found.machines[0]) == [["socket 0", "d"]]


def test_a_pcie_root_tells_the_numa_node_of_devices_that_do_not() -> None:
    gpu = device("gpu", {ROOT: "pci0000:10"})
    nic = device("nic", {ROOT: "pci0000:10", "dra.net/numaNode": 1})
    found = drawn(slice_of(gpu, nic))
    assert outline(found.machines[0]) == [["NUMA node 1", ["PCIe root pci0000:10", "gpu", "nic"]]]
    assert item_of(found, "gpu").place.is_inferred


def test_contradictions_tell_nothing() -> None:
    found = drawn(
        slice_of(
            device("a", {NUMA: 0, "socketID": 0}),
            device("b", {NUMA: 0, "socketID": 1}),
            device("c", {NUMA: 0}),
        )
    )
    assert outline(found.machines[0])[-1] == ["NUMA node 0", "c"]


def test_numbers_in_names_are_sorted_as_numbers() -> None:
    found = drawn(slice_of(device("gpu-10"), device("gpu-9"), device("gpu-1")))
    assert outline(found.machines[0]) == ["gpu-1", "gpu-9", "gpu-10"]


# --- nodes -------------------------------------------------------------------------------------


def selector(key: str, *values: str, is_field: bool = False) -> NodeSelector:
    requirement = NodeSelectorRequirement(key=key, operator="In", values=values)
    field = "match_fields" if is_field else "match_expressions"
    return NodeSelector(node_selector_terms=(NodeSelectorTerm(**{field: (requirement,)}),))


def test_devices_of_no_single_node_stand_apart_by_their_reach() -> None:
    found = drawn(
        slice_of(device("everywhere"), pool="a", all_nodes=True),
        slice_of(device("zone"), pool="b", node_selector=selector("zone", "x")),
    )
    assert found.machines == ()
    assert [(box.label, *outline(box)) for box in found.elsewhere] == [
        ("all nodes", "everywhere"),
        ("nodes with zone=x", "zone"),
    ]


def test_a_selector_for_one_name_is_a_node() -> None:
    named = selector("metadata.name", "n7", is_field=True)
    found = drawn(slice_of(device("d"), pool="p", node_selector=named))
    assert [machine.name for machine in found.machines] == ["n7"]


def test_devices_may_choose_their_nodes_themselves() -> None:
    devices = device("d", node_name="n1"), device("e", all_nodes=True)
    found = drawn(slice_of(*devices, pool="p", per_device_node_selection=True))
    assert outline(found.machines[0]) == ["d"]
    assert outline(found.elsewhere[0]) == ["e"]


def test_nodes_without_devices_are_counted_and_devices_without_nodes_shown() -> None:
    found = drawn(node("n"), node("empty"), slice_of(device("d")), slice_of(pool="m"))
    assert found.nodes_without_devices == 1
    assert [machine.is_known for machine in found.machines] == [True]
    lonely = drawn(node("m"), slice_of(device("d")))
    assert [machine.is_known for machine in lonely.machines] == [False]
    no_nodes = drawn(slice_of(device("d")))
    assert [machine.is_known for machine in no_nodes.machines] == [True]


# --- owners ------------------------------------------------------------------------------------


def test_the_owner_is_the_claim_with_its_pods() -> None:
    found = drawn(slice_of(device("d")), claim("c", result("d"), pods=("p2", "p1")))
    (owner,) = item_of(found, "d").owners
    assert (str(owner), owner.users) == ("team/c", ("pod p1", "pod p2"))
    assert found.owners == (owner,)


def test_admin_access_owns_nothing() -> None:
    found = drawn(slice_of(device("d")), claim("c", result("d", admin_access=True)))
    item = item_of(found, "d")
    assert item.is_free
    assert [str(owner) for owner in item.admins] == ["team/c"]
    assert found.owners == ()


def test_shares_have_several_owners_and_add_up() -> None:
    found = drawn(
        slice_of(shareable("d", memory="10Gi")),
        claim("a", share("d", 1, memory="1Gi"), share("d", 2, memory="1Gi")),
        claim("b", share("d", 3, memory="3Gi")),
    )
    item = item_of(found, "d")
    (use,) = item.uses
    assert [(str(owner), str(amount)) for owner, amount in use.by_owner] == [
        ("team/a", "2Gi"),
        ("team/b", "3Gi"),
    ]
    assert (str(use.taken), use.fraction) == ("5Gi", 0.5)
    assert not item.conflict


def test_two_owners_of_a_whole_device_are_a_conflict() -> None:
    found = drawn(slice_of(device("d")), claim("a", result("d")), claim("b", result("d")))
    assert item_of(found, "d").conflict


def test_a_held_device_that_no_slice_has_is_shown() -> None:
    found = drawn(claim("a", result("ghost")))
    assert outline(found.elsewhere[0]) == ["ghost"]
    assert item_of(found, "ghost").problem == "no slice has it"


# --- partitions --------------------------------------------------------------------------------


def test_partitions_of_one_thing_are_one_unit() -> None:
    found = drawn(
        slice_of(partition("gpu-0", 7), partition("gpu-0-a", 4), device("x"), count=2),
        slice_of(name="counters", count=2, shared_counters=(counters(7),)),
    )
    together, alone = found.machines[0].units
    assert isinstance(together, Partitions)
    assert [item.name for item in together.items] == ["gpu-0", "gpu-0-a"]
    assert alone.name == "x"


def test_partitions_without_room_name_who_has_it() -> None:
    found = drawn(
        slice_of(partition("all", 7), partition("four", 4), partition("three", 3), count=2),
        slice_of(name="counters", count=2, shared_counters=(counters(7),)),
        claim("c", result("four")),
    )
    blocked = {item.name: [str(owner) for owner in item.blocked_by] for item in found.items()}
    assert blocked == {"all": ["team/c"], "four": [], "three": []}


# --- what cannot be had ------------------------------------------------------------------------


def test_devices_of_old_generations_are_unusable_unless_they_are_still_there() -> None:
    found = drawn(
        slice_of(device("old"), device("both"), generation=1),
        slice_of(device("both"), generation=2),
    )
    assert item_of(found, "both").problem == ""
    assert item_of(found, "old").problem == "generation 1 is old: the pool is at 2"


def test_pools_that_do_not_count_are_unusable() -> None:
    incomplete = drawn(slice_of(device("d"), count=3))
    assert item_of(incomplete, "d").problem == "its pool is incomplete: 1 of 3 slices"
    twice = drawn(slice_of(device("d"), device("d")))
    assert "duplicate device name d" in item_of(twice, "d").problem
    dangling = drawn(slice_of(partition("d", 1)))
    assert "counter set gpu-0 not found" in item_of(dangling, "d").problem


def test_taints_come_from_slices_and_rules() -> None:
    own = DeviceTaint(key="own", value="x", effect="NoExecute")
    rule = DeviceTaintRule(
        metadata=ObjectMeta(name="r"),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(driver=GPU, device="d"),
            taint=DeviceTaint(key="ruled", effect="NoSchedule"),
        ),
    )
    found = drawn(slice_of(device("d", taints=(own,)), device("e")), rule)
    assert item_of(found, "d").taints == ("own=x:NoExecute", "ruled:NoSchedule")
    assert item_of(found, "e").taints == ()
    assert [item.is_free for item in found.items()] == [False, True]
    nobody = DeviceTaintRule(metadata=ObjectMeta(name="r"))
    assert item_of(drawn(slice_of(device("d")), nobody), "d").taints == ()


def test_rules_may_select_by_class() -> None:
    rule = DeviceTaintRule(
        metadata=ObjectMeta(name="r"),
        spec=DeviceTaintRuleSpec(
            device_selector=DeviceTaintSelector(device_class_name="all"),
            taint=DeviceTaint(key="ruled", effect="NoSchedule"),
        ),
    )
    found = drawn(slice_of(device("d")), rule, DeviceClass(metadata=ObjectMeta(name="all")))
    assert item_of(found, "d").state is DeviceState.TAINTED


def test_what_a_taint_without_effect_marks_is_free() -> None:
    taint = DeviceTaint(key="seen", effect="None")
    item = item_of(drawn(slice_of(device("d", taints=(taint,)))), "d")
    assert item.is_free
    assert item.taints == ("seen:None",)


def test_gates_decide_what_can_be_had() -> None:
    objects = Snapshot.of(
        [
            slice_of(partition("d", 1), count=2),
            slice_of(name="counters", count=2, shared_counters=(counters(7),)),
        ]
    )
    assert item_of(topology(objects), "d").is_free
    off = usage_of(objects, ALL_FEATURES._replace(partitionable_devices=False))
    assert item_of(topology(objects, off), "d").state is DeviceState.UNUSABLE


# --- laws --------------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_every_device_of_a_profile_stands_once_whatever_the_order(profile: str) -> None:
    fleet = Catalogue().fleet(profile, NumaNodeForm.LIST)
    objects = [*fleet.nodes, *fleet.slices]
    found = topology(Snapshot.of(objects))
    published = sorted(
        (each.spec.driver, each.spec.pool.name, device.name)
        for each in fleet.slices
        for device in each.spec.devices or ()
    )
    assert sorted(item.key for item in found.items()) == published
    random.Random(7).shuffle(objects)
    assert topology(Snapshot.of(objects)) == found


@given(st.integers(0, 2**32))
@settings(max_examples=25)
def test_the_picture_says_of_every_device_what_the_list_says(seed: int) -> None:
    snapshot = _cluster(random.Random(seed))
    listed = {each.id: each.state for each in usage_of(snapshot).devices if not each.is_replaced}
    assert {item.key: item.state for item in topology(snapshot).items()} == listed


def _cluster(choice: random.Random) -> Snapshot:
    """Return partitions, shared and plain devices, some held, in pools that may be incomplete."""
    taint = DeviceTaint(key="broken", effect=choice.choice(["NoSchedule", "None"]))
    slices = [
        slice_of(
            *(partition(f"p{size}", size) for size in (1, 2, 4)),
            shareable("s", memory="8Gi"),
            device("d", taints=choice.choice([(), (taint,)])),
            count=choice.choice([2, 2, 3]),
            generation=choice.choice([1, 2]),
        ),
        slice_of(name="counters", count=2, shared_counters=(counters(4),)),
    ]
    held = choice.sample(["p1", "p2", "p4", "d", "ghost"], choice.randrange(3))
    claims = [claim(f"c{name}", result(name)) for name in held]
    claims.append(claim("shares", share("s", 1, memory=choice.choice(["1Gi", "8Gi", "9Gi"]))))
    return Snapshot.of([node(choice.choice(["n", "m"])), *slices, *claims])


def test_a_board_is_drawn_as_it_is() -> None:
    fleet = Catalogue().fleet("dgx-h100", NumaNodeForm.LIST)
    (machine,) = topology(Snapshot.of([*fleet.nodes, *fleet.slices])).machines
    sockets = outline(machine)
    assert [(label, inside[0]) for label, inside in sockets] == [
        ("socket 0", "NUMA node 0"),
        ("socket 1", "NUMA node 1"),
    ]
    first = sockets[0][1]
    assert first[:4] == [
        "NUMA node 0",
        "cpudevnuma000",
        "memory-numa0",
        ["PCIe root pci0000:15", "pci-0000-18-00-0", "gpu-0"],
    ]
