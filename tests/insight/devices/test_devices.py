"""The states of devices, and their descriptions."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.allocator import ALL_FEATURES
from moorage.insight.devices import DeviceState, usage_of
from moorage.insight.devices.model import by_node, count_states
from moorage.insight.snapshot.snapshot import Snapshot
from tests.insight.devices.clusters import (
    GPU,
    by_name,
    claim_of,
    class_of,
    node,
    result,
    rule_of,
    share,
    slice_of,
    states,
)


def holdings(*objects: Any, **options: Any) -> Any:
    return usage_of(Snapshot.of(objects), **options)


def partition(name: str, memory: str, *, groups: list[str] | None = None) -> dict[str, Any]:
    consumption: dict[str, Any] = {"counterSet": "gpu", "counters": {"memory": {"value": memory}}}
    if groups is not None:
        consumption["compatibilityGroups"] = groups
    return {"name": name, "consumesCounters": [consumption]}


def partitioned(*devices: dict[str, Any], memory: str = "80Gi") -> list[Any]:
    counters = [{"name": "gpu", "counters": {"memory": {"value": memory}}}]
    return [
        slice_of(name="counters", count=2, sharedCounters=counters),
        slice_of(*devices, name="devices", count=2),
    ]


def nic(**policy: Any) -> dict[str, Any]:
    bandwidth = {"value": "100", **({"requestPolicy": policy} if policy else {})}
    return {"name": "nic", "allowMultipleAllocations": True, "capacity": {"bandwidth": bandwidth}}


def test_device_of_a_claim_is_taken_and_names_its_holder() -> None:
    found = holdings(node(), slice_of("a", "b"), claim_of("c", result("a"), pods=("p", "q")))
    assert states(found) == {"a": "taken", "b": "free"}
    (holder,) = by_name(found)["a"].holders
    assert (str(holder.claim), holder.request) == ("ns/c", "r")
    assert list(map(str, holder.consumers)) == ["pod/p", "pod/q"]


def test_admin_access_takes_nothing_and_is_told_apart() -> None:
    found = holdings(node(), slice_of("a"), claim_of("c", result("a", adminAccess=True)))
    device = by_name(found)["a"]
    assert device.state is DeviceState.FREE
    assert not device.holders
    assert [str(holder.claim) for holder in device.admins] == ["ns/c"]


def test_partition_is_blocked_by_who_has_its_counters() -> None:
    slices = partitioned(
        partition("whole", "80Gi"), partition("half-0", "40Gi"), partition("half-1", "40Gi")
    )
    found = holdings(node(), *slices, claim_of("c", result("half-0")))
    assert states(found) == {"whole": "blocked", "half-0": "taken", "half-1": "free"}
    (reason,) = by_name(found)["whole"].reasons
    assert reason.text == "counter gpu/memory: needs 80Gi, 40Gi of 80Gi left"
    (user,) = reason.users
    assert (user.device.device, list(map(str, user.claims))) == ("half-0", ["ns/c"])


def test_overdrawn_counters_block_every_partition() -> None:
    slices = partitioned(partition("a", "60Gi"), partition("b", "60Gi"), partition("c", "0"))
    found = holdings(node(), *slices, claim_of("x", result("a")), claim_of("y", result("b")))
    device = by_name(found)["c"]
    assert device.state is DeviceState.BLOCKED
    assert device.reasons[0].text == "counter gpu/memory is overdrawn: 120Gi of 80Gi used"


def test_partition_is_blocked_by_devices_that_it_is_not_compatible_with() -> None:
    slices = partitioned(
        partition("a", "10Gi", groups=["x"]),
        partition("b", "10Gi", groups=["y"]),
        partition("c", "10Gi", groups=["x", "y"]),
    )
    found = holdings(node(), *slices, claim_of("c", result("a")))
    assert states(found) == {"a": "taken", "b": "blocked", "c": "free"}
    (reason,) = by_name(found)["b"].reasons
    assert "compatibility groups y on counter set gpu" in reason.text
    assert [user.device.device for user in reason.users] == ["a"]


def test_shared_device_tells_what_is_used_and_left() -> None:
    claims = [claim_of("x", share(1, "nic", bandwidth="30")), claim_of("y", share(2, "nic"))]
    found = by_name(holdings(node(), slice_of(nic(default="10")), *claims))["nic"]
    assert found.state is DeviceState.SHARED
    assert found.is_open
    (room,) = found.capacities
    assert tuple(map(str, room)) == ("bandwidth", "100", "30", "70")
    assert [holder.share_id for holder in found.holders] == ["share-1", "share-2"]


@pytest.mark.parametrize(
    ("policy", "used", "state"),
    [
        ({}, "100", "taken"),
        ({}, "99", "shared"),
        ({"default": "50", "validRange": {"min": "10"}}, "90", "shared"),
        ({"default": "50", "validRange": {"min": "10"}}, "91", "taken"),
        ({"default": "50", "validValues": ["20", "50"]}, "80", "shared"),
        ({"default": "50", "validValues": ["20", "50"]}, "81", "taken"),
    ],
)
def test_shares_take_a_device_when_no_request_fits_any_more(
    policy: dict[str, Any], used: str, state: str
) -> None:
    claim = claim_of("x", share(1, "nic", bandwidth=used))
    assert states(holdings(node(), slice_of(nic(**policy)), claim)) == {"nic": state}


def test_taints_are_told_with_their_rule() -> None:
    own = {"key": "own", "effect": "NoExecute"}
    mild = {"key": "mild", "effect": "None"}
    found = holdings(
        node(),
        slice_of({"name": "a", "taints": [own]}, "b", "c", {"name": "d", "taints": [mild]}),
        rule_of("broken", device="b"),
        rule_of("preview", effect="None", device="c"),
    )
    assert states(found) == {"a": "tainted", "b": "tainted", "c": "free", "d": "free"}
    devices = by_name(found)
    assert [reason.text for reason in devices["a"].reasons] == ["own:NoExecute"]
    assert [reason.text for reason in devices["b"].reasons] == ["k=v:NoSchedule (rule broken)"]
    assert [(str(mark), mark.rule) for mark in devices["c"].taints] == [("k=v:None", "preview")]


def test_rules_and_taints_do_nothing_while_they_are_off() -> None:
    objects = [node(), slice_of("a"), rule_of("broken")]
    assert states(holdings(*objects, with_taint_rules=False)) == {"a": "free"}
    off = ALL_FEATURES._replace(device_taints=False)
    assert states(holdings(*objects, features=off)) == {"a": "free"}


def test_rule_by_class_means_the_devices_of_the_class() -> None:
    device_class = class_of("some", 'device.name == "b"')
    rule = rule_of("broken", deviceClassName="some")
    found = holdings(node(), slice_of("a", "b"), device_class, rule)
    assert states(found) == {"a": "free", "b": "tainted"}


@pytest.mark.parametrize(
    ("slices", "reason"),
    [
        ([slice_of("a", count=3)], "its pool is incomplete: 1 of 3 slices"),
        (
            [slice_of("a", name="x", count=2), slice_of("a", name="y", count=2)],
            "its pool is invalid: duplicate device name a",
        ),
        ([slice_of("a", pool="elsewhere")], "no node is there that it is for: elsewhere"),
        (
            [
                slice_of(
                    "a",
                    nodeSelector={
                        "nodeSelectorTerms": [
                            {"matchExpressions": [{"key": "zone", "operator": "Exists"}]}
                        ]
                    },
                )
            ],
            "no node is there that it is for: zone",
        ),
        (
            [slice_of("a", skipNodeOperations=["NodePrepareResources"])],
            "its slice skips node operations, which its node cannot do",
        ),
    ],
)
def test_unusable_device_says_why(slices: list[Any], reason: str) -> None:
    found = holdings(node(), *slices)
    assert {each.state for each in found.devices} == {DeviceState.UNUSABLE}
    assert {each.reasons[0].text for each in found.devices} == {reason}


def test_old_generation_is_unusable_and_its_holder_has_the_new_device() -> None:
    old, new = slice_of("a", "b", name="old"), slice_of("a", name="new", generation=2)
    found = holdings(node(), old, new, claim_of("c", result("a")), claim_of("d", result("b")))
    told = {(each.slice_name, each.id.device): each for each in found.devices}
    assert told["new", "a"].state is DeviceState.TAKEN
    assert told["old", "a"].state is DeviceState.UNUSABLE
    assert not told["old", "a"].holders
    assert told["old", "a"].reasons[0].text == "generation 1 is old: the pool is at 2"
    assert told["old", "b"].state is DeviceState.TAKEN  # nothing replaced it


@pytest.mark.parametrize(
    ("feature", "device", "reason"),
    [
        (
            "device_binding_and_status",
            {"name": "a", "bindingConditions": ["Ready"], "bindingFailureConditions": ["Failed"]},
            "has binding conditions; DRADeviceBindingConditions is off",
        ),
        (
            "compatibility_groups",
            partition("a", "1", groups=["x"]),
            "its slice needs DRADeviceCompatibilityGroups, which is off",
        ),
    ],
)
def test_device_of_a_feature_that_is_off_is_unusable(
    feature: str, device: dict[str, Any], reason: str
) -> None:
    features = ALL_FEATURES._replace(**{feature: False})
    found = by_name(holdings(node(), slice_of(device), features=features))["a"]
    assert found.state is DeviceState.UNUSABLE
    assert found.reasons[0].text == reason


def test_device_for_all_nodes_is_free_if_one_node_can_use_it() -> None:
    operations: dict[str, Any] = {"allNodes": True, "skipNodeOperations": ["NodePrepareResources"]}
    able = node("n2", declared=["DRAOptionalNodeOperations"])
    assert states(holdings(node(), slice_of("a", **operations))) == {"a": "unusable"}
    assert states(holdings(node(), able, slice_of("a", **operations))) == {"a": "free"}


def test_device_may_choose_its_nodes_itself() -> None:
    devices = [{"name": "a", "nodeName": "n1"}, {"name": "b", "nodeName": "n9"}]
    found = holdings(node(), slice_of(*devices, perDeviceNodeSelection=True))
    assert states(found) == {"a": "free", "b": "unusable"}
    assert [str(each.node_selection) for each in found.devices] == ["n1", "n9"]


def test_without_nodes_devices_are_judged_as_if_they_were_there() -> None:
    selector = {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]
    }
    found = holdings(
        slice_of("a"),
        slice_of("b", name="s2", pool="p2", nodeSelector=selector),
        slice_of("c", name="s3", pool="p3", allNodes=True),
        slice_of(
            {"name": "d", "nodeSelector": selector},
            name="s4",
            pool="p4",
            perDeviceNodeSelection=True,
        ),
    )
    assert not found.are_nodes_known
    assert set(states(found).values()) == {"free"}
    assert [str(each.node_selection) for each in found.devices] == ["n1", "zone", "<all>", "zone"]


def test_selector_that_cannot_be_read_makes_everything_unusable() -> None:
    bad = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "!", "operator": "Odd"}]}]}
    found = holdings(node(), slice_of("a"), slice_of("b", name="s2", pool="p", nodeSelector=bad))
    assert states(found) == {"a": "unusable", "b": "unusable"}
    assert "gather pool information" in by_name(found)["a"].reasons[0].text


def test_device_that_no_slice_has_is_missing() -> None:
    found = holdings(node(), slice_of("a"), claim_of("c", result("gone", pool="p")))
    device = by_name(found)["gone"]
    assert (device.state, str(device.id)) == (DeviceState.MISSING, f"{GPU}/p/gone")
    assert [str(holder.claim) for holder in device.holders] == ["ns/c"]


def test_holders_are_sorted_by_the_names_of_their_claims() -> None:
    claims = [claim_of(name, share(number, "nic")) for number, name in enumerate("yxz")]
    found = by_name(holdings(node(), slice_of(nic(default="10")), *claims))["nic"]
    assert [str(holder.claim) for holder in found.holders] == ["ns/x", "ns/y", "ns/z"]


def test_two_holders_of_one_device_are_a_conflict() -> None:
    claims = [claim_of("c", result("a")), claim_of("d", result("a"))]
    device = by_name(holdings(node(), slice_of("a"), *claims))["a"]
    assert device.state is DeviceState.TAKEN
    assert device.conflict == "2 holders of a device that has one"
    twice = claim_of("c", result("a", request="r"), result("a", request="s"))
    assert by_name(holdings(node(), slice_of("a"), twice))["a"].conflict


def test_shares_beyond_the_capacity_are_a_conflict() -> None:
    claims = [claim_of(name, share(1, "nic", bandwidth="60")) for name in ("x", "y")]
    device = by_name(holdings(node(), slice_of(nic()), *claims))["nic"]
    assert device.state is DeviceState.TAKEN
    assert device.conflict == "shares have more of bandwidth than there is"


def test_numbers_add_up_by_pool_driver_and_node() -> None:
    found = holdings(
        node(),
        node("n2"),
        slice_of("a", "b"),
        slice_of("a", name="s2", pool="n2"),
        claim_of("c", result("a"), result("gone")),
    )
    by_pool = count_states(found.devices, lambda each: (each.id.driver, each.id.pool))
    by = {key: counts.states for key, counts in by_pool.items()}
    assert by == {
        (GPU, "n1"): {DeviceState.TAKEN: 1, DeviceState.FREE: 1, DeviceState.MISSING: 1},
        (GPU, "n2"): {DeviceState.FREE: 1},
    }
    assert count_states(found.devices, lambda each: (each.id.driver,))[GPU,].total == 3
    assert count_states(found.devices, by_node)["n2", GPU].of(DeviceState.FREE) == 1
