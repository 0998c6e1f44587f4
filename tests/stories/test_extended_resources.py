"""KEP-5004: extended resources that devices serve."""

from __future__ import annotations

import pytest

from tests.stories.tellers import explain, nodes, plan, planned, story, the_one

DRA = ("004-34-device-class", "004-35-gpu-slice", "004-36-node-with-dra")
PLUGIN = "004-37-node-with-device-plugin"
DEPLOYMENT = "004-33-deployment"
DRA_NODE = "gke-drabeta-n1-standard-4-2xt4-346fe653-zrw2"
PLUGIN_NODE = "gke-drabeta-n1-standard-4-2xt4-346fe653-xyz8"
RESOURCE = "example.com/gpu"


def told_of(*files: str, seeds: tuple[str, ...] = DRA) -> tuple[str, ...]:
    return story("extended-resource", *files, seeds=seeds)


def test_the_deployment_runs_unmodified_on_the_node_with_dra() -> None:
    told = the_one(*told_of(seeds=(DEPLOYMENT, *DRA)))
    assert (told.node, told.devices) == (DRA_NODE, {"container-0-request-0": "gpu-0"})
    assert told.tree["extendedResources"] == {"container-0-request-0": RESOURCE}


def test_the_deployment_runs_unmodified_on_the_node_with_the_device_plugin() -> None:
    told = the_one(*told_of(seeds=(DEPLOYMENT, DRA[0], PLUGIN)))
    assert (told.node, told.devices) == (PLUGIN_NODE, {})
    assert told.tree["pluginResources"] == {RESOURCE: "1"}


def test_the_seven_gpus_that_are_left_can_be_claimed() -> None:
    told = plan(*told_of("claim", seeds=(DEPLOYMENT, *DRA)))
    given = " ".join(names for each in told.values() for names in each.devices.values())
    assert {each.node for each in told.values()} == {DRA_NODE}
    assert sorted(given.split()) == [f"gpu-{number}" for number in range(8)]


def test_nodes_with_dra_and_with_a_device_plugin_serve_side_by_side() -> None:
    told = plan(*told_of("many", seeds=(*DRA, PLUGIN)))
    found = list(nodes(told).values())
    assert (found.count(DRA_NODE), found.count(PLUGIN_NODE), found.count(None)) == (8, 2, 1)
    assert told["many-10"].message.startswith(
        f"0/2 nodes are available: 1 Insufficient {RESOURCE}, 1 cannot allocate all claims."
    )


@pytest.mark.parametrize("seed", ["002-16-extended-resource-class", "004-34-device-class"])
@pytest.mark.parametrize("file", ["two-gpus", "implicit"])
def test_two_devices_by_the_explicit_and_the_implicit_name(seed: str, file: str) -> None:
    told = the_one(*told_of(file, seeds=(seed, *DRA[1:])))
    assert (told.node, told.devices) == (DRA_NODE, {"container-0-request-0": "gpu-0 gpu-1"})


def test_the_implicit_name_is_never_served_by_a_device_plugin() -> None:
    told = the_one(*told_of("implicit", seeds=(DRA[0], PLUGIN)))
    assert told.node is None


def test_init_containers_use_what_later_containers_have() -> None:
    """The largest init container wants 5; sidecar and containers have 1, 1 and 2: one more."""
    options = told_of("containers")
    assert the_one(*options).devices == {
        "container-1-request-0": "gpu-0",
        "container-2-request-0": "gpu-1",
        "container-3-request-0": "gpu-2",
        "container-4-request-0": "gpu-3 gpu-4",
    }
    status = planned(*options).placed[0].pod.status.extended_resource_claim_status
    assert status is not None
    mapped: dict[str, list[str]] = {}
    for mapping in status.request_mappings:
        number = mapping.request_name.removeprefix("container-").removesuffix("-request-0")
        mapped.setdefault(mapping.container_name, []).append(number)
    assert mapped == {
        "sidecar": ["2"],
        "one": ["3"],
        "two": ["4"],
        "small": ["2"],
        "large": ["2", "3", "4", "1"],
    }


def test_requests_are_named_after_the_container_and_the_resource() -> None:
    told = the_one(*told_of("third"))
    assert told.tree["extendedResources"] == {
        "container-0-request-1": "deviceclass.resource.kubernetes.io/gpu.example.com",
        "container-0-request-2": RESOURCE,
    }


def test_there_is_one_special_claim_which_its_pod_owns() -> None:
    (placed,) = planned(*told_of("third")).placed
    (claim,) = placed.claims
    assert claim.metadata.annotations == {"resource.kubernetes.io/extended-resource-claim": "true"}
    assert [(each.kind, each.name) for each in claim.metadata.owner_references] == [
        ("Pod", "third")
    ]
    assert [(each.resource, each.name) for each in claim.status.reserved_for] == [("pods", "third")]


def test_more_devices_than_a_claim_may_have_are_refused_with_the_limit() -> None:
    text = explain(*told_of("too-many"))
    assert "number of requested devices 33 exceeds the claim limit of 32\n" in text


def test_of_two_classes_with_one_resource_the_newer_serves_it() -> None:
    told = the_one(*told_of("newer-class", "two-gpus", seeds=DRA[1:]))
    assert told.node is None  # the newer class selects nothing


def test_without_the_feature_only_device_plugins_serve() -> None:
    options = (*told_of("many", seeds=(*DRA, PLUGIN)), "--emulated-version", "1.34")
    found = list(nodes(plan(*options, "--gates-preset", "kubernetes-1.37")).values())
    assert (found.count(DRA_NODE), found.count(PLUGIN_NODE)) == (0, 2)
