"""Pods that must be near others or apart from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import pytest

from moorage.scheduler.framework import PluginError, Unschedulable
from moorage.scheduler.pod_signature import sign
from tests.scheduler.makers import diagnose, fleet, node, pod, verdicts

NOT_NEAR = "node(s) didn't match pod affinity rules"
NOT_APART = "node(s) didn't match pod anti-affinity rules"
REPELLED = "node(s) didn't satisfy existing pods anti-affinity rules"


def term(key: str, labels: Any = None, **more: Any) -> dict[str, Any]:
    """Return a term: labels, or the name of a label that must exist."""
    if isinstance(labels, str):
        selector: Any = {"matchExpressions": [{"key": labels, "operator": "Exists"}]}
    else:
        selector = None if labels is None else {"matchLabels": labels}
    return {"topologyKey": key, "labelSelector": selector, **more}


def company(*, near: list[Any] | None = None, apart: list[Any] | None = None) -> dict[str, Any]:
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    return {
        "podAffinity": {required: near or []},
        "podAntiAffinity": {required: apart or []},
    }


class Placed(NamedTuple):
    node: str
    labels: Mapping[str, str]
    affinity: Mapping[str, Any] | None = None
    namespace: str = "default"


class Case(NamedTuple):
    name: str
    placed: list[Placed]
    expected: dict[str, str | None]
    labels: Mapping[str, str] = {}
    near: list[Any] | None = None
    apart: list[Any] | None = None
    namespace: str = "default"


NODES = {
    "a": {"zone": "1", "host": "a"},
    "b": {"zone": "1", "host": "b"},
    "c": {"zone": "2", "host": "c"},
}
WEB = {"app": "web"}
DB = {"app": "db"}
BLUE = {"team": "blue"}
NAMESPACES = {"default": {}, "blue-1": BLUE, "blue-2": BLUE, "red": {"team": "red"}}

ALL_FIT: dict[str, str | None] = {"a": None, "b": None, "c": None}

CASES = [
    Case("no terms, no pods", [], ALL_FIT),
    Case(
        "near: the whole zone of a pod that is meant",
        [Placed("a", WEB)],
        {"a": None, "b": None, "c": NOT_NEAR},
        near=[term("zone", WEB)],
    ),
    Case(
        "near: nobody is meant",
        [Placed("a", DB)],
        dict.fromkeys(NODES, NOT_NEAR),
        near=[term("zone", WEB)],
    ),
    Case(
        "near: pods of other namespaces are not meant",
        [Placed("a", WEB, namespace="red")],
        dict.fromkeys(NODES, NOT_NEAR),
        near=[term("zone", WEB)],
    ),
    Case(
        "near: the first pod of a group that means itself may go anywhere",
        [Placed("a", DB)],
        ALL_FIT,
        labels=WEB,
        near=[term("zone", WEB)],
    ),
    Case(
        "near: the second goes where the first is",
        [Placed("a", WEB)],
        {"a": None, "b": None, "c": NOT_NEAR},
        labels=WEB,
        near=[term("zone", WEB)],
    ),
    Case(
        "near: the first needs nodes with the label",
        [],
        dict.fromkeys(NODES, NOT_NEAR),
        labels=WEB,
        near=[term("rack", WEB)],
    ),
    Case(
        "near: one pod must be meant by all terms",
        [Placed("a", {"app": "web"}), Placed("c", {"tier": "1"})],
        dict.fromkeys(NODES, NOT_NEAR),
        near=[term("zone", "app"), term("zone", "tier")],
    ),
    Case(
        "near: all terms' places count",
        [Placed("a", {"app": "web", "tier": "1"})],
        {"a": None, "b": NOT_NEAR, "c": NOT_NEAR},
        near=[term("zone", "app"), term("host", "tier")],
    ),
    Case(
        "near: no selector means nobody",
        [Placed("a", WEB)],
        dict.fromkeys(NODES, NOT_NEAR),
        near=[term("zone")],
    ),
    Case(
        "near: the empty selector means everybody",
        [Placed("a", DB)],
        {"a": None, "b": None, "c": NOT_NEAR},
        near=[term("zone", {})],
    ),
    Case(
        "apart: the whole zone",
        [Placed("a", WEB)],
        {"a": NOT_APART, "b": NOT_APART, "c": None},
        apart=[term("zone", WEB)],
    ),
    Case(
        "apart: one node",
        [Placed("a", WEB)],
        {"a": NOT_APART, "b": None, "c": None},
        apart=[term("host", WEB)],
    ),
    Case(
        "apart: any term is enough",
        [Placed("a", WEB), Placed("c", DB)],
        {"a": NOT_APART, "b": None, "c": NOT_APART},
        apart=[term("host", WEB), term("zone", DB)],
    ),
    Case(
        "apart: a topology that nodes do not have says nothing",
        [Placed("a", WEB)],
        ALL_FIT,
        apart=[term("rack", WEB)],
    ),
    Case(
        "apart: named namespaces",
        [Placed("a", WEB, namespace="red"), Placed("c", WEB)],
        {"a": NOT_APART, "b": NOT_APART, "c": None},
        apart=[term("zone", WEB, namespaces=["red"])],
    ),
    Case(
        "apart: selected namespaces",
        [Placed("a", WEB, namespace="blue-2"), Placed("c", WEB, namespace="red")],
        {"a": NOT_APART, "b": NOT_APART, "c": None},
        apart=[term("zone", WEB, namespaceSelector={"matchLabels": BLUE})],
    ),
    Case(
        "apart: all namespaces",
        [Placed("a", WEB, namespace="unknown"), Placed("c", WEB, namespace="red")],
        dict.fromkeys(NODES, NOT_APART),
        apart=[term("zone", WEB, namespaceSelector={})],
    ),
    Case(
        "apart: a namespace that is not known is selected by no selector of its own",
        [Placed("a", WEB, namespace="unknown"), Placed("c", WEB, namespace="red")],
        {"a": None, "b": None, "c": NOT_APART},
        apart=[
            term(
                "zone",
                WEB,
                namespaceSelector={
                    "matchExpressions": [{"key": "nothing", "operator": "DoesNotExist"}]
                },
            )
        ],
    ),
    Case(
        "repelled: a placed pod wants to be apart from this one",
        [Placed("a", DB, company(apart=[term("zone", WEB)]))],
        {"a": REPELLED, "b": REPELLED, "c": None},
        labels=WEB,
    ),
    Case(
        "repelled: not if it means others",
        [Placed("a", DB, company(apart=[term("zone", DB)]))],
        ALL_FIT,
        labels=WEB,
    ),
    Case(
        "repelled: not from another namespace",
        [Placed("a", DB, company(apart=[term("zone", WEB)]), namespace="red")],
        ALL_FIT,
        labels=WEB,
    ),
    Case(
        "repelled: by the labels of this pod's namespace",
        [
            Placed(
                "a",
                DB,
                company(apart=[term("zone", WEB, namespaceSelector={"matchLabels": BLUE})]),
                namespace="red",
            )
        ],
        {"a": REPELLED, "b": REPELLED, "c": None},
        labels=WEB,
        namespace="blue-1",
    ),
    Case(
        "repelled: each term has its topology",
        [Placed("a", DB, company(apart=[term("host", WEB), term("rack", WEB)]))],
        {"a": REPELLED, "b": None, "c": None},
        labels=WEB,
    ),
    Case(
        "near comes before apart, and that before repelled",
        [
            Placed("a", {**WEB, "tier": "1"}, company(apart=[term("zone", "new")])),
            Placed("c", {"tier": "1"}),
        ],
        {"a": NOT_APART, "b": REPELLED, "c": NOT_NEAR},
        labels={"new": ""},
        near=[term("zone", WEB)],
        apart=[term("host", "tier")],
    ),
]


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_required_company(case: Case) -> None:
    made = fleet(
        [node(name, labels=labels) for name, labels in NODES.items()],
        [
            (
                pod(f"p{n}", namespace=p.namespace, labels=p.labels, affinity=p.affinity),
                p.node,
            )
            for n, p in enumerate(case.placed)
        ],
        NAMESPACES,
    )
    one = pod(
        namespace=case.namespace,
        labels=case.labels,
        affinity=company(near=case.near, apart=case.apart),
    )
    found = {name: texts and texts[0] for name, texts in verdicts(made, one).items()}
    assert found == case.expected


def test_leaving_pods_cure_some_refusals_and_not_others() -> None:
    made = fleet([node("a", labels=NODES["a"])], [(pod("p", labels=WEB), "a")])
    near = diagnose(made, sign(pod(affinity=company(near=[term("zone", DB)]))))
    assert near.node_to_status["a"].is_unresolvable
    apart = diagnose(made, sign(pod(affinity=company(apart=[term("zone", WEB)]))))
    assert not apart.node_to_status["a"].is_unresolvable


def test_keys_whose_values_must_match_are_the_pods_own() -> None:
    near = [term("zone", {"app": "web"}, matchLabelKeys=["version"])]
    placed = [
        (pod("old", labels={"app": "web", "version": "1"}), "a"),
        (pod("new", labels={"app": "web", "version": "2"}), "c"),
    ]
    made = fleet([node(name, labels=labels) for name, labels in NODES.items()], placed)
    one = pod(labels={"app": "web", "version": "2"}, affinity=company(near=near))
    assert verdicts(made, one) == {"a": (NOT_NEAR,), "b": (NOT_NEAR,), "c": None}


def test_keys_whose_values_must_not_match_are_the_pods_own() -> None:
    apart = [term("zone", "tenant", mismatchLabelKeys=["tenant"])]
    placed = [(pod("x", labels={"tenant": "x"}), "a"), (pod("y", labels={"tenant": "y"}), "c")]
    made = fleet([node(name, labels=labels) for name, labels in NODES.items()], placed)
    one = pod(labels={"tenant": "y"}, affinity=company(apart=apart))
    # The selector is about the tenant already, as after admission: nothing is added to it.
    assert verdicts(made, one) == {"a": (NOT_APART,), "b": (NOT_APART,), "c": (NOT_APART,)}
    apart = [term("zone", {}, mismatchLabelKeys=["tenant"])]
    one = pod(labels={"tenant": "y"}, affinity=company(apart=apart))
    assert verdicts(made, one) == {"a": (NOT_APART,), "b": (NOT_APART,), "c": None}


def test_terms_that_cannot_be_read_stop_the_pod() -> None:
    bad = company(near=[term("zone", {"app": "{}"})])
    obstacle = sign(pod(affinity=bad)).pre_filter_status
    assert isinstance(obstacle, Unschedulable)
    assert obstacle.reasons[0].startswith(
        'parsing pod: requiredAffinityTerms: values[0][app]: Invalid value: "{}": a valid label'
    )


def test_tastes_that_cannot_be_read_are_a_fault() -> None:
    bad = [{"key": "a", "operator": "Near", "values": []}]
    preferred = [{"weight": 1, "preference": {"matchExpressions": bad}}]
    key = "preferredDuringSchedulingIgnoredDuringExecution"
    obstacle = sign(pod(affinity={"nodeAffinity": {key: preferred}})).pre_filter_status
    assert isinstance(obstacle, PluginError)
    assert 'operator: Unsupported value: "Near"' in obstacle.message
