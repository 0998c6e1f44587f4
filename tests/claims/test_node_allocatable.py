"""Node resources that come with claims."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import decode_tree
from moorage.api.core import NodeAllocatableResourceClaimStatus, Pod
from moorage.api.resource.v1 import AllocationResult, ResourceSlice
from moorage.claims import (
    ALL_FEATURES,
    AllocatedClaim,
    ClaimRejection,
    Shortage,
    check_pod_level,
    check_unshared,
    claim_statuses,
    container_limits,
    finder,
    is_mapped,
    pod_requests,
    shortages,
)
from moorage.claims.node_allocatable import FindDevice
from tests.claims.parts import Tree, amounts, asking, claim, for_group, for_pod, pod


def device(name: str, **resources: Tree) -> Tree:
    return {"name": name, "nodeAllocatableResources": resources}


DEVICES = [
    device("core", cpu={"mapping": {"deviceMultiplier": "1"}}),
    device("socket", cpu={"mapping": {"capacityKey": "x/cores"}}),
    device("threads", cpu={"mapping": {"capacityKey": "x/cores", "capacityMultiplier": "2"}}),
    device(
        "gpu",
        memory={
            "mapping": {"deviceMultiplier": "4Gi"},
            "overhead": {"perPod": "1Gi", "perContainer": "512Mi"},
        },
        cpu={"mapping": {"deviceMultiplier": "2"}},
    ),
    device("nic", memory={"overhead": {"perPod": "64Mi"}}),
    device("void", memory={"overhead": {}}),
    {"name": "plain"},
]


def slice_(*devices: Tree, name: str = "s", generation: int = 1, **spec: Any) -> ResourceSlice:
    pool = {"name": "n", "generation": generation, "resourceSliceCount": 1}
    tree = {"driver": "d", "pool": pool, "devices": list(devices), **spec}
    return decode_tree({"metadata": {"name": name}, "spec": tree}, ResourceSlice).value


FIND = finder([slice_(*DEVICES)], lambda device: True)


def allocation(*results: str | tuple[str, Tree]) -> AllocationResult:
    """Return an allocation of devices, some with the capacity that was consumed of them."""
    trees: list[Tree] = []
    for each in results:
        name, consumed = (each, None) if isinstance(each, str) else each
        tree: Tree = {"request": "r", "driver": "d", "pool": "n", "device": name}
        trees.append(tree if consumed is None else {**tree, "consumedCapacity": consumed})
    return decode_tree({"devices": {"results": trees}}, AllocationResult).value


def using(name: str, *entries: str) -> Tree:
    return {"name": name, "resources": {"claims": [{"name": entry} for entry in entries]}}


def statuses(
    *results: str | tuple[str, Tree], user: Pod | None = None, find: FindDevice = FIND
) -> Any:
    held = AllocatedClaim(claim("c"), allocation(*results), frozenset({"r"}))
    return claim_statuses(user or pod(containers=[using("c", "r")]), [held], find)


def status(
    mapping: dict[str, str] | None = None,
    overhead: dict[str, Tree] | None = None,
    containers: tuple[str, ...] = ("c",),
    name: str = "c",
) -> NodeAllocatableResourceClaimStatus:
    tree = {
        "resourceClaimName": name,
        "containers": list(containers),
        "mapping": [{"name": key, "quantity": text} for key, text in (mapping or {}).items()],
        "overhead": [{"name": key, **costs} for key, costs in (overhead or {}).items()],
    }
    return decode_tree(tree, NodeAllocatableResourceClaimStatus).value


# --- what comes with a claim ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        (["core"], status({"cpu": "1"})),
        (["core", "core", "plain"], status({"cpu": "2"})),
        ([("socket", {"x/cores": "30"})], status({"cpu": "30"})),
        ([("threads", {"x/cores": "500m"}), "core"], status({"cpu": "2"})),
        (
            ["gpu", "nic"],
            status(
                {"cpu": "2", "memory": "4Gi"},
                {"memory": {"perPod": "1088Mi", "perContainer": "512Mi"}},
            ),
        ),
        (["nic"], status(overhead={"memory": {"perPod": "64Mi"}})),
    ],
)
def test_devices_add_up(
    results: list[str | tuple[str, Tree]], expected: NodeAllocatableResourceClaimStatus
) -> None:
    assert statuses(*results) == (expected,)


@pytest.mark.parametrize(
    "results", [[], ["plain"], ["void"], [("socket", {"x/other": "1"})], ["unpublished"]]
)
def test_claims_without_node_resources_have_no_status(
    results: list[str | tuple[str, Tree]],
) -> None:
    assert statuses(*results) == ()


@pytest.mark.parametrize(
    ("results", "reason"),
    [
        (
            ["core", "gone"],
            "claim ns/c, device gone, driver d: device gone not found in pool n for driver d",
        ),
        (
            ["socket"],
            (
                "claim ns/c, device socket: ConsumedCapacity is nil, but Capacity key 'x/cores' is "
                "set in NodeAllocatableResources for resource cpu"
            ),
        ),
    ],
)
def test_what_cannot_be_added_up_is_refused(results: list[str], reason: str) -> None:
    assert statuses(*results) == ClaimRejection(reason)


def test_containers_that_list_the_claim_are_named_once_init_containers_first() -> None:
    user = pod(
        containers=[using("a", "r", "r"), using("b", "other"), using("c", "other", "r")],
        initContainers=[using("i", "r")],
    )
    assert statuses("core", user=user) == (status({"cpu": "1"}, containers=("i", "a", "c")),)


def test_claims_are_sorted_by_name() -> None:
    held = [AllocatedClaim(claim(name), allocation("core")) for name in ("b", "a")]
    assert claim_statuses(pod(), held, FIND) == (
        status({"cpu": "1"}, containers=(), name="a"),
        status({"cpu": "1"}, containers=(), name="b"),
    )


def test_a_device_of_the_newest_generation_is_found() -> None:
    old = slice_(device("core", cpu={"mapping": {"deviceMultiplier": "9"}}), name="z")
    new = slice_(*DEVICES, generation=2)
    for order in ([old, new], [new, old]):
        found = statuses("core", find=finder(order, lambda device: True))
        assert found == (status({"cpu": "1"}),)


def test_a_device_that_is_elsewhere_is_not_on_the_node() -> None:
    per_device = finder([slice_(*DEVICES, perDeviceNodeSelection=True)], lambda device: False)
    missing = per_device(allocation("core").devices.results[0])
    assert missing == ClaimRejection("device core does not match node")
    whole = finder([slice_(*DEVICES)], lambda device: False)
    assert not isinstance(whole(allocation("core").devices.results[0]), ClaimRejection)


# --- sharing ----------------------------------------------------------------------------------


def test_only_a_mapping_makes_a_claim_mapped() -> None:
    assert is_mapped(allocation("plain", "gpu"), FIND)
    assert not is_mapped(allocation("plain", "nic", "unpublished"), FIND)


@pytest.mark.parametrize(
    ("consumers", "pending_for", "is_shared"),
    [
        ([], [], False),
        ([for_pod("p")], ["p-uid"], False),
        ([for_group("g")], [], False),
        ([for_pod("q")], [], True),
        ([], ["p-uid", "q-uid"], True),
    ],
)
def test_a_mapped_claim_is_not_shared(
    consumers: list[Tree], pending_for: list[str], is_shared: bool
) -> None:
    held = claim("c", status={"reservedFor": consumers})
    found = check_unshared(held, pod(group="g"), ALL_FEATURES, pending_for=pending_for)
    reason = (
        "node allocatable resource claim c has a mapped device and cannot be shared across pods"
    )
    assert found == (ClaimRejection(reason) if is_shared else None)


# --- demand -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (
            pod(containers=[asking("a", requests={"cpu": 1}), asking("b", requests={"cpu": 2})]),
            {"cpu": "3"},
        ),
        (
            pod(
                containers=[asking("a", requests={"cpu": 1})],
                initContainers=[asking("i", requests={"cpu": 3, "memory": "1Gi"})],
            ),
            {"cpu": "3", "memory": "1Gi"},
        ),
        (
            pod(
                containers=[asking("a", requests={"cpu": 1})],
                initContainers=[
                    asking("i", requests={"cpu": 3}),
                    asking("s", requests={"cpu": 2}, sidecar=True),
                    asking("j", requests={"cpu": 3}),
                ],
            ),
            {"cpu": "5"},
        ),
        (
            pod(
                containers=[asking("a", requests={"cpu": 1, "example.com/gpu": 1})],
                resources={"requests": {"cpu": "4", "example.com/gpu": "9"}},
                overhead={"cpu": "500m", "memory": "1Mi"},
            ),
            {"cpu": "4500m", "example.com/gpu": "1", "memory": "1Mi"},
        ),
    ],
)
def test_a_pod_asks_for_what_it_can_use_at_once(user: Pod, expected: dict[str, str]) -> None:
    assert pod_requests(user) == amounts(**expected)


def test_claims_add_to_the_demand_of_a_pod() -> None:
    user = pod(containers=[asking("a", requests={"cpu": 1})])
    come = [
        status({"cpu": "8"}, {"memory": {"perPod": "1Gi", "perContainer": "1Mi"}}, ("a", "b")),
        status({"cpu": "1"}),
    ]
    assert pod_requests(user, come) == amounts(cpu="10", memory="1026Mi")


def test_claims_raise_limits_that_are_declared_and_those_of_huge_pages() -> None:
    user = pod(containers=[asking("a", limits={"cpu": "1"})])
    come = [status({"cpu": "8", "memory": "1Gi", "hugepages-2Mi": "4Mi"})]
    assert container_limits(user, come) == amounts(**{"cpu": "9", "hugepages-2Mi": "4Mi"})


# --- room on the node -------------------------------------------------------------------------


def test_what_a_node_lacks_is_named_in_order() -> None:
    demand = amounts(
        **{"hugepages-2Mi": "4Mi", "memory": "3Gi", "cpu": "9", "example.com/gpu": "5"}
    )
    found = shortages(
        demand,
        allocatable=amounts(cpu="8", memory="4Gi"),
        requested=amounts(cpu="1", memory="2Gi"),
    )
    assert found == (
        Shortage("cpu", is_unresolvable=True),
        Shortage("memory", is_unresolvable=False),
        Shortage("hugepages-2Mi", is_unresolvable=True),
    )
    assert [each.reason for each in found] == [
        "Insufficient cpu",
        "Insufficient memory",
        "Insufficient hugepages-2Mi",
    ]


def test_a_demand_that_just_fits_fits() -> None:
    node = amounts(**{"cpu": "1", "ephemeral-storage": "1Gi"})
    demand = amounts(**{"cpu": "999m", "ephemeral-storage": "1Gi", "memory": "0"})
    taken = amounts(cpu="1m", memory="1Gi")
    assert shortages(demand, allocatable=node, requested=taken) == ()


# --- pods that ask as a whole -----------------------------------------------------------------

MEMORY = status(overhead={"memory": {"perPod": "1Gi", "perContainer": "1Gi"}})


def whole(container: Tree, **resources: dict[str, str]) -> Pod:
    return pod(containers=[container], resources=resources)


@pytest.mark.parametrize(
    ("user", "come", "reason"),
    [
        (pod(containers=[asking("c", requests={"cpu": 1})]), status({"cpu": "9"}), None),
        (
            whole(asking("c", requests={"cpu": 1}), requests={"cpu": "2"}),
            status({"cpu": "1"}),
            None,
        ),
        (
            whole(asking("c", requests={"cpu": "800m"}), requests={"cpu": "1"}),
            status({"cpu": "300m"}),
            (
                "request for cpu is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            ),
        ),
        (
            whole(asking("c", requests={"cpu": 2, "memory": "2Gi"}), requests={"cpu": "1"}),
            status({"memory": "1Gi"}),
            (
                "request for cpu is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            ),
        ),
        (whole(asking("c", requests={"memory": "1Gi"}), requests={"memory": "3Gi"}), MEMORY, None),
        (
            whole(asking("c", requests={"memory": "1Gi"}), requests={"memory": "2Gi"}),
            MEMORY,
            (
                "request for memory is insufficient to cover the aggregated container "
                "and node-allocatable DRA requests"
            ),
        ),
        (
            whole(asking("c", limits={"memory": "1Gi"}), limits={"memory": "2Gi"}),
            MEMORY,
            "limit for memory is insufficient to cover the limit and DRA overhead for container c",
        ),
        (whole(asking("c", limits={"memory": "1Gi"}), limits={"memory": "3Gi"}), MEMORY, None),
        (whole(asking("x", limits={"memory": "1Gi"}), limits={"memory": "2Gi"}), MEMORY, None),
        (whole(asking("c", limits={"memory": "1Gi"}), limits={"cpu": "1"}), MEMORY, None),
        (
            whole(asking("c"), limits={"hugepages-2Mi": "2Mi"}),
            status({"hugepages-2Mi": "4Mi"}),
            (
                "limit for hugepages-2Mi is insufficient to cover the aggregated container "
                "and node-allocatable DRA limits"
            ),
        ),
        (
            whole(asking("c", limits={"hugepages-2Mi": "2Mi"}), limits={"hugepages-2Mi": "6Mi"}),
            status({"hugepages-2Mi": "4Mi"}),
            None,
        ),
    ],
)
def test_what_a_pod_asks_for_as_a_whole_covers_containers_and_claims(
    user: Pod, come: NodeAllocatableResourceClaimStatus, reason: str | None
) -> None:
    expected = None if reason is None else ClaimRejection(f"pod level {reason}")
    assert check_pod_level(user, [come]) == expected


def test_without_claims_nothing_is_checked() -> None:
    assert (
        check_pod_level(whole(asking("c", requests={"cpu": 2}), requests={"cpu": "1"}), []) is None
    )
