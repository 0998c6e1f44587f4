"""One pod at a time: its node, its devices, and the message if it gets none."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core.pod import Pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.features import ALL_FEATURES
from moorage.scheduler.reservation import release
from moorage.scheduler.scheduling_cycle import Placed, schedule
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import (
    GPU,
    claim,
    cluster,
    device_class,
    devices_of,
    only_on,
    placed,
    put,
    reasons,
    refused,
    slice_of,
    taint_rule,
    user,
    wanting,
)

TWO = (node("node-1"), node("node-2"), device_class())
NOT_HELPFUL = "0/2 nodes are available: 2 Preemption is not helpful for scheduling."


def within(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


def near(*nodes: str) -> dict[str, Any]:
    """Return the node affinity that names nodes."""
    terms = {"nodeSelectorTerms": [{"matchFields": [within("metadata.name", *nodes)]}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


# --- claims -------------------------------------------------------------------------------------


def test_a_pod_goes_where_its_claim_gets_devices() -> None:
    made = cluster(*TWO, slice_of("node-2", 2), claim("c", wanting(2)))
    found = placed(made, user("p", "c"))
    assert found.node == "node-2"
    assert devices_of(found) == ["node-2/gpu-0", "node-2/gpu-1"]
    assert [each.name for each in found.claims[0].status.reserved_for] == ["p"]


def test_a_slice_with_a_node_selector_that_cannot_be_read_ends_the_attempt() -> None:
    rule = {"key": "zone", "operator": "Maybe", "values": ["a"]}
    where = {"nodeSelector": {"nodeSelectorTerms": [{"matchExpressions": [rule]}]}}
    made = cluster(*TWO, slice_of("node-1", where=where), claim("c"))
    assert 'Unsupported value: "Maybe"' in refused(made, user("p", "c")).reason


def test_devices_that_a_pod_got_are_not_given_again() -> None:
    made = cluster(*TWO, slice_of("node-2"), claim("a"), claim("b"))
    placed(made, user("p", "a"))
    assert refused(made, user("q", "b")).message == (
        "0/2 nodes are available: 2 cannot allocate all claims. preemption: "
        "0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_a_claim_that_two_entries_mean_is_allocated_once() -> None:
    made = cluster(*TWO, slice_of("node-1", 1), claim("c"))
    found = placed(made, user("p", "c", "c"))
    assert devices_of(found) == ["node-1/gpu-0"]
    assert len(found.claims[0].status.reserved_for) == 1


def test_a_pod_that_shares_a_claim_goes_to_its_devices() -> None:
    made = cluster(*TWO, slice_of("node-2"), claim("c"))
    assert placed(made, user("p", "c")).node == "node-2"
    again = placed(made, user("q", "c"))
    assert again.node == "node-2"
    assert [each.name for each in again.claims[0].status.reserved_for] == ["p", "q"]


def test_devices_of_a_network_can_be_used_from_every_node_that_they_are_for() -> None:
    zones = [node(f"node-{n}", labels={"zone": "ab"[n % 2]}) for n in range(4)]
    chosen = {"nodeSelectorTerms": [{"matchExpressions": [within("zone", "b")]}]}
    made = cluster(
        *zones, device_class(), slice_of("net", where={"nodeSelector": chosen}), claim("c")
    )
    first = placed(made, user("p", "c", requests={"cpu": "3"}))
    assert first.node == "node-1"
    assert placed(made, user("q", "c", requests={"cpu": "3"})).node == "node-3"
    assert reasons(made, user("r", "c", requests={"cpu": "3"})) == {
        "node-0": ("resourceclaim not available on the node",),
        "node-1": ("Insufficient cpu",),
        "node-2": ("resourceclaim not available on the node",),
        "node-3": ("Insufficient cpu",),
    }


def test_names_of_devices_can_be_read_if_extensions_are_on() -> None:
    selectors = [{"cel": {"expression": 'device.name == "second"'}}]
    wanted = wanting()
    wanted["exactly"]["selectors"] = selectors
    objects = (
        node("node-1"),
        node("node-2"),
        device_class(),
        slice_of("node-1", listed=[{"name": "first"}]),
        slice_of("node-2", listed=[{"name": "second"}]),
        claim("c", wanted),
    )
    assert devices_of(placed(cluster(*objects), user("p", "c"))) == ["node-2/second"]
    strict = Cluster(extensions=False)
    put(strict, objects)
    assert "undefined field 'name'" in refused(strict, user("p", "c")).message


def test_devices_for_all_nodes_are_given_once() -> None:
    made = cluster(*TWO, slice_of("net", where={"allNodes": True}), claim("a"), claim("b"))
    assert placed(made, user("p", "a")).node == "node-1"
    assert reasons(made, user("q", "b"))["node-2"] == ("cannot allocate all claims",)


# --- what comes first ---------------------------------------------------------------------------

NO_CLASS = "request gpu: device class none does not exist"
CONTRARY = {"nodeName": "node-1", "affinity": near("node-2")}
CONTRARY_TEXT = "node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] simultaneously"


@pytest.mark.parametrize(
    ("one", "reason", "message"),
    [
        pytest.param(
            user("p", "none"), 'could not find ResourceClaim "default/none"', "", id="no claim"
        ),
        pytest.param(
            user("p", "dying"), 'resourceclaim "dying" is being deleted', "", id="a dying claim"
        ),
        pytest.param(
            user("p", "none", schedulingGates=[{"name": "wait"}]),
            "waiting for scheduling gates: [wait]",
            "",
            id="gates before claims",
        ),
        pytest.param(
            pod("p", schedulingGroup={"podGroupName": "none"}),
            'waiting for pods\'s pod group "none" to appear in scheduling queue',
            "",
            id="no group",
        ),
        pytest.param(
            user("p", "none", **CONTRARY),
            'could not find ResourceClaim "default/none"',
            "",
            id="no claim before nodes that contradict each other",
        ),
        pytest.param(
            user("p", "classless", **CONTRARY),
            CONTRARY_TEXT,
            f"0/2 nodes are available: {CONTRARY_TEXT}. preemption: {NOT_HELPFUL}",
            id="nodes that contradict each other before classes",
        ),
        pytest.param(
            user("p", "classless"),
            NO_CLASS,
            f"0/2 nodes are available: {NO_CLASS}. preemption: {NOT_HELPFUL}",
            id="no class",
        ),
        pytest.param(
            user("p", "classless", preemptionPolicy="Never"),
            NO_CLASS,
            f"0/2 nodes are available: {NO_CLASS}. preemption: "
            "not eligible due to preemptionPolicy=Never.",
            id="no class, without preemption",
        ),
        pytest.param(
            user("p", "c", nodeName="node-2"),
            "0/2 nodes are available: 1 cannot allocate all claims, "
            "1 node(s) didn't satisfy plugin(s) [NodeName].",
            "0/2 nodes are available: 1 cannot allocate all claims, "
            f"1 node(s) didn't satisfy plugin(s) [NodeName]. preemption: {NOT_HELPFUL}",
            id="a node that is named",
        ),
        pytest.param(
            user("p", "c", requests={"cpu": "9"}),
            "0/2 nodes are available: 2 Insufficient cpu.",
            f"0/2 nodes are available: 2 Insufficient cpu. preemption: {NOT_HELPFUL}",
            id="room before devices",
        ),
    ],
)
def test_what_is_said_first(one: Pod, reason: str, message: str) -> None:
    made = cluster(
        *TWO,
        slice_of("node-1"),
        claim("c"),
        claim("classless", wanting(device_class="none")),
        claim("dying", deletionTimestamp="2026-01-01T00:00:00Z"),
    )
    found = refused(made, one)
    assert (found.reason, found.message) == (reason, message)


def test_without_nodes_that_is_all_that_is_said() -> None:
    assert refused(cluster(), pod()).message == "no nodes available to schedule pods"


# --- claims with devices ------------------------------------------------------------------------


def held(name: str = "c", **more: Any) -> Any:
    return claim(name, has=[("node-1", "gpu-0")], at=only_on("node-1"), **more)


BINDING = {"bindingConditions": ["ready"], "bindingFailureConditions": ["failed"]}


def reported(**conditions: str) -> list[dict[str, Any]]:
    listed = [
        {"type": kind, "status": status, "lastTransitionTime": None, "reason": "r", "message": ""}
        for kind, status in conditions.items()
    ]
    return [{"driver": GPU, "pool": "node-1", "device": "gpu-0", "conditions": listed}]


@pytest.mark.parametrize(
    ("timestamp", "statuses", "fits"),
    [
        ("2026-01-01T11:59:00Z", [], True),
        ("2026-01-01T11:49:59Z", [], False),
        ("2026-01-01T11:49:59Z", reported(ready="True"), True),
        ("2026-01-01T11:49:59Z", reported(ready="False"), False),
        ("2026-01-01T11:59:00Z", reported(failed="True"), False),
        ("2026-01-01T11:59:00Z", reported(ready="True", failed="True"), False),
        ("2026-01-01T11:59:00Z", reported(ready="True", failed="False"), True),
    ],
)
def test_devices_that_fail_or_take_too_long_are_given_up(
    timestamp: str, statuses: list[dict[str, Any]], fits: bool
) -> None:
    held_up = held(results=BINDING, timestamp=timestamp, statuses=statuses, reserved=["p"])
    made = cluster(*TWO, slice_of("node-1"), held_up)
    if fits:
        assert placed(made, user("p", "c")).node == "node-1"
        return
    found = refused(made, user("p", "c"))
    assert found.message == (
        "0/2 nodes are available: 2 resourceclaim not available on the node. "
        f"deallocation of ResourceClaim completed, preemption: {NOT_HELPFUL}"
    )
    assert found.deallocation is not None
    assert found.deallocation.claim.metadata.name == "c"


def test_a_claim_that_others_hold_is_not_given_up() -> None:
    full = pod("full", requests={"cpu": "4"}, nodeName="node-1")
    made = cluster(*TWO, slice_of("node-1"), held(reserved=["other"]), full)
    found = refused(made, user("p", "c", requests={"cpu": "1"}))
    assert found.deallocation is None
    assert "deallocation" not in found.message


def test_a_claim_whose_node_is_full_is_given_up() -> None:
    full = pod("full", requests={"cpu": "4"}, nodeName="node-1")
    made = cluster(*TWO, slice_of("node-1"), held(), full)
    found = refused(made, user("p", "c", requests={"cpu": "1"}))
    assert found.message == (
        "0/2 nodes are available: 1 Insufficient cpu, 1 resourceclaim not available on the node. "
        "deallocation of ResourceClaim completed, preemption: 0/2 nodes are available: "
        "1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling."
    )


def test_devices_without_node_operations_need_a_node_that_can_do_without() -> None:
    able = node("node-2", status={"declaredFeatures": ["DRAOptionalNodeOperations"]})
    shared = claim("c", has=[("net", "gpu-0")], results={"skipNodeOperations": ["Prepare"]})
    made = cluster(node("node-1"), able, device_class(), shared)
    assert placed(made, user("p", "c")).node == "node-2"


# --- extended resources -------------------------------------------------------------------------

RESOURCE = "example.com/gpu"
EXPLICIT = device_class(extendedResourceName=RESOURCE)


def asking(name: str, number: int = 1, *, resource: str = RESOURCE, **more: Any) -> Pod:
    return pod(name, requests={resource: str(number)}, **more)


@pytest.mark.parametrize("resource", [RESOURCE, "deviceclass.resource.kubernetes.io/gpu"])
def test_devices_serve_extended_resources(resource: str) -> None:
    made = cluster(node("node-1"), node("node-2"), EXPLICIT, slice_of("node-2", 3))
    found = placed(made, asking("p", 2, resource=resource))
    assert devices_of(found) == ["node-2/gpu-0", "node-2/gpu-1"]
    status = found.pod.status.extended_resource_claim_status
    assert status is not None
    assert status.resource_claim_name == found.claims[0].metadata.name
    assert [each.request_name for each in status.request_mappings] == ["container-0-request-0"]
    assert reasons(made, asking("q", 2, resource=resource))["node-2"] == (
        "cannot allocate all claims",
    )


def test_a_node_with_a_device_plugin_serves_with_that() -> None:
    plugin = node("node-1", allocatable={"cpu": "4", "memory": "8Gi", "pods": "9", RESOURCE: "1"})
    made = cluster(plugin, node("node-2"), EXPLICIT, slice_of("node-2", 1))
    first, second = placed(made, asking("p")), placed(made, asking("q"))
    assert {first.node: devices_of(first), second.node: devices_of(second)} == {
        "node-1": [],
        "node-2": ["node-2/gpu-0"],
    }
    assert reasons(made, asking("r")) == {
        "node-1": (f"Insufficient {RESOURCE}",),
        "node-2": ("cannot allocate all claims",),
    }


def test_init_containers_use_the_devices_of_those_that_stay() -> None:
    made = cluster(node("node-1"), EXPLICIT, slice_of("node-1", 2))
    first = {"name": "first", "resources": {"requests": {RESOURCE: "2"}}}
    assert len(devices_of(placed(made, asking("p", 1, initContainers=[first])))) == 2


def test_a_special_claim_that_is_left_over_stops_its_pod_and_no_other() -> None:
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "default/p", "controller": True}
    left_over = claim(
        "p-extended-resources-1",
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        ownerReferences=[owner],
    )
    made = cluster(node("node-1"), EXPLICIT, slice_of("node-1", 2), left_over)
    found = refused(made, asking("p"))
    assert found.message == (
        "0/1 nodes are available: 1 cannot schedule extended resource claim. deletion of "
        "ResourceClaim completed, preemption: "
        "0/1 nodes are available: 1 Preemption is not helpful for scheduling."
    )
    assert found.deallocation is not None
    assert found.deallocation.is_deleted
    assert placed(made, asking("q")).node == "node-1"
    assert refused(made, asking("p")).deallocation is not None


def test_a_class_that_comes_later_serves_a_resource() -> None:
    made = cluster(node("node-1"), slice_of("node-1"))
    assert reasons(made, asking("p")) == {"node-1": (f"Insufficient {RESOURCE}",)}
    made.put_class(EXPLICIT)
    assert placed(made, asking("p")).node == "node-1"
    made.remove_class("gpu")
    assert reasons(made, asking("q")) == {"node-1": (f"Insufficient {RESOURCE}",)}


# --- node resources that come with devices ------------------------------------------------------


def cores(number: str) -> dict[str, Any]:
    return {"nodeAllocatableResources": {"cpu": {"mapping": {"deviceMultiplier": number}}}}


def test_what_devices_stand_for_is_taken_of_the_node() -> None:
    made = cluster(
        node("node-1"), device_class(), slice_of("node-1", 3, **cores("2")), claim("a"), claim("b")
    )
    first = placed(made, user("p", "a", requests={"cpu": "1"}))
    statuses = first.pod.status.node_allocatable_resource_claim_statuses
    assert statuses is not None
    assert [(each.name, str(each.quantity)) for each in statuses[0].mapping] == [("cpu", "2")]
    assert reasons(made, user("q", "b")) == {"node-1": ("Insufficient cpu",)}
    assert not refused(made, user("q", "b")).diagnosis.node_to_status["node-1"].is_unresolvable


def test_without_the_feature_devices_stand_for_nothing() -> None:
    features = ALL_FEATURES._replace(node_allocatable=False)
    objects = (node("node-1"), device_class(), slice_of("node-1", 3, **cores("3")))
    made = cluster(*objects, claim("a"), claim("b"), features=features)
    placed(made, user("p", "a"))
    assert placed(made, user("q", "b")).node == "node-1"


SHARED = "node allocatable resource claim c has a mapped device and cannot be shared across pods"


def test_a_claim_for_node_resources_is_for_one_pod() -> None:
    made = cluster(*TWO, slice_of("node-1", 3, **cores("1")), held(reserved=["p"]))
    other = user("q", "c")
    assert reasons(made, other) == {
        "node-1": (SHARED,),
        "node-2": ("resourceclaim not available on the node",),
    }
    assert placed(made, user("p", "c")).node == "node-1", "the pod that has it may use it"


def test_claims_alike_with_devices_that_are_not_are_told_apart() -> None:
    small, large = cores("1"), cores("5")
    listed = [{"name": "gpu-0", **large}, {"name": "gpu-1", **small}]
    one = claim("one", has=[("node-1", "gpu-0")], at=only_on("node-1"))
    two = claim("two", has=[("node-1", "gpu-1")], at=only_on("node-1"))
    made = cluster(*TWO, slice_of("node-1", listed=listed), one, two)
    assert reasons(made, user("p", "one"))["node-1"] == ("Insufficient cpu",)
    assert placed(made, user("q", "two")).node == "node-1"


# --- what is remembered -------------------------------------------------------------------------


def test_a_pod_is_asked_about_again_when_something_changed() -> None:
    made = cluster(node("node-1"), device_class(), claim("a"))
    one = user("p", "a")

    def fits() -> bool:
        return isinstance(schedule(made, one), Placed)

    assert not fits()
    made.put_slice(slice_of("node-1"))
    assert fits()
    made.put_taint_rule(taint_rule(driver=GPU))
    assert not fits()
    made.remove_taint_rule("rule")
    assert fits()
    made.put_claim(held("b"))
    assert not fits()
    made.remove_claim("default", "b")
    assert fits()
    made.put_class(device_class(selectors=[{"cel": {"expression": "false"}}]))
    assert not fits()
    made.put_class(device_class())
    assert fits()
    made.put_node(node("node-1", unschedulable=True))
    assert not fits()
    made.put_node(node("node-1"))
    assert fits()
    made.remove_slice("node-1-gpu")
    assert not fits()


def test_devices_by_label_follow_the_labels_of_nodes() -> None:
    chosen = {"nodeSelectorTerms": [{"matchExpressions": [within("zone", "b")]}]}
    made = cluster(*TWO, slice_of("net", where={"nodeSelector": chosen}), claim("c"))
    assert len(reasons(made, user("p", "c"))) == 2
    made.put_node(node("node-2", labels={"zone": "b"}))
    assert placed(made, user("p", "c")).node == "node-2"


def test_a_pod_on_a_node_that_comes_later_counts() -> None:
    full = pod("full", requests={"cpu": "4"}, nodeName="node-1")
    made = cluster(full, node("node-1"))
    assert reasons(made, pod("p", requests={"cpu": "1"})) == {"node-1": ("Insufficient cpu",)}
    made.remove_node("node-1")
    made.put_node(node("node-1"))
    assert reasons(made, pod("p", requests={"cpu": "1"})) == {"node-1": ("Insufficient cpu",)}
    made.remove_node("node-1")
    made.remove_pod(full)
    made.put_node(node("node-1"))
    assert placed(made, pod("p", requests={"cpu": "1"})).node == "node-1"


def test_a_pod_that_ended_holds_nothing_and_one_that_is_ending_does() -> None:
    ended = pod("a", requests={"cpu": "4"}, nodeName="node-1", status={"phase": "Succeeded"})
    made = cluster(node("node-1"), ended)
    assert isinstance(schedule(made, pod("p", requests={"cpu": "4"})), Placed)
    dying = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    made.put_pod(pod("b", requests={"cpu": "1"}, nodeName="node-1", metadata=dying))
    assert reasons(made, pod("p", requests={"cpu": "4"})) == {"node-1": ("Insufficient cpu",)}


# --- releasing ----------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2)])
def test_a_shared_claim_keeps_its_devices_until_its_last_pod_is_released(
    order: tuple[int, ...],
) -> None:
    made = cluster(*TWO, slice_of("node-1"), claim("c"), claim("other"))
    found = [placed(made, user(f"p{number}", "c")) for number in range(3)]
    for number in order[:-1]:
        release(made, found[number])
        assert "node-1" in reasons(made, user("q", "other")), "the device is still in use"
    release(made, found[order[-1]])
    assert made.find_claim("default", "c") == claim("c")
    assert placed(made, user("q", "other")).node == "node-1"


def test_a_claim_that_the_server_has_changed_since_loses_the_pod_only() -> None:
    made = cluster(*TWO, slice_of("node-1"), claim("c"))
    found = placed(made, user("p", "c"))
    made.put_claim(held(reserved=["p", "q"]))
    release(made, found)
    assert made.find_claim("default", "c") == held(reserved=["q"])


def test_pods_without_uid_are_told_apart_by_name() -> None:
    made = cluster(*TWO, slice_of("node-1"), claim("c"))
    nameless = {"uid": ""}
    placed(made, user("p", "c", metadata=nameless))
    found = placed(made, user("q", "c", metadata=nameless))
    assert [each.name for each in found.claims[0].status.reserved_for] == ["p", "q"]


def test_special_claims_and_statuses_are_gone_after_a_release() -> None:
    made = cluster(node("node-1"), EXPLICIT, slice_of("node-1", **cores("1")))
    found = placed(made, asking("p"))
    release(made, found)
    assert not made.claims
    assert placed(made, asking("p")) == found
