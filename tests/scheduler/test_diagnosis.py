"""The diagnosis of a pod for which there is no node."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from moorage.api.core.node import Node
from moorage.api.core.pod import Pod
from moorage.scheduler.diagnosis import NO_PREEMPTION, FitDiagnosis, fit_message, preemption_message
from moorage.scheduler.framework import Unschedulable
from moorage.scheduler.pod_signature import sign
from tests.corpus import corpus
from tests.scheduler.makers import diagnose, fleet, node, pod

TAINTED = {"key": "t", "effect": "NoSchedule"}


def asked(one: Pod, nodes: Sequence[Node], placed: Sequence[tuple[Pod, str]] = ()) -> FitDiagnosis:
    return diagnose(fleet(nodes, placed), sign(one))


def test_reasons_are_counted_and_sorted_as_texts() -> None:
    nodes = [node(f"small-{n}", allocatable={"cpu": "1", "pods": "1"}) for n in range(10)]
    nodes += [node(f"tainted-{n}", taints=[TAINTED]) for n in range(2)]
    full = [(pod(f"p{n}"), f"small-{n}") for n in range(3)]
    found = asked(pod(requests={"cpu": "2"}), nodes, full)
    assert fit_message(found) == (
        "0/12 nodes are available: 10 Insufficient cpu, "
        "2 node(s) had untolerated taint(s), 3 Too many pods."
    )


def test_preemption_is_not_helpful_where_nobody_s_leaving_would_help() -> None:
    found = asked(pod(), [node("a", taints=[TAINTED]), node("b", taints=[TAINTED])])
    assert fit_message(found, preemption_message(found)) == (
        "0/2 nodes are available: 2 node(s) had untolerated taint(s). "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )


def test_preemption_without_victims() -> None:
    nodes = [node("a", taints=[TAINTED]), node("b"), node("c")]
    placed = [(pod("p", requests={"cpu": "4"}), "b"), (pod("q", requests={"cpu": "4"}), "c")]
    found = asked(pod(requests={"cpu": "1"}), nodes, placed)
    assert preemption_message(found) == (
        "preemption: 0/3 nodes are available: 1 Preemption is not helpful for scheduling, "
        "2 No preemption victims found for incoming pod."
    )
    left = {"b": Unschedulable("NodePorts", ("still no port",))}
    assert preemption_message(found, left) == (
        "preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, "
        "1 Preemption is not helpful for scheduling, 1 still no port."
    )


def test_a_pod_that_never_preempts() -> None:
    found = asked(pod(requests={"cpu": "9"}), [node()])
    assert fit_message(found, NO_PREEMPTION) == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        "preemption: not eligible due to preemptionPolicy=Never."
    )


def test_several_things_that_were_tried_are_joined() -> None:
    found = asked(pod(requests={"cpu": "9"}), [node()])
    assert fit_message(found, "one", "two").endswith("cpu. one, two")


def test_nodes_that_the_pod_does_not_name_have_a_reason_of_their_own() -> None:
    nodes = [node(name) for name in "abc"]
    found = asked(pod(nodeName="b", requests={"cpu": "9"}), nodes)
    assert fit_message(found, preemption_message(found)) == (
        "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) didn't satisfy plugin(s) "
        "[NodeName]. "
        "preemption: 0/3 nodes are available: 3 Preemption is not helpful for scheduling."
    )
    found = asked(pod(nodeName="nowhere"), nodes)
    assert fit_message(found) == (
        "0/3 nodes are available: 3 node(s) didn't satisfy plugin(s) [NodeName]."
    )


def test_what_stops_a_pod_everywhere_is_said_once() -> None:
    term: dict[str, Any] = {"topologyKey": "z", "labelSelector": {"matchLabels": {"a": "-"}}}
    required = {"requiredDuringSchedulingIgnoredDuringExecution": [term]}
    found = asked(pod(affinity={"podAntiAffinity": required}), [node("a"), node("b")])
    said = fit_message(found)
    assert said.startswith("0/2 nodes are available: parsing pod: requiredAntiAffinityTerms: ")
    assert said.endswith(".")


def test_without_nodes() -> None:
    assert fit_message(asked(pod(), [])) == "no nodes available to schedule pods"


# --- messages that Kubernetes wrote -------------------------------------------------------------

MESSAGE = re.compile(r"0/2 nodes are available: ([^\"\\]+?)\.( preemption: [^\"\\]+\.)?(?=[\"\\])")
COUNTED = re.compile(r"(\d+) (.*)")


def recorded(folder: Path) -> Iterator[re.Match[str]]:
    for path in sorted(folder.glob("*.json")):
        yield from MESSAGE.finditer(path.read_text(encoding="utf-8"))


def survey_that_says(reasons: str) -> FitDiagnosis:
    """Return a survey of two nodes with these reasons; a reason without a number is everyone's."""
    counted = [COUNTED.fullmatch(reason) for reason in reasons.split(", ")]
    if None in counted:
        return FitDiagnosis(
            2, pre_filter_status=Unschedulable("", (reasons,), is_unresolvable=True)
        )
    texts = [match[2] for match in counted if match for _ in range(int(match[1]))]
    refusals = {f"n{n}": Unschedulable("", (text,), True) for n, text in enumerate(reversed(texts))}
    return FitDiagnosis(2, node_to_status=refusals)


def test_messages_are_written_as_kubernetes_wrote_them() -> None:
    found = list(recorded(corpus("golden")))
    assert len(found) > 50
    for match in found:
        survey = survey_that_says(match[1])
        after = (preemption_message(survey),) if match[2] else ()
        assert fit_message(survey, *after) == match[0]
