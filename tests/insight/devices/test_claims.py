"""The usage report of claims."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.insight.devices import ClaimUsage, usage_of
from moorage.insight.snapshot.snapshot import Snapshot
from tests.insight.devices.clusters import claim_of, node, pod_of, result, slice_of


def claims(*objects: Any) -> dict[str, ClaimUsage]:
    found = usage_of(Snapshot.of([node(), slice_of("a", "b"), *objects]))
    return {each.id.name: each for each in found.claims}


@pytest.mark.parametrize(
    ("claim", "state"),
    [
        (claim_of("c"), "pending"),
        (claim_of("c", result("a")), "allocated"),
        (claim_of("c", result("a"), pods=("p",)), "reserved"),
        (
            claim_of("c", result("a"), metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"}),
            "deleting",
        ),
    ],
)
def test_state_of_a_claim(claim: Any, state: str) -> None:
    assert claims(claim)["c"].state == state


def test_claim_tells_where_its_devices_and_pods_are() -> None:
    pod = pod_of("p", node_name="n7")
    found = claims(claim_of("c", result("a"), pods=("p", "unknown")), pod)["c"]
    assert found.nodes == ("n1", "n7")
    assert list(map(str, found.consumers)) == ["pod/p", "pod/unknown"]
    (held,) = found.devices
    assert (held.id.device, held.node, held.is_published) == ("a", "n1", True)


def test_group_brings_the_nodes_of_its_members() -> None:
    group = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "g", "uid": "g"}
    member = pod_of("p", node_name="n7", schedulingGroup={"podGroupName": "g"})
    found = claims(claim_of("c", result("a"), status={"reservedFor": [group]}), member)["c"]
    assert list(map(str, found.consumers)) == ["podgroup/g"]
    assert found.nodes == ("n1", "n7")


def test_device_that_is_gone_keeps_the_node_of_the_allocation() -> None:
    field = {"key": "metadata.name", "operator": "In", "values": ["n5"]}
    allocation = {
        "devices": {"results": [result("gone")]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
    }
    (held,) = claims(claim_of("c", status={"allocation": allocation}))["c"].devices
    assert (held.node, held.is_published) == ("n5", False)


def test_conflict_is_told_to_both_claims() -> None:
    found = claims(claim_of("c", result("a")), claim_of("d", result("a")))
    assert found["c"].devices[0].conflict == found["d"].devices[0].conflict != ""


def test_owner_and_template_are_found_by_the_pod() -> None:
    pod = pod_of("p", resourceClaims=[{"name": "entry", "resourceClaimTemplateName": "template"}])
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "p", "controller": True}
    metadata = {
        "ownerReferences": [owner],
        "annotations": {"resource.kubernetes.io/pod-claim-name": "entry"},
    }
    found = claims(claim_of("c", metadata=metadata), pod)["c"]
    assert (str(found.owner), found.template) == ("pod/p", "template")
    assert claims(claim_of("c", metadata=metadata))["c"].template == ""


def test_chosen_alternative_is_told() -> None:
    alternatives = [
        {"name": "big", "deviceClassName": "big-gpu", "count": 1},
        {"name": "small", "deviceClassName": "gpu", "count": 2},
    ]
    spec = {"devices": {"requests": [{"name": "r", "firstAvailable": alternatives}]}}
    pending = claims(claim_of("c", spec=spec))["c"].requests[0]
    assert (pending.classes, pending.number, pending.chosen) == (("big-gpu", "gpu"), "1 or 2", "")
    allocated = claims(claim_of("c", result("a", request="r/small"), spec=spec))["c"].requests[0]
    assert (allocated.classes, allocated.number, allocated.chosen) == (("gpu",), "2", "small")


def test_conditions_are_those_of_the_device_and_share() -> None:
    ready = {"type": "Ready", "status": "True", "reason": "Ok", "message": ""}
    status = {
        "devices": [{**result("a"), "conditions": [ready]}],
    }
    del status["devices"][0]["request"]
    first, second = claims(claim_of("c", result("a"), result("b"), status=status))["c"].devices
    assert [each.type for each in first.conditions] == ["Ready"]
    assert not second.conditions
