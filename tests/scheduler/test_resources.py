"""Requests of pods, and the resources they use on nodes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from moorage.api.codec import decode_tree
from moorage.api.core.pod import Pod
from moorage.scheduler.resources import (
    non_zero_requests_of,
    non_zero_requests_on_node,
    requests_of,
    requests_on_node,
)

MI = 1024 * 1024


def container(name: str = "c", restart: str | None = None, **requests: str) -> dict[str, Any]:
    named = {key.replace("_", "-"): value for key, value in requests.items()}
    tree: dict[str, Any] = {"name": name, "resources": {"requests": named}}
    return tree if restart is None else {**tree, "restartPolicy": restart}


def pod(spec: Mapping[str, Any], status: Mapping[str, Any] | None = None) -> Pod:
    return decode_tree({"spec": dict(spec), "status": dict(status or {})}, Pod).value


SUMS: list[tuple[str, dict[str, Any], tuple[int, int]]] = [
    ("nothing", {"containers": [container()]}, (0, 0)),
    (
        "containers add up",
        {"containers": [container(cpu="100m", memory="1"), container(cpu="1", memory="2")]},
        (1100, 3),
    ),
    (
        "parts of a unit are rounded after adding",
        {"containers": [container(cpu="0.5m"), container(cpu="500u")]},
        (1, 0),
    ),
    (
        "an init container counts where it needs more than all others",
        {
            "initContainers": [container(cpu="2", memory="1"), container(cpu="1", memory="5")],
            "containers": [container(cpu="1500m", memory="3")],
        },
        (2000, 5),
    ),
    (
        "a sidecar runs with the containers",
        {
            "initContainers": [container(restart="Always", cpu="1")],
            "containers": [container(cpu="1", memory="1")],
        },
        (2000, 1),
    ),
    (
        "a sidecar runs with init containers after it, not with those before it",
        {
            "initContainers": [
                container(cpu="5"),
                container(restart="Always", cpu="2"),
                container(cpu="4"),
            ],
            "containers": [container(cpu="1")],
        },
        (6000, 0),
    ),
    (
        "overhead comes on top",
        {"containers": [container(cpu="1")], "overhead": {"cpu": "250m", "memory": "7"}},
        (1250, 7),
    ),
    (
        "the pod as a whole takes the place of its containers, where it says something",
        {
            "containers": [container(cpu="1", memory="10"), container(cpu="1")],
            "resources": {"requests": {"cpu": "1500m"}},
            "overhead": {"cpu": "100m"},
        },
        (1600, 10),
    ),
    (
        "limits of the pod as a whole are no requests",
        {"containers": [container(cpu="1")], "resources": {"limits": {"cpu": "4"}}},
        (1000, 0),
    ),
]


@pytest.mark.parametrize(("case", "spec", "expected"), SUMS, ids=[row[0] for row in SUMS])
def test_cpu_and_memory(case: str, spec: dict[str, Any], expected: tuple[int, int]) -> None:
    amounts = requests_of(pod(spec))
    assert (amounts.milli_cpu, amounts.memory) == expected
    assert requests_on_node(pod(spec)) == amounts


def test_other_resources_are_counted_in_pieces_and_unknown_names_are_not() -> None:
    requests = {
        "example.com/gpu": "2",
        "hugepages-2Mi": "4Mi",
        "ephemeral-storage": "1Ki",
        "kubernetes.io/thing": "1",
        "example.com/none": "0",
        "unqualified": "3",
    }
    amounts = requests_of(pod({"containers": [{"name": "c", "resources": {"requests": requests}}]}))
    assert amounts.ephemeral_storage == 1024
    assert amounts.others == {
        "example.com/gpu": 2,
        "hugepages-2Mi": 4 * MI,
        "kubernetes.io/thing": 1,
    }


DEFAULTS: list[tuple[str, dict[str, Any], tuple[int, int], tuple[int, int]]] = [
    ("every container weighs", {"containers": [container(), container()]}, (200, 400), (200, 400)),
    (
        "what is said counts, even if it is nothing",
        {"containers": [container(cpu="0", memory="0")]},
        (0, 0),
        (0, 0),
    ),
    (
        "only what is missing is filled in",
        {"containers": [container(cpu="1"), container(memory="1Mi")]},
        (1100, 201),
        (1100, 201),
    ),
    (
        "a pod as a whole is left out while it looks for a node",
        {"containers": [container()], "resources": {"requests": {"cpu": "2"}}},
        (100, 200),
        (2000, 200),
    ),
]


@pytest.mark.parametrize(("case", "spec", "asked", "held"), DEFAULTS)
def test_what_counts_in_scores(
    case: str, spec: dict[str, Any], asked: tuple[int, int], held: tuple[int, int]
) -> None:
    found = non_zero_requests_of(pod(spec))
    assert (found.milli_cpu, found.memory // MI) == asked
    found = non_zero_requests_on_node(pod(spec))
    assert (found.milli_cpu, found.memory // MI) == held


def resized(spec: str, given: str, used: str, *, infeasible: bool = False) -> Pod:
    condition = {"type": "PodResizePending", "status": "True", "reason": "Infeasible"}
    return pod(
        {"containers": [container("main", cpu=spec)]},
        {
            "containerStatuses": [
                {
                    "name": "main",
                    "allocatedResources": {"cpu": given},
                    "resources": {"requests": {"cpu": used}},
                }
            ],
            "conditions": [condition] if infeasible else [],
        },
    )


@pytest.mark.parametrize(
    ("resize", "expected"),
    [
        (resized("1", "2", "3"), 3000),
        (resized("4", "2", "3"), 4000),
        (resized("1", "5", "3"), 5000),
        (resized("9", "2", "3", infeasible=True), 3000),
    ],
)
def test_a_pod_that_is_resized_holds_the_most(resize: Pod, expected: int) -> None:
    assert requests_on_node(resize).milli_cpu == expected
    asked = requests_of(resize)
    assert asked.milli_cpu == requests_of(pod({"containers": resize_spec(resize)})).milli_cpu


def resize_spec(resize: Pod) -> list[dict[str, Any]]:
    return [container("main", cpu=str(resize.spec.containers[0].resources.requests["cpu"]))]


def test_claims_that_stand_for_node_resources_are_held_but_not_asked_for() -> None:
    claimed = pod(
        {"containers": [container("a", cpu="1"), container("b")]},
        {
            "nodeAllocatableResourceClaimStatuses": [
                {
                    "resourceClaimName": "claim",
                    "containers": ["a", "b"],
                    "mapping": [{"name": "cpu", "quantity": "2"}],
                    "overhead": [{"name": "memory", "perPod": "10", "perContainer": "5"}],
                }
            ]
        },
    )
    assert (requests_on_node(claimed).milli_cpu, requests_on_node(claimed).memory) == (3000, 20)
    without = requests_on_node(claimed, with_claims=False)
    assert (without.milli_cpu, without.memory) == (1000, 0)
    assert requests_of(claimed).milli_cpu == 1000
