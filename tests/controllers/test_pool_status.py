"""Answers to ResourcePoolStatusRequests."""

from __future__ import annotations

import json
from typing import Any

from moorage.api.codec import decode_tree, to_tree
from moorage.api.documents import KUBERNETES, read
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.object_reader import read_document
from moorage.api.resource.v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.resource.v1alpha3 import PoolStatus, ResourcePoolStatusRequest
from moorage.client.writes import Delete, Target
from moorage.controllers.metrics import RequestMetrics
from moorage.controllers.pool_status import PoolStatusRequestController
from moorage.kit.metrics import exposition
from moorage.validation.registry import defaulted_hub
from moorage.validation.strategy import Context
from tests.controllers.scenes import ALL, NOW, Scene, result, rule, slice_of
from tests.corpus import corpus

CONTEXT = Context(gates=Gates.parse(), now=NOW)


def request(name: str = "q", **spec: Any) -> ResourcePoolStatusRequest:
    tree = {"metadata": {"name": name}, "spec": {"driver": "dra", **spec}}
    return decode_tree(tree, ResourcePoolStatusRequest).value


def scene_of(*values: Any, metrics: RequestMetrics | None = None) -> Scene:
    scene = Scene(own=[PoolStatusRequestController(ALL, metrics)])
    scene.put(*values)
    return scene


def answer(scene: Scene, name: str = "q") -> ResourcePoolStatusRequest:
    found = scene.model.get(ResourcePoolStatusRequest, "", name)
    assert isinstance(found, ResourcePoolStatusRequest)
    return found


def pool(*values: Any, **spec: Any) -> PoolStatus:
    """Return what is told of the only pool."""
    status = answer(scene_of(*values, request(**spec))).status
    assert status is not None
    (only,) = status.pools
    return only


def claim(*results: dict[str, Any], name: str = "c") -> ResourceClaim:
    tree = {
        "metadata": {"name": name, "namespace": "ns"},
        "status": {"allocation": {"devices": {"results": list(results)}}},
    }
    return decode_tree(tree, ResourceClaim).value


TAINTED = {"name": "d2", "taints": [{"key": "k", "effect": "NoSchedule"}]}


# --- counts ---------------------------------------------------------------------------------------


def test_devices_are_counted() -> None:
    found = pool(
        slice_of({"name": "d0"}, {"name": "d1"}, TAINTED),
        claim(result("d0"), result("d0", shareID="s")),
        claim(result("d1", adminAccess=True), name="admin"),
    )
    assert (found.total_devices, found.allocated_devices) == (3, 1)
    assert (found.unavailable_devices, found.available_devices) == (1, 1)
    assert (found.node_name, found.resource_slice_count) == ("n", 1)


def test_request_is_answered_once() -> None:
    scene = scene_of(slice_of({"name": "d0"}), request())
    before = answer(scene)
    assert before.status is not None
    (condition,) = before.status.conditions
    assert (condition.type, condition.status, condition.reason) == (
        "Complete",
        "True",
        "CalculationComplete",
    )
    assert condition.message == "Calculated status for 1 pools"
    scene.put(claim(result("d0")))
    assert answer(scene) == before
    assert scene.is_at_rest()


def test_rules_make_devices_unavailable_also_by_expression() -> None:
    devices = slice_of({"name": "d0"}, {"name": "d1"})
    assert pool(devices, rule(device="d0")).unavailable_devices == 1
    assert pool(devices, rule(effect="None")).unavailable_devices == 0
    selectors = [{"cel": {"expression": 'device.driver == "dra"'}}]
    assert pool(devices, rule(effect="NoSchedule", selectors=selectors)).unavailable_devices == 2


def test_only_the_newest_generation_counts() -> None:
    found = pool(
        slice_of({"name": "d0"}, {"name": "d1"}, name="old"),
        slice_of({"name": "d0"}, name="new", generation=2),
    )
    assert (found.generation, found.total_devices) == (2, 1)


def test_pools_beyond_the_limit_are_only_counted() -> None:
    tree = {
        "metadata": {"name": "t"},
        "spec": {
            "driver": "dra",
            "nodeName": "m",
            "pool": {"name": "another", "generation": 1, "resourceSliceCount": 1},
            "devices": [],
        },
    }
    other = decode_tree(tree, ResourceSlice).value
    status = answer(scene_of(slice_of({"name": "d0"}), other, request(limit=1))).status
    assert status is not None
    assert status.pool_count == 2
    assert [each.pool_name for each in status.pools] == ["another"]


def test_request_waits_for_a_pool_that_is_being_published() -> None:
    scene = scene_of(slice_of({"name": "d0"}, count=2), request())
    scene.advance(1000)
    assert answer(scene).status is None
    scene.put(slice_of({"name": "d1"}, name="second", count=2))
    status = answer(scene).status
    assert status is not None
    assert status.pools[0].total_devices == 2


# --- views ----------------------------------------------------------------------------------------


def partitioned(*devices: tuple[str, str, str], attribute: str | None = "dra/type") -> Any:
    """Return a slice with eight units; devices are names, types and units."""
    spec: dict[str, Any] = {
        "sharedCounters": [{"name": "board", "counters": {"units": {"value": "8"}}}],
        "devices": [
            {
                "name": name,
                "attributes": {"type": {"string": type_}},
                "consumesCounters": [
                    {"counterSet": "board", "counters": {"units": {"value": units}}}
                ],
            }
            for name, type_, units in devices
        ],
    }
    if attribute is not None:
        spec["partitionTypeAttribute"] = attribute
    tree = to_tree(slice_of())
    return decode_tree({**tree, "spec": {**tree["spec"], **spec}}, ResourceSlice).value


PARTS = (("full", "Full", "8"), ("h0", "Half", "4"), ("h1", "Half", "4"), ("q0", "Quarter", "2"))


def summary(found: PoolStatus) -> dict[str, tuple[int | None, int | None]]:
    return {each.type: (each.total, each.allocatable) for each in found.partition_summary}


def test_partitions_tell_how_many_still_fit() -> None:
    assert summary(pool(partitioned(*PARTS))) == {"Full": (1, 1), "Half": (2, 2), "Quarter": (1, 1)}
    used = pool(partitioned(*PARTS), claim(result("h0")))
    assert summary(used) == {"Full": (1, 0), "Half": (2, 1), "Quarter": (1, 1)}


def test_attribute_of_the_request_counts_where_no_slice_names_one() -> None:
    parts = partitioned(*PARTS, attribute=None)
    assert pool(parts).partition_summary == ()
    found = pool(parts, defaultPartitionTypeAttribute="dra/type")
    assert summary(found)["Half"] == (2, 2)


def test_partitions_of_one_type_that_cost_differently_are_an_error() -> None:
    found = pool(partitioned(("a", "Half", "4"), ("b", "Half", "3")))
    assert found.validation_error == (
        'PartitionCostMismatch: devices of partition type "Half" in pool dra/pool '
        "consume different counters"
    )
    assert found.partition_summary == ()
    assert found.total_devices == 2


def test_partition_without_its_type_is_an_error() -> None:
    found = pool(partitioned(*PARTS, attribute="dra/other"))
    assert found.validation_error == (
        'PartitionTypeMissing: device "full" in pool dra/pool does not carry '
        'partition type attribute "dra/other"'
    )


def test_partitions_without_counters_are_an_error() -> None:
    found = pool(slice_of({"name": "d0"}), defaultPartitionTypeAttribute="dra/type")
    assert found.validation_error == (
        "PartitionTypeMissing: pool dra/pool declares partitionTypeAttribute "
        "but publishes no sharedCounters"
    )


def test_too_many_types_are_an_error() -> None:
    parts = [(f"d{number}", f"T{number:02}", "1") for number in range(33)]
    assert pool(partitioned(*parts)).validation_error == (
        "PartitionSummaryOverCap: pool dra/pool has 33 partition types, exceeding the maximum of 32"
    )


def test_shared_devices_tell_what_is_left() -> None:
    shared = {"allowMultipleAllocations": True, "capacity": {"memory": {"value": "4Gi"}}}
    found = pool(
        slice_of({"name": "d0", **shared}, {"name": "d1", **shared}, {"name": "d2"}),
        claim(result("d0", consumedCapacity={"memory": "1Gi"})),
    ).shareable_summary
    assert found is not None
    assert (found.fully_available_devices, found.partially_available_devices) == (1, 1)
    (capacity,) = found.capacity
    told = str(capacity.total), str(capacity.consumed), str(capacity.available)
    assert told == ("8Gi", "1Gi", "7Gi")


# --- the end of requests --------------------------------------------------------------------------


def test_answered_requests_go_after_an_hour() -> None:
    scene = scene_of(request())
    scene.advance(3600)
    assert scene.model.get(ResourcePoolStatusRequest, "", "q") is not None
    scene.advance(60)
    assert scene.model.get(ResourcePoolStatusRequest, "", "q") is None


def test_requests_without_an_answer_go_after_a_day() -> None:
    scene = scene_of(slice_of({"name": "d0"}, count=2), request())
    scene.advance(24 * 3600)
    assert scene.model.get(ResourcePoolStatusRequest, "", "q") is not None
    scene.advance(60)
    assert scene.model.get(ResourcePoolStatusRequest, "", "q") is None


def test_answers_are_counted() -> None:
    metrics = RequestMetrics()
    scene_of(request(), metrics=metrics)
    text = exposition(metrics.families())
    name = "resourcepoolstatusrequest_controller"
    assert f'{name}_requests_processed_total{{driver_name="dra"}} 1' in text
    assert f'{name}_request_processing_duration_seconds_count{{driver_name="dra"}} 1' in text


def test_nothing_is_answered_with_the_feature_off() -> None:
    scene = Scene(own=[PoolStatusRequestController(Gates.parse("DRAResourcePoolStatus=false"))])
    scene.put(request())
    assert answer(scene).status is None


# --- beside Kubernetes' answers -------------------------------------------------------------------


def test_answers_are_those_of_kubernetes() -> None:
    scene = Scene(own=[PoolStatusRequestController(ALL)])
    for name in (
        "01-basic",
        "07-consumable-capacity",
        "08-partitionable",
        "09-taints",
        "09b-taintrule",
    ):
        data = corpus("golden", "manifests", f"{name}.yaml").read_bytes()
        for document in read(data, source=name, schema=KUBERNETES):
            reading = read_document(document, gates=CONTEXT.gates)
            value = defaulted_hub(reading.value, reading.kind, CONTEXT)
            if isinstance(value, ResourceSlice | DeviceTaintRule):
                scene.model.put(value)
    for name in ("01-basic", "07-consumable-capacity", "08-partitionable"):
        recorded = json.loads(corpus("golden", f"{name}.json").read_text())
        for tree in recorded["resourceclaims"]:
            value = decode_tree(tree, ResourceClaim).value
            if (
                scene.model.get(ResourceClaim, value.metadata.namespace, value.metadata.name)
                is None
            ):
                scene.model.put(value)
    recorded = json.loads(corpus("golden", "10-poolstatus.json").read_text())
    for tree in recorded["requests"]:
        name = tree["metadata"]["name"]
        asked = decode_tree({**tree, "status": None}, ResourcePoolStatusRequest).value
        scene.put(ResourcePoolStatusRequest(metadata=ObjectMeta(name=name), spec=asked.spec))
        told = to_tree(answer(scene, name))["status"]
        for each in (told, tree["status"]):
            each["conditions"][0].pop("lastTransitionTime")
        assert told == tree["status"], name


def test_deleted_requests_are_left_alone() -> None:
    scene = scene_of(request())
    scene.model.write(Delete(Target(ResourcePoolStatusRequest, "", "q")))
    scene.advance(10_000)
    assert scene.model.get(ResourcePoolStatusRequest, "", "q") is None
