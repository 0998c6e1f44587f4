"""Which node is better, rule by rule, in Kubernetes' own figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import pytest

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler.framework import RankingWork
from moorage.scheduler.node_ranking import NodeRanking
from moorage.scheduler.node_snapshot import NodeSnapshot
from moorage.scheduler.plugins.registry import DEFAULT_PROFILE, SCORES, plugin_scores, score_nodes
from moorage.scheduler.pod_signature import PodSignature, sign
from tests.scheduler.makers import fleet, node, pod

PLUGINS = {score.plugin: score for score in SCORES}
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def scores(
    plugin: str,
    one: Pod,
    nodes: Sequence[Node],
    placed: Sequence[tuple[Pod, str]] = (),
    namespaces: Mapping[str, Mapping[str, str]] | None = None,
) -> list[int] | None:
    made = fleet(nodes, placed, namespaces)
    signature = sign(one)
    states = [made.nodes[each.metadata.name] for each in nodes]
    return plugin_scores(PLUGINS[plugin], signature, states, made.topology_state(signature))


def test_weights_are_those_of_the_default_profile() -> None:
    assert {name: score.weight for name, score in PLUGINS.items()} == {
        "TaintToleration": 3,
        "NodeAffinity": 2,
        "NodeResourcesFit": 1,
        "PodTopologySpread": 2,
        "InterPodAffinity": 2,
        "NodeResourcesBalancedAllocation": 1,
        "ImageLocality": 1,
    }


# --- resources ----------------------------------------------------------------------------------


class Use(NamedTuple):
    """Thousandths of a CPU and bytes of memory."""

    milli_cpu: int
    memory: int

    @property
    def quantities(self) -> dict[str, str]:
        return {"cpu": f"{self.milli_cpu}m", "memory": str(self.memory)}


def resource_scores(
    plugin: str, asked: Use | None, there: Sequence[Use], taken: Sequence[Use | None]
) -> list[int] | None:
    nodes = [
        node(f"n{number}", allocatable={**use.quantities, "pods": "110"})
        for number, use in enumerate(there)
    ]
    placed = [
        (pod(f"p{number}", requests=use.quantities), f"n{number}")
        for number, use in enumerate(taken)
        if use is not None
    ]
    return scores(plugin, pod(requests=asked.quantities if asked else {}), nodes, placed)


NOTHING = Use(0, 0)
FITTING = Use(3000, 5000)

LEAST: list[tuple[str, Use, list[Use], list[Use | None], list[int]]] = [
    ("empty", NOTHING, [Use(4000, 10000)] * 2, [None, None], [100, 100]),
    ("sizes", FITTING, [Use(4000, 10000), Use(6000, 10000)], [None, None], [37, 50]),
    ("nothing asked", NOTHING, [Use(10000, 20000)] * 2, [Use(6000, 0), Use(6000, 5000)], [70, 57]),
    ("some taken", FITTING, [Use(10000, 20000)] * 2, [Use(3000, 0), FITTING], [57, 45]),
    (
        "some taken, sizes",
        FITTING,
        [Use(10000, 20000), Use(10000, 50000)],
        [Use(3000, 0), FITTING],
        [57, 60],
    ),
    ("too much", Use(3000, 0), [Use(4000, 10000)] * 2, [Use(3000, 0), FITTING], [50, 25]),
    ("no such resources", NOTHING, [Use(0, 0)], [None], [0]),
    ("one resource only", Use(1000, 0), [Use(4000, 0)], [None], [75]),
]


@pytest.mark.parametrize(("case", "asked", "there", "taken", "expected"), LEAST)
def test_what_is_left(
    case: str, asked: Use, there: list[Use], taken: list[Use | None], expected: list[int]
) -> None:
    assert resource_scores("NodeResourcesFit", asked, there, taken) == expected


BALANCED: list[tuple[str, Use | None, list[Use], list[Use | None], list[int] | None]] = [
    ("nothing asked", None, [Use(4000, 10000)] * 2, [None, None], None),
    ("sizes", FITTING, [Use(4000, 10000), Use(6000, 10000)], [None, None], [68, 75]),
    ("some taken", FITTING, [Use(10000, 20000)] * 2, [Use(3000, 0), FITTING], [73, 74]),
    (
        "some taken, sizes",
        FITTING,
        [Use(10000, 20000), Use(10000, 50000)],
        [Use(3000, 0), FITTING],
        [73, 70],
    ),
    ("ends of the scale", Use(0, 5000), [Use(3000, 5000)] * 2, [Use(3000, 0), None], [100, 50]),
    ("full", Use(3000, 0), [Use(6000, 10000)] * 2, [Use(3000, 0), FITTING], [62, 62]),
    ("one resource only", Use(1000, 0), [Use(4000, 0)], [None], [75]),
]


@pytest.mark.parametrize(("case", "asked", "there", "taken", "expected"), BALANCED)
def test_balance(
    case: str,
    asked: Use | None,
    there: list[Use],
    taken: list[Use | None],
    expected: list[int] | None,
) -> None:
    assert resource_scores("NodeResourcesBalancedAllocation", asked, there, taken) == expected


# --- taints and labels --------------------------------------------------------------------------


def soft(*keys: str) -> list[dict[str, str]]:
    return [{"key": key, "value": "x", "effect": "PreferNoSchedule"} for key in keys]


TAINTS: list[tuple[list[dict[str, str]], list[list[dict[str, str]]], list[int]]] = [
    ([], [[], []], [100, 100]),
    ([{"key": "a", "value": "x"}], [soft("a"), soft("b")], [100, 0]),
    ([], [[], soft("a"), soft("a", "b")], [100, 50, 0]),
    ([{"key": "a", "operator": "Exists"}], [[], soft("a"), soft("a", "b", "c")], [100, 100, 0]),
    # A toleration of another effect does not help, and hard taints are not counted.
    ([{"key": "a", "value": "x", "effect": "NoSchedule"}], [[], soft("a")], [100, 0]),
    ([], [[{"key": "a", "effect": "NoSchedule"}], soft("a")], [100, 0]),
]


@pytest.mark.parametrize(("tolerations", "taints", "expected"), TAINTS)
def test_soft_taints(
    tolerations: list[dict[str, str]], taints: list[list[dict[str, str]]], expected: list[int]
) -> None:
    nodes = [node(f"n{number}", taints=each) for number, each in enumerate(taints)]
    assert scores("TaintToleration", pod(tolerations=tolerations), nodes) == expected


def taste(weight: int, **labels: str) -> dict[str, Any]:
    expressions = [{"key": k, "operator": "In", "values": [v]} for k, v in labels.items()]
    return {"weight": weight, "preference": {"matchExpressions": expressions}}


LABELS = [{"foo": "bar"}, {"key": "value"}, {"foo": "bar", "key": "value", "zone": "1"}]

TASTES: list[tuple[list[dict[str, Any]], list[int] | None]] = [
    ([], None),
    ([taste(2, foo="bar")], [100, 0, 100]),
    ([taste(2, foo="bar"), taste(4, key="value"), taste(5, foo="bar", zone="1")], [18, 36, 100]),
    ([taste(2, foo="none")], [0, 0, 0]),
    ([taste(0, foo="bar")], None),
    ([taste(3)], None),
]


@pytest.mark.parametrize(("terms", "expected"), TASTES)
def test_preferred_nodes(terms: list[dict[str, Any]], expected: list[int] | None) -> None:
    nodes = [node(f"n{number}", labels=labels) for number, labels in enumerate(LABELS)]
    one = pod(affinity={"nodeAffinity": {PREFERRED: terms}})
    assert scores("NodeAffinity", one, nodes) == expected


# --- images -------------------------------------------------------------------------------------

MB = 1024 * 1024


def with_images(name: str, *sizes_mb: int) -> Node:
    images = [{"names": [f"r/{mb}:latest", f"r/{mb}:v1"], "sizeBytes": mb * MB} for mb in sizes_mb]
    return node(name, status={"images": images})


def running(*images: str, **spec: Any) -> Pod:
    return pod(containers=[{"name": f"c{n}", "image": i} for n, i in enumerate(images)], **spec)


A = with_images("a", 40, 300, 2000)
B = with_images("b", 250, 10)
C = with_images("c", 4000, 30)
D = with_images("d")
E = with_images("e", 300, 600, 900)
F = with_images("f", 600, 40, 900)

VOLUME = {"name": "v", "image": {"reference": "r/300"}}

IMAGES: list[tuple[str, Pod, list[Node], list[int] | None]] = [
    ("the larger one", running("r/40", "r/250"), [A, B], [0, 5]),
    ("both on one node", running("r/40", "r/300"), [A, B], [7, 0]),
    ("the most that counts", running("r/4000", "r/10"), [C, B], [100, 0]),
    ("part of the nodes", running("r/4000", "r/10"), [C, B, D], [66, 0, 0]),
    ("three images", running("r/300", "r/600", "r/900"), [E, F, D], [36, 32, 0]),
    ("tags are told apart", running("r/300:v1", "r/40:v2"), [A, B], [6, 0]),
    ("nobody has it", running("r/1"), [A, B], None),
    ("an image as a volume", running("r/30", volumes=[VOLUME]), [A, D], [6, 0]),
    (
        "an init container",
        running("r/30", initContainers=[{"name": "i", "image": "r/300"}]),
        [A, D],
        [6, 0],
    ),
]


@pytest.mark.parametrize(("case", "one", "nodes", "expected"), IMAGES)
def test_images(case: str, one: Pod, nodes: list[Node], expected: list[int] | None) -> None:
    assert scores("ImageLocality", one, nodes) == expected


# --- company ------------------------------------------------------------------------------------


def liking(weight: int, key: str, labels: Mapping[str, str], **more: Any) -> dict[str, Any]:
    term = {"topologyKey": key, "labelSelector": {"matchLabels": dict(labels)}, **more}
    return {"weight": weight, "podAffinityTerm": term}


def near(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAffinity": {PREFERRED: list(terms)}}


def apart(*terms: dict[str, Any]) -> dict[str, Any]:
    return {"podAntiAffinity": {PREFERRED: list(terms)}}


S1, S2 = {"security": "1"}, {"security": "2"}
CHINA, INDIA, AZ1, AZ2 = {"region": "c"}, {"region": "i"}, {"az": "1"}, {"az": "2"}
NEAR_S1 = near(liking(5, "region", S1))
NEAR_S2 = near(liking(6, "region", S2))
APART_S1 = apart(liking(5, "az", S1))
HARD_NEAR = {
    "podAffinity": {REQUIRED: [{"topologyKey": "region", "labelSelector": {"matchLabels": S1}}]}
}
TEAM = {"matchLabels": {"team": "1"}}


class Company(NamedTuple):
    name: str
    one: Pod
    nodes: list[Mapping[str, str]]
    placed: list[tuple[int, Pod]]
    expected: list[int] | None


COMPANY = [
    Company("nobody likes anybody", pod(labels=S1), [CHINA, INDIA], [(0, pod("p"))], None),
    Company(
        "near one who is liked, if the node has the topology",
        pod(affinity=NEAR_S1),
        [CHINA, INDIA, AZ1],
        [(0, pod("p", labels=S1)), (1, pod("q", labels=S2)), (2, pod("r", labels=S1))],
        [100, 0, 0],
    ),
    Company(
        "the whole region",
        pod(affinity=NEAR_S1),
        [CHINA, {**CHINA, **AZ1}, INDIA],
        [(0, pod("p", labels=S1))],
        [100, 100, 0],
    ),
    Company(
        "more is better, and the rest is relative",
        pod(affinity=near(liking(8, "region", S2), liking(2, "region", {}))),
        [CHINA, INDIA, AZ1],
        [(0, pod("p", labels=S1)), (1, pod("q", labels=S2)), (2, pod("r", labels=S1))],
        [20, 100, 0],
    ),
    Company(
        "those who are there like the pod",
        pod(labels=S2),
        [CHINA, INDIA, AZ1],
        [(0, pod("p", labels=S1, affinity=NEAR_S1)), (1, pod("q", labels=S2, affinity=NEAR_S2))],
        [0, 100, 0],
    ),
    Company(
        "what they require counts as liking",
        pod(labels=S1),
        [CHINA, INDIA, AZ1],
        [(0, pod("p", affinity=HARD_NEAR)), (1, pod("q", affinity=HARD_NEAR))],
        [100, 100, 0],
    ),
    Company(
        "apart from one who is disliked",
        pod(affinity=APART_S1),
        [AZ1, CHINA],
        [(0, pod("p", labels=S1)), (1, pod("q", labels=S2))],
        [0, 100],
    ),
    Company(
        "those who are there dislike the pod",
        pod(labels=S1),
        [AZ1, AZ2],
        [(0, pod("p", affinity=APART_S1))],
        [0, 100],
    ),
    Company(
        "liking and disliking add up",
        pod(affinity={**near(liking(8, "region", S1)), **apart(liking(5, "az", S2))}),
        [{**CHINA, **AZ1}, INDIA, AZ2],
        [(0, pod("p", labels=S1)), (0, pod("q", labels=S2)), (1, pod("r", labels=S1))],
        [37, 100, 0],
    ),
    Company(
        "selected and named namespaces",
        pod(affinity=near(liking(5, "region", S1, namespaces=["n2"], namespaceSelector=TEAM))),
        [CHINA, INDIA, AZ1],
        [
            (0, pod("p", namespace="n1", labels=S1)),
            (1, pod("q", namespace="n2", labels=S1)),
            (2, pod("r", labels=S1)),
        ],
        [100, 100, 0],
    ),
    Company(
        "all the same",
        pod(affinity=NEAR_S1),
        [CHINA, CHINA],
        [(0, pod("p", labels=S1))],
        [0, 0],
    ),
]


@pytest.mark.parametrize("case", COMPANY, ids=[case.name for case in COMPANY])
def test_preferred_company(case: Company) -> None:
    nodes = [node(f"n{number}", labels=labels) for number, labels in enumerate(case.nodes)]
    placed = [(one, f"n{number}") for number, one in case.placed]
    namespaces = {"n1": {"team": "1"}, "n2": {}}
    assert scores("InterPodAffinity", case.one, nodes, placed, namespaces) == case.expected


# --- all together -------------------------------------------------------------------------------


def test_the_weighed_sum_decides_and_equals_go_by_name() -> None:
    nodes = [
        node("c", taints=soft("a")),
        node("b"),
        node("a"),
        node("d", labels={"good": "yes"}),
    ]
    made = fleet(nodes)
    signature = sign(pod(requests={"cpu": "1", "memory": "2Gi"}))
    states = [made.nodes[each.metadata.name] for each in nodes]
    found = score_nodes(DEFAULT_PROFILE, signature, states, made.topology_state(signature))
    # 75 is left of both, and they stay even; the taint costs its whole score.
    assert found == [75 + 75, 300 + 150, 300 + 150, 300 + 150]
    assert _best(made, signature) == "a"
    signature = sign(pod(affinity={"nodeAffinity": {PREFERRED: [taste(1, good="yes")]}}))
    assert _best(made, signature) == "d"


def _best(made: NodeSnapshot, signature: PodSignature) -> str:
    found = NodeRanking(made, signature, RankingWork()).choose()
    assert found is not None
    return found[0].facts.name
