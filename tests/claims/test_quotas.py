"""Quota usage of objects, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core import Pod, ResourceQuota
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.timestamp import Timestamp
from moorage.claims import DeviceClassIndex
from moorage.claims.pod_claims import ClaimRejection
from moorage.claims.quotas import (
    CLAIMS,
    PODS,
    GroupResource,
    charged,
    claim_usage,
    counted_resources,
    evaluator_for,
    pod_usage,
    recalculated,
    usage_context,
)
from tests.claims.parts import Tree, device_class, owned_by, pod

NOW = Timestamp.parse("2026-01-01T00:00:00Z")
MAPS = GroupResource("", "configmaps")

COUNT = "count/resourceclaims.resource.k8s.io"
DEVICES = "gpu.deviceclass.resource.k8s.io/devices"
EXPLICIT = "requests.example.com/gpu"
IMPLICIT = "requests.deviceclass.resource.kubernetes.io/gpu"
SPECIAL = {"resource.kubernetes.io/extended-resource-claim": "true"}


def quota(hard: dict[str, str], name: str = "q", **spec: Any) -> ResourceQuota:
    tree = {"metadata": {"name": name}, "spec": {"hard": hard, **spec}}
    return decode_tree(tree, ResourceQuota).value


def classes() -> DeviceClassIndex:
    index = DeviceClassIndex()
    index.put_class(device_class("gpu", "example.com/gpu"))
    index.put_class(device_class("plain"))
    return index


def asking(name: str = "p", requests: Tree | None = None, **more: Any) -> Pod:
    resources = {"requests": requests or {}, "limits": more.pop("limits", {})}
    return pod(name, containers=[{"name": "c", "resources": resources}], **more)


def claim(name: str, *requests: Tree, **metadata: Any) -> ResourceClaim:
    wanted = [{"name": f"r{place}", **request} for place, request in enumerate(requests)]
    tree = {
        "metadata": {"name": name, "namespace": "ns", "uid": f"{name}-uid", **metadata},
        "spec": {"devices": {"requests": wanted}},
    }
    return decode_tree(tree, ResourceClaim).value


def exactly(class_name: str = "gpu", count: int = 1) -> Tree:
    ask = {"deviceClassName": class_name, "allocationMode": "ExactCount", "count": count}
    return {"exactly": ask}


def sorted_out(values: Iterable[Any]) -> dict[GroupResource, list[Any]]:
    found: dict[GroupResource, list[Any]] = {PODS: [], CLAIMS: []}
    for value in values:
        found[PODS if isinstance(value, Pod) else CLAIMS].append(value)
    return found


def used_by(*objects: Any) -> dict[str, str]:
    """Return what the last of the objects uses, where the others are."""
    around = usage_context(sorted_out(objects), now=NOW, classes=classes())
    last = objects[-1]
    usage = pod_usage(last, NOW) if isinstance(last, Pod) else claim_usage(last, around)
    return {name: str(amount) for name, amount in usage.items()}


# --- pods -----------------------------------------------------------------------------------------


def test_a_pod_uses_what_it_asks_for_under_all_names() -> None:
    wanted = {"cpu": "1", "hugepages-2Mi": "4Mi", "example.com/gpu": "2", "attachable-x": "1"}
    limits = {"cpu": "2", "memory": "1Gi", "ephemeral-storage": "5"}
    assert used_by(asking(requests=wanted, limits=limits)) == {
        "count/pods": "1",
        "pods": "1",
        "cpu": "1",
        "requests.cpu": "1",
        "hugepages-2Mi": "4Mi",
        "requests.hugepages-2Mi": "4Mi",
        EXPLICIT: "2",
        "limits.cpu": "2",
        "limits.memory": "1Gi",
        "limits.ephemeral-storage": "5",
    }


def test_init_containers_overhead_and_the_whole_pod_count() -> None:
    small = {"requests": {"cpu": "1", "memory": "1"}, "limits": {"cpu": "1"}}
    large = {"requests": {"cpu": "3"}, "limits": {"cpu": "4"}}
    body = pod(
        containers=[{"name": "c", "resources": small}],
        initContainers=[{"name": "i", "resources": large}],
        overhead={"cpu": "1"},
    )
    usage = used_by(body)
    assert (usage["cpu"], usage["limits.cpu"], usage["memory"]) == ("4", "5", "1")
    whole = replace(body.spec, resources=body.spec.containers[0].resources)
    assert used_by(replace(body, spec=whole))["cpu"] == "2"


@pytest.mark.parametrize(
    ("status", "metadata", "lives"),
    [
        ({"phase": "Running"}, {}, True),
        ({"phase": "Succeeded"}, {}, False),
        ({"phase": "Failed"}, {}, False),
        ({}, {"deletionTimestamp": "2025-12-31T23:59:50Z", "deletionGracePeriodSeconds": 30}, True),
        ({}, {"deletionTimestamp": "2025-12-31T23:59:00Z", "deletionGracePeriodSeconds": 5}, False),
    ],
)
def test_a_pod_counts_while_it_lives(status: Tree, metadata: Tree, lives: bool) -> None:
    usage = used_by(asking(requests={"cpu": "1"}, status=status, metadata=metadata))
    assert usage["count/pods"] == "1"
    assert ("pods" in usage, "cpu" in usage) == (lives, lives)


# --- claims ---------------------------------------------------------------------------------------


def test_a_claim_uses_devices_and_resources_of_their_classes() -> None:
    everything = {"exactly": {"deviceClassName": "plain", "allocationMode": "All"}}
    usage = used_by(claim("c", exactly(count=2), exactly(), everything))
    assert usage == {
        COUNT: "1",
        DEVICES: "3",
        "plain.deviceclass.resource.k8s.io/devices": "32",
        IMPLICIT: "3",
        EXPLICIT: "3",
        "requests.deviceclass.resource.kubernetes.io/plain": "32",
    }


def test_of_alternatives_the_most_of_each_class_counts() -> None:
    def either(name: str, class_name: str, count: int) -> Tree:
        mode = {"allocationMode": "ExactCount", "count": count}
        return {"name": name, "deviceClassName": class_name, **mode}

    first = [either("a", "gpu", 1), either("b", "gpu", 3), either("c", "plain", 2)]
    usage = used_by(claim("c", {"firstAvailable": first}, exactly()))
    assert usage[DEVICES] == "4"
    assert usage["plain.deviceclass.resource.k8s.io/devices"] == "2"


def special(name: str = "s", count: int = 1, **metadata: Any) -> ResourceClaim:
    owners = metadata.pop("owners", owned_by("p"))
    return claim(
        name, exactly(count=count), annotations=SPECIAL, ownerReferences=owners, **metadata
    )


def test_a_special_claim_counts_for_what_its_pod_is_not_charged_for() -> None:
    explicit = asking(requests={"example.com/gpu": "1"})
    assert used_by(explicit, special()) == {COUNT: "1", DEVICES: "1", IMPLICIT: "1"}
    implicit = asking(requests={"deviceclass.resource.kubernetes.io/gpu": "1"})
    assert used_by(implicit, special()) == {COUNT: "1", DEVICES: "1", EXPLICIT: "1"}
    assert used_by(explicit, special(count=3))[EXPLICIT] == "2"


@pytest.mark.parametrize(
    "others",
    [
        [],
        [asking("other", {"example.com/gpu": "1"})],
        [asking(requests={"example.com/gpu": "1"}, metadata={"uid": "older"})],
        [asking(requests={"example.com/gpu": "1"}, status={"phase": "Failed"})],
        [
            asking(
                requests={"example.com/gpu": "1"},
                status={"extendedResourceClaimStatus": {"resourceClaimName": "another"}},
            )
        ],
        [asking(requests={"example.com/gpu": "1"}), special("a")],
        [
            asking(requests={"example.com/gpu": "1"}),
            special("z", creationTimestamp="2020-01-01T00:00:00Z"),
        ],
    ],
)
def test_a_claim_that_only_says_so_counts_in_full(others: Sequence[Any]) -> None:
    mine = special(creationTimestamp="2021-01-01T00:00:00Z")
    if len(others) > 1 and others[1].metadata.name == "a":
        mine = special()
    assert used_by(*others, mine)[EXPLICIT] == "1"


# --- scopes ---------------------------------------------------------------------------------------

FAR = {"podAffinityTerm": {"topologyKey": "t", "namespaces": ["x"]}, "weight": 1}
NEAR = {"topologyKey": "t"}


@pytest.mark.parametrize(
    ("scope", "fields", "fits"),
    [
        ("Terminating", {"activeDeadlineSeconds": 0}, True),
        ("Terminating", {}, False),
        ("NotTerminating", {}, True),
        ("BestEffort", {}, True),
        ("NotBestEffort", {"resources": {"limits": {"memory": "1"}}}, True),
        ("BestEffort", {"resources": {"limits": {"memory": "1"}}}, False),
        ("PriorityClass", {"priorityClassName": "a"}, True),
        ("PriorityClass", {}, False),
        (
            "CrossNamespacePodAffinity",
            {
                "affinity": {
                    "podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [FAR]}
                }
            },
            True,
        ),
        (
            "CrossNamespacePodAffinity",
            {
                "affinity": {
                    "podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [NEAR]}
                }
            },
            False,
        ),
        ("Unheard", {}, False),
    ],
)
def test_scopes(scope: str, fields: Tree, fits: bool) -> None:
    assert _count(quota({"pods": "5"}, scopes=[scope]), pod(**fields)) == ("1" if fits else "0")


@pytest.mark.parametrize(
    ("operator", "values", "name", "fits"),
    [
        ("In", ["a", "b"], "a", True),
        ("In", ["a"], "", False),
        ("NotIn", ["a"], "", True),
        ("NotIn", ["a"], "a", False),
        ("Exists", [], "a", True),
        ("DoesNotExist", [], "a", False),
        ("DoesNotExist", [], "", True),
    ],
)
def test_selectors_of_priority_classes(
    operator: str, values: list[str], name: str, fits: bool
) -> None:
    expression = {"scopeName": "PriorityClass", "operator": operator, "values": values}
    selected = quota({"pods": "5"}, scopeSelector={"matchExpressions": [expression]})
    assert _count(selected, pod(priorityClassName=name)) == ("1" if fits else "0")


def _count(wanted: ResourceQuota, body: Pod) -> str:
    objects = {PODS: [body]}
    around = usage_context(objects, now=NOW, classes=classes())
    return str(recalculated(wanted, objects, around).status.used["pods"])


def test_a_quota_with_scopes_counts_pods_only() -> None:
    wanted = quota({"configmaps": "5"}, scopes=["BestEffort"])
    objects = {MAPS: [pod()]}  # any object will do
    around = usage_context(objects, now=NOW, classes=classes())
    assert str(recalculated(wanted, objects, around).status.used["configmaps"]) == "0"


# --- laws -----------------------------------------------------------------------------------------

AMOUNTS = st.sampled_from(["0", "1", "250m", "3", "1500m"])
NAMES = st.sampled_from(["example.com/gpu", "deviceclass.resource.kubernetes.io/gpu", "cpu"])
PLAIN_PODS = st.builds(
    lambda requests, phase: asking(requests=requests, status={"phase": phase}),
    st.dictionaries(NAMES, AMOUNTS),
    st.sampled_from(["Pending", "Running"]),
)
PLAIN_CLAIMS = st.builds(
    lambda counts: claim("c", *(exactly(count=count) for count in counts)),
    st.lists(st.integers(0, 5), max_size=3),
)
HARD = {
    "pods": "6",
    "requests.cpu": "5",
    COUNT: "4",
    DEVICES: "12",
    EXPLICIT: "11",
    IMPLICIT: "13",
}
OBJECTS = st.lists(PLAIN_PODS | PLAIN_CLAIMS, max_size=12)


@given(objects=OBJECTS)
def test_what_is_charged_is_what_is_counted(objects: list[Any]) -> None:
    around = usage_context({}, now=NOW, classes=classes())
    empty = recalculated(quota(HARD), {PODS: [], CLAIMS: []}, around)
    quotas, kept = [empty], []
    for number, each in enumerate(objects):
        value = replace(each, metadata=replace(each.metadata, name=f"n{number}", uid=f"{number}"))
        measure = evaluator_for(PODS if isinstance(value, Pod) else CLAIMS, around)
        assert measure is not None
        outcome = charged(quotas, measure, value)
        if not isinstance(outcome, ClaimRejection):
            quotas = outcome
            kept.append(value)
    (charged_quota,) = quotas
    assert recalculated(charged_quota, sorted_out(kept), around) is charged_quota
    status = charged_quota.status
    assert all(status.used[name] <= status.hard[name] for name in status.hard)


@given(objects=OBJECTS)
def test_the_order_of_objects_does_not_matter(objects: list[Any]) -> None:
    def counted(values: Sequence[Any]) -> ResourceQuota:
        held = sorted_out(values)
        around = usage_context(held, now=NOW, classes=classes())
        return recalculated(quota(HARD), held, around)

    assert counted(objects).status == counted(objects[::-1]).status


# --- recounting -----------------------------------------------------------------------------------


def test_what_nobody_can_count_stays_as_it_is() -> None:
    around = usage_context({}, now=NOW, classes=classes())
    wanted = quota({"count/widgets.example.com": "4", "replicationcontrollers": "2", "pods": "1"})
    known = decode_tree({"used": {"count/widgets.example.com": "3"}}, type(wanted.status)).value
    done = recalculated(replace(wanted, status=known), {PODS: []}, around)
    assert {name: str(amount) for name, amount in done.status.used.items()} == {
        "count/widgets.example.com": "3",
        "replicationcontrollers": "0",
        "pods": "0",
    }


def test_only_what_is_needed_is_counted() -> None:
    around = usage_context({}, now=NOW, classes=classes())
    every = [PODS, CLAIMS, MAPS, GroupResource("", "events")]
    assert counted_resources([quota({"configmaps": "1"})], every, around) == [MAPS]
    assert counted_resources([quota({"count/configmaps": "1"})], every, around) == [MAPS]
    assert counted_resources([quota({COUNT: "1"})], every, around) == [CLAIMS, PODS]
    assert counted_resources([quota({EXPLICIT: "1"})], every, around) == [PODS, CLAIMS]
    assert counted_resources([quota({"requests.other.com/x": "1"})], every, around) == [PODS]
    assert counted_resources([quota({"count/events": "1"})], every, around) == []
