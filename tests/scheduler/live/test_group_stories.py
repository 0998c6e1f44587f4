"""Groups in a live scheduler: topology, groups of groups, preemption, and when they are retried."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.scheduling import CompositePodGroup, PodGroup
from moorage.api.timestamp import Timestamp
from moorage.scheduler.live import SchedulerConfig
from moorage.scheduler.live.backoff import Backoff
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import HOST, node, pod
from tests.scheduler.scenes import composite, group

ZONE = "topology.kubernetes.io/zone"
IN_ONE_ZONE: dict[str, Any] = {"schedulingConstraints": {"topology": [{"key": ZONE}]}}
IN_SET: dict[str, Any] = {"parentCompositePodGroupName": "set"}
SMALL = {"cpu": "2", "memory": "8Gi", "pods": "9"}


def member(name: str, of: str = "gang", **more: Any) -> Pod:
    return pod(name, requests={"cpu": "1"}, schedulingGroup={"podGroupName": of}, **more)


def zoned(name: str, zone: str) -> Any:
    return node(name, labels={HOST: name, ZONE: zone}, allocatable=SMALL)


def condition_of(made: FakeServer, name: str = "gang") -> str:
    found = made.get(PodGroup, name).status.conditions
    return " ".join(f"{each.status} {each.reason}" for each in found)


def run_of(*objects: Any) -> Rig:
    made = FakeServer()
    made.put(*objects)
    rig = Rig(made)
    rig.run()
    return rig


def test_a_label_on_a_node_wakes_a_group() -> None:
    gang = group(least=2, **IN_ONE_ZONE)
    rig = run_of(node("n1", allocatable=SMALL), gang, member("p"), member("q"))
    assert condition_of(rig.server) == "False Unschedulable"
    assert rig.condition("p") == "False Unschedulable no feasible placements found"
    rig.server.put(zoned("n1", "east"))
    rig.run(for_s=3)
    assert rig.node_of("p") == rig.node_of("q") == "n1"
    assert condition_of(rig.server) == "True Scheduled"


def test_late_members_join_the_domain_of_the_others() -> None:
    rig = run_of(zoned("n1", "east"), group(least=1, **IN_ONE_ZONE), member("p"), member("q"))
    rig.server.put(zoned("n2", "west"), member("r"))
    rig.run(for_s=30)
    assert rig.node_of("r") == "", "there is room, but in another zone"
    rig.server.delete(rig.server.get(Pod, "p"))
    rig.run(for_s=30)
    assert rig.node_of("r") == "n1"


def test_a_group_is_not_woken_by_its_own_condition() -> None:
    rig = run_of(node("n1", allocatable=SMALL), group(least=3), *map(member, ("p", "q", "r")))
    assert condition_of(rig.server) == "False Unschedulable"
    rig.run(for_s=60)
    assert len(rig.told("FailedScheduling")) == 3, "one attempt, for each pod"
    rig.server.put(replace(rig.server.get(PodGroup, "gang"), spec=group(least=2).spec))
    rig.run(for_s=60)
    assert condition_of(rig.server) == "True Scheduled"


def test_groups_wait_for_the_group_above_them() -> None:
    pods = (member("a1", "a"), member("a2", "a"), member("b1", "b"), member("b2", "b"))
    rig = run_of(node("n1"), *pods, group("a", **IN_SET), group("b", **IN_SET))
    assert rig.server.writes == []
    rig.server.put(composite())
    rig.run()
    assert {rig.node_of(each.metadata.name) for each in pods} == {"n1"}
    assert condition_of(rig.server, "a") == condition_of(rig.server, "b") == "True Scheduled"


def test_a_group_waits_until_its_sibling_is_complete() -> None:
    groups = (composite(), group("a", **IN_SET), group("b", **IN_SET))
    rig = run_of(node("n1"), *groups, member("a1", "a"), member("a2", "a"), member("b1", "b"))
    assert rig.server.writes == []
    rig.server.put(member("b2", "b"))
    rig.run()
    assert {rig.node_of(name) for name in ("a1", "a2", "b1", "b2")} == {"n1"}


def test_a_group_that_stays_behind_is_tried_again() -> None:
    groups = (composite(least=1), group("a", **IN_SET), group("b", **IN_SET))
    pods = (member("a1", "a"), member("a2", "a"), member("b1", "b"), member("b2", "b"))
    rig = run_of(node("n1", allocatable=SMALL), *groups, *pods)
    assert condition_of(rig.server, "a") == "True Scheduled"
    assert condition_of(rig.server, "b") == "False Unschedulable"
    rig.server.put(node("n2", allocatable=SMALL))
    rig.run(for_s=5)
    assert rig.node_of("b1") == rig.node_of("b2") == "n2"


def conditions_of_set(rig: Rig) -> list[tuple[str, str, str]]:
    found = rig.server.get(CompositePodGroup, "set").status.conditions
    return [(each.type, each.status, each.reason) for each in found]


def test_a_composite_group_says_whether_its_groups_are_scheduled_if_that_is_wanted() -> None:
    groups = (composite(), group("a", **IN_SET), group("b", **IN_SET))
    pods = (member("a1", "a"), member("a2", "a"), member("b1", "b"), member("b2", "b"))
    made = FakeServer()
    made.put(node("n1", allocatable=SMALL), *groups, *pods)
    rig = Rig(made, SchedulerConfig(reports_composites=True))
    rig.run()
    initially = "PodGroupInitiallyScheduled"
    assert conditions_of_set(rig) == [(initially, "False", "Unschedulable")]
    (found,) = made.get(CompositePodGroup, "set").status.conditions
    assert found.message.startswith("pod group is unschedulable, ")
    made.put(node("n2", allocatable=SMALL))
    rig.run(for_s=5)
    assert conditions_of_set(rig) == [(initially, "True", "Scheduled")]
    rig.server.delete(made.get(Pod, "a1"))
    rig.run(for_s=5)
    assert conditions_of_set(rig) == [(initially, "True", "Scheduled")]


def test_kubernetes_says_nothing_of_a_composite_group() -> None:
    groups = (composite(), group("a", **IN_SET), group("b", **IN_SET))
    pods = (member("a1", "a"), member("a2", "a"), member("b1", "b"), member("b2", "b"))
    assert conditions_of_set(run_of(node("n1"), *groups, *pods)) == []


# --- preemption -----------------------------------------------------------------------------------


def low(name: str, **more: Any) -> Pod:
    return pod(name, requests={"cpu": "1"}, nodeName="n1", **more)


HIGH: dict[str, Any] = {"priority": 9}


def test_victims_leave_and_the_group_takes_their_place() -> None:
    gang = (group(least=2, **HIGH), member("p", **HIGH), member("q", **HIGH))
    rig = run_of(node("n1", allocatable=SMALL), low("v1"), low("v2"), *gang)
    assert rig.told("Preempted") == ["Preempted by podgroup group-gang on node cluster"] * 2
    assert rig.server.get(Pod, "v1") is None
    assert 'result="waiting_on_preemption"} 1' in rig.scheduler.metrics_text()
    rig.run(for_s=3)
    assert rig.node_of("p") == rig.node_of("q") == "n1"
    assert rig.server.get(Pod, "p").status.nominated_node_name == ""


def test_room_is_held_until_all_victims_have_left() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    gang = (group(least=2, **HIGH), member("p", **HIGH), member("q", **HIGH))
    rig = run_of(node("n1", allocatable=SMALL), low("v1", **slow), low("v2", **slow), *gang)
    victim = rig.server.get(Pod, "v1")
    (disrupted,) = [each for each in victim.status.conditions if each.type == "DisruptionTarget"]
    assert disrupted.message.endswith("preempting to accommodate a higher priority podgroup")
    assert rig.server.get(Pod, "p").status.nominated_node_name == "n1"
    rig.run(for_s=20)
    assert len(rig.told("Preempted")) == 2, "nobody is preempted twice"
    rig.server.drop(victim)
    rig.server.put(pod("other", requests={"cpu": "1"}))
    rig.run(for_s=60)
    assert rig.node_of("p") == rig.node_of("q") == rig.node_of("other") == ""
    rig.server.drop(rig.server.get(Pod, "v2"))
    rig.run(for_s=60)
    assert rig.node_of("p") == rig.node_of("q") == "n1"
    assert rig.node_of("other") == ""


def test_room_is_held_for_a_single_pod_too() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    first = pod("first", requests={"cpu": "2"}, **HIGH)
    rig = run_of(node("n1", allocatable=SMALL), low("v1", **slow), low("v2", **slow), first)
    assert rig.server.get(Pod, "first").status.nominated_node_name == "n1"
    rig.server.drop(rig.server.get(Pod, "v1"))
    rig.server.put(pod("second", requests={"cpu": "1"}))
    rig.run(for_s=30)
    assert rig.node_of("second") == ""
    rig.server.drop(rig.server.get(Pod, "v2"))
    rig.run(for_s=30)
    assert (rig.node_of("first"), rig.node_of("second")) == ("n1", "")


def test_a_pod_of_the_same_kind_does_not_answer_for_a_nominated_one() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    alike = [pod(name, requests={"cpu": "2"}, **HIGH) for name in ("first", "second")]
    rig = run_of(node("n1", allocatable=SMALL), low("v1", **slow), *alike)
    assert rig.server.get(Pod, "first").status.nominated_node_name == "n1"
    rig.run(for_s=30)
    rig.server.drop(rig.server.get(Pod, "v1"))
    rig.run(for_s=30)
    assert (rig.node_of("first"), rig.node_of("second")) == ("n1", "")


def test_a_pod_that_others_nominate_is_asked_itself() -> None:
    filler = pod("filler", requests={"cpu": "2"}, nodeName="n1")
    alike = [pod(name, requests={"cpu": "2"}) for name in ("first", "second")]
    rig = run_of(node("n1", allocatable=SMALL), filler, *alike)
    stored = rig.server.get(Pod, "second")
    rig.server.put(replace(stored, status=replace(stored.status, nominated_node_name="n1")))
    rig.run(for_s=30)
    rig.server.drop(filler)
    rig.run(for_s=30)
    assert (rig.node_of("first"), rig.node_of("second")) == ("", "n1")


def test_a_single_pod_preempts_nobody_else_while_its_victim_leaves() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    nodes = (node("n1", allocatable=SMALL), node("n2", allocatable=SMALL))
    beside = [pod(name, requests={"cpu": "1"}, nodeName="n2") for name in ("w1", "w2")]
    first = pod("first", requests={"cpu": "1"}, **HIGH)
    rig = run_of(*nodes, low("v1", **slow), low("v2", **slow), *beside, first)
    assert len(rig.told("Preempted")) == 1
    rig.server.put(pod("cheap", requests={"cpu": "1"}, nodeName="n2", priority=-5))
    rig.server.delete(rig.server.get(Pod, "w1"))
    rig.run(for_s=60)
    assert len(rig.told("Preempted")) == 1, "a cheaper victim does not matter any more"
    assert rig.condition("first").endswith(
        "preemption: not eligible due to a terminating pod on the nominated node."
    )
    assert rig.server.get(Pod, "first").status.nominated_node_name == "n1"
    leaving = [each for each in rig.server.all(Pod) if each.metadata.deletion_timestamp]
    rig.server.drop(*leaving)
    rig.run(for_s=60)
    assert rig.node_of("first") == "n1"


def test_who_is_not_leaving_yet_is_evicted_beside_one_that_is() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    first = pod("first", requests={"cpu": "1"}, **HIGH)
    rig = run_of(node("n1", allocatable=SMALL), low("v1", **slow), low("v2", **slow), first)
    assert len(rig.told("Preempted")) == 1
    rig.server.put(pod("top", requests={"cpu": "2"}, priority=99))
    rig.run()
    assert len(rig.told("Preempted")) == 2
    assert rig.server.get(Pod, "top").status.nominated_node_name == "n1"
    assert rig.server.get(Pod, "first").status.nominated_node_name == ""


def test_a_group_for_which_several_pods_leave_waits_until_the_first_has_left() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    gang = group(least=2, **HIGH)
    rig = run_of(
        node("n1", allocatable=SMALL),
        *(low(name, **slow) for name in ("v1", "v2")),
        gang,
        *(member(name, **HIGH) for name in "pq"),
    )
    rig.run(for_s=30)
    rig.server.put(node("n2", allocatable={"cpu": "0"}))
    rig.run(for_s=30)
    (told,) = rig.server.get(PodGroup, "gang").status.conditions
    assert told.message.endswith("found a placement for podgroup, preempting 2 victims")
    rig.server.drop(rig.server.get(Pod, "v1"))
    rig.run()
    (told,) = rig.server.get(PodGroup, "gang").status.conditions
    assert told.message.endswith("ongoing preemption on nominated nodes")
    rig.server.drop(rig.server.get(Pod, "v2"))
    rig.run(for_s=3)
    assert rig.node_of("p") == rig.node_of("q") == "n1"


def test_a_member_that_no_longer_finds_a_node_stays_nominated() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    gang = group(least=1, **HIGH)
    rig = run_of(node("n1", allocatable=SMALL), low("v1", **slow), gang, member("p", **HIGH))
    rig.server.put(pod("more", requests={"cpu": "1"}))
    rig.run()
    assert rig.server.get(Pod, "p").status.nominated_node_name == ""
    rig.server.put(member("q", **HIGH))
    rig.run()
    assert rig.server.get(Pod, "q").status.nominated_node_name == "n1"
    top = group("top", least=1, priority=99)
    rig.server.put(
        top, pod("t", requests={"cpu": "2"}, schedulingGroup={"podGroupName": "top"}, priority=99)
    )
    rig.run(for_s=30)
    assert rig.server.get(Pod, "t").status.nominated_node_name == "n1"
    assert rig.server.get(Pod, "q").status.nominated_node_name == "n1"


def test_a_pod_that_started_later_is_the_victim_whenever_that_becomes_known() -> None:
    rig = run_of(node("n1", allocatable=SMALL), low("v1"), low("v2"))
    for name, hour in (("v1", 9), ("v2", 8)):
        victim = rig.server.get(Pod, name)
        started = replace(victim.status, start_time=Timestamp.parse(f"2026-01-01T0{hour}:00:00Z"))
        rig.server.put(replace(victim, status=started))
    rig.run()
    rig.server.put(pod("first", requests={"cpu": "1"}, **HIGH))
    rig.run()
    assert rig.server.get(Pod, "v1") is None
    assert rig.server.get(Pod, "v2") is not None


def test_a_nomination_ends_with_its_pod() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    first = pod("first", requests={"cpu": "2"}, **HIGH)
    rig = run_of(node("n1", allocatable=SMALL), low("v1", **slow), low("v2", **slow), first)
    rig.server.delete(rig.server.get(Pod, "first"))
    for name in ("v1", "v2"):
        rig.server.drop(rig.server.get(Pod, name))
    rig.server.put(pod("second", requests={"cpu": "1"}))
    rig.run(for_s=30)
    assert rig.node_of("second") == "n1"


def test_the_room_of_a_nominated_pod_that_leaves_wakes_the_others() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    first = pod("first", requests={"cpu": "2"}, **HIGH)
    rig = run_of(node("n1", allocatable=SMALL), low("v1", **slow), low("v2", **slow), first)
    rig.server.drop(rig.server.get(Pod, "v1"))
    rig.server.put(pod("second", requests={"cpu": "1"}))
    rig.run(for_s=30)
    assert rig.node_of("second") == "", "room is held for the first"
    rig.server.delete(rig.server.get(Pod, "first"))
    rig.run(for_s=30)
    assert rig.node_of("second") == "n1"


def test_a_nomination_that_is_taken_back_wakes_the_others() -> None:
    nominated = pod("first", requests={"cpu": "2"}, schedulingGates=[{"name": "g"}], **HIGH)
    first = replace(nominated, status=replace(nominated.status, nominated_node_name="n1"))
    second = pod("second", requests={"cpu": "1"})
    rig = run_of(node("n1", allocatable=SMALL), first, second)
    assert rig.node_of("second") == "", "room is held for the first"
    rig.server.put(nominated)
    rig.run(for_s=30)
    assert rig.node_of("second") == "n1"


# --- members --------------------------------------------------------------------------------------


def test_a_finished_member_does_not_count() -> None:
    done = member("done", nodeName="n1", status={"phase": "Succeeded"})
    rig = run_of(node("n1"), group(least=2), done, member("p"))
    assert rig.node_of("p") == ""
    rig.server.put(member("q"))
    rig.run()
    assert rig.node_of("p") == rig.node_of("q") == "n1"


def test_a_member_of_another_scheduler_does_not_count() -> None:
    rig = run_of(node("n1"), group(least=2), member("p"), member("q", schedulerName="other"))
    assert rig.server.writes == []


def test_less_is_enough_once_the_group_says_so() -> None:
    rig = run_of(node("n1"), group(least=3), member("p"), member("q"))
    assert rig.node_of("p") == ""
    stored = rig.server.get(PodGroup, "gang")
    rig.server.put(replace(stored, spec=group(least=2).spec))
    rig.run()
    assert rig.node_of("p") == rig.node_of("q") == "n1"


def test_a_member_with_a_gate_holds_back_the_others() -> None:
    gated = member("r", schedulingGates=[{"name": "example.com/wait"}])
    rig = run_of(node("n1"), group(least=2), member("p"), member("q"), gated)
    assert [rig.node_of(name) for name in "pqr"] == ["", "", ""]
    assert [rig.condition(name) for name in "pqr"] == ["", "", ""]
    rig.server.put(replace(gated, spec=replace(gated.spec, scheduling_gates=())))
    rig.run()
    assert [rig.node_of(name) for name in "pqr"] == ["n1", "n1", "n1"]


def test_the_others_go_on_when_a_member_with_a_gate_is_deleted() -> None:
    gated = member("r", schedulingGates=[{"name": "example.com/wait"}])
    rig = run_of(node("n1"), group(least=2), member("p"), member("q"), gated)
    rig.server.delete(gated)
    rig.run()
    assert [rig.node_of(name) for name in "pq"] == ["n1", "n1"]


NOT_FOUND = 'False SchedulerError error in "DynamicResources" PodGroupPostFilter plugins: not found'


def test_a_group_that_lost_a_member_is_tried_once_more() -> None:
    rig = run_of(node("n1", allocatable=SMALL), group(least=3), *map(member, ("p", "q", "r")))
    assert rig.condition("q").startswith("False Unschedulable")
    rig.server.delete(rig.server.get(Pod, "r"))
    rig.run(for_s=3)
    assert rig.condition("p") == rig.condition("q") == NOT_FOUND
    assert condition_of(rig.server) == "False SchedulerError"
    rig.server.put(member("s"), node("n2", allocatable=SMALL))
    rig.run(for_s=10)
    assert "" not in (rig.node_of("p"), rig.node_of("q"), rig.node_of("s"))


def test_a_group_that_wants_more_than_there_are_is_tried_once_more() -> None:
    rig = run_of(node("n1", allocatable=SMALL), group(least=3), *map(member, ("p", "q", "r")))
    stored = rig.server.get(PodGroup, "gang")
    rig.server.put(replace(stored, spec=group(least=4).spec))
    rig.run(for_s=3)
    assert [rig.condition(name) for name in "pqr"] == [NOT_FOUND] * 3


def test_a_group_is_an_error_while_there_are_no_nodes() -> None:
    rig = run_of(group(least=2), member("p"), member("q"))
    assert rig.condition("p") == rig.condition("q") == NOT_FOUND
    rig.server.put(node("n1", allocatable=SMALL))
    rig.run(for_s=3)
    assert rig.node_of("p") == rig.node_of("q") == "n1"


# --- when groups are tried again ------------------------------------------------------------------


def test_groups_are_tried_at_the_times_of_kubernetes() -> None:
    backoff = Backoff()
    assert backoff.group_until_s(0.3, 1, 2) == 2.0
    assert backoff.next_of_group(2.0, 1, 2, 1.0) == (2.0, 1), "nothing was missed"
    assert backoff.next_of_group(2.0, 1, 2, 2.5) == (5.0, 2)
    assert backoff.next_of_group(2.0, 1, 2, 6.0) == (10.0, 3)


def test_the_longest_backoff_grows_with_the_group() -> None:
    backoff = Backoff()
    assert backoff.after(9) == 10.0
    assert backoff.after(9, pods=4) == 20.0
    until_s, _ = backoff.next_of_group(2.0, 1, 4, 1_000_000.0)
    assert 1_000_000.0 <= until_s < 1_000_000.0 + 21.0


def test_a_group_is_not_tried_before_its_backoff_is_over() -> None:
    rig = run_of(node("n1", allocatable=SMALL), group(least=3), *map(member, ("p", "q", "r")))
    rig.server.put(node("n2", allocatable=SMALL))
    rig.run()
    assert rig.node_of("p") == ""
    rig.run(for_s=2)
    assert "" not in (rig.node_of("p"), rig.node_of("q"), rig.node_of("r"))


def test_the_last_of_two_reports_about_a_group_is_the_one_that_stays() -> None:
    """The second attempt follows at once, before the report of the first is in our copy."""
    first = group("first", least=1, **IN_SET)
    full = node("n1", allocatable=SMALL)
    rig = run_of(full, composite(least=1), first, member("a", of="first"))
    rig.server.put(group("large", least=1, **IN_SET))
    rig.server.put(pod("b", requests={"cpu": "9"}, schedulingGroup={"podGroupName": "large"}))
    rig.run(for_s=30)
    (before,) = rig.server.get(PodGroup, "large").status.conditions
    assert "pod group preemption:" in before.message
    rig.server.put(group("small", least=1, **IN_SET), member("c", of="small"))
    rig.run(for_s=30)
    assert rig.node_of("c") == "n1"
    (after,) = rig.server.get(PodGroup, "large").status.conditions
    assert after.message == before.message


def test_what_a_group_lacks_is_told_anew_when_others_take_more() -> None:
    rig = run_of(node("n1", allocatable=SMALL), group(least=3), *map(member, ("p", "q", "r")))
    (told,) = rig.server.get(PodGroup, "gang").status.conditions
    assert "2 scheduled, 0 remaining" in told.message
    rig.server.put(pod("other", requests={"cpu": "1"}))
    rig.run(for_s=3)
    (told,) = rig.server.get(PodGroup, "gang").status.conditions
    assert "1 scheduled, 1 remaining" in told.message


def test_a_late_member_waits_with_its_group_for_those_that_leave() -> None:
    slow: dict[str, Any] = {"metadata": {"finalizers": ["example.com/slow"]}}
    victims = (low(name, **slow) for name in ("v1", "v2"))
    gang = group(least=2, **HIGH)
    members = (member(name, **HIGH) for name in "pq")
    rig = run_of(node("n1", allocatable=SMALL), *victims, gang, *members)
    rig.server.put(member("late", **HIGH))
    rig.run(for_s=30)
    assert rig.condition("late") == ""
    for name in ("v1", "v2"):
        rig.server.drop(rig.server.get(Pod, name))
    rig.run(for_s=10)
    assert rig.node_of("p") == rig.node_of("q") == "n1"
    assert rig.condition("late").startswith("False Unschedulable")
