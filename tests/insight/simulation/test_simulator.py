"""Pods arrive, wait, run and leave: what becomes of them, and of the devices."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.api.scheduling import PriorityClass
from moorage.insight.errors import SimulationError, UnknownObjectError
from moorage.insight.rows import csv_text
from moorage.insight.simulation import (
    Arrival,
    SimulatedPod,
    SimulationResult,
    SimulationSettings,
    simulate,
)
from moorage.insight.simulation.result import (
    pod_rows,
    simulation_tree,
    timeline_rows,
    workload_rows,
)
from moorage.insight.snapshot.snapshot import Snapshot, identified
from tests.insight.fit.scenes import CONTEXT, NUMA, fitted, gpus, template, using
from tests.insight.fit.test_fit import deployment
from tests.scheduler.makers import node
from tests.scheduler.scenes import device_class, slice_of, wanting

HOUR = 3600.0


def arrival(at_s: float, workload: str, duration_s: float | None = HOUR, count: int = 1) -> Arrival:
    return Arrival(at_s=at_s, workload=workload, duration_s=duration_s, count=count)


def played(*arrivals: Arrival, around: tuple[Any, ...], **options: Any) -> SimulationResult:
    snapshot = Snapshot.of([device_class(), *around])
    return simulate(snapshot, arrivals, CONTEXT, settings=SimulationSettings(**options))


def times(found: SimulationResult) -> list[tuple[float, float | None, float | None]]:
    """Return wait, start and end of each pod."""
    return [(each.wait_s, each.start_s, each.end_s) for each in found.pods]


def priority(name: str, value: int) -> PriorityClass:
    tree = {"metadata": {"name": name}, "value": value}
    return decode_tree(tree, PriorityClass).value


def high(name: str, *templates: str) -> Pod:
    pod: Pod = using(*templates, name=name, priorityClassName="high")
    return pod


ONE_NODE = (node("a"), slice_of("a", 2), template(wanting(1)), using("gpus", name="one"))


# --- waiting --------------------------------------------------------------------------------------


def test_a_pod_waits_until_another_has_left() -> None:
    found = played(arrival(0, "pod/one", count=2), arrival(60, "pod/one"), around=ONE_NODE)
    assert times(found) == [(0, 0, 3600), (0, 0, 3600), (3540, 3600, 7200)]
    assert found.end_s == 7200
    assert [each.node for each in found.pods] == ["a", "a", "a"]


def test_pods_of_a_workload_get_devices_in_their_order() -> None:
    found = played(*(arrival(at, "pod/one") for at in (0, 1, 2, 3, 4)), around=ONE_NODE)
    assert [each.start_s for each in found.pods] == [0, 1, 3600, 3601, 7200]
    names = [each.pod for each in found.pods]
    assert names == [f"default/one-{number}" for number in range(5)]


def test_a_smaller_pod_passes_one_that_waits_for_more() -> None:
    around = (*ONE_NODE, template(wanting(2), name="two"), using("two", name="both"))
    found = played(
        arrival(0, "pod/one"), arrival(1, "pod/both"), arrival(2, "pod/one"), around=around
    )
    assert [each.start_s for each in found.pods] == [0, 3602, 2]


def test_pods_without_a_duration_stay() -> None:
    found = played(arrival(0, "pod/one", None, 2), arrival(5, "pod/one"), around=ONE_NODE)
    (waiting,) = found.waiting
    assert waiting.message.startswith("0/1 nodes are available: 1 cannot allocate all claims.")
    assert waiting.start_s is None
    assert found.pods[0].end_s is None


def test_the_simulation_ends_when_it_shall() -> None:
    found = played(
        *(arrival(at, "pod/one") for at in (0, 10, 20, 5000)), around=ONE_NODE, until_s=60
    )
    assert found.end_s == 60
    assert [(each.wait_s, each.node) for each in found.pods] == [(0, "a"), (0, "a"), (40, None)]


def test_pods_of_controllers_claims_and_templates_arrive() -> None:
    around = (node("a"), slice_of("a", 3), template(wanting(1)), deployment(5))
    found = played(
        arrival(0, "deployment/train"), arrival(0, "template/gpus", count=2), around=around
    )
    titles = [each.workload for each in found.pods]
    assert titles == ["Deployment default/train", *["ResourceClaimTemplate default/gpus"] * 2]
    assert not found.waiting
    assert found.drivers[0].peak == 3  # the deployment's five pods did not come by themselves


def test_other_pods_of_the_cluster_are_there_from_the_begin() -> None:
    other = identified(using("gpus", name="other"))
    found = played(arrival(0, "pod/one", count=2), around=(*ONE_NODE, other))
    assert [each.start_s for each in found.pods] == [0, 3600]


def test_a_pod_of_the_cluster_that_waits_takes_what_becomes_free() -> None:
    pods = [identified(using("gpus", name=f"other-{number}")) for number in range(3)]
    running, *_ = pods
    around = (*ONE_NODE, running)
    found = played(arrival(0, "pod/one"), arrival(0, "pod/one"), around=around)
    assert [each.start_s for each in found.pods] == [0, 3600]
    around = (*ONE_NODE, *pods)
    found = played(arrival(0, "pod/one"), around=around)
    waiting = {each.pod: each for each in found.waiting}
    assert set(waiting) == {"default/other-2", "default/one-0"}


# --- preemption -----------------------------------------------------------------------------------


def test_a_pod_of_higher_priority_preempts_and_the_other_comes_anew() -> None:
    cpu = node("a", cpu="4")
    low = using(name="low", containers=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}])
    urgent = using(
        name="urgent",
        priorityClassName="high",
        containers=[{"name": "c", "resources": {"requests": {"cpu": "3"}}}],
    )
    around = (cpu, low, urgent, priority("high", 100))
    found = played(arrival(0, "pod/low"), arrival(600, "pod/urgent"), around=around)
    low_pod, urgent_pod = found.pods
    assert (urgent_pod.start_s, urgent_pod.end_s, urgent_pod.wait_s) == (600, 4200, 0)
    assert low_pod.preemptions == 1
    assert (low_pod.start_s, low_pod.end_s, low_pod.wait_s) == (4200, 7800, 3600)
    assert workload_rows(found)[0]["preemptions"] == 1


def test_a_pod_of_the_cluster_that_is_preempted_is_named() -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "3"}}}
    running = identified(using(name="web", containers=[container], nodeName="a"))
    urgent = using(name="urgent", priorityClassName="high", containers=[container])
    around = (node("a", cpu="4"), running, urgent, priority("high", 100))
    found = played(arrival(0, "pod/urgent"), around=around)
    assert found.evicted == ("default/web",)
    assert found.pods[0].start_s == 0


# --- use and left-over devices --------------------------------------------------------------------


def test_use_is_weighted_by_time() -> None:
    found = played(arrival(0, "pod/one", 100), arrival(50, "pod/one", 50), around=ONE_NODE)
    (driver,) = found.drivers
    assert (driver.devices, driver.mean_percent, driver.peak) == (2, 75.0, 2)


def test_left_over_devices_are_those_that_fit_counts() -> None:
    around = (node("a"), slice_of("a", 4), template(wanting(3)), using("gpus", name="three"))
    found = played(arrival(0, "pod/three", 100), around=around, sample_s=50.0)
    left = [each.left_over["Pod default/three"] for each in found.timeline]
    assert left == [25.0, 25.0, 25.0]
    assert [each.used for each in found.timeline[:2]] == [{"gpu.example.com": 3}] * 2


def test_what_another_workload_takes_may_leave_nothing_over() -> None:
    one, three = template(wanting(1)), template(wanting(3), name="three")
    around = (node("a"), slice_of("a", 4), one, three, using("gpus", name="one"))
    arrivals = (arrival(0, "pod/one", 100), arrival(0, "pod/big", 100))
    found = played(*arrivals, around=(*around, using("three", name="big")), sample_s=60.0)
    assert found.timeline[0].left_over == {"Pod default/one": 0.0, "Pod default/big": 0.0}


def test_measuring_changes_nothing() -> None:
    around = (
        *(part for name in "abc" for part in (node(name), gpus(name, [0, 0, 0, 1, 1, 1, 1, 0]))),
        template(wanting(3)),
        using("gpus", name="three"),
    )
    arrivals = [arrival(100.0 * number, "pod/three", 700 + 13 * number) for number in range(40)]
    measured = played(*arrivals, around=around)
    plain = played(*arrivals, around=around, has_left_over=False)
    assert measured.pods == plain.pods
    assert measured.drivers == plain.drivers
    assert all(not each.left_over for each in plain.timeline)


def test_the_timeline_is_bounded() -> None:
    found = played(arrival(0, "pod/one", 10_000), around=ONE_NODE, sample_s=1.0)
    assert 100 <= len(found.timeline) <= 401
    at = [each.at_s for each in found.timeline]
    assert at == sorted(at)
    assert at[-1] == 10_000


# --- laws -----------------------------------------------------------------------------------------

ARRIVALS = st.lists(
    st.builds(
        arrival,
        st.integers(0, 50).map(float),
        st.sampled_from(["pod/one", "pod/both"]),
        st.none() | st.integers(0, 30).map(float),
        st.integers(1, 3),
    ),
    min_size=1,
    max_size=12,
)


@settings(max_examples=40)
@given(ARRIVALS)
def test_devices_never_have_two_pods_and_no_pod_starts_before_it_comes(
    arrivals: list[Arrival],
) -> None:
    around = (*ONE_NODE, template(wanting(2), name="two"), using("two", name="both"))
    found = played(*arrivals, around=around, has_left_over=False)
    wanted = {"Pod default/one": 1, "Pod default/both": 2}
    for pod in found.pods:
        if pod.start_s is None:
            continue
        assert pod.start_s == pod.arrival_s + pod.wait_s
        beside = sum(wanted[each.workload] for each in found.pods if _is_running(each, pod.start_s))
        assert beside <= 2
    assert found == played(*arrivals, around=around, has_left_over=False)


def _is_running(pod: SimulatedPod, at_s: float) -> bool:
    if pod.start_s is None or pod.start_s > at_s:
        return False
    return pod.end_s is None or pod.end_s > at_s


def test_as_many_pods_start_at_once_as_fit_counts() -> None:
    slices = (gpus("a", [0, 0, 0, 1, 1, 1, 1, 0]), gpus("b", [0, 1, 0, 1, 0]))
    together = {"requests": ["gpus"], "matchAttribute": NUMA}
    wanted = template({**wanting(2), "name": "gpus"}, constraints=[together])
    subject = using("gpus", name="pair")
    around = (node("a"), node("b"), *slices, wanted)
    counted = fitted(subject, *around)
    found = played(arrival(0, "pod/pair", None, 20), around=(*around, subject))
    assert len(found.pods) - len(found.waiting) == counted.total
    assert Counter(each.node for each in found.pods if each.node) == {
        each.node: each.replicas for each in counted.places
    }
    (left,) = counted.leftovers
    assert found.timeline[-1].left_over == {"Pod default/pair": left.percent}


# --- what cannot be simulated ---------------------------------------------------------------------


def test_a_workload_that_there_is_not_is_an_error() -> None:
    with pytest.raises(UnknownObjectError, match="did you mean default/one"):
        played(arrival(0, "pod/ome"), around=ONE_NODE)


def test_too_many_pods_are_an_error() -> None:
    with pytest.raises(SimulationError, match="more than 100,000"):
        played(*(arrival(0, "pod/one", count=60_000) for _ in range(2)), around=ONE_NODE)


def test_many_workloads_are_simulated_and_the_first_are_measured() -> None:
    pods = [using("gpus", name=f"one-{number}") for number in range(21)]
    around = (node("a"), slice_of("a", 30), template(wanting(1)), *pods)
    found = played(*(arrival(0, f"pod/{each.metadata.name}") for each in pods), around=around)
    assert not found.waiting
    assert len(found.timeline[0].left_over) == 20
    assert found.notes == ("left-over devices are measured for the first 20 workloads of 21 only",)


def test_nothing_is_an_error() -> None:
    with pytest.raises(SimulationError, match="no pods arrive"):
        played(around=ONE_NODE)


# --- rows -----------------------------------------------------------------------------------------


def test_rows_and_json_have_what_became_of_pods() -> None:
    found = played(arrival(0, "pod/one", 100, 3), around=ONE_NODE)
    tree = simulation_tree(found)
    assert tree["summary"]["meanWaitS"] == 33.333
    assert tree["summary"]["maxWaitS"] == 100
    assert tree["pods"][2]["waitS"] == 100
    lines = csv_text(pod_rows(found)).splitlines()
    assert lines[0] == "pod,workload,arrival_s,start_s,end_s,wait_s,node,preemptions"
    assert lines[3] == "default/one-2,Pod default/one,0.0,100.0,200.0,100.0,a,0"
    (first, *_) = timeline_rows(found)
    assert first == {
        "at_s": 0.0,
        "running": 2,
        "waiting": 1,
        "used gpu.example.com": 2,
        "left over % Pod default/one": 0.0,
    }
