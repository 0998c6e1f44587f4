"""Signatures are prepared once, topology states are made once: work is counted, not time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.core.placement import Toleration
from moorage.api.core.pod import Pod
from moorage.scheduler import signature_cache
from moorage.scheduler.node_snapshot import JOURNAL_MAX, STATES_MAX, NodeSnapshot
from moorage.scheduler.signature_cache import SignatureCache
from tests.scheduler.makers import HOST, diagnose, fleet, node, pod

TOKEN = "kube-api-access-"


def replica(number: int, **more: Any) -> Pod:
    """Return a pod of a template, with what a cluster makes up for each."""
    name = f"web-{number}"
    volumes = [{"name": f"{TOKEN}{number:05}", "projected": {"sources": []}}]
    return pod(name, labels={"app": "web"}, requests={"cpu": "1m"}, volumes=volumes, **more)


def test_pods_of_one_template_have_one_shape() -> None:
    signatures = SignatureCache()
    first = signatures.of(replica(0))
    assert all(signatures.of(replica(number)) is first for number in range(1, 50))
    assert signatures.signed == 1


def test_a_pod_on_a_node_has_the_shape_of_those_that_wait() -> None:
    signatures = SignatureCache()
    first = signatures.of(replica(0))
    for number, where in enumerate(("node-1", "node-2", "node-3"), start=1):
        assert signatures.pod_info(replica(number, nodeName=where)).signature is first
    assert signatures.signed == 1


def test_amounts_are_read_once_for_pods_that_differ_in_a_label() -> None:
    signatures = SignatureCache()
    pods = [pod(f"db-{n}", labels={"pod-index": str(n)}, requests={"cpu": "1"}) for n in range(9)]
    found = [signatures.of(each) for each in pods]
    assert len({id(each) for each in found}) == len(pods)
    assert len({id(each.requests_on_node) for each in found}) == 1
    other = signatures.of(pod("db-9", labels={"pod-index": "9"}, requests={"cpu": "2"}))
    assert other.requests.milli_cpu == 2 * found[0].requests.milli_cpu


def test_signatures_of_large_pods_are_bounded_by_their_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signature_cache, "SIGNATURES_BYTES_MAX", 50_000)
    signatures = SignatureCache()

    def large(number: int) -> Pod:
        return pod(
            "large", labels={"n": str(number)}, nodeSelector={"k": f"{number}-{'x' * 10_000}"}
        )

    first = signatures.of(large(0))
    assert signatures.of(pod("small")).text_bytes < 1_000
    assert 10_000 < first.text_bytes < 11_000
    assert signatures.of(large(0)) is first
    for number in range(1, 5):
        signatures.of(large(number))
    assert signatures.of(large(0)) is not first


DIFFERENT = [
    replica(0, nodeSelector={"a": "b"}),
    replica(0, tolerations=[{"operator": "Exists"}]),
    replica(0, ports=[80]),
    replica(0, hostNetwork=True),
    replica(0, schedulingGates=[{"name": "g"}]),
    replica(0, overhead={"cpu": "1"}),
    replica(0, resources={"requests": {"cpu": "2"}}),
    pod("web-0", labels={"app": "web"}, requests={"cpu": "2m"}),
    pod("web-0", namespace="other", labels={"app": "web"}, requests={"cpu": "1m"}),
    replica(0, schedulerName="other"),
    replica(0, status={"allocatedResources": {"cpu": "1"}}),
    replica(0, initContainers=[{"name": "i", "resources": {"requests": {"cpu": "9"}}}]),
]


@pytest.mark.parametrize("other", DIFFERENT)
def test_what_decides_makes_another_shape(other: Pod) -> None:
    signatures = SignatureCache()
    assert signatures.of(other) is not signatures.of(replica(0))


def test_the_memory_of_shapes_is_bounded() -> None:
    signatures = SignatureCache(signatures_max=3)
    for number in range(10):
        signatures.of(pod(labels={"n": str(number)}))
    assert signatures.signed == 10
    signatures.of(pod(labels={"n": "9"}))
    assert signatures.signed == 10
    signatures.of(pod(labels={"n": "0"}))
    assert signatures.signed == 11


# --- topology states ----------------------------------------------------------------------

SPREAD = {
    "topologyKey": HOST,
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def spread_replica(number: int) -> Pod:
    return replica(number, topologySpreadConstraints=[SPREAD])


def world(count: int = 4) -> NodeSnapshot:
    return fleet([node(f"node-{number}") for number in range(count)])


def test_a_thousand_replicas_need_one_shape_and_one_outlook() -> None:
    made, signatures = world(), SignatureCache()
    for number in range(100):
        one = spread_replica(number)
        found = diagnose(made, signatures.of(one))
        assert len(found.feasible) == 4 - number % 4
        made.add_pod(signatures.pod_info(one), found.feasible[0].facts.name)
    assert signatures.signed == 1
    assert made.states_built == 1


def test_a_status_that_changes_nothing_keeps_outlooks() -> None:
    made, signature = world(), SignatureCache().of(spread_replica(0))
    diagnose(made, signature)
    made.put_node(node("node-1", status={"images": [{"names": ["x:latest"], "sizeBytes": 5}]}))
    diagnose(made, signature)
    assert made.states_built == 1
    made.put_node(node("node-1", labels={HOST: "elsewhere"}))
    diagnose(made, signature)
    assert made.states_built == 2


def test_an_outlook_that_missed_too_much_is_made_anew() -> None:
    made, signatures = world(), SignatureCache()
    signature = signatures.of(spread_replica(0))
    diagnose(made, signature)
    one = signatures.pod_info(spread_replica(1))
    for _ in range(JOURNAL_MAX // 2 + 1):
        made.add_pod(one, "node-0")
        made.remove_pod(one.key)
    assert len(diagnose(made, signature).feasible) == 4
    assert made.states_built == 2


def test_the_number_of_outlooks_is_bounded() -> None:
    made, signatures = world(1), SignatureCache()
    for number in range(STATES_MAX + 5):
        diagnose(made, signatures.of(pod(labels={"n": str(number)})))
    assert len(made._states) == STATES_MAX


def test_a_pod_that_comes_again_with_its_node_has_the_shape_that_it_had() -> None:
    signatures = SignatureCache()
    one = pod("one", requests={"cpu": "1"})
    signature = signatures.of(one)
    bound = replace(one, spec=replace(one.spec, node_name="node-1"))
    assert signatures.pod_info(bound).signature is signature
    other = replace(one, spec=replace(one.spec, tolerations=(Toleration(operator="Exists"),)))
    assert signatures.of(other) is not signature
    assert signatures.pod_info(bound).signature is signature
