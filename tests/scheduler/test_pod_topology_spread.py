"""Pods that are to be spread evenly.

Nodes stand in a row; a case says how many pods that are meant each of them has.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler.framework import PluginError
from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.plugins import pod_topology_spread
from moorage.scheduler.pod_signature import sign
from moorage.scheduler.topology_spread import default_selector
from tests.scheduler.makers import HOST, fleet, node, pod, verdicts

UNEVEN = "node(s) didn't match pod topology spread constraints"
NO_DOMAIN = f"{UNEVEN} (missing required label)"

NAMES = "abxy"
FOO = {"foo": ""}
TAINT = {"key": "t", "effect": "NoSchedule"}


def spread(
    key: str, skew: int = 1, label: str | None = "foo", *, soft: bool = False, **more: Any
) -> dict[str, Any]:
    selector = None
    if label is not None:
        selector = {"matchExpressions": [{"key": label, "operator": "Exists"}]}
    return {
        "topologyKey": key,
        "maxSkew": skew,
        "labelSelector": selector,
        "whenUnsatisfiable": "ScheduleAnyway" if soft else "DoNotSchedule",
        **more,
    }


def row(**more: dict[str, str]) -> dict[str, dict[str, str]]:
    """Return the labels of the four nodes of two zones."""
    labels = {n: {"zone": "1" if n in "ab" else "2", "node": n, HOST: n} for n in NAMES}
    return {**labels, **more}


class Case(NamedTuple):
    name: str
    counts: Sequence[int]
    constraints: list[dict[str, Any]]
    expected: str  # of each node: + fits, - uneven, 0 no domain, ? any
    labels: dict[str, str] = FOO
    nodes: dict[str, dict[str, str]] = row()
    spec: Mapping[str, Any] = {}
    tainted: str = ""


CASES = [
    Case("nobody there", (0, 0, 0, 0), [spread("zone")], "++++"),
    Case("zones 3/3", (2, 1, 0, 3), [spread("zone")], "++++"),
    Case("zones 2/1", (1, 1, 1, 0), [spread("zone")], "--++"),
    Case("no selector means nobody", (0, 0, 1, 1), [spread("zone", label=None)], "++++"),
    Case("nodes 2/1/0/3", (2, 1, 0, 3), [spread("node")], "--+-"),
    Case("nodes 2/1/0/3, skew 2", (2, 1, 0, 3), [spread("node", 2)], "-++-"),
    Case("nodes 2/1/0/3, not one of them", (2, 1, 0, 3), [spread("node")], "-++-", {"bar": ""}),
    Case("no such label", (0, 0, 0, 0), [spread("rack")], "0000"),
    Case(
        "a node without the label is no domain",
        (1, 1, 1, 1),
        [spread("zone")],
        "+0--",
        nodes=row(b={"node": "b"}),
    ),
    Case("too few domains", (2, 2, 1, 1), [spread("zone", 2, minDomains=3)], "----"),
    Case("too few domains, room left", (1, 1, 1, 0), [spread("zone", 2, minDomains=3)], "--++"),
    Case("enough domains", (1, 1, 1, 0), [spread("zone", 2, minDomains=2)], "++++"),
    Case(
        "two constraints must both hold",
        (2, 1, 0, 3),
        [spread("zone"), spread("node")],
        "--+-",
    ),
    Case(
        "two constraints with labels of their own",
        (0, 1, 0, 0),
        [spread("zone"), spread("node", label="bar")],
        "--++",
    ),
    Case(
        "affinity is honoured: only its nodes make domains",
        (1, 1, 0, 1),
        [spread("node")],
        "--+?",
        nodes=row(a={"node": "a", "ok": ""}, b={"node": "b", "ok": ""}, x={"node": "x", "ok": ""}),
        spec={"nodeSelector": {"ok": ""}},
    ),
    Case(
        "affinity that is honoured hides an empty domain",
        (1, 1, 0, 1),
        [spread("node")],
        "++??",
        nodes=row(a={"node": "a", "ok": ""}, b={"node": "b", "ok": ""}),
        spec={"nodeSelector": {"ok": ""}},
    ),
    Case(
        "affinity that is ignored does not",
        (1, 1, 0, 1),
        [spread("node", nodeAffinityPolicy="Ignore")],
        "--??",
        nodes=row(a={"node": "a", "ok": ""}, b={"node": "b", "ok": ""}),
        spec={"nodeSelector": {"ok": ""}},
    ),
    Case("taints are ignored", (1, 1, 0, 0), [spread("node")], "--+?", tainted="y"),
    Case(
        "taints that are ignored leave the emptiest domain",
        (1, 1, 1, 0),
        [spread("node")],
        "---?",
        tainted="y",
    ),
    Case(
        "taints that are honoured hide it",
        (1, 1, 1, 0),
        [spread("node", nodeTaintsPolicy="Honor")],
        "+++?",
        tainted="y",
    ),
    Case(
        "taints that are tolerated do not count",
        (1, 1, 1, 0),
        [spread("node", nodeTaintsPolicy="Honor")],
        "---+",
        spec={"tolerations": [{"operator": "Exists"}]},
        tainted="y",
    ),
    Case("soft constraints refuse nobody", (9, 0, 0, 0), [spread("node", soft=True)], "++++"),
]


def world(case: Case) -> NodeSnapshot:
    nodes = [made(name, labels, name in case.tainted) for name, labels in case.nodes.items()]
    return fleet(nodes, placed(case.counts))


def made(name: str, labels: dict[str, str], is_tainted: bool = False) -> Node:
    return node(name, labels=labels, taints=[TAINT] if is_tainted else [])


def placed(counts: Sequence[int], labels: dict[str, str] = FOO) -> list[tuple[Pod, str]]:
    return [
        (pod(f"{name}-{n}-{len(labels)}", labels=labels), name)
        for name, count in zip(NAMES, counts, strict=True)
        for n in range(count)
    ]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_hard_constraints(case: Case) -> None:
    one = pod(labels=case.labels, topologySpreadConstraints=case.constraints, **case.spec)
    found = verdicts(world(case), one)
    marks: dict[tuple[str, ...] | None, str] = {None: "+", (UNEVEN,): "-", (NO_DOMAIN,): "0"}
    shown = "".join(marks.get(found[name], "?") for name in NAMES)
    assert shown == case.expected


def test_pods_of_other_namespaces_and_leaving_pods_do_not_count() -> None:
    leaving = {"deletionTimestamp": "2026-01-01T00:00:00Z"}
    others = [
        (pod("p", namespace="other", labels=FOO), "a"),
        (pod("q", labels=FOO, metadata=leaving), "a"),
    ]
    made_fleet = fleet([node(n, labels=labels) for n, labels in row().items()], others)
    one = pod(labels=FOO, topologySpreadConstraints=[spread("zone")])
    assert set(verdicts(made_fleet, one).values()) == {None}


def test_an_empty_selector_counts_nobody_but_the_pod_itself() -> None:
    constraint = {**spread("node"), "labelSelector": {}}
    found = verdicts(world(CASES[4]), pod(topologySpreadConstraints=[constraint]))
    assert set(found.values()) == {None}


def test_keys_whose_values_must_match_are_the_pods_own() -> None:
    constraint = spread("node", matchLabelKeys=["version", "absent"])
    two = [(pod(f"v{v}", labels={**FOO, "version": v}), n) for v, n in (("1", "a"), ("2", "b"))]
    made_fleet = fleet([node(n, labels=labels) for n, labels in row().items()], two)
    one = pod(labels={**FOO, "version": "2"}, topologySpreadConstraints=[constraint])
    found = verdicts(made_fleet, one)
    assert [name for name, texts in found.items() if texts] == ["b"]


def test_a_selector_that_cannot_be_read_is_a_fault() -> None:
    constraint = {**spread("zone"), "labelSelector": {"matchLabels": {"a": "-"}}}
    obstacle = sign(pod(topologySpreadConstraints=[constraint])).pre_filter_status
    assert isinstance(obstacle, PluginError)
    assert obstacle.message.startswith(
        'running PreFilter plugin "PodTopologySpread": get constraints from pod: values[0][a]'
    )


# --- scores -------------------------------------------------------------------------------------


class Scored(NamedTuple):
    name: str
    foo: Sequence[int]
    constraints: list[dict[str, Any]]
    candidates: str
    expected: list[int]
    bar: Sequence[int] = (0, 0, 0, 0)
    both: Sequence[int] = (0, 0, 0, 0)
    nodes: dict[str, dict[str, str]] = row()
    spec: Mapping[str, Any] = {}


SOFT_HOST = spread(HOST, soft=True)
SOFT_ZONE = spread("zone", soft=True)
BAR_HOST = spread(HOST, label="bar", soft=True)

SCORED = [
    Scored("nobody there", (0, 0, 0, 0), [SOFT_HOST], "ab", [100, 100]),
    Scored("one candidate", (2, 1, 0, 0), [SOFT_HOST], "a", [100]),
    Scored("equal", (1, 1, 0, 0), [SOFT_HOST], "ab", [100, 100]),
    Scored("hosts 2/1/0/3", (2, 1, 0, 3), [SOFT_HOST], "abxy", [20, 60, 100, 0]),
    Scored("skew 2", (2, 1, 0, 3), [spread(HOST, 2, soft=True)], "abxy", [33, 66, 100, 16]),
    Scored("skew 3", (4, 3, 2, 1), [spread(HOST, 3, soft=True)], "abxy", [44, 66, 77, 100]),
    Scored("no selector", (2, 1, 0, 3), [spread(HOST, label=None, soft=True)], "abxy", [100] * 4),
    Scored("three of four", (4, 2, 1, 3), [SOFT_HOST], "abx", [33, 83, 100]),
    Scored(
        "a candidate without the label",
        (4, 2, 1, 3),
        [SOFT_HOST],
        "abx",
        [16, 0, 100],
        nodes=row(b={"n": "b"}),
    ),
    Scored("zones, three of four", (4, 2, 1, 3), [SOFT_ZONE], "abx", [75, 75, 100]),
    Scored("zone and host", (2, 1, 2, 4), [SOFT_ZONE, SOFT_HOST], "ax", [100, 63]),
    Scored(
        "two labels in zones",
        (1, 0, 0, 2),
        [SOFT_ZONE, spread("zone", label="bar", soft=True)],
        "ax",
        [85, 100],
        both=(1, 1, 0, 1),
    ),
    Scored(
        "a label each for zone and host",
        (1, 0, 0, 1),
        [SOFT_ZONE, BAR_HOST],
        "abxy",
        [60, 20, 100, 60],
        bar=(0, 0, 0, 1),
        both=(0, 1, 0, 0),
    ),
    Scored(
        "an empty zone",
        (0, 0, 1, 0),
        [SOFT_ZONE, BAR_HOST],
        "abxy",
        [100, 60, 40, 0],
        bar=(0, 1, 0, 0),
        both=(0, 0, 0, 1),
    ),
    Scored(
        "a label each, three of four",
        (1, 0, 0, 1),
        [SOFT_ZONE, BAR_HOST],
        "abx",
        [50, 25, 100],
        bar=(0, 0, 0, 1),
        both=(0, 1, 0, 0),
    ),
    Scored(
        "affinity is honoured: others' pods do not count",
        (2, 1, 1, 0),
        [spread("node", soft=True)],
        "abx",
        [0, 33, 100],
        nodes=row(a={"node": "a", "ok": ""}, b={"node": "b", "ok": ""}),
        spec={"nodeSelector": {"ok": ""}},
    ),
]


@pytest.mark.parametrize("case", SCORED, ids=[case.name for case in SCORED])
def test_soft_constraints(case: Scored) -> None:
    nodes = [node(name, labels=labels) for name, labels in case.nodes.items()]
    bar = {"bar": "", "x": "", "y": ""}
    pods = placed(case.foo) + placed(case.bar, bar) + placed(case.both, {**FOO, "bar": ""})
    made_fleet = fleet(nodes, pods)
    signature = sign(pod(labels=FOO, topologySpreadConstraints=case.constraints, **case.spec))
    states = [made_fleet.nodes[name] for name in case.candidates]
    found = pod_topology_spread.score_nodes(signature, states, made_fleet.topology_state(signature))
    assert found == case.expected


def test_a_pod_without_constraints_is_spread_with_its_service() -> None:
    nodes = [node(name, labels={HOST: name}) for name in NAMES]
    made_fleet = fleet(nodes, placed((4, 3, 2, 1)))
    one = pod(labels=FOO)
    selector = default_selector(one.metadata.labels, services=[FOO, {"other": "x"}, {}])
    signature = sign(one, spread_selector=selector)
    states = [made_fleet.nodes[name] for name in NAMES]
    found = pod_topology_spread.score_nodes(signature, states, made_fleet.topology_state(signature))
    assert found == [44, 66, 77, 100]


def test_without_service_and_owner_nothing_is_spread() -> None:
    signature = sign(pod(labels=FOO), spread_selector=default_selector(FOO))
    assert not signature.spread_constraints.soft
