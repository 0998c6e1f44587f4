"""How many replicas fit, what stops the next one, what is left over and what would help."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.apps import Deployment
from moorage.api.codec import decode_tree
from moorage.api.resource.v1 import DeviceClass, ResourceSlice
from moorage.insight.fit import Fit, ShortageCause
from tests.insight.fit.scenes import NUMA, counts, fitted, gpus, refused, template, using
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import GPU, claim, device_class, slice_of, taint_rule, wanting

ROOMY = {"cpu": "64", "memory": "256Gi", "pods": "110"}


def deployment(replicas: int, **spec: Any) -> Deployment:
    entries = [{"name": "c", "resourceClaimTemplateName": "gpus"}]
    container = {"name": "main", "image": "app", "resources": {"claims": [{"name": "c"}]}}
    tree = {
        "metadata": {"name": "train", "namespace": "default", "uid": "deployment"},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": {"app": "train"}},
            "template": {
                "metadata": {"labels": {"app": "train"}},
                "spec": {"containers": [container], "resourceClaims": entries, **spec},
            },
        },
    }
    return decode_tree(tree, Deployment).value


def limits(found: Fit) -> list[str]:
    return [str(limit) for limit in found.limits]


def levers(found: Fit) -> dict[str, int]:
    return {lever.text: lever.total for lever in found.levers}


# --- how many -----------------------------------------------------------------------------


def test_a_template_fits_as_often_as_its_devices_are_there() -> None:
    found = fitted(template(wanting(2)), node("a"), node("b"), slice_of("a", 8), slice_of("b", 5))
    assert found.total == 6
    assert counts(found) == {"a": 4, "b": 2}
    assert limits(found) == [
        "request gpu: 0 free of 8, 2 wanted",
        "request gpu: 1 free of 5, 2 wanted",
    ]


def test_a_claim_stands_for_claims_like_it_each_with_its_own_devices() -> None:
    found = fitted(claim("mine", wanting(2)), node("a"), slice_of("a", 8))
    assert found.total == 4
    devices = [
        {given.device for granted in each.requests for given in granted.devices}
        for each in found.places[0].placements
    ]
    assert sorted(map(sorted, devices)) == [
        ["gpu-0", "gpu-1"],
        ["gpu-2", "gpu-3"],
        ["gpu-4", "gpu-5"],
        ["gpu-6", "gpu-7"],
    ]


def test_a_claim_with_devices_keeps_them() -> None:
    taken = claim("mine", wanting(2), has=[("a", "gpu-0"), ("a", "gpu-1")])
    assert fitted(taken, node("a"), slice_of("a", 8)).total == 3


def test_a_waiting_pod_is_one_of_those_counted() -> None:
    subject = using("gpus")
    assert fitted(subject, template(), node("a"), slice_of("a", 3)).total == 3


def test_a_running_pod_is_not_counted_and_keeps_its_place() -> None:
    there = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    subject = pod("web", requests={"cpu": "1"}, nodeName="a")
    assert fitted(subject, node("a", allocatable=there)).total == 3


def test_replicas_of_a_deployment_that_wait_are_among_those_counted() -> None:
    subject = deployment(5)
    assert fitted(subject, template(), node("a"), slice_of("a", 3)).total == 3


def test_replicas_of_a_deployment_that_run_keep_their_places() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "train-5f", "controller": True}
    running = pod(
        "train-5f-x",
        nodeName="a",
        metadata={"ownerReferences": [{**owner, "uid": "set"}]},
        resourceClaims=[{"name": "c", "resourceClaimName": "held"}],
    )
    held = claim("held", has=[("a", "gpu-0")], reserved=["train-5f-x"])
    found = fitted(deployment(3), running, held, template(), node("a"), slice_of("a", 4))
    assert found.total == 3
    assert found.headline == (
        "Deployment default/train: 3 replicas fit (2 wanted beside 1 with a node): 1 more"
    )
    none = fitted(deployment(3), running, held, template(), node("a"), slice_of("a", 1))
    assert (
        none.headline == "Deployment default/train: no more replica fits beside the 1 with a node"
    )


def test_nodes_of_one_limit_may_take_different_numbers() -> None:
    running = using("gpus", name="other", nodeName="a")
    held = claim("held", has=[("a", "gpu-0")], reserved=["other"])
    found = fitted(
        template(), running, held, node("a"), node("b"), slice_of("a", 4), slice_of("b", 4)
    )
    (limit,) = found.limits
    assert limit.nodes == ("a", "b")
    assert found.shares(limit.nodes) == "3 to 4 each, 7 in all"
    assert found.shares(("a",)) == "3"
    assert found.headline == "ResourceClaimTemplate default/gpus: 7 more replicas fit"


def test_other_pods_are_planned_first() -> None:
    other = using("gpus", name="other")
    found = fitted(using("gpus"), other, template(), node("a"), slice_of("a", 3))
    assert found.total == 2


def test_no_more_are_tried_than_asked_for() -> None:
    found = fitted(template(), node("a"), slice_of("a", 8), replicas_max=3)
    assert (found.total, found.is_more, found.limits) == (3, True, ())


def test_a_pod_that_names_a_claim_shares_it() -> None:
    entries = [{"name": "c", "resourceClaimName": "one"}]
    subject = pod("web", requests={"cpu": "1"}, resourceClaims=entries)
    there = [node("a", allocatable={"cpu": "3", "pods": "110"}), node("b"), slice_of("a", 1)]
    found = fitted(subject, claim("one"), *there)
    assert counts(found) == {"a": 3}
    assert found.notes[0] == "all replicas share claim one"
    assert found.bound is None


def test_a_claim_is_shared_by_so_many_pods_only() -> None:
    entries = [{"name": "c", "resourceClaimName": "one"}]
    subject = pod("web", resourceClaims=entries)
    there = [node("a", allocatable={"cpu": "3", "pods": "1000"}), slice_of("a", 1)]
    found = fitted(subject, claim("one"), *there)
    assert (found.total, found.is_more) == (256, False)
    assert limits(found) == ["a claim can be reserved for 256 pods at most"]


def test_extended_resources_count_as_devices_do() -> None:
    resources = {"example.com/gpu": "2"}
    subject = pod("web", requests=resources)
    there = [
        device_class(extendedResourceName="example.com/gpu"),
        node("a", allocatable=ROOMY),
        slice_of("a", 5),
    ]
    found = fitted(subject, *there)
    assert found.total == 2
    assert limits(found) == ["request example.com/gpu: 1 free of 5, 2 wanted"]
    assert [(left.free, left.apart[0].why) for left in found.leftovers] == [
        (1, "a node has fewer than the 2 devices that are wanted")
    ]
    assert "with more devices on the nodes" in levers(found)


def test_a_device_plugin_beside_devices_leaves_no_bound() -> None:
    plugin = node("b", allocatable={**ROOMY, "example.com/gpu": "3"})
    found = fitted(
        pod("web", requests={"example.com/gpu": "1"}),
        device_class(extendedResourceName="example.com/gpu"),
        node("a", allocatable=ROOMY),
        slice_of("a", 2),
        plugin,
    )
    assert counts(found) == {"a": 2, "b": 3}
    assert found.bound is None


# --- what stops the next one --------------------------------------------------------------


def test_a_short_node_resource_is_the_limit_and_devices_come_next() -> None:
    small = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    subject = using("gpus", requests={"cpu": "2"})
    found = fitted(subject, template(), node("a", allocatable=small), slice_of("a", 8))
    assert found.total == 2
    assert limits(found) == ["Insufficient cpu (cpu: 2 asked for, 0 of 4 free)"]
    lever = next(each for each in found.levers if each.text == "with more cpu on the nodes")
    assert lever.total == 8
    assert str(lever.next) == "request gpu: 0 free of 8, 1 wanted"


def test_too_many_pods_is_a_limit_that_can_be_lifted() -> None:
    found = fitted(template(), node("a", allocatable={"pods": "2"}), slice_of("a", 8))
    assert limits(found) == ["Too many pods (2 pods are there, 2 may be)"]
    assert levers(found) == {"with more pods allowed on the nodes": 8}


def test_nodes_that_say_the_same_are_together() -> None:
    there = [each for name in "abc" for each in (node(name), slice_of(name, 3))]
    found = fitted(template(wanting(2)), *there)
    assert [(limit.nodes, limit.replicas) for limit in found.limits] == [(("a", "b", "c"), 3)]


def test_a_constraint_names_the_free_devices_of_each_value() -> None:
    wanted = template(wanting(4), constraints=[{"matchAttribute": NUMA}])
    found = fitted(wanted, node("a"), gpus("a", [0, 1, 1, 0, 2, 2]))
    assert found.total == 0
    (limit,) = found.limits
    (short,) = limit.shortages
    assert short.cause is ShortageCause.CONSTRAINT
    assert short.values == (("0", 2), ("1", 2), ("2", 2))
    assert str(limit) == (
        "request gpu: 6 free, 4 wanted with one gpu.example.com/numa "
        "(0: 2 free, 1: 2 free, 2: 2 free)"
    )
    assert levers(found)[f"without the constraint on {NUMA}"] == 1


def test_distinct_values_run_out() -> None:
    wanted = template(wanting(3), constraints=[{"distinctAttribute": NUMA}])
    found = fitted(wanted, node("a"), gpus("a", [0, 0, 1, 1]))
    assert limits(found) == [
        "request gpu: 4 free, 3 wanted with a distinct gpu.example.com/numa (0: 2 free, 1: 2 free)"
    ]


def test_a_request_that_only_follows_another_is_not_named() -> None:
    wanted = template(
        wanting(2, name="many"), wanting(1, name="one"), constraints=[{"matchAttribute": NUMA}]
    )
    found = fitted(wanted, node("a"), gpus("a", [0, 1, 2]))
    assert [short.request for short in found.limits[0].shortages] == ["many"]


def test_requests_in_each_others_way_are_said_to_be() -> None:
    wanted = template(wanting(2, name="first"), wanting(2, name="second"))
    found = fitted(wanted, node("a"), slice_of("a", 3))
    assert limits(found) == ["request second: 3 free, 2 wanted, but not beside the other requests"]


def test_tainted_devices_are_told_and_tolerating_them_is_tried() -> None:
    found = fitted(
        template(), taint_rule(device="gpu-0"), node("a"), slice_of("a", 2), device_class()
    )
    assert found.total == 1
    assert limits(found) == [
        (
            "request gpu: 1 free of 2, 1 tainted, 0 usable, 1 wanted; "
            "gpu-0: has the taint broken:NoSchedule"
        )
    ]
    assert levers(found)["tolerating the taints of devices"] == 2


def test_counters_that_run_out_are_named() -> None:
    amounts = {"memory": {"value": "40Gi"}}
    halves = [
        {"name": f"half-{n}", "consumesCounters": [{"counterSet": "board", "counters": amounts}]}
        for n in range(3)
    ]
    board = {"name": "board", "counters": {"memory": {"value": "80Gi"}}}
    found = fitted(
        template(),
        node("a"),
        part_of_pool("counters", sharedCounters=[board]),
        part_of_pool("halves", devices=halves),
    )
    assert found.total == 2
    assert limits(found) == [
        (
            "request gpu: 1 free of 3, 0 usable, 1 wanted; "
            "half-2: of board/memory 40Gi is wanted, 0 is left of 80Gi"
        )
    ]


def part_of_pool(name: str, **spec: Any) -> ResourceSlice:
    pool = {"name": "a", "generation": 1, "resourceSliceCount": 2}
    tree = {"driver": GPU, "nodeName": "a", "pool": pool, **spec}
    return decode_tree({"metadata": {"name": name}, "spec": tree}, ResourceSlice).value


def test_every_alternative_of_a_request_is_named() -> None:
    names = ("large", "any")
    alternatives = [{**wanting(n)["exactly"], "name": names[n - 1]} for n in (1, 2)]
    found = fitted(
        template({"name": "gpu", "firstAvailable": alternatives}), node("a"), slice_of("a", 1)
    )
    assert found.total == 1
    assert limits(found) == [
        (
            "request gpu, alternative large: 0 free of 1, 1 wanted; "
            "request gpu, alternative any: only 1 match, 2 wanted"
        )
    ]


def test_nodes_the_pod_may_not_use_say_why() -> None:
    tainted = node("b", taints=[{"key": "dedicated", "value": "x", "effect": "NoSchedule"}])
    found = fitted(template(), node("a"), slice_of("a", 1), tainted, slice_of("b", 2))
    assert counts(found) == {"a": 1}
    assert levers(found)["tolerate the node taint dedicated=x:NoSchedule"] == 3
    (left,) = found.leftovers
    assert (left.free, left.matching) == (2, 3)
    assert left.apart[0].nodes == ("b",)


def test_what_stops_a_pod_anywhere_is_the_limit() -> None:
    found = fitted(template(wanting(device_class="other")), node("a"), slice_of("a", 1))
    assert found.total == 0
    assert limits(found) == ["request gpu: device class other does not exist"]


def test_a_controller_whose_pods_would_be_refused_has_none() -> None:
    broken = deployment(1, containers=[])
    assert "gets no pods" in str(refused(broken, node("a")))


# --- what is left over --------------------------------------------------------------------


def test_left_overs_of_nodes_cannot_be_combined() -> None:
    there = [each for name in "abcd" for each in (node(name), slice_of(name, 7))]
    found = fitted(template(wanting(4)), *there)
    assert found.total == 4
    assert found.bound == 7
    (left,) = found.leftovers
    assert (left.free, left.matching, left.percent) == (12, 28, 42.9)
    assert [(each.devices, each.why) for each in left.apart] == [
        (12, "a node has fewer than the 4 devices that are wanted")
    ]
    assert found.combined == 3


def test_devices_behind_a_short_resource_are_left_over_for_that() -> None:
    small = node("a", allocatable={"cpu": "1", "pods": "110"})
    found = fitted(using("gpus", requests={"cpu": "1"}), template(), small, slice_of("a", 4))
    assert found.leftovers[0].apart[0].why == "Insufficient cpu"


def test_devices_beside_a_request_that_ran_out_say_so() -> None:
    big, small = of_numa("big", 1), of_numa("small", 0)
    wanted = template(
        wanting(name="big", device_class="big"), wanting(name="small", device_class="small")
    )
    found = fitted(wanted, big, small, gpus("a", [0, 0, 0, 1]), node("a"))
    left = {each.request: each for each in found.leftovers}
    assert left["small"].apart[0].why == "nothing is left there for big"
    assert found.combined == 0


def of_numa(name: str, numa: int) -> DeviceClass:
    expression = f'device.attributes["{GPU}"].numa == {numa}'
    return device_class(name, selectors=[{"cel": {"expression": expression}}])


def test_shared_devices_are_not_counted_as_left_over() -> None:
    capacity = {"bandwidth": {"value": "100"}}
    listed = [{"name": "nic", "allowMultipleAllocations": True, "capacity": capacity}]
    wanted = wanting()
    wanted["exactly"]["capacity"] = {"requests": {"bandwidth": "30"}}
    found = fitted(template(wanted), node("a"), slice_of("a", listed=listed))
    assert found.total == 3
    assert found.leftovers == ()
    assert found.bound is None
    assert limits(found) == [
        (
            "request gpu: 1 free of 1, 0 usable, 1 wanted; "
            "nic: of bandwidth 30 is wanted, 10 is left of 100"
        )
    ]


# --- what would help ----------------------------------------------------------------------


@pytest.mark.parametrize(("count", "fewer", "total"), [(3, 2, 4), (4, 3, 2)])
def test_fewer_devices_a_replica_are_tried(count: int, fewer: int, total: int) -> None:
    there = [each for name in "ab" for each in (node(name), slice_of(name, 5 if count == 3 else 3))]
    found = fitted(template(wanting(count)), *there)
    assert levers(found)[f"with {fewer} instead of {count} for request gpu"] == total


def test_the_cluster_is_left_as_it_was() -> None:
    subject = template(wanting(2))
    there = (node("a"), slice_of("a", 5))
    assert fitted(subject, *there) == fitted(subject, *there)


def test_levers_can_be_left_out() -> None:
    found = fitted(template(), node("a"), slice_of("a", 1), with_levers=False)
    assert found.levers == ()
