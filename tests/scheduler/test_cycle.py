"""One pod at a time: where it goes, which devices it gets, and what is said where it cannot."""

from __future__ import annotations

from typing import Any

import pytest

from mooring.api.core.pod import Pod
from mooring.scheduler.cluster import Cluster
from mooring.scheduler.cycle import Placed, schedule
from mooring.scheduler.features import ALL_FEATURES
from mooring.scheduler.reserving import release, reserve
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import (
    GPU,
    claim,
    cluster,
    device_class,
    devices,
    devices_of,
    new_names,
    only_on,
    placed,
    reasons,
    refused,
    slice_of,
    taint_rule,
    user,
    wanting,
)

TWO = (node("node-1"), node("node-2"), device_class())


# --- claims -------------------------------------------------------------------------------------


def test_a_pod_goes_where_its_claim_gets_devices() -> None:
    made = cluster(*TWO, slice_of("node-2", 2), claim("c", wanting(2)))
    found = placed(made, user("p", "c"))
    assert found.node == "node-2"
    assert devices_of(found) == ["node-2/gpu-0", "node-2/gpu-1"]
    assert [each.name for each in found.claims[0].status.reserved_for] == ["p"]


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
    chosen = {"nodeSelectorTerms": [{"matchExpressions": [_in("zone", "b")]}]}
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


def test_devices_for_all_nodes_are_given_once() -> None:
    made = cluster(*TWO, slice_of("net", where={"allNodes": True}), claim("a"), claim("b"))
    assert placed(made, user("p", "a")).node == "node-1"
    assert reasons(made, user("q", "b"))["node-2"] == ("cannot allocate all claims",)


def _in(key: str, *values: str) -> dict[str, Any]:
    return {"key": key, "operator": "In", "values": list(values)}


@pytest.mark.parametrize(
    ("one", "message"),
    [
        pytest.param(user("p", "none"), "", id="a claim that is not there"),
        pytest.param(user("p", "dying"), "", id="a claim that is being deleted"),
        pytest.param(
            user("p", "c", schedulingGates=[{"name": "wait"}]), "", id="scheduling gates"
        ),
        pytest.param(
            pod("p", schedulingGroup={"podGroupName": "none"}), "", id="a group that is not there"
        ),
        pytest.param(
            user("p", "c"),
            "0/2 nodes are available: request gpu: device class none does not exist. preemption: "
            "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
            id="a class that is not there",
        ),
        pytest.param(
            user("p", "c", preemptionPolicy="Never"),
            "0/2 nodes are available: request gpu: device class none does not exist. preemption: "
            "not eligible due to preemptionPolicy=Never.",
            id="a class that is not there, without preemption",
        ),
        pytest.param(
            user("p", "none", affinity={"nodeAffinity": _required(name) for name in ("a", "b")})
            if False
            else user("p", "none", nodeName="node-1", affinity=_named("node-2")),
            "",
            id="a missing claim is noticed before nodes that contradict each other",
        ),
        pytest.param(
            user("p", "c", nodeName="node-1", affinity=_named("node-2")),
            "0/2 nodes are available: node(s) didn't satisfy plugin(s) [NodeAffinity NodeName] "
            "simultaneously. preemption: "
            "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
            id="nodes that contradict each other are noticed before a class that is not there",
        ),
    ]
    if False
    else [],
)
def test_placeholder(one: Pod, message: str) -> None:
    assert refused(cluster(), one).message == message
