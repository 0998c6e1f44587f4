"""Shapes are prepared once, outlooks are made once: work is counted, not time."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from mooring.api.core.placement import Toleration
from mooring.api.core.pod import Pod
from mooring.scheduler import Fleet, Shapes, survey
from mooring.scheduler.fleet import JOURNAL_MAX, OUTLOOKS_MAX
from tests.scheduler.makers import HOST, fleet, node, pod

TOKEN = "kube-api-access-"


def replica(number: int, **more: Any) -> Pod:
    """Return a pod of a template, with what a cluster makes up for each."""
    name = f"web-{number}"
    volumes = [{"name": f"{TOKEN}{number:05}", "projected": {"sources": []}}]
    return pod(name, labels={"app": "web"}, requests={"cpu": "1m"}, volumes=volumes, **more)


def test_pods_of_one_template_have_one_shape() -> None:
    shapes = Shapes()
    first = shapes.of(replica(0))
    assert all(shapes.of(replica(number)) is first for number in range(1, 50))
    assert shapes.prepared == 1


def test_a_pod_on_a_node_has_the_shape_of_those_that_wait() -> None:
    shapes = Shapes()
    first = shapes.of(replica(0))
    for number, where in enumerate(("node-1", "node-2", "node-3"), start=1):
        assert shapes.occupant(replica(number, nodeName=where)).shape is first
    assert shapes.prepared == 1


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
    shapes = Shapes()
    assert shapes.of(other) is not shapes.of(replica(0))


def test_the_memory_of_shapes_is_bounded() -> None:
    shapes = Shapes(shapes_max=3)
    for number in range(10):
        shapes.of(pod(labels={"n": str(number)}))
    assert shapes.prepared == 10
    shapes.of(pod(labels={"n": "9"}))
    assert shapes.prepared == 10
    shapes.of(pod(labels={"n": "0"}))
    assert shapes.prepared == 11


# --- outlooks -----------------------------------------------------------------------------------

SPREAD = {
    "topologyKey": HOST,
    "maxSkew": 1,
    "whenUnsatisfiable": "DoNotSchedule",
    "labelSelector": {"matchLabels": {"app": "web"}},
}


def spread_replica(number: int) -> Pod:
    return replica(number, topologySpreadConstraints=[SPREAD])


def world(count: int = 4) -> Fleet:
    return fleet([node(f"node-{number}") for number in range(count)])


def test_a_thousand_replicas_need_one_shape_and_one_outlook() -> None:
    made, shapes = world(), Shapes()
    for number in range(100):
        one = spread_replica(number)
        found = survey(made, shapes.of(one))
        assert len(found.fitting) == 4 - number % 4
        made.place(shapes.occupant(one), found.fitting[0].facts.name)
    assert shapes.prepared == 1
    assert made.outlooks_made == 1


def test_a_status_that_changes_nothing_keeps_outlooks() -> None:
    made, shape = world(), Shapes().of(spread_replica(0))
    survey(made, shape)
    made.put_node(node("node-1", status={"images": [{"names": ["x:latest"], "sizeBytes": 5}]}))
    survey(made, shape)
    assert made.outlooks_made == 1
    made.put_node(node("node-1", labels={HOST: "elsewhere"}))
    survey(made, shape)
    assert made.outlooks_made == 2


def test_an_outlook_that_missed_too_much_is_made_anew() -> None:
    made, shapes = world(), Shapes()
    shape = shapes.of(spread_replica(0))
    survey(made, shape)
    one = shapes.occupant(spread_replica(1))
    for _ in range(JOURNAL_MAX // 2 + 1):
        made.place(one, "node-0")
        made.displace(one.key)
    assert len(survey(made, shape).fitting) == 4
    assert made.outlooks_made == 2


def test_the_number_of_outlooks_is_bounded() -> None:
    made, shapes = world(1), Shapes()
    for number in range(OUTLOOKS_MAX + 5):
        survey(made, shapes.of(pod(labels={"n": str(number)})))
    assert len(made._outlooks) == OUTLOOKS_MAX


def test_a_pod_that_comes_again_with_its_node_has_the_shape_that_it_had() -> None:
    shapes = Shapes()
    one = pod("one", requests={"cpu": "1"})
    shape = shapes.of(one)
    bound = replace(one, spec=replace(one.spec, node_name="node-1"))
    assert shapes.occupant(bound).shape is shape
    other = replace(one, spec=replace(one.spec, tolerations=(Toleration(operator="Exists"),)))
    assert shapes.of(other) is not shape
    assert shapes.occupant(bound).shape is shape
