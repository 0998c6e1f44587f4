"""Which pods are evicted from tainted devices, and the resulting status of a rule."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.documents import KUBERNETES, read
from moorage.api.resource.v1 import DeviceTaintRule, ResourceClaim, ResourceSlice
from moorage.api.timestamp import Timestamp
from moorage.claims import (
    ALL_FEATURES,
    ClaimFeatures,
    DeviceName,
    Eviction,
    EvictionCounts,
    TaintedDevices,
    as_evicting,
    counts_of,
    find_evictions,
    rule_status,
)
from tests.claims.parts import (
    BY_NAME,
    BY_TEMPLATE,
    NOW,
    Tree,
    claim,
    for_group,
    for_pod,
    owned_by,
    pod,
)
from tests.corpus import corpus

TIME = Timestamp.parse(NOW)
EVICT = {"key": "k", "value": "v", "effect": "NoExecute", "timeAdded": NOW}
TOLERATE = {"key": "k", "operator": "Exists", "effect": "NoExecute"}


def slice_(*taints: Tree, name: str = "s", generation: int = 1) -> ResourceSlice:
    """Return a slice with one device, d of pool p and driver g."""
    device = {"name": "d", "taints": list(taints)}
    pool = {"name": "p", "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": "g", "pool": pool, "devices": [device]}
    return decode_tree({"metadata": {"name": name}, "spec": spec}, ResourceSlice).value


def rule(name: str = "r", *, selector: Tree | None = None, **taint: Any) -> DeviceTaintRule:
    spec: Tree = {"taint": {**EVICT, **taint}}
    if selector is not None:
        spec["deviceSelector"] = selector
    return decode_tree({"metadata": {"name": name}, "spec": spec}, DeviceTaintRule).value


def having(
    name: str = "shared",
    *,
    tolerations: Iterable[Tree] = (),
    reserved: Iterable[Tree] = (for_pod("p"),),
    admin: bool = False,
    **metadata: Any,
) -> ResourceClaim:
    """Return a claim that has the device."""
    result = {"request": "r", "driver": "g", "pool": "p", "device": "d", "adminAccess": admin}
    allocation = {"devices": {"results": [{**result, "tolerations": list(tolerations)}]}}
    status = {"allocation": allocation, "reservedFor": list(reserved)}
    return claim(name, status=status, **metadata)


def running(name: str = "p", **fields: Any) -> Pod:
    return pod(name, claims=[BY_NAME], nodeName="n", **fields)


def evicted(
    slices: Iterable[ResourceSlice],
    claims: Iterable[ResourceClaim],
    *,
    rules: Iterable[DeviceTaintRule] = (),
    pods: Iterable[Pod] = (running(),),
    features: ClaimFeatures = ALL_FEATURES,
) -> tuple[Eviction, ...]:
    devices = TaintedDevices(slices, rules)
    return find_evictions(pods, claims, devices, now=TIME, features=features)


def seconds(evictions: Iterable[Eviction]) -> list[int]:
    """Return how long after the start pods leave."""
    return [int((e.when.instant - TIME.instant).total_seconds()) for e in evictions]


# --- taints ---------------------------------------------------------------------------------


def test_a_taint_of_a_slice_evicts_at_the_time_it_was_added() -> None:
    found = evicted([slice_(EVICT)], [having()])
    assert seconds(found) == [0]
    (cause,) = found[0].causes
    assert str(cause.taint) == "k=v:NoExecute"
    assert (cause.claim, str(cause.device), cause.taint.slice_name) == ("ns/shared", "g/p/d", "s")


@pytest.mark.parametrize("effect", ["NoSchedule", "None", "Other"])
def test_other_effects_evict_nobody(effect: str) -> None:
    assert evicted([slice_({**EVICT, "effect": effect})], [having()]) == ()


def test_taints_of_an_older_generation_do_not_count() -> None:
    assert evicted([slice_(EVICT), slice_(name="new", generation=2)], [having()]) == ()


@pytest.mark.parametrize(
    ("selector", "counts"),
    [
        ({}, True),
        ({"driver": "g"}, True),
        ({"driver": "g", "pool": "p", "device": "d"}, True),
        ({"driver": "other"}, False),
        ({"pool": "other"}, False),
        ({"device": "other"}, False),
        (None, False),
    ],
)
def test_rules_mean_devices_by_name_also_unpublished_ones(
    selector: Tree | None, counts: bool
) -> None:
    assert bool(evicted([], [having()], rules=[rule(selector=selector)])) is counts


def test_rules_come_before_slices_among_the_causes() -> None:
    rules = [rule("b", selector={}), rule("a", selector={})]
    (found,) = evicted([slice_(EVICT)], [having()], rules=rules)
    assert [cause.taint.rule for cause in found.causes] == ["a", "b", ""]
    assert found.is_because_of("a")
    assert not found.is_because_of("c")


def test_a_taint_without_a_time_is_added_now() -> None:
    found = evicted([slice_({"key": "k", "effect": "NoExecute"})], [having()])
    assert found[0].when == TIME


# --- tolerations ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tolerations", "expected"),
    [
        ([TOLERATE], []),
        ([{**TOLERATE, "tolerationSeconds": 20}], [20]),
        ([{**TOLERATE, "tolerationSeconds": -5}], [0]),
        ([{**TOLERATE, "tolerationSeconds": 20}, {**TOLERATE, "tolerationSeconds": 7}], [7]),
        ([{**TOLERATE, "tolerationSeconds": 20}, TOLERATE], []),
        ([{**TOLERATE, "key": "other"}], [0]),
        ([{**TOLERATE, "effect": ""}], [0]),  # lets a claim have the device, and no more
        ([{**TOLERATE, "operator": "Equal", "value": "v"}], []),
        ([{**TOLERATE, "operator": "Equal", "value": "w"}], [0]),
    ],
)
def test_tolerations_of_the_allocation_decide_when(
    tolerations: list[Tree], expected: list[int]
) -> None:
    assert seconds(evicted([slice_(EVICT)], [having(tolerations=tolerations)])) == expected


def test_seconds_beyond_the_calendar_are_the_end_of_it() -> None:
    forever = [{**TOLERATE, "tolerationSeconds": 2**63 - 1}]
    (found,) = evicted([slice_(EVICT)], [having(tolerations=forever)])
    assert found.when.instant.year == 9999


@given(st.lists(st.integers(0, 10**6), min_size=1), st.lists(st.integers(0, 10**6), min_size=1))
def test_a_pod_leaves_with_the_earliest_of_its_taints_by_the_shortest_toleration(
    ages: list[int], tolerated: list[int]
) -> None:
    times = [str(Timestamp(TIME.instant + timedelta(seconds=age))) for age in ages]
    taints = [{**EVICT, "value": str(n), "timeAdded": time} for n, time in enumerate(times)]
    tolerations = [{**TOLERATE, "tolerationSeconds": each} for each in tolerated]
    found = evicted([slice_(*taints)], [having(tolerations=tolerations)])
    assert seconds(found) == [min(ages) + min(tolerated)]


# --- pods -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "other",
    [
        pod(claims=[BY_NAME]),  # no node yet
        running(metadata={"deletionTimestamp": NOW}),
        running(metadata={"uid": "a-later-one"}),
        pod(nodeName="n"),
        pod(nodeName="n", claims=[BY_TEMPLATE], made={"r": None}),
        pod(nodeName="n", claims=[BY_TEMPLATE]),
    ],
    ids=["unscheduled", "leaving already", "another uid", "no claim", "not needed", "not made"],
)
def test_pods_that_stay(other: Pod) -> None:
    assert evicted([slice_(EVICT)], [having()], pods=[other]) == ()


def test_a_claim_made_for_another_pod_does_not_count() -> None:
    made = pod(nodeName="n", claims=[BY_TEMPLATE], made={"r": "shared"})
    for owner, expected in (("p", [0]), ("q", [])):
        claims = [having(ownerReferences=owned_by(owner))]
        assert seconds(evicted([slice_(EVICT)], claims, pods=[made])) == expected


def test_pods_of_a_group_leave_where_groups_may_have_claims() -> None:
    member = running(group="g")
    claims = [having(reserved=[for_group("g")])]
    off = ALL_FEATURES._replace(group_claims=False)
    assert seconds(evicted([slice_(EVICT)], claims, pods=[member])) == [0]
    assert evicted([slice_(EVICT)], claims, pods=[member], features=off) == ()


def test_admin_access_does_not_keep_a_pod() -> None:
    assert seconds(evicted([slice_(EVICT)], [having(admin=True)])) == [0]


# --- what rules say -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("effect", "counts", "expected"),
    [
        (
            "NoExecute",
            EvictionCounts(pods=1, namespaces=1),
            ("True", "PodsPendingEviction", "1 pod needs to be evicted in 1 namespace."),
        ),
        (
            "NoExecute",
            EvictionCounts(pods=3, namespaces=2, evicted=1),
            (
                "True",
                "PodsPendingEviction",
                (
                    "3 pods need to be evicted in 2 different namespaces. "
                    "1 pod evicted since starting the controller."
                ),
            ),
        ),
        (
            "NoExecute",
            EvictionCounts(evicted=2),
            ("False", "Completed", "2 pods evicted since starting the controller."),
        ),
        ("NoExecute", EvictionCounts(), ("False", "NotStarted", "")),
        (
            "NoSchedule",
            EvictionCounts(),
            ("False", "OtherEffect", "Eviction only happens for the NoExecute effect."),
        ),
    ],
)
def test_the_status_of_a_rule(
    effect: str, counts: EvictionCounts, expected: tuple[str, ...]
) -> None:
    assert rule_status(effect, counts) == expected


def test_a_rule_without_effect_previews() -> None:
    message = rule_status(
        "None", EvictionCounts(published=1, allocated=1, pods=1, namespaces=1)
    ).message
    assert message.startswith(
        "1 published device selected. 1 allocated device selected. "
        "1 pod would be evicted in 1 namespace if the effect was NoExecute. "
    )


# --- as recorded ----------------------------------------------------------------------------


class Recorded:
    """What a control plane had."""

    def __init__(self, scenario: str, manifest: str) -> None:
        tree = json.loads(corpus("golden", f"{scenario}.json").read_bytes())
        self.pods = [decode_tree(each, Pod).value for each in tree.get("pods", ())]
        self.claims = [decode_tree(e, ResourceClaim).value for e in tree.get("resourceclaims", ())]
        text = corpus("golden", "manifests", f"{manifest}.yaml").read_bytes()
        trees = [each.tree for each in read(text, source=manifest, schema=KUBERNETES)]
        self.slices = [
            decode_tree(each, ResourceSlice).value
            for each in trees
            if isinstance(each, dict) and each["kind"] == "ResourceSlice"
        ]


def recorded_rule(scenario: str) -> DeviceTaintRule:
    tree = json.loads(corpus("golden", f"{scenario}.json").read_bytes())["rule"]
    return decode_tree(tree, DeviceTaintRule).value


@pytest.mark.parametrize("after_s", [3, 25])
def test_pods_are_gone_when_they_were(after_s: int) -> None:
    start, end = Recorded("09-taints", "09-taints"), f"09b-taintrule-t{after_s}s"
    evicting = recorded_rule(end)
    devices = TaintedDevices(start.slices, [evicting])
    assert evicting.spec.taint.time_added is not None
    then = Timestamp(evicting.spec.taint.time_added.instant + timedelta(seconds=after_s))
    found = find_evictions(start.pods, start.claims, devices, now=then, features=ALL_FEATURES)
    gone = {each.pod.metadata.name for each in found if not then < each.when}
    left = {each.metadata.name for each in Recorded(end, "09-taints").pods}
    assert {each.metadata.name for each in start.pods} - gone == left
    # The status is written at once, and then ten seconds later.
    written = 10 if after_s > 10 else 0
    due = evicting.spec.taint.time_added.instant + timedelta(seconds=written)
    evicted = 0 if not written else sum(each.when.instant <= due for each in found)
    waiting = [each for each in found if not written or each.when.instant > due]
    counts = counts_of(evicting, waiting, devices, start.claims, evicted=evicted)
    (condition,) = evicting.status.conditions
    expected = (condition.status, condition.reason, condition.message)
    assert rule_status("NoExecute", counts) == expected


def test_a_preview_counts_what_it_counted() -> None:
    start = Recorded("01-basic", "01-basic")
    asked = recorded_rule("09c-taintrule-none")
    devices = TaintedDevices(start.slices, [as_evicting(asked)])
    found = find_evictions(start.pods, start.claims, devices, now=TIME, features=ALL_FEATURES)
    counts = counts_of(asked, found, devices, start.claims)
    (condition,) = asked.status.conditions
    expected = (condition.status, condition.reason, condition.message)
    assert rule_status("None", counts) == expected
    assert DeviceName("gpu.example.com", "node-a-gpus", "gpu-0") in set(devices.meant_by(asked))
