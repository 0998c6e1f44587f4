"""Rules for nodes: taints, amounts, pod networks, features, and what may change."""

from __future__ import annotations

import pytest

from tests.validation.objects import Tree, causes, create, update, update_status


def taints(*items: Tree) -> Tree:
    return {"spec": {"taints": list(items)}}


def cidrs(*texts: str) -> Tree:
    return {"spec": {"podCIDRs": list(texts)}}


GPU = {"key": "gpu", "effect": "NoSchedule"}
EFFECTS = 'supported values: "NoSchedule", "PreferNoSchedule", "NoExecute"'
NO_CIDR = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"
ONE_EACH = "may specify no more than one CIDR for each IP family"
SWAP = {"status": {"nodeInfo": {"swap": {"capacity": 0}}}}
TAINTS_ANNOTATION = "scheduler.alpha.kubernetes.io/taints"
AVOID_ANNOTATION = "scheduler.alpha.kubernetes.io/preferAvoidPods"

WRONG: list[tuple[Tree, list[str]]] = [
    (taints({"key": "gpu"}), ["Required metadata.taints[0].effect: Required value"]),
    (
        taints({"key": "gpu", "effect": "Never"}),
        [f'NotSupported metadata.taints[0].effect: Unsupported value: "Never": {EFFECTS}'],
    ),
    (
        taints(GPU, {**GPU, "value": "other"}),
        [
            (
                'Duplicate metadata.taints[1]: Duplicate value: {"Key":"gpu","Value":"other",'
                '"Effect":"NoSchedule","TimeAdded":null}: '
                "taints must be unique by key and effect pair"
            )
        ],
    ),
    (
        {"status": {"capacity": {"cpu": "-1"}}},
        [
            (
                'Invalid status.capacity.cpu: Invalid value: "-1": '
                "must be greater than or equal to 0"
            ),
            (
                'Invalid status.allocatable.cpu: Invalid value: "-1": '
                "must be greater than or equal to 0"
            ),
        ],
    ),
    (
        {"status": {"allocatable": {"example.org/gpu": "1.5"}}},
        [
            (
                'Invalid status.allocatable.example.org/gpu: Invalid value: "1500m": '
                "must be an integer"
            )
        ],
    ),
    (SWAP, ["Invalid metadata.nodeSwapStatus.capacity: Invalid value: 0: must be greater than 0"]),
    (
        {"status": {"declaredFeatures": ["Beta", "Alpha"]}},
        [
            (
                'Invalid status.declaredFeatures[1]: Invalid value: "Alpha": '
                "list must be sorted alphabetically"
            )
        ],
    ),
    (
        {"status": {"declaredFeatures": ["Alpha", "Alpha"]}},
        ['Duplicate status.declaredFeatures[1]: Duplicate value: "Alpha"'],
    ),
    (cidrs("10.1.0.0"), [f'Invalid spec.podCIDRs[0]: Invalid value: "10.1.0.0": {NO_CIDR}']),
    (
        cidrs("10.1.0.9/24"),
        [
            (
                'Invalid spec.podCIDRs[0]: Invalid value: "10.1.0.9/24": '
                "must not have bits set beyond the prefix length"
            )
        ],
    ),
    (
        cidrs("010.1.0.0/24"),
        [
            (
                'Invalid spec.podCIDRs[0]: Invalid value: "010.1.0.0/24": '
                "must not have leading 0s in IP or prefix length"
            )
        ],
    ),
    (
        cidrs("::ffff:10.1.0.0/120"),
        [
            (
                'Invalid spec.podCIDRs[0]: Invalid value: "::ffff:10.1.0.0/120": '
                "must not have an IPv4-mapped IPv6 address"
            )
        ],
    ),
    (
        cidrs("10.1.0.0/24", "10.2.0.0/24"),
        [f'Invalid spec.podCIDRs: Invalid value: ["10.1.0.0/24","10.2.0.0/24"]: {ONE_EACH}'],
    ),
    (
        {"metadata": {"annotations": {TAINTS_ANNOTATION: '[{"key": "gpu"}]'}}},
        [f"Required metadata.annotations.{TAINTS_ANNOTATION}[0].effect: Required value"],
    ),
    (
        {"metadata": {"annotations": {AVOID_ANNOTATION: '{"preferAvoidPods": [{}]}'}}},
        [f"Required metadata.annotations.{AVOID_ANNOTATION}[0].PodSignature: Required value"],
    ),
]


@pytest.mark.parametrize(("change", "expected"), WRONG)
def test_an_invalid_node_is_refused(change: Tree, expected: list[str]) -> None:
    assert causes(create("Node", change)) == expected


@pytest.mark.parametrize("text", ["[", "7", '"x"', '[{"key": 7}]'])
def test_an_annotation_that_cannot_be_read_is_refused(text: str) -> None:
    (cause,) = causes(create("Node", {"metadata": {"annotations": {TAINTS_ANNOTATION: text}}}))
    assert cause.startswith("Invalid metadata.annotations: ")


def test_the_first_pod_network_is_the_pod_network() -> None:
    made = create("Node", {"spec": {"podCIDRs": ["10.1.0.0/24"]}}).stored
    assert (made.spec.pod_cidr, made.spec.pod_cidrs) == ("10.1.0.0/24", ("10.1.0.0/24",))
    made = create("Node", {"spec": {"podCIDR": "10.9.0.0/24"}}).stored
    assert made.spec.pod_cidrs == ("10.9.0.0/24",)


def test_a_node_is_created_with_its_status_and_without_removed_fields() -> None:
    source = {"configMap": {"name": "a", "namespace": "b", "kubeletConfigKey": "c"}}
    change = {"spec": {"configSource": source}, "status": {"config": {"error": "x"}}}
    made = create("Node", change).stored
    assert made.status.capacity
    assert (made.spec.config_source, made.status.config) == (None, None)


def test_capacity_is_allocatable_in_thousandths() -> None:
    made = create("Node", {"status": {"capacity": {"cpu": "1n"}}}).stored
    assert str(made.status.allocatable["cpu"]) == "1m"


KEPT = 'node updates may not change podCIDR except from "" to valid'
CHANGES: list[tuple[Tree, list[str]]] = [
    ({"spec": {"podCIDR": "10.2.0.0/24"}}, [f"Forbidden spec.podCIDRs: Forbidden: {KEPT}"]),
    (
        {"spec": {"providerID": "cloud://2"}},
        ["Invalid spec.providerID: Invalid value: null: field cannot be modified once set"],
    ),
    (
        {"spec": {"providerID": ""}},
        ["Invalid spec.providerID: Invalid value: null: field cannot be cleared once set"],
    ),
    ({"spec": {"externalID": "x"}}, ["Forbidden spec.externalID: Forbidden: may not be updated"]),
    (taints({"key": "a", "effect": "NoExecute"}), []),
    (taints({"key": "a"}), ["Required metadata.taints[0].effect: Required value"]),
]


@pytest.mark.parametrize(("change", "expected"), CHANGES)
def test_an_update_keeps_what_identifies_a_node(change: Tree, expected: list[str]) -> None:
    assert causes(update("Node", {}, change)) == expected


def test_an_update_leaves_the_status_alone_and_one_of_the_status_the_spec() -> None:
    other: Tree = {"spec": {"unschedulable": True}, "status": {"phase": "Running"}}
    labels = {"metadata": {"labels": {"a": "b"}}}
    spec = update("Node", {}, {**other, **labels}).stored
    assert (spec.spec.unschedulable, spec.status.phase) == (True, "")
    status = update_status("Node", other["status"], spec=other["spec"], **labels).stored
    assert (status.spec.unschedulable, status.status.phase) == (False, "Running")
    assert status.metadata.labels == {"a": "b"}


def test_a_status_names_each_address_once() -> None:
    address = {"type": "InternalIP", "address": "10.0.0.1"}
    found = causes(update_status("Node", {"addresses": [address, address]}))
    assert found == [
        (
            'Duplicate status.addresses[1]: Duplicate value: {"Type":"InternalIP",'
            '"Address":"10.0.0.1"}'
        )
    ]


WARNED = [
    ("10.1.0.0/24", []),
    (
        "2001:0db8::/64",
        [
            (
                'spec.podCIDRs[0]: IPv6 CIDR value "2001:0db8::/64" should be in RFC 5952 '
                'canonical format ("2001:db8::/64")'
            )
        ],
    ),
]


@pytest.mark.parametrize(("text", "expected"), WARNED)
def test_an_unusual_network_is_warned_of(text: str, expected: list[str]) -> None:
    assert list(create("Node", cidrs(text)).warnings) == expected
