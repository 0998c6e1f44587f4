"""The whole cycle with devices, by tables: company, spreading, extended resources, preferences.

The rules are those of the filters and scores; here they meet claims. A filter that comes before the
one of claims speaks first, and none of them knows of devices.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import pytest

from moorage.api.core.pod import Pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.scheduling_cycle import Placed, schedule
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import (
    claim,
    cluster,
    device_class,
    devices_of,
    placed,
    reasons,
    refused,
    slice_of,
    user,
    wanting,
)

NO_DEVICES = "cannot allocate all claims"
NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_APART = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"
UNEVEN = "node(s) didn't match pod topology spread constraints"
ELSEWHERE = "resourceclaim not available on the node"

ROOM = {"cpu": "4", "memory": "8Gi", "pods": "110"}
WEB, DB = {"app": "web"}, {"app": "db"}
# Node: its zone and how many devices it has.
NODES = {"a": ("1", 2), "b": ("1", 0), "c": ("2", 1), "d": ("2", 1)}


def zones(*objects: Any) -> Cluster:
    """Return the four nodes with their devices, and claims and pods."""
    made = [node(name, labels={"zone": zone, "host": name}) for name, (zone, _) in NODES.items()]
    slices = [slice_of(name, number) for name, (_, number) in NODES.items() if number]
    return cluster(*made, *slices, device_class(), *objects)


def term(key: str, labels: Mapping[str, str]) -> dict[str, Any]:
    return {"topologyKey": key, "labelSelector": {"matchLabels": labels}}


def near(key: str, labels: Mapping[str, str]) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAffinity": {required: [term(key, labels)]}}}


def apart(key: str, labels: Mapping[str, str]) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {"affinity": {"podAntiAffinity": {required: [term(key, labels)]}}}


def even(key: str, when: str = "DoNotSchedule", **more: Any) -> dict[str, Any]:
    constraint = {"maxSkew": 1, "whenUnsatisfiable": when, **term(key, WEB), **more}
    return {"topologySpreadConstraints": [constraint]}


def running(where: str, labels: Mapping[str, str] = WEB, **spec: Any) -> Pod:
    return pod(f"on-{where}", labels=labels, nodeName=where, **spec)


class Case(NamedTuple):
    name: str
    spec: dict[str, Any]
    there: list[Pod]
    expected: str | dict[str, str]  # the node, or what each node says
    labels: Mapping[str, str] = WEB
    taken: tuple[str, ...] = ()  # nodes whose devices other claims have


CASES = [
    Case("near: of the zone, the node with devices", near("zone", WEB), [running("b")], "a"),
    Case(
        "near: the one node that is near has no devices",
        near("host", WEB),
        [running("b")],
        {"a": NOT_NEAR, "b": NO_DEVICES, "c": NOT_NEAR, "d": NOT_NEAR},
    ),
    Case(
        "near: devices are in the other zone",
        near("zone", WEB),
        [running("b")],
        {"a": NO_DEVICES, "b": NO_DEVICES, "c": NOT_NEAR, "d": NOT_NEAR},
        taken=("a",),
    ),
    Case("near: the first of its kind goes where devices are", near("zone", WEB), [], "a"),
    Case(
        "near: the first of its kind, and devices in the last node only",
        near("zone", WEB),
        [],
        "d",
        taken=("a", "c"),
    ),
    Case("apart: the other zone", apart("zone", WEB), [running("b")], "c"),
    Case(
        "apart: the other zone has no devices left",
        apart("zone", WEB),
        [running("b")],
        {"a": NOT_APART, "b": NOT_APART, "c": NO_DEVICES, "d": NO_DEVICES},
        taken=("c", "d"),
    ),
    Case(
        "apart: nodes without devices do not help",
        apart("host", WEB),
        [running("a"), running("c"), running("d")],
        {"a": NOT_APART, "b": NO_DEVICES, "c": NOT_APART, "d": NOT_APART},
    ),
    Case(
        "apart: a pod that is there says so",
        {},
        [running("a", **apart("zone", DB))],
        "c",
        labels=DB,
    ),
    Case(
        "apart: pods that are there leave the zone without devices",
        {},
        [running("a", **apart("zone", DB))],
        {"a": REPELLED, "b": REPELLED, "c": NO_DEVICES, "d": NO_DEVICES},
        labels=DB,
        taken=("c", "d"),
    ),
    Case("spread: the zone with fewer pods", even("zone"), [running("a")], "c"),
    Case(
        "spread: the zone with fewer pods has no devices left",
        even("zone"),
        [running("a")],
        {"a": UNEVEN, "b": UNEVEN, "c": NO_DEVICES, "d": NO_DEVICES},
        taken=("c", "d"),
    ),
    Case(
        "spread: only a wish, so devices decide",
        even("zone", "ScheduleAnyway"),
        [running("a")],
        "a",
        taken=("c", "d"),
    ),
    Case(
        "spread: a wish that devices allow",
        even("zone", "ScheduleAnyway"),
        [running("a")],
        "c",
    ),
    Case(
        "spread: a node without devices is a place all the same, with nobody in it",
        even("host"),
        [running("a"), running("c"), running("d")],
        {"a": UNEVEN, "b": NO_DEVICES, "c": UNEVEN, "d": UNEVEN},
    ),
    Case(
        "spread: a skew of two",
        even("host", maxSkew=2),
        [running("a"), running("c"), running("d")],
        "a",
    ),
    Case(
        "spread: more zones wanted than there are",
        even("zone", minDomains=3),
        [running("a"), running("c")],
        {"a": UNEVEN, "b": UNEVEN, "c": UNEVEN, "d": UNEVEN},
    ),
    Case(
        "spread and near: the zone of the other, evenly by host",
        {**near("zone", DB), **even("host")},
        [running("b", DB), running("c")],
        "a",
    ),
]


def _holders(nodes: Iterable[str]) -> list[Any]:
    return [
        claim(f"of-{name}", has=[(name, f"gpu-{number}") for number in range(NODES[name][1])])
        for name in nodes
    ]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_pod_with_a_claim_goes_where_both_company_and_devices_allow(case: Case) -> None:
    made = zones(claim("mine"), *case.there, *_holders(case.taken))
    one = user("p", "mine", labels=case.labels, **case.spec)
    if isinstance(case.expected, str):
        assert placed(made, one).node == case.expected
    else:
        said = {name: (text,) for name, text in case.expected.items()}
        assert reasons(made, one) == said


def test_pods_that_want_company_fill_the_devices_of_one_zone() -> None:
    made = zones(*(claim(f"c{number}") for number in range(3)))
    pods = [user(f"p{n}", f"c{n}", labels=WEB, **near("zone", WEB)) for n in range(3)]
    assert [placed(made, one).node for one in pods[:2]] == ["a", "a"]
    assert refused(made, pods[2]).message.startswith(
        f"0/4 nodes are available: 2 {NO_DEVICES}, 2 {NOT_NEAR}."
    )


def test_pods_that_are_spread_take_devices_of_every_zone_in_turn() -> None:
    made = zones(*(claim(f"c{number}") for number in range(4)))
    pods = [user(f"p{n}", f"c{n}", labels=WEB, **even("zone")) for n in range(4)]
    found = [NODES[placed(made, one).node][0] for one in pods]
    assert sorted(found[:2]) == sorted(found[2:]) == ["1", "2"]


def test_a_claim_with_devices_where_the_pod_must_not_go_is_given_up() -> None:
    held = claim("mine", has=[("c", "gpu-0")], at=_only("c"))
    made = zones(held, running("a"))
    found = refused(made, user("p", "mine", labels=WEB, **near("zone", WEB)))
    said = {name: refusal.reasons for name, refusal in found.diagnosis.node_to_status.items()}
    assert said == {"a": (ELSEWHERE,), "b": (ELSEWHERE,), "c": (NOT_NEAR,), "d": (NOT_NEAR,)}
    assert found.deallocation is not None
    assert found.deallocation.claim.metadata.name == "mine"


def _only(name: str) -> dict[str, Any]:
    named = {"key": "metadata.name", "operator": "In", "values": [name]}
    return {"nodeSelectorTerms": [{"matchFields": [named]}]}


# --- extended resources: containers -------------------------------------------------------------

GPU, FPGA = "example.com/gpu", "example.com/fpga"


def asking(name: str, number: int, *, resource: str = GPU, stays: bool = False) -> dict[str, Any]:
    always = {"restartPolicy": "Always"} if stays else {}
    return {"name": name, "image": "app", "resources": {"requests": {resource: str(number)}}} | (
        always
    )


# What init containers ask for (a number that stays is a sidecar's), what containers ask for, and
# how many devices that comes to.
CONTAINERS = [
    ("containers each have their own", [], [1, 2], 3),
    ("an init container uses what a later container has", [(2, False)], [2], 2),
    ("an init container asks for what is missing", [(3, False)], [2], 3),
    ("of init containers the largest counts", [(1, False), (4, False), (2, False)], [1], 4),
    ("a sidecar has its own", [(1, True)], [1], 2),
    ("an init container uses what a later sidecar has", [(2, False), (1, True)], [1], 2),
    ("an init container cannot use what an earlier sidecar has", [(1, True), (2, False)], [1], 3),
    ("between sidecars", [(1, True), (3, False), (1, True)], [1], 4),
    ("only an init container", [(2, False)], [0], 2),
]


@pytest.mark.parametrize(
    ("first", "then", "devices"),
    [row[1:] for row in CONTAINERS],
    ids=[row[0] for row in CONTAINERS],
)
def test_containers_share_devices_as_they_come_and_go(
    first: list[tuple[int, bool]], then: list[int], devices: int
) -> None:
    init = [asking(f"i{n}", count, stays=stays) for n, (count, stays) in enumerate(first)]
    main = [asking(f"c{n}", count) for n, count in enumerate(then)]
    one = pod("p", initContainers=init, containers=main)
    served = device_class(extendedResourceName=GPU)
    enough = cluster(node("n"), served, slice_of("n", devices))
    assert len(devices_of(placed(enough, one))) == devices
    too_few = cluster(node("n"), served, slice_of("n", devices - 1))
    assert reasons(too_few, one) == {"n": (NO_DEVICES,)}


# --- extended resources: nodes with device plugins ----------------------------------------------


class Mixed(NamedTuple):
    name: str
    plugin: dict[str, str]  # what the device plugin of `plugin` has
    asked: dict[str, str]
    expected: str | dict[str, str]
    dra: int = 2  # devices of `dra`
    own: int = 0  # devices of `plugin`, beside its device plugin


MIXED = [
    Mixed("more than the plugin has", {GPU: "1"}, {GPU: "2"}, "dra"),
    Mixed("more than the node with DRA has", {GPU: "4"}, {GPU: "3"}, "plugin"),
    Mixed(
        "more than either has",
        {GPU: "2"},
        {GPU: "3"},
        {"plugin": f"Insufficient {GPU}", "dra": NO_DEVICES},
    ),
    Mixed("a plugin that has none left is as if it were not there", {GPU: "0"}, {GPU: "2"}, "dra"),
    Mixed(
        "a node with a plugin that has too few does not use its devices",
        {GPU: "1"},
        {GPU: "2"},
        {"plugin": f"Insufficient {GPU}", "dra": NO_DEVICES},
        dra=1,
        own=4,
    ),
    Mixed("a plugin with none, and devices: devices serve", {GPU: "0"}, {GPU: "2"}, "plugin", 0, 2),
    Mixed(
        "one resource of the plugin, one of devices",
        {FPGA: "1"},
        {FPGA: "1", GPU: "2"},
        "plugin",
        own=2,
    ),
    Mixed(
        "a resource that no class and no plugin has",
        {GPU: "1"},
        {"example.com/other": "1"},
        dict.fromkeys(("plugin", "dra"), "Insufficient example.com/other"),
    ),
    Mixed("none of it is none", {GPU: "1"}, {GPU: "0"}, "dra"),
]


@pytest.mark.parametrize("case", MIXED, ids=lambda case: case.name)
def test_nodes_with_device_plugins_and_with_devices(case: Mixed) -> None:
    made = cluster(
        node("dra", allocatable=ROOM),
        node("plugin", allocatable={**ROOM, **case.plugin}),
        device_class(extendedResourceName=GPU),
        *([slice_of("dra", case.dra)] if case.dra else []),
        *([slice_of("plugin", case.own)] if case.own else []),
    )
    one = pod("p", requests=case.asked)
    if isinstance(case.expected, str):
        assert placed(made, one).node == case.expected
    else:
        assert reasons(made, one) == {name: (text,) for name, text in case.expected.items()}


# --- prioritized lists --------------------------------------------------------------------------


def first_of(*choices: str, name: str = "gpu") -> dict[str, Any]:
    """Return a request for one of several classes, the first best."""
    return {
        "name": name,
        "firstAvailable": [
            {"name": each, "deviceClassName": each, "allocationMode": "ExactCount", "count": 1}
            for each in choices
        ],
    }


def kinds(**nodes: str) -> Cluster:
    """Return nodes with devices of kinds, `large small`, and a class for each kind."""
    objects: list[Any] = []
    for name, listed in nodes.items():
        devices = [
            {"name": f"{kind}-{n}", "attributes": {"kind": {"string": kind}}}
            for n, kind in enumerate(listed.split())
        ]
        objects += [node(name, allocatable=ROOM), slice_of(name, listed=devices)]
    for kind in ("large", "medium", "small"):
        expression = f'device.attributes["gpu.example.com"].kind == "{kind}"'
        objects.append(device_class(kind, selectors=[{"cel": {"expression": expression}}]))
    return cluster(*objects)


ANY = first_of("large", "medium", "small")

# Devices of nodes, the requests, and the node that is best.
PREFERRED = [
    ("the first choice before the second", {"a": "medium", "b": "large"}, [ANY], "b"),
    ("the second before the third", {"a": "small", "b": "medium"}, [ANY], "b"),
    ("the same choice: the first name", {"a": "large", "b": "large"}, [ANY], "a"),
    (
        "choices of all requests count together",
        {"a": "large small", "b": "large medium"},
        [ANY, first_of("large", "medium", "small", name="other")],
        "b",
    ),
    (
        "a first and a third are as good as two seconds",
        {"a": "medium medium", "b": "large small"},
        [ANY, first_of("large", "medium", "small", name="other")],
        "a",
    ),
    ("a request without choices does not count", {"a": "large", "b": "large large"},
     [wanting(device_class="large")], "a"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("nodes", "requests", "best"),
    [row[1:] for row in PREFERRED],
    ids=[row[0] for row in PREFERRED],
)
def test_nodes_with_better_choices_are_preferred(
    nodes: dict[str, str], requests: list[dict[str, Any]], best: str
) -> None:
    made = kinds(**nodes)
    made.put_claim(claim("c", *requests))
    outcome = schedule(made, user("p", "c"))
    assert isinstance(outcome, Placed)
    assert outcome.node == best


def test_the_choice_is_one_score_among_others() -> None:
    """A node that is nearly full gives the first choice, and is passed over all the same."""
    made = kinds(a="medium", b="large")
    made.put_claim(claim("c", ANY))
    made.put_pod(pod("busy", requests={"cpu": "3500m", "memory": "7Gi"}, nodeName="b"))
    assert placed(made, user("p", "c", requests={"cpu": "100m"})).node == "a"
