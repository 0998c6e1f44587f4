"""More of the live scheduler: binding conditions, preemption, groups, restart."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.core.persistent_volume import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimSpec,
    PersistentVolumeClaimStatus,
    PersistentVolumeSpec,
)
from moorage.api.core.pod import Pod
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimStatus
from moorage.api.scheduling import PodGroup
from moorage.client.writes import Create, Delete, Patch, Update
from moorage.kit.bulkhead import Fault
from moorage.scheduler import scheduling_cycle
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.errors import INTERNAL_ERROR
from moorage.scheduler.live import SchedulerConfig
from moorage.scheduler.live import scheduler as live_scheduler
from moorage.scheduler.plugins.registry import Profile
from moorage.scheduler.scheduling_cycle import Attempt, Pending
from tests.scheduler.live.fakeserver import FakeServer, ServerError
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import (
    GPU,
    claim,
    device_class,
    group,
    only_on,
    slice_of,
    taint_rule,
    user,
    wanting,
)

RESOURCE = "example.com/gpu"
FABRIC: dict[str, Any] = {"bindingConditions": ["ready"], "bindingFailureConditions": ["broken"]}
MEMBER: dict[str, Any] = {"schedulingGroup": {"podGroupName": "gang"}}


def server(*objects: Any, devices: int = 1, **fields: Any) -> FakeServer:
    made = FakeServer()
    made.put(device_class(extendedResourceName=RESOURCE), node("node-1"), node("node-2"))
    made.put(slice_of("node-1", devices, **fields), *objects)
    return made


def report(rig: Rig, name: str, condition: str) -> None:
    """Let the driver report a condition of the claim's devices."""
    found = rig.claim(name)
    assert found.status.allocation is not None
    (result,) = found.status.allocation.devices.results
    status = {
        "driver": GPU,
        "pool": result.pool,
        "device": result.device,
        "conditions": [
            {"type": condition, "status": "True", "reason": "Told", "message": "so it is"}
        ],
    }
    devices = claim("x", has=[("a", "b")], statuses=[status]).status.devices
    rig.server.put(replace(found, status=replace(found.status, devices=devices)))


# --- devices that must get ready ------------------------------------------------------------------


def test_a_pod_is_bound_once_its_devices_are_ready() -> None:
    made = server(claim("c"), user("p", "c"), **FABRIC)
    rig = Rig(made)
    rig.run(for_s=30)
    assert rig.node_of("p") == ""
    assert made.get(Pod, "p").status.nominated_node_name == "node-1"
    text = "waiting for binding conditions for device on node node-1"
    assert rig.told("BindingConditionsPending") == [text]
    report(rig, "c", "ready")
    rig.run()
    assert rig.node_of("p") == "node-1"
    rig.check()
    metrics = rig.scheduler.metrics_text()
    labels = f'{{profile="default-scheduler",driver="{GPU}",status="success"}}'
    assert f"scheduler_dra_bindingconditions_allocations_total{labels} 1" in metrics


def test_devices_that_fail_are_given_back_and_found_anew() -> None:
    made = server(claim("c"), user("p", "c"), **FABRIC)
    rig = Rig(made)
    rig.run()
    report(rig, "c", "broken")
    rig.run(for_s=20)
    said = rig.told("FailedScheduling")
    assert said[0] == (
        'running PreBind plugin "DynamicResources": device binding failed: claim=c, '
        'reason=Told, message="so it is"'
    )
    assert any("deallocation of ResourceClaim completed" in each for each in said)
    assert rig.claim("c").status.devices == ()
    assert len(rig.told("BindingConditionsPending")) == 2, "the next devices are waited for"
    report(rig, "c", "ready")
    rig.run()
    assert rig.node_of("p") == "node-1"
    rig.check()


def test_devices_that_failed_are_never_left_to_nobody() -> None:
    """A scheduler that dies before the next try would leave them to nobody."""
    made = server(claim("c"), user("p", "c"), user("q", "c"), **FABRIC)
    rig = Rig(made)
    rig.run()
    report(rig, "c", "broken")
    for _ in range(400):
        rig.elapsed_s += 0.1
        rig.hear() or rig.decide() or rig.write()
        found = rig.claim("c").status
        assert bool(found.reserved_for) == (found.allocation is not None), found
    assert any("deallocation of ResourceClaim" in each for each in rig.told("FailedScheduling"))


def test_devices_that_get_ready_while_they_are_given_back_are_not_taken_from_the_next_try() -> None:
    for number in range(60):
        made = server(claim("c"), user("p", "c"), **FABRIC)
        rig = Rig(made, SchedulerConfig((Profile(binding_timeout_s=20),)))
        rig.run(for_s=21)
        for step in range(number + 30):
            if step == number and rig.claim("c").status.allocation is not None:
                report(rig, "c", "ready")
            rig.elapsed_s += 0.1
            rig.hear()
            rig.decide()
            if step % 3 == 0:  # answers are late
                rig.write()
        rig.run(for_s=5)
        has_devices = rig.claim("c").status.allocation is not None
        assert has_devices or not rig.node_of("p"), number


def test_a_pod_whose_claim_loses_its_devices_while_it_waits_is_not_bound() -> None:
    made = server(claim("c"), user("p", "c"), **FABRIC)
    rig = Rig(made)
    rig.run()
    made.put(replace(rig.claim("c"), status=ResourceClaimStatus()))
    rig.run()
    assert rig.node_of("p") == ""
    assert "c got deallocated elsewhere in the meantime" in rig.told("FailedScheduling")[0]


def test_a_claim_that_could_not_be_given_back_is_given_back_later() -> None:
    made = server(claim("c", has=[("node-1", "gpu-0")], at=only_on("node-9")), user("p", "c"))
    rig = Rig(made)
    rig.trouble = lambda write: (
        (ServerError(403, "Forbidden", "not now"), False) if isinstance(write, Update) else None
    )
    rig.run(for_s=30)
    assert rig.claim("c").status.allocation is not None
    rig.trouble = lambda write: None
    rig.run(for_s=30)
    assert rig.node_of("p") == "node-1"


def test_devices_that_take_too_long_are_given_back() -> None:
    made = server(claim("c"), user("p", "c"), **FABRIC)
    rig = Rig(made, SchedulerConfig((Profile(binding_timeout_s=60),)))
    rig.run(for_s=100)
    said = rig.told("FailedScheduling")
    assert said[0] == ('running PreBind plugin "DynamicResources": device binding timeout: claim=c')
    assert any("deallocation of ResourceClaim completed" in each for each in said)


@pytest.mark.parametrize("hears_first", [False, True], ids=["answer first", "watch first"])
def test_a_pod_that_is_deleted_while_it_waits_gives_its_devices_back(hears_first: bool) -> None:
    made = server(claim("c"), user("p", "c"), **FABRIC)
    rig = Rig(made)
    rig.hears_first = hears_first
    rig.run()
    made.delete(made.get(Pod, "p"))
    rig.run()
    assert rig.claim("c").status == ResourceClaimStatus()
    rig.check()


def test_a_pod_deleted_at_any_moment_after_a_restart_leaves_no_devices_to_nobody() -> None:
    """What is still reserved for the pod, the claim controller takes back."""
    for steps in range(40):
        made = server(claim("c"), user("p", "c"), **FABRIC)
        config = SchedulerConfig((Profile(binding_timeout_s=12),))
        Rig(made, config).run()
        made.forget_watchers()
        rig = Rig(made, config)
        rig.hears_first = True
        rig.elapsed_s = 30  # past the timeout
        for _ in range(steps):
            rig.elapsed_s += 0.1
            rig.hear() or rig.decide() or rig.write()
        made.delete(made.get(Pod, "p"))
        rig.run(for_s=30)
        found = rig.claim("c").status
        assert bool(found.reserved_for) == (found.allocation is not None), steps


def test_devices_that_others_allocated_stay_when_their_pod_is_not_bound() -> None:
    """They are not the scheduler's to take back: it wrote only the reservation."""
    ready = claim("c", has=[("node-1", "gpu-0")], at=only_on("node-1"), reserved=["q"])
    made = server(ready, user("p", "c"))
    rig = Rig(made)
    rig.hears_first = True
    rig.trouble = lambda write: (
        (ServerError(403, "Forbidden", "you may not"), False) if isinstance(write, Create) else None
    )
    while [each.name for each in rig.claim("c").status.reserved_for] != ["q", "p"]:
        assert rig.hear() or rig.decide() or rig.write()
    found = rig.claim("c")
    made.put(
        replace(found, status=replace(found.status, reserved_for=found.status.reserved_for[1:]))
    )
    while rig.claim("c").status.reserved_for:
        assert rig.hear() or rig.decide() or rig.write()
    assert rig.claim("c").status.allocation is not None


def test_pods_that_wait_for_devices_keep_nobody_from_being_bound() -> None:
    made = server(claim("c"), claim("d"), user("p", "c"), user("q", "d"), devices=2, **FABRIC)
    rig = Rig(made, SchedulerConfig(jobs_max=1))
    rig.run()
    assert len(rig.told("BindingConditionsPending")) == 2
    made.put(pod("plain"))
    rig.run()
    assert rig.node_of("plain") != ""


# --- making room ----------------------------------------------------------------------------------


def test_devices_in_the_wrong_place_are_given_back() -> None:
    has = claim("c", has=[("node-1", "gpu-0")], at=only_on("node-1"))
    pinned = user("p", "c", nodeSelector={"kubernetes.io/hostname": "node-2"})
    nodes = [node(name, labels={"kubernetes.io/hostname": name}) for name in ("node-1", "node-2")]
    made = server(*nodes, has, slice_of("node-2", 1), pinned)
    rig = Rig(made)
    rig.run(for_s=5)
    assert rig.node_of("p") == "node-2"
    rig.check()


def test_a_pod_whose_victim_could_not_be_deleted_is_tried_again() -> None:
    for code in (403, 503):
        made = server(pod("low", requests={"cpu": "3"}), pod("keeper", requests={"cpu": "3"}))
        rig = Rig(made)
        rig.run()
        rig.trouble = lambda write, code=code: (  # type: ignore[misc]
            (ServerError(code, "Forbidden", "not now"), False)
            if isinstance(write, Delete)
            else None
        )
        made.put(pod("high", priority=9, requests={"cpu": "3"}))
        rig.run(for_s=30)
        assert rig.node_of("high") == ""
        rig.trouble = lambda write: None
        rig.run(for_s=30)
        assert rig.node_of("high").startswith("node-"), code


def test_devices_help_a_pod_that_then_displaces_others() -> None:
    """All that nodes say is that they have no cpus, but it takes a device, too."""
    made = server(claim("c"), claim("other", has=[("node-1", "gpu-0")], reserved=["elsewhere"]))
    for name in ("node-1", "node-2"):
        made.put(pod(f"low-{name}", requests={"cpu": "3"}, nodeName=name))
    made.put(user("high", "c", requests={"cpu": "3"}, priority=9))
    rig = Rig(made)
    rig.run(for_s=30)
    assert rig.node_of("high") == ""
    made.put(replace(rig.claim("other"), status=ResourceClaimStatus()))
    rig.run(for_s=30)
    assert rig.node_of("high") == "node-1"


def test_pods_of_lower_priority_leave_for_one_of_higher() -> None:
    full = {"cpu": "4", "memory": "8Gi", "pods": "110"}
    low = pod("low", requests={"cpu": "3"}, nodeName="node-1")
    high = pod("high", requests={"cpu": "3"}, priority=10)
    made = FakeServer()
    made.put(node("node-1", allocatable=full), low, high)
    rig = Rig(made)
    rig.run(for_s=5)
    assert made.get(Pod, "low") is None
    assert rig.told("Preempted") == ["Preempted by pod default/high on node node-1"]
    assert rig.node_of("high") == "node-1"


def test_a_special_claim_that_was_left_over_is_deleted_and_made_anew() -> None:
    owner = {
        "apiVersion": "v1",
        "kind": "Pod",
        "name": "p",
        "uid": "default/p",
        "controller": True,
    }
    stale = claim(
        "p-extended-resources-old",
        has=[("node-1", "gpu-0")],
        annotations={"resource.kubernetes.io/extended-resource-claim": "true"},
        ownerReferences=[owner],
        finalizers=["resource.kubernetes.io/delete-protection"],
    )
    made = server(stale, pod("p", requests={RESOURCE: "1"}))
    rig = Rig(made)
    rig.run(for_s=5)
    assert rig.node_of("p") == "node-1"
    (found,) = made.all(ResourceClaim)
    assert found.metadata.name != "p-extended-resources-old"
    status = made.get(Pod, "p").status.extended_resource_claim_status
    assert status.resource_claim_name == found.metadata.name
    rig.check()


# --- groups ---------------------------------------------------------------------------------------


def test_a_gang_waits_until_enough_of_its_pods_are_there() -> None:
    made = server(group(least=2), pod("p", **MEMBER))
    rig = Rig(made)
    rig.run()
    assert rig.node_of("p") == ""
    assert made.writes == []
    made.put(pod("q", **MEMBER))
    rig.run()
    assert {rig.node_of("p"), rig.node_of("q")} <= {"node-1", "node-2"}


def test_a_gang_gets_all_or_nothing() -> None:
    claims = [claim("c"), claim("d")]
    made = server(group(least=2), *claims, user("p", "c", **MEMBER), user("q", "d", **MEMBER))
    rig = Rig(made)
    rig.run()
    assert rig.node_of("p") == rig.node_of("q") == ""
    assert all(each.status.allocation is None for each in made.all(ResourceClaim))
    made.put(slice_of("node-1", 2))
    rig.run(for_s=2)
    assert rig.node_of("p") == rig.node_of("q") == "node-1"
    rig.check()


def test_a_gang_waits_in_silence_for_a_pod_without_its_claim() -> None:
    made = server(group(least=2), pod("p", **MEMBER), user("q", "c", **MEMBER))
    rig = Rig(made)
    rig.run()
    assert made.writes == []
    made.put(claim("c"))
    rig.run()
    assert "" not in (rig.node_of("p"), rig.node_of("q"))
    assert rig.told("FailedScheduling") == []


def conditions(made: FakeServer) -> list[tuple[str, str, str, str]]:
    found = made.get(PodGroup, "gang").status.conditions
    return [(each.type, each.status, each.reason, each.message) for each in found]


def test_a_group_says_whether_it_got_its_nodes() -> None:
    claims = [claim("c"), claim("d")]
    made = server(group(least=2), *claims, user("p", "c", **MEMBER), user("q", "d", **MEMBER))
    rig = Rig(made)
    rig.run()
    why = (
        "pod group is unschedulable, 0/1 placements are available, first placement status: "
        "minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, "
        "pod group preemption: No preemption victims found for incoming preemptor"
    )
    kind = "PodGroupInitiallyScheduled"
    assert conditions(made) == [(kind, "False", "Unschedulable", why)]
    made.put(slice_of("node-1", 2))
    rig.run(for_s=2)
    assert conditions(made) == [(kind, "True", "Scheduled", "")]
    made.put(claim("e"), user("r", "e", **MEMBER))
    rig.run(for_s=2)
    assert rig.node_of("r") == ""
    assert conditions(made) == [(kind, "True", "Scheduled", "")], "it is said once and for all"


def test_pods_of_a_group_must_agree_with_it() -> None:
    made = server(group(least=2, priority=0), pod("p", **MEMBER), pod("q", priority=7, **MEMBER))
    rig = Rig(made)
    rig.run()
    assert rig.node_of("p") == rig.node_of("q") == ""
    why = (
        "all pods in a single pod group should have the same priority as the pod group's "
        "priority, got 7 and 0"
    )
    assert rig.condition("p") == rig.condition("q") == f"False SchedulerError {why}"
    kind = "PodGroupInitiallyScheduled"
    assert conditions(made) == [(kind, "False", "SchedulerError", why)]


def test_pods_wait_for_their_group() -> None:
    made = server(pod("p", **MEMBER), pod("q", **MEMBER))
    rig = Rig(made)
    rig.run()
    assert made.writes == []
    made.put(group(least=2))
    rig.run()
    assert "" not in (rig.node_of("p"), rig.node_of("q"))


def test_a_group_gives_up_devices_that_failed() -> None:
    entry = {"name": "claim-0", "resourceClaimName": "c"}
    made = server(
        group(least=2, resourceClaims=[entry]),
        claim("c"),
        user("p", "c", **MEMBER),
        user("q", "c", **MEMBER),
        **FABRIC,
    )
    rig = Rig(made)
    rig.run()
    assert [each.resource for each in rig.claim("c").status.reserved_for] == ["podgroups"]
    report(rig, "c", "broken")
    rig.run(for_s=40)
    assert rig.claim("c").status.devices == (), "they were given back, and found anew"
    report(rig, "c", "ready")
    rig.run(for_s=20)
    assert rig.node_of("p") == rig.node_of("q") == "node-1"
    rig.check()


# --- what is told late, and starting anew ---------------------------------------------------------


def test_old_versions_that_are_told_late_take_nothing_back() -> None:
    made = server(claim("c"), claim("d"), user("p", "c", priority=1), user("q", "d"))
    rig = Rig(made)
    while rig.hear():
        pass
    while rig.decide() or rig.write():  # all is written, and nothing of it is told
        pass
    assert rig.claim("c").status.allocation is not None
    while rig.hear():  # now it is, one after the other
        rig.elapsed_s += 20
        while rig.decide() or rig.write():
            pass
        assert rig.claim("d").status.allocation is None, "the only device is taken"
    rig.run()
    assert rig.node_of("p") == "node-1"
    rig.check()
    assert not rig.scheduler.cache.assumed


def test_a_pod_is_bound_once_its_claim_is_told_back() -> None:
    made = server(claim("c"), user("p", "c"))
    rig = Rig(made)
    while rig.hear():
        pass
    while rig.decide() or rig.write():
        pass
    assert rig.claim("c").status.reserved_for
    assert rig.node_of("p") == "", "another scheduler may have been first"
    rig.run()
    assert rig.node_of("p") == "node-1"


def test_a_scheduler_that_starts_anew_goes_on_where_the_other_stopped() -> None:
    objects: list[Any] = []
    for number in range(4):
        objects += [claim(f"c-{number}"), user(f"p-{number}", f"c-{number}")]
    for writes in range(16):
        made = server(*objects, devices=4)
        first = Rig(made)
        while first.hear():
            pass
        for _ in range(writes + 4):
            first.decide() or first.write()
        second = Rig(made)  # the first is gone
        second.run(for_s=20)
        assert {each.spec.node_name for each in made.all(Pod)} == {"node-1"}
        second.check()


def test_a_rule_that_goes_frees_devices() -> None:
    made = server(taint_rule("rule", driver=GPU), claim("c"), user("p", "c"))
    rig = Rig(made)
    rig.run()
    assert rig.node_of("p") == ""
    made.drop(taint_rule("rule", driver=GPU))
    rig.run(for_s=1)
    assert rig.node_of("p") == "node-1"


def test_conditions_are_written_only_when_they_change() -> None:
    made = server(claim("c"), user("p", "c"), devices=0)
    rig = Rig(made)
    rig.run()
    for number in range(3):
        made.put(node("node-3", labels={"n": str(number)}))
        rig.run(for_s=15)
    patches = [write for write in made.writes if isinstance(write, Patch)]
    assert len(patches) == 2, "the second says three nodes"


def test_a_pod_that_cannot_be_placed_here_is_told_so() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    made = server(pod("p", volumes=[volume]))
    rig = Rig(made)
    rig.run()
    (said,) = rig.told("FailedScheduling")
    assert said.endswith(
        'nodes are available: persistentvolumeclaim "data" not found. preemption: 0/2 nodes are '
        "available: 2 Preemption is not helpful for scheduling."
    )


def test_a_pod_goes_where_its_volume_is_once_its_claim_is_bound() -> None:
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    made = server(pod("p", volumes=[volume]))
    rig = Rig(made)
    rig.run()
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["node-2"]}]}
    pv = PersistentVolume(
        metadata=ObjectMeta(name="pv"),
        spec=PersistentVolumeSpec(node_affinity={"required": {"nodeSelectorTerms": [term]}}),
    )
    bound = PersistentVolumeClaim(
        metadata=ObjectMeta(name="data", namespace="default"),
        spec=PersistentVolumeClaimSpec(volume_name="pv"),
        status=PersistentVolumeClaimStatus(phase="Bound"),
    )
    made.put(pv)
    made.put(bound)
    rig.run(for_s=30)
    assert rig.node_of("p") == "node-2"


def once(name: str) -> PersistentVolumeClaim:
    return PersistentVolumeClaim(
        metadata=ObjectMeta(name=name, namespace="default"),
        spec=PersistentVolumeClaimSpec(volume_name="pv", access_modes=("ReadWriteOncePod",)),
        status=PersistentVolumeClaimStatus(phase="Bound"),
    )


def test_a_volume_for_one_pod_has_one_pod_at_a_time() -> None:
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    made = server(pod("first", volumes=volumes))
    made.put(PersistentVolume(metadata=ObjectMeta(name="pv")), once("data"))
    rig = Rig(made)
    rig.run()
    assert rig.node_of("first")
    made.put(pod("second", volumes=volumes))
    rig.run()
    assert rig.node_of("second") == ""
    conflict = (
        "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode "
        "already in-use by another pod"
    )
    assert rig.told("FailedScheduling")[-1].startswith(f"0/2 nodes are available: 2 {conflict}.")
    made.delete(made.get(Pod, "first"))
    rig.run(for_s=30)
    assert rig.node_of("second")


def test_a_pod_waits_for_the_claim_of_its_ephemeral_volume() -> None:
    made = server(pod("p", volumes=[{"name": "data", "ephemeral": {"volumeClaimTemplate": {}}}]))
    made.put(once("other"))
    rig = Rig(made)
    rig.run()
    words = "waiting for ephemeral volume controller to create the persistentvolumeclaim"
    assert rig.told("FailedScheduling")[-1].startswith(
        f'0/2 nodes are available: {words} "p-data". '
    )


def test_a_search_that_takes_too_long_is_given_up_and_tried_again() -> None:
    claims = [claim(name, wanting(30)) for name in "abc"]
    made = server(*claims, user("p", *"abc"), devices=96)
    rig = Rig(made)
    times = iter([0.0, *[20.0] * 50])
    rig.clock = lambda: next(times, 0.0)
    rig.run()
    (said,) = rig.told("FailedScheduling")
    assert said == (
        'running "DynamicResources" filter plugin: node node-1: '
        "timed out trying to allocate devices"
    )
    assert rig.condition("p").startswith("False SchedulerError")
    rig.run(for_s=30)
    assert rig.node_of("p") == "node-1"


def test_claims_for_extended_resources_are_counted() -> None:
    made = server(pod("p", requests={RESOURCE: "1"}))
    rig = Rig(made)
    rig.run()
    labels = 'status="success",admin_access="false",owner_api_group="",owner_api_kind="Pod"'
    name = "dynamic_resource_allocation_resourceclaim_creates_total"
    assert f"{name}{{{labels}}} 1" in rig.scheduler.metrics_text()
    text = rig.scheduler.metrics_text()
    assert 'scheduler_pending_pods{queue="active"} 0' in text
    attempts = 'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"}'
    assert f"{attempts} 1" in text


def test_a_bug_costs_one_pod_a_while_and_no_other(
    monkeypatch: pytest.MonkeyPatch, faults: list[Fault]
) -> None:
    made = server(pod("bad"), pod("good"))
    rig = Rig(made)
    attempt = scheduling_cycle.attempt

    def stumble(cluster: Cluster, one: Pod) -> Attempt | Pending:
        if one.metadata.name == "bad" and rig.elapsed_s < 5:
            raise ZeroDivisionError("oops")
        return attempt(cluster, one)

    monkeypatch.setattr(live_scheduler, "attempt", stumble)
    rig.run()
    assert (rig.node_of("good"), rig.node_of("bad")) == ("node-1", "")
    assert rig.told("FailedScheduling") == [INTERNAL_ERROR]
    assert {each.subject for each in faults} == {"Pod default/bad (uid default/bad)"}
    rig.run(for_s=30)
    assert rig.node_of("bad") != ""
