"""Devices after a change are read from the pools that it concerns, and are the same as all."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.core.node import NodeSpec
from moorage.api.resource.v1 import ResourceClaim
from moorage.insight.devices import devices_changed, devices_in
from moorage.insight.devices.changed_pools import changed_pools, only_pools
from moorage.insight.snapshot.snapshot import Snapshot
from tests.insight.devices.clusters import GPU, claim_of, node, result, slice_of
from tests.insight.whatif.clusters import CONTEXT

POOLS = ("n1", "n2", "n3")
ANY_ZONE = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "Exists"}]}]}
CLUSTER = Snapshot(
    nodes=tuple(node(name, zone="a") for name in POOLS),
    slices=(
        *(slice_of("gpu-0", "gpu-1", name=f"s-{name}", pool=name) for name in POOLS),
        slice_of("far-0", name="s-zone", pool="zone", nodeSelector=ANY_ZONE),
    ),
)
SPOTS = [(pool, f"gpu-{i}") for pool in (*POOLS, "gone") for i in range(2)] + [("zone", "far-0")]


def holder(number: int, spots: list[tuple[str, str]]) -> ResourceClaim:
    return claim_of(f"c{number}", *(result(device, pool=pool) for pool, device in spots))


CLAIMS = st.lists(st.lists(st.sampled_from(SPOTS), max_size=3), min_size=4, max_size=4)


@given(CLAIMS, CLAIMS, st.sets(st.integers(0, 3)))
def test_devices_of_changed_pools_and_the_rest_are_all_devices(
    first: list[list[tuple[str, str]]], second: list[list[tuple[str, str]]], changed: set[int]
) -> None:
    old = [holder(number, spots) for number, spots in enumerate(first)]
    new = [
        holder(number, second[number]) if number in changed else old[number] for number in range(4)
    ]
    before, after = replace(CLUSTER, claims=tuple(old)), replace(CLUSTER, claims=tuple(new))
    had = devices_in(before, CONTEXT)
    assert devices_changed(had, before, after, CONTEXT) == devices_in(after, CONTEXT)


def test_a_released_claim_concerns_its_pools_only() -> None:
    stays = holder(0, [("n1", "gpu-0"), ("n2", "gpu-0")])
    before = replace(CLUSTER, claims=(stays, holder(1, [("n2", "gpu-1")])))
    pools = changed_pools(before, replace(CLUSTER, claims=(stays,)))
    assert pools == {(GPU, "n2"), (GPU, "zone")}  # Pools with selectors always count.
    read = only_pools(before, pools)
    assert [each.metadata.name for each in read.slices] == ["s-n2", "s-zone"]
    assert [
        each.pool
        for claim in read.claims
        if claim.status.allocation
        for each in claim.status.allocation.devices.results
    ] == ["n2", "n2"]


def test_a_cordoned_node_concerns_no_pool() -> None:
    first, *rest = CLUSTER.nodes
    cordoned = replace(first, spec=NodeSpec(unschedulable=True))
    assert changed_pools(CLUSTER, replace(CLUSTER, nodes=(cordoned, *rest))) == {(GPU, "zone")}


@pytest.mark.parametrize(
    "after",
    [
        replace(CLUSTER, nodes=CLUSTER.nodes[1:]),
        replace(CLUSTER, nodes=(node("n1", zone="b"), *CLUSTER.nodes[1:])),
        replace(CLUSTER, slices=CLUSTER.slices[1:]),
    ],
    ids=["node-removed", "node-labelled", "slice-removed"],
)
def test_any_pool_may_differ_if_more_than_claims_changed(after: Snapshot) -> None:
    assert changed_pools(CLUSTER, after) is None
    had = devices_in(CLUSTER, CONTEXT)
    assert devices_changed(had, CLUSTER, after, CONTEXT) == devices_in(after, CONTEXT)
