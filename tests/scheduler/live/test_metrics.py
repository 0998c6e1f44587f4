"""Scheduler metrics: by plugin, by profile, and never at the cost of scheduling."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from typing import Any

import pytest

from moorage.api.core.pod import Pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.framework import NODES_MEASURED_MAX, PluginTimes, Unschedulable
from moorage.scheduler.live import SchedulerConfig
from moorage.scheduler.node_info import NodeInfo
from moorage.scheduler.plugins.dynamic_resources import NodeAllocation
from moorage.scheduler.plugins.registry import Profile
from moorage.scheduler.pod_signature import PodReading
from moorage.scheduler.reservation import reserve
from moorage.scheduler.scheduling_cycle import Attempt, Pending, Placed, attempt, schedule
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, cluster, device_class, group, new_names, slice_of, user

PLUGIN_S = "scheduler_plugin_execution_duration_seconds"
UNSCHEDULABLE = "scheduler_unschedulable_pods"
SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$")


def server(*objects: Any) -> FakeServer:
    made = FakeServer()
    for each in (node("node-1"), device_class(), slice_of("node-1", 2), *objects):
        made.put(each)
    return made


def samples(rig: Rig, name: str) -> dict[str, float]:
    """Return the values of a metric by their labels."""
    found = map(SAMPLE.match, rig.scheduler.metrics_text().splitlines())
    return {m[2] or "": float(m[3]) for m in found if m is not None and m[1] == name}


def plugin_counts(rig: Rig) -> dict[tuple[str, ...], float]:
    counts = samples(rig, f"{PLUGIN_S}_count")
    return {tuple(re.findall(r'"([^"]*)"', labels)): value for labels, value in counts.items()}


# --- plugins --------------------------------------------------------------------------------------


def test_the_plugin_of_devices_is_measured_at_every_point() -> None:
    rig = Rig(server(claim("c"), user("p", "c")))
    rig.run()
    assert rig.node_of("p") == "node-1"
    found = plugin_counts(rig)
    for point in ("PreFilter", "Filter", "Reserve", "PreBind"):
        assert found["DynamicResources", point, "Success"] >= 1
    assert found["DefaultBinder", "Bind", "Success"] == 1
    assert found["NodeResourcesFit", "Filter", "Success"] == 1
    assert found["NodeResourcesFit", "Score", "Success"] == 1


def test_a_pod_without_claims_books_nothing_to_the_plugin_of_devices() -> None:
    rig = Rig(server(pod("p", requests={"cpu": "1"})))
    rig.run()
    of_devices = {key: n for key, n in plugin_counts(rig).items() if key[0] == "DynamicResources"}
    assert of_devices == {("DynamicResources", "PreFilter", "Skip"): 1}


def test_a_pod_that_gets_no_node_is_booked_to_who_refuses_it() -> None:
    rig = Rig(server(pod("p", requests={"cpu": "99"})))
    rig.run()
    found = plugin_counts(rig)
    assert found["NodeResourcesFit", "Filter", "UnschedulableAndUnresolvable"] == 1
    assert found["DefaultPreemption", "PostFilter", "Unschedulable"] == 1
    assert not any(point == "Bind" for _, point, _ in found)


def test_what_explains_a_refusal_is_not_booked_to_plugins() -> None:
    def explain(made: Cluster, one: Pod, _: Pending) -> str:
        return str(schedule(made, one))

    rig = Rig(server(pod("p", requests={"cpu": "99"})), explain=explain)
    rig.run()
    assert plugin_counts(rig)["DynamicResources", "PreFilter", "Skip"] == 1


def test_every_tenth_cycle_is_measured() -> None:
    rig = Rig(server(*(pod(f"p{number}") for number in range(25))))
    rig.run()
    assert plugin_counts(rig)["DefaultBinder", "Bind", "Success"] == 3
    (attempts,) = samples(rig, "scheduler_schedule_attempts_total").values()
    assert attempts == 25


class Watch:
    """A clock that moves by hand, and what was noted by it."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.noted: Counter[tuple[str, str, str]] = Counter()
        self.took_s: defaultdict[str, float] = defaultdict(float)
        self.times = PluginTimes(lambda: self.seconds, self.note)

    def note(self, seconds: float, plugin: str, point: str, status: str) -> None:
        self.noted[plugin, point, status] += 1
        self.took_s[plugin] += seconds


def test_time_is_booked_to_the_plugin_that_takes_it() -> None:
    watch = Watch()
    made = cluster(node("node-1"), device_class(), slice_of("node-1"), claim("c"))
    made.work.measure(watch.times)
    ready = attempt(made, user("p", "c"))
    assert isinstance(ready, Attempt)

    def slow(state: NodeInfo) -> NodeAllocation | Unschedulable:
        watch.seconds += 5
        return ready.filter_claims(state)

    assert ready.ranking.choose(slow) is not None
    assert watch.noted["NodeResourcesFit", "Filter", "Success"] == 1
    assert {plugin: s for plugin, s in watch.took_s.items() if s} == {
        "DynamicResources": watch.seconds
    }


def test_a_large_fleet_is_measured_in_part() -> None:
    watch = Watch()
    made = cluster(*(node(f"node-{number}") for number in range(3 * NODES_MEASURED_MAX)))
    made.work.measure(watch.times)
    schedule(made, pod("p", requests={"cpu": "1"}))
    assert watch.noted["NodeResourcesFit", "Filter", "Success"] == NODES_MEASURED_MAX


PODS = [
    pod("small", requests={"cpu": "1", "memory": "1Gi"}),
    pod("none"),
    pod("port", ports=[("", "TCP", 80)]),
    pod("same-port", ports=[("", "TCP", 80)]),
    pod("picky", nodeSelector={"kubernetes.io/hostname": "node-2"}),
    pod("large", requests={"cpu": "3"}),
    user("device", "c"),
    pod("too-large", requests={"cpu": "40"}),
    pod("again", requests={"cpu": "1", "memory": "1Gi"}),
    pod(
        "spread",
        labels={"app": "a"},
        topologySpreadConstraints=[
            {
                "maxSkew": 1,
                "topologyKey": "kubernetes.io/hostname",
                "whenUnsatisfiable": "ScheduleAnyway",
                "labelSelector": {"matchLabels": {"app": "a"}},
            }
        ],
    ),
]


def placements(made: Cluster, times: PluginTimes | None) -> list[str]:
    found = []
    for each in PODS:
        made.work.measure(times)
        outcome = schedule(made, each)
        if isinstance(outcome, Placed):
            reserve(made, outcome, new_names())
            found.append(outcome.node)
        else:
            found.append(outcome.message)
    return found


def test_measuring_changes_no_decision() -> None:
    def fleet() -> Cluster:
        nodes = [node(f"node-{number}") for number in range(4)]
        return cluster(*nodes, device_class(), slice_of("node-3"), claim("c"))

    assert placements(fleet(), Watch().times) == placements(fleet(), None)


# --- pods that wait -------------------------------------------------------------------------------


def rejected(rig: Rig) -> dict[str, float]:
    return {labels: n for labels, n in samples(rig, UNSCHEDULABLE).items() if n}


def test_pods_without_a_node_are_counted_by_plugin_and_profile() -> None:
    first = pod("a", requests={"cpu": "99"}, schedulerName="one")
    second = pod("b", requests={"cpu": "99"}, schedulerName="two")
    rig = Rig(
        server(first, second),
        SchedulerConfig(tuple(Profile(PodReading(name)) for name in ("one", "two"))),
    )
    rig.run()
    assert rejected(rig) == {
        'plugin="NodeResourcesFit",profile="one"': 1,
        'plugin="NodeResourcesFit",profile="two"': 1,
    }
    attempts = samples(rig, "scheduler_schedule_attempts_total")
    assert set(attempts) == {
        'profile="one",result="unschedulable"',
        'profile="two",result="unschedulable"',
    }


@pytest.mark.parametrize(
    ("waiting", "plugin"),
    [
        (pod("p", schedulingGates=[{"name": "later"}]), "SchedulingGates"),
        (user("p", "absent"), "DynamicResources"),
        (pod("p", schedulingGroup={"podGroupName": "gang"}), "GangScheduling"),
    ],
)
def test_pods_that_are_held_back_are_counted(waiting: Pod, plugin: str) -> None:
    made = server(group(least=2), waiting)
    rig = Rig(made)
    rig.run()
    assert rejected(rig) == {f'plugin="{plugin}",profile="default-scheduler"': 1}
    made.delete(waiting)
    rig.run()
    assert rejected(rig) == {}


def test_a_pod_that_finds_a_node_is_not_counted_any_more() -> None:
    made = server(pod("p", requests={"cpu": "99"}))
    rig = Rig(made)
    rig.run()
    assert rejected(rig) != {}
    made.put(node("node-2", allocatable={"cpu": "100", "memory": "1Gi", "pods": "9"}))
    rig.run(for_s=60)
    assert rig.node_of("p") == "node-2"
    assert rejected(rig) == {}


# --- the rest -------------------------------------------------------------------------------------


def test_groups_are_counted_as_such() -> None:
    member: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}
    rig = Rig(server(group(least=2), pod("a", **member), pod("b", **member)))
    rig.run()
    name = "scheduler_podgroup_schedule_attempts_total"
    assert samples(rig, name) == {'profile="default-scheduler",result="scheduled"': 1}


def test_the_cache_is_counted() -> None:
    rig = Rig(server(pod("p")))
    rig.run()
    assert samples(rig, "scheduler_cache_size")['type="nodes"'] == 1
    assert samples(rig, "scheduler_cache_size")['type="pods"'] == 1
