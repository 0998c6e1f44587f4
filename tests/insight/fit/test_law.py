"""The number that fits equals the number a plan places, and one more node never lowers it."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from mooring.api.core import Pod
from mooring.insight.plan.planner import plan
from mooring.insight.snapshot.snapshot import Snapshot
from tests.insight.fit.scenes import CONTEXT, NUMA, fitted, gpus, template, using
from tests.scheduler.makers import HOST, node
from tests.scheduler.scenes import claim, device_class, wanting

NAMES = "abcd"
law = settings(max_examples=60, deadline=None, derandomize=True)


@st.composite
def nodes_with_gpus(draw: st.DrawFn, names: str = NAMES) -> list[Any]:
    """Return some nodes, each with GPUs on NUMA nodes, of which some are taken."""
    found: list[Any] = []
    for name in names[: draw(st.integers(0, len(names)))]:
        cpu, pods = draw(st.sampled_from("248")), draw(st.sampled_from(["2", "110"]))
        found.append(node(name, allocatable={"cpu": cpu, "memory": "8Gi", "pods": pods}))
        numa = draw(st.lists(st.integers(0, 1), max_size=6))
        found.append(gpus(name, numa))
        is_taken: bool = draw(st.booleans())
        if numa and is_taken:
            found.append(claim(f"taken-{name}", has=[(name, "gpu-0")]))
    return found


counts = st.integers(1, 3)
constraints = st.sampled_from([(), ({"matchAttribute": NUMA},), ({"distinctAttribute": NUMA},)])
subjects = st.builds(
    lambda cpu: using("gpus", requests={"cpu": cpu} if cpu else {}),
    st.sampled_from([None, "1", "3"]),
)

LABELS = {"app": "train"}
COMPANY = {"labelSelector": {"matchLabels": LABELS}, "topologyKey": HOST}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
WAYS: list[dict[str, Any]] = [
    {},
    {
        "topologySpreadConstraints": [
            {**COMPANY, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
        ]
    },
    {"affinity": {"podAntiAffinity": {REQUIRED: [COMPANY]}}},
    {"affinity": {"podAffinity": {REQUIRED: [COMPANY]}}},
]
sociable = st.sampled_from(WAYS).map(lambda spec: using("gpus", labels=LABELS, **spec))


@st.composite
def templates(draw: st.DrawFn) -> Any:
    requests = [wanting(draw(counts), name="first")]
    if draw(st.booleans()):
        requests.append(wanting(draw(counts), name="second"))
    return template(*requests, constraints=draw(constraints))


def replicas(subject: Pod, number: int) -> list[Pod]:
    found = []
    for index in range(number):
        name = f"replica-{index}"
        metadata = replace(subject.metadata, name=name, uid=name)
        found.append(replace(subject, metadata=metadata))
    return found


def planned(number: int, subject: Pod, *around: Any) -> int:
    snapshot = Snapshot.of([device_class(), *around, *replicas(subject, number)])
    return len(plan(snapshot, CONTEXT).placed)


@law
@given(nodes_with_gpus(), templates(), subjects | sociable)
def test_as_many_fit_as_a_plan_places(around: list[Any], wanted: Any, subject: Pod) -> None:
    found = fitted(subject, wanted, *around)
    assert planned(found.total, subject, wanted, *around) == found.total
    assert planned(found.total + 2, subject, wanted, *around) == found.total


@law
@given(nodes_with_gpus(), templates(), subjects)
def test_no_bound_is_below_what_fits(around: list[Any], wanted: Any, subject: Pod) -> None:
    found = fitted(subject, wanted, *around, with_levers=False)
    assert found.bound is None or found.total <= found.bound


@law
@given(nodes_with_gpus(), nodes_with_gpus("yz"), templates(), subjects)
def test_one_more_node_never_lowers_it(
    around: list[Any], more: list[Any], wanted: Any, subject: Pod
) -> None:
    before = fitted(subject, wanted, *around, with_levers=False)
    after = fitted(subject, wanted, *around, *more, with_levers=False)
    assert after.total >= before.total


@law
@given(nodes_with_gpus(), templates(), subjects)
def test_every_node_has_a_limit_and_every_replica_a_node(
    around: list[Any], wanted: Any, subject: Pod
) -> None:
    found = fitted(subject, wanted, *around, with_levers=False)
    limited = [name for limit in found.limits for name in limit.nodes]
    assert len(limited) == len(set(limited)) == found.nodes
    assert sum(place.replicas for place in found.places) == found.total
    assert sum(limit.replicas for limit in found.limits) == found.total


@law
@given(nodes_with_gpus(), templates(), subjects)
def test_every_lever_raises_the_number(around: list[Any], wanted: Any, subject: Pod) -> None:
    found = fitted(subject, wanted, *around)
    assert all(lever.total > found.total for lever in found.levers)
    assert all(lever.total <= found.total for lever in found.futile)
    without = f"without the constraint on {NUMA}"
    for lever in found.levers:
        if lever.text == without:
            requests = wanted.spec.spec.devices.requests
            free = replace(wanted.spec.spec.devices, constraints=(), requests=requests)
            loose = replace(
                wanted, spec=replace(wanted.spec, spec=replace(wanted.spec.spec, devices=free))
            )
            assert fitted(subject, loose, *around, with_levers=False).total == lever.total
