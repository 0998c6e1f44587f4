"""The live scheduler, from pods and claims at a server to bound pods."""

from __future__ import annotations

import pytest

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim
from moorage.client.writes import Create, Patch, Update
from moorage.scheduler.live import ExplainIn, SchedulerConfig
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, device_class, slice_of, user, wanting


def server(*objects: object, devices: int = 1) -> FakeServer:
    made = FakeServer()
    made.put(device_class(), node("node-1"), node("node-2"), slice_of("node-1", devices))
    made.put(*objects)
    return made


def test_a_pod_and_its_claim_are_bound_with_three_writes() -> None:
    made = server(claim("c"), user("p", "c"))
    rig = Rig(made)
    rig.run()
    assert rig.node_of("p") == "node-1"
    found = rig.claim("c")
    assert found.metadata.finalizers == ("resource.kubernetes.io/delete-protection",)
    assert [each.name for each in found.status.reserved_for] == ["p"]
    assert rig.told("Scheduled") == ["Successfully assigned default/p to node-1"]
    kinds = [type(write) for write in made.writes[:-1]]
    assert kinds == [Update, Update, Create]
    rig.check()


def test_the_next_pod_is_woken_when_a_device_is_given_back() -> None:
    made = server(claim("c-1"), claim("c-2"), user("p-1", "c-1"), user("p-2", "c-2"))
    rig = Rig(made)
    rig.run()
    assert rig.node_of("p-2") == ""
    assert rig.condition("p-2") == (
        "False Unschedulable 0/2 nodes are available: 2 cannot allocate all claims. "
        "preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
    )
    made.delete(made.get(Pod, "p-1"))
    rig.run()
    assert rig.node_of("p-2") == ""
    made.drop(rig.claim("c-1"))
    rig.run(for_s=1)
    assert rig.node_of("p-2") == "node-1"
    rig.check()


def test_a_pod_waits_silently_for_its_claim() -> None:
    made = server(user("p", "c"))
    rig = Rig(made)
    rig.run()
    assert made.writes == []
    assert rig.scheduler.queue.counts()["gated"] == 1
    made.put(claim("c"))
    rig.run()
    assert rig.node_of("p") == "node-1"


def test_what_is_ours_to_say_follows_upstreams_text() -> None:
    made = server(claim("c", wanting(2)), user("p", "c"))
    rig = Rig(made, explain=lambda *_: "One device is missing.")
    rig.run()
    (said,) = rig.told("FailedScheduling")
    assert said.endswith("Preemption is not helpful for scheduling. One device is missing.")
    assert rig.condition("p").endswith("One device is missing.")


UPSTREAM = (
    "0/2 nodes are available: 2 cannot allocate all claims. preemption: 0/2 nodes are available: "
    "2 Preemption is not helpful for scheduling."
)


@pytest.mark.parametrize(
    ("explain_in", "message", "events"),
    [
        (ExplainIn.CONDITION, f"{UPSTREAM} One device is missing.", []),
        (ExplainIn.EVENT, UPSTREAM, ["One device is missing."]),
        (ExplainIn.NONE, UPSTREAM, []),
    ],
)
def test_what_is_ours_to_say_is_written_where_it_is_wanted(
    explain_in: ExplainIn, message: str, events: list[str]
) -> None:
    made = server(claim("c", wanting(2)), user("p", "c"))
    config = SchedulerConfig(explain_in=explain_in)
    rig = Rig(made, config, explain=lambda *_: "One device is missing.")
    rig.run()
    assert rig.condition("p") == f"False Unschedulable {message}"
    assert rig.told("FailedScheduling") == [message]
    assert rig.told("SchedulingExplained") == events


def test_a_changed_cause_updates_the_line_though_kubernetes_says_the_same() -> None:
    made = server(claim("c", wanting(2)), user("p", "c"))
    lines = iter(["Nobody has two.", "Nobody has two.", None, "One has none."])
    rig = Rig(made, explain=lambda *_: next(lines))
    rig.run()
    conditions, patches = [rig.condition("p")], [_patches(made)]
    for _ in range(3):
        made.put(slice_of("node-1", 1))  # the pod is tried again
        rig.run(for_s=60)
        conditions.append(rig.condition("p"))
        patches.append(_patches(made))
    assert [each.rpartition(UPSTREAM)[2].strip() for each in conditions] == [
        "Nobody has two.",
        "Nobody has two.",
        "Nobody has two.",  # There was no time: the line stays.
        "One has none.",
    ]
    assert rig.told("FailedScheduling")[-1] == f"{UPSTREAM} One has none."
    assert patches == [1, 1, 1, 2]


def _patches(made: FakeServer) -> int:
    return sum(isinstance(write, Patch) for write in made.writes)


def test_a_long_message_leaves_room_for_what_is_ours_to_say() -> None:
    ours = f"Moorage: {'ä' * 480}."
    rig = Rig(server(claim("c", wanting(2)), user("p", "c")), explain=lambda *_: ours)
    rig.run()
    (said,) = rig.told("FailedScheduling")
    assert said.startswith(UPSTREAM[:30])
    assert said.endswith(f" ... {ours}")
    assert len(said.encode()) == 1024
    assert rig.condition("p") == f"False Unschedulable {UPSTREAM} {ours}"


def test_nothing_is_explained_where_nobody_wants_it() -> None:
    def explain(*_: object) -> str:
        raise AssertionError

    made = server(claim("c", wanting(2)), user("p", "c"))
    rig = Rig(made, SchedulerConfig(explain_in=ExplainIn.NONE), explain=explain)
    rig.run()
    assert rig.told("FailedScheduling") == [UPSTREAM]


def test_pods_that_share_a_claim_are_reserved_with_one_write() -> None:
    pods = [user(f"p-{number}", "c") for number in range(5)]
    made = server(claim("c"), *pods)
    rig = Rig(made)
    rig.run()
    assert {rig.node_of(each.metadata.name) for each in pods} == {"node-1"}
    assert len(rig.claim("c").status.reserved_for) == 5
    updates = [write for write in made.writes if isinstance(write, Update)]
    assert len(updates) == 2
    rig.check()


def test_pods_of_one_kind_are_tried_once_for_all() -> None:
    objects: list[object] = []
    for number in range(20):
        objects += [claim(f"c-{number}"), user(f"p-{number}", f"c-{number}")]
    made = server(*objects, devices=2)
    rig = Rig(made)
    rig.run()
    failed = len(rig.told("FailedScheduling"))
    assert failed == 18
    holder = next(each for each in made.all(Pod) if each.spec.node_name)
    made.delete(holder)
    made.drop(made.get(ResourceClaim, holder.spec.resource_claims[0].resource_claim_name))
    rig.run(for_s=5)
    assert sum(bool(each.spec.node_name) for each in made.all(Pod)) == 2
    assert len(rig.told("FailedScheduling")) - failed <= 2, "not all of them were tried"
    rig.check()


def test_one_change_that_helps_many_of_a_kind_wakes_one_after_the_other() -> None:
    objects: list[object] = []
    for number in range(20):
        objects += [claim(f"c-{number}"), user(f"p-{number}", f"c-{number}")]
    made = server(*objects)
    rig = Rig(made)
    rig.run()
    made.put(slice_of("node-1", 12))
    rig.run(for_s=5)
    assert sum(bool(each.spec.node_name) for each in made.all(Pod)) == 12
    rig.check()


def test_one_that_is_of_another_kind_by_now_does_not_stand_for_the_others() -> None:
    objects: list[object] = []
    for number in range(3):
        objects += [claim(f"c-{number}"), user(f"p-{number}", f"c-{number}")]
    made = server(*objects)
    rig = Rig(made)
    rig.run()
    waiting = [each for each in made.all(Pod) if not each.spec.node_name]
    (entry,) = waiting[0].spec.resource_claims
    changed = made.get(ResourceClaim, entry.resource_claim_name)
    rig.scheduler.cache.claims.stored.pop(("default", changed.metadata.name))
    # The next one to be woken has lost its claim, which nobody has told yet.
    rig.scheduler.cache.cluster.remove_claim("default", changed.metadata.name)
    made.put(slice_of("node-1", 3))
    rig.run(for_s=5)
    assert rig.node_of(waiting[1].metadata.name) == "node-1"


def test_pods_with_a_node_and_other_schedulers_pods_are_left_alone() -> None:
    made = server(pod("other", schedulerName="else"), pod("there", nodeName="node-1"))
    rig = Rig(made)
    rig.run()
    assert made.writes == []
