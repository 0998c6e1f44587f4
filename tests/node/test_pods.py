"""Pods on a node, from when they are bound until nothing is left of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from moorage.api.codec import to_tree
from moorage.api.runtime_class import RuntimeClass
from moorage.client.errors import UnavailableError
from moorage.kit.bulkhead import Fault
from moorage.kit.clock import settle
from moorage.node.runtime.contract import RuntimeRefusedError
from tests.node.world import SLOTS, World, container, make_node, make_pod, play


def test_a_pod_runs_with_its_devices_and_is_told_ready(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod())
        await settle()

    world = play(tmp_path, story)
    status = to_tree(world.pod().status)
    assert status["phase"] == "Running"
    assert status["podIP"] == status["hostIP"] == "10.0.0.1"
    assert status["startTime"] == "2026-11-15T12:00:00Z"
    assert status["observedGeneration"] == 1
    assert status["qosClass"] == "BestEffort"
    (told,) = status["containerStatuses"]
    assert told["state"] == {"running": {"startedAt": "2026-11-15T12:00:00Z"}}
    assert (told["ready"], told["started"], told["restartCount"]) == (True, True, 0)
    assert told["containerID"] == "memory://uid-p/c/0"
    assert {each["type"]: each["status"] for each in status["conditions"]} == {
        "PodReadyToStartContainers": "True",
        "Initialized": "True",
        "Ready": "True",
        "ContainersReady": "True",
        "PodScheduled": "True",
    }
    assert world.runtime.specs[world.id("c")].cdi_ids == ("example.com/gpu=c",)
    assert world.events() == ["Started"]
    assert len(world.cluster.writes) == 1  # nothing is told twice


def test_a_program_that_is_not_there_is_not_told_as_started(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(container("c", "missing"), restartPolicy="Never"))
        await world.clock.advance(1)

    assert play(tmp_path, story).events() == ["Failed"]


def test_a_pod_that_is_done_gives_its_devices_back_before_that_is_told(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(container("c", "sleep", "5"), restartPolicy="Never"))
        await world.clock.advance(4)
        assert world.phase() == "Running"
        world.devices.refusal = "driver is away"
        await world.clock.advance(1)
        assert world.phase() == "Running"
        world.devices.refusal = ""
        await world.clock.advance(2)

    world = play(tmp_path, story)
    assert world.phase() == "Succeeded"
    assert not world.devices.prepared
    conditions = {each.type: each for each in world.pod().status.conditions}
    assert conditions["Ready"].reason == "PodCompleted"
    assert conditions["PodReadyToStartContainers"].status == "False"
    assert "FailedUnprepareDynamicResources" in world.events()
    assert world.runtime.log == ["start c", "end c 0"]  # its log can still be read


def test_a_short_pod_costs_few_writes(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(container("c", "sleep", "5"), restartPolicy="Never"))
        await world.clock.advance(6)
        world.cluster.delete("p")
        await world.clock.advance(6)

    world = play(tmp_path, story)
    assert world.phase() == "gone"
    assert len(world.cluster.writes) == 3  # running, succeeded, deleted
    assert world.runtime.log[-1] == "remove uid-p"


def test_init_containers_run_in_order_and_sidecars_stay(tmp_path: Path) -> None:
    first = container("first", "sleep", "2")
    side = container("side", restartPolicy="Always")
    second = container("second", "sleep", "2")
    pod = make_pod(container("main", "sleep", "5"), restartPolicy="Never")

    async def story(world: World) -> None:
        tree = to_tree(pod)
        tree["spec"]["initContainers"] = [first, side, second]
        world.cluster.put(make_pod(**{**tree["spec"], "containers": tree["spec"]["containers"]}))
        await world.clock.advance(1.5)
        assert world.runtime.running() == ["first"]
        status = world.pod().status
        assert status.phase == "Pending"
        assert status.container_statuses[0].state.waiting == {"reason": "PodInitializing"}
        initialized = next(each for each in status.conditions if each.type == "Initialized")
        text = "containers with incomplete status: [first side second]"
        assert (initialized.reason, initialized.message) == ("ContainersNotInitialized", text)
        await world.clock.advance(1)
        assert world.runtime.running() == ["second", "side"]
        await world.clock.advance(2)
        assert world.runtime.running() == ["main", "side"]
        assert world.phase() == "Running"
        await world.clock.advance(6)

    world = play(tmp_path, story)
    assert world.phase() == "Succeeded"
    assert world.runtime.log[-2:] == ["end main 0", "end side 143"]


def test_a_crash_loop_waits_longer_each_time(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(container("c", "exit", "1")))
        await settle()
        assert world.runtime.log.count("start c") == 2  # the first time at once
        await world.clock.advance(1.5)
        (told,) = world.pod().status.container_statuses
        assert told.state.waiting == {
            "reason": "CrashLoopBackOff",
            "message": "back-off 10s restarting failed container=c pod=p_default(uid-p)",
        }
        assert told.last_state.terminated is not None
        assert told.last_state.terminated.exit_code == 1
        assert world.phase() == "Running"
        await world.clock.advance(8)
        assert world.runtime.log.count("start c") == 2
        await world.clock.advance(1)
        assert world.runtime.log.count("start c") == 3
        await world.clock.advance(20.5)
        assert world.runtime.log.count("start c") == 4
        assert len(await world.runtime.containers()) == 2  # older attempts are forgotten

    world = play(tmp_path, story)
    assert world.pod().status.container_statuses[0].restart_count == 3
    assert world.events().count("BackOff") >= 2


def test_a_failed_init_container_fails_a_pod_that_never_restarts(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        side = container("side", restartPolicy="Always")
        init = container("init", "exit", "3")
        world.cluster.put(make_pod(initContainers=[side, init], restartPolicy="Never"))
        await world.clock.advance(2)

    world = play(tmp_path, story)
    status = world.pod().status
    assert status.phase == "Failed"
    assert world.runtime.log == ["start side", "start init", "end init 3", "end side 143"]
    assert status.container_statuses[0].state.waiting == {"reason": "PodInitializing"}


def test_rules_of_a_container_decide_whether_it_runs_again(tmp_path: Path) -> None:
    rules = [{"action": "Restart", "exitCodes": {"operator": "In", "values": [42]}}]

    async def story(world: World) -> None:
        one = container("c", restartPolicy="Never", restartPolicyRules=rules)
        world.cluster.put(make_pod(one, restartPolicy="Never"))
        await settle()
        world.runtime.end(world.id("c"), 42)
        await settle()
        assert world.runtime.running() == ["c"]
        world.runtime.end(world.id("c", 1), 41)
        await world.clock.advance(2)

    assert play(tmp_path, story).phase() == "Failed"


def test_a_pod_without_devices_waits_and_says_why(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.devices.refusal = "prepare dynamic resources: DRA driver d is not registered"
        world.cluster.put(make_pod())
        await world.clock.advance(1.5)
        assert world.phase() == "Pending"
        assert world.runtime.log == []
        world.devices.refusal = ""
        await world.clock.advance(2)

    world = play(tmp_path, story)
    assert world.phase() == "Running"
    told = world.told[0]
    assert told.reason == "FailedPrepareDynamicResources"
    assert told.message == (
        "Failed to prepare dynamic resources: prepare dynamic resources: "
        "DRA driver d is not registered"
    )


def test_drivers_that_hang_keep_no_other_pod_waiting(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.devices.slow_s = 45
        for number in range(SLOTS + 1):
            world.cluster.put(make_pod(name=f"slow-{number}"))
        await settle()
        world.devices.slow_s = 0
        world.cluster.put(make_pod(container("other")))
        await settle()
        assert world.runtime.running() == ["other"]

    play(tmp_path, story)


def test_pods_that_wait_for_a_driver_start_when_it_comes(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.devices.refusal = "DRA driver d is not registered"
        world.cluster.put(make_pod())
        await world.clock.advance(20)
        world.devices.refusal = ""
        world.pod_workers.try_again()
        await settle()

    assert play(tmp_path, story).phase() == "Running"


def test_a_pod_that_makes_no_sense_is_told_so_and_harms_no_other(
    tmp_path: Path, faults: list[Fault]
) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(container(readinessProbe={"periodSeconds": "x"}), name="odd"))
        world.cluster.put(make_pod(container("c", "sleep", "1"), name="p", restartPolicy="Never"))
        await world.clock.advance(2)

    world = play(tmp_path, story)
    assert world.phase() == "Succeeded"
    odd = [each for each in world.told if each.is_warning]
    assert [each.reason for each in odd] == ["FailedSync"]
    assert {each.subject for each in faults} == {"Pod default/odd (uid uid-odd)"}


def test_a_failed_hook_after_the_start_kills_the_container(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.runtime.answers["hello"] = 1
        hook = {"postStart": {"exec": {"command": ["hello"]}}}
        world.cluster.put(make_pod(container(lifecycle=hook), restartPolicy="Never"))
        await world.clock.advance(2)

    world = play(tmp_path, story)
    assert world.phase() == "Failed"
    assert "FailedPostStartHook" in world.events()


def test_a_container_that_cannot_start_says_why_and_is_tried_again(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.runtime.refusals["c"] = RuntimeRefusedError("CreateContainerError", "no such program")
        world.cluster.put(make_pod())
        await world.clock.advance(1.5)
        (told,) = world.pod().status.container_statuses
        expected = {"reason": "CreateContainerError", "message": "no such program"}
        assert told.state.waiting == expected
        world.runtime.refusals.clear()
        await world.clock.advance(10)

    world = play(tmp_path, story)
    assert world.phase() == "Running"
    assert world.events()[0] == "Failed"


def test_deleted_pods_stop_gracefully_then_go(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.runtime.stubborn.add("slow")
        side = container("side", restartPolicy="Always")
        world.cluster.put(make_pod(container("quick"), container("slow"), initContainers=[side]))
        await settle()
        world.cluster.delete("p", grace_s=10)
        await world.clock.advance(9)
        assert world.runtime.running() == ["side", "slow"]
        assert world.phase() == "Running"
        await world.clock.advance(1.5)

    world = play(tmp_path, story)
    assert world.phase() == "gone"
    assert world.runtime.log[-4:] == [
        "end quick 143",
        "end slow 137",
        "end side 143",
        "remove uid-p",
    ]
    assert not world.devices.prepared
    assert world.events().count("Killing") == 3


def test_a_shorter_grace_holds_at_once(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.runtime.stubborn.add("c")
        world.cluster.put(make_pod())
        await settle()
        world.cluster.delete("p", grace_s=600)
        await world.clock.advance(5)
        world.cluster.delete("p", grace_s=2)
        await world.clock.advance(2.5)

    assert play(tmp_path, story).phase() == "gone"


def test_a_pod_that_was_taken_from_the_cluster_is_stopped_and_cleared(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.runtime.stubborn.add("c")
        world.cluster.put(make_pod())
        await settle()
        world.cluster.remove("p")
        await world.clock.advance(1.5)

    world = play(tmp_path, story)
    assert world.runtime.log[-2:] == ["end c 137", "remove uid-p"]
    assert not world.devices.prepared
    assert world.pod_workers.pods == []


def test_a_pod_deleted_before_it_started_fails_and_goes(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.devices.refusal = "no driver"
        world.cluster.put(make_pod())
        await settle()
        world.cluster.delete("p")
        world.devices.refusal = ""
        await world.clock.advance(10)

    world = play(tmp_path, story)
    assert world.phase() == "gone"
    assert world.runtime.log == ["remove uid-p"]


def test_a_deadline_ends_a_pod(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(activeDeadlineSeconds=60))
        await world.clock.advance(59)
        assert world.phase() == "Running"
        await world.clock.advance(3)

    status = play(tmp_path, story).pod().status
    assert (status.phase, status.reason) == ("Failed", "DeadlineExceeded")
    assert status.message == "Pod was active on the node longer than the specified deadline"


def test_hooks_run_before_a_container_ends(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        hook = {"preStop": {"exec": {"command": ["bye"]}}}
        world.cluster.put(make_pod(container(lifecycle=hook)))
        await settle()
        world.cluster.delete("p")
        await settle()

    log = play(tmp_path, story).runtime.log
    assert log == ["start c", "execute c bye", "end c 143", "remove uid-p"]


def test_probes_decide_what_is_ready_and_what_runs_again(tmp_path: Path) -> None:
    def probe(command: str, **more: int) -> dict[str, object]:
        return {"exec": {"command": [command]}, "periodSeconds": 1, **more}

    async def story(world: World) -> None:
        world.runtime.answers = {"up": 1, "ready": 1}
        world.cluster.put(
            make_pod(
                container(
                    startupProbe=probe("up", failureThreshold=10),
                    readinessProbe=probe("ready", failureThreshold=1),
                    livenessProbe=probe("alive", failureThreshold=2),
                )
            )
        )
        await world.clock.advance(2.5)
        (told,) = world.pod().status.container_statuses
        assert (told.started, told.ready) == (False, False)
        assert "ready" not in {each[0] for each in world.runtime.asked}
        world.runtime.answers["up"] = 0
        await world.clock.advance(1)
        (told,) = world.pod().status.container_statuses
        assert (told.started, told.ready) == (True, False)
        reason = {each.type: each.message for each in world.pod().status.conditions}["Ready"]
        assert reason == "containers with unready status: [c]"
        world.runtime.answers["ready"] = 0
        await world.clock.advance(1)
        assert world.pod().status.container_statuses[0].ready
        world.runtime.answers["alive"] = 1
        await world.clock.advance(2)

    world = play(tmp_path, story)
    assert world.runtime.log.count("start c") == 2
    assert "Unhealthy" in world.events()
    texts = [each.message for each in world.told if each.reason == "Killing"]
    assert texts == ["Container c failed liveness probe, will be restarted"]


# --- what a node does not take ------------------------------------------------------------------


def test_a_pod_that_does_not_fit_is_refused(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        large = container(resources={"requests": {"cpu": "3"}})
        world.cluster.put(make_pod(large, name="a"))
        world.cluster.put(make_pod(large, name="b"))
        world.cluster.put(make_pod(name="c", nodeSelector={"zone": "b"}))
        await settle()

    world = play(tmp_path, story, make_node(cpu="4"))
    assert [world.phase(name) for name in "abc"] == ["Running", "Failed", "Failed"]
    status = world.pod("b").status
    text = "Node didn't have enough resource: cpu, requested: 3000, used: 3000, capacity: 4000"
    assert (status.reason, status.message) == ("OutOfcpu", f"Pod was rejected: {text}")
    assert world.pod("c").status.reason == "NodeAffinity"
    assert world.runtime.running() == ["c"]  # of pod a


def test_resources_that_devices_serve_are_not_asked_of_the_node(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        asks = container(resources={"requests": {"example.com/gpu": "2"}})
        mapping = {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "r"}
        extended = {"requestMappings": [mapping], "resourceClaimName": "x"}
        world.cluster.put(make_pod(asks, status={"extendedResourceClaimStatus": extended}))
        await settle()

    world = play(tmp_path, story, make_node(**{"example.com/gpu": "0"}))
    assert world.phase() == "Running"
    assert world.pod().status.extended_resource_claim_status is not None


def test_a_node_has_room_again_when_a_pod_is_over(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        large = container("c", "sleep", "1", resources={"requests": {"cpu": "3"}})
        world.cluster.put(make_pod(large, name="a", restartPolicy="Never"))
        await world.clock.advance(2)
        world.cluster.put(make_pod(large, name="b", restartPolicy="Never"))
        await settle()

    assert play(tmp_path, story, make_node(cpu="4")).phase("b") == "Running"


def test_large_volumes_keep_nobody_waiting(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(volumes=[{"name": "v", "emptyDir": {}}]))
        await settle()
        assert world.asides == ["make"]
        world.cluster.delete("p")
        await settle()
        assert set(world.asides[1:]) == {"remove"}

    assert play(tmp_path, story).phase() == "gone"


# --- agents that go and come --------------------------------------------------------------------


def test_an_agent_that_starts_again_goes_on_with_what_runs(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod())
        await settle()
        await world.restart()
        await settle()
        assert world.runtime.log == ["start c"]
        assert len(world.cluster.writes) == 1
        world.runtime.end(world.id("c"), 1)
        await settle()

    world = play(tmp_path, story)
    assert world.runtime.running() == ["c"]
    assert world.pod().status.container_statuses[0].restart_count == 1


def test_an_agent_that_goes_lets_go_of_no_devices(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod())
        await settle()
        await world.pod_workers.close()
        assert world.pod_workers.active == {"uid-p"}

    assert play(tmp_path, story).runtime.running() == ["c"]


def test_pods_that_went_while_the_agent_was_away_leave_nothing(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(name="gone", volumes=[{"name": "v", "emptyDir": {}}]))
        world.cluster.put(make_pod(name="going"))
        await settle()
        await world.pod_workers.close()
        world.cluster.watchers.clear()
        world.cluster.remove("gone")
        world.cluster.delete("going")
        await world.restart()
        world.cluster.watchers.append(lambda old, new: world.pod_workers.changed(old, new))
        await settle()

    world = play(tmp_path, story)
    assert world.runtime.running() == []
    assert world.phase("going") == "gone"
    assert not world.devices.prepared
    assert list(tmp_path.iterdir()) == []
    assert world.pod_workers.active == frozenset()


def test_a_process_that_cannot_be_killed_keeps_its_devices_and_no_pod_waiting(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(name="gone", volumes=[{"name": "v", "emptyDir": {}}]))
        await settle()
        await world.pod_workers.close()
        world.cluster.remove("gone")
        world.runtime.unkillable.add("uid-gone")
        await world.restart()
        world.cluster.put(make_pod(container("other")))
        await world.clock.advance(60)
        assert world.runtime.running() == ["c", "other"]
        assert world.pod_workers.active == {"uid-gone", "uid-p"}
        assert "uid-gone" in world.devices.prepared
        assert (tmp_path / "uid-gone").exists()
        assert "containers of pod uid-gone are still not removed" in caplog.text
        world.runtime.unkillable.clear()
        await world.clock.advance(1)

    world = play(tmp_path, story)
    assert world.pod_workers.active == {"uid-p"}
    assert world.runtime.running() == ["other"]
    assert not (tmp_path / "uid-gone").exists()


def test_a_pod_that_is_seen_late_starts_after_what_it_left_is_gone(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        pod = world.cluster.put(make_pod())
        await settle()
        await world.pod_workers.close()
        world.cluster.watchers.clear()
        world.cluster.remove("p")
        world.runtime.unkillable.add("uid-p")
        await world.restart()
        world.pod_workers.see(world.cluster.put(pod))
        await settle()
        assert world.runtime.log == ["start c", "remove uid-p"]
        world.runtime.unkillable.clear()
        await world.clock.advance(1)

    assert play(tmp_path, story).runtime.running() == ["c"]


def test_containers_that_a_reboot_took_run_again_and_it_is_told(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod())
        await settle()
        await world.pod_workers.close()
        await world.runtime.remove("uid-p")
        await world.restart()
        await settle()

    world = play(tmp_path, story)
    (told,) = world.pod().status.container_statuses
    assert told.restart_count == 1
    assert told.last_state.terminated is not None
    assert told.last_state.terminated.reason == "ContainerStatusUnknown"
    assert world.runtime.running() == ["c"]


def test_a_server_that_is_away_is_told_later(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.faults = [UnavailableError("away"), UnavailableError("away")]
        world.cluster.put(make_pod())
        await settle()
        assert world.phase() == ""
        await world.clock.advance(3)

    assert play(tmp_path, story).phase() == "Running"


@pytest.mark.parametrize(
    ("handlers", "why"),
    [
        ({}, 'runtimeclass.node.k8s.io "gvisor" not found'),
        ({"gvisor": "runsc"}, 'no runtime for "runsc" is configured'),
    ],
)
def test_a_pod_with_a_runtime_class_does_not_run(
    tmp_path: Path, handlers: dict[str, str], why: str
) -> None:
    async def story(world: World) -> None:
        for name, handler in handlers.items():
            world.cluster.runtime_classes[name] = RuntimeClass(handler=handler)
        world.cluster.put(make_pod(runtimeClassName="gvisor"))
        await world.clock.advance(1)
        assert world.phase() == "Pending"
        assert world.runtime.running() == []
        assert (world.told[0].reason, world.told[0].message) == (
            "FailedCreatePodSandBox",
            f"Failed to create pod sandbox: {why}",
        )
        await world.clock.advance(60)
        assert world.events().count("FailedCreatePodSandBox") >= 3  # it is tried again
        world.cluster.delete("p", 0)
        await world.clock.advance(2)
        assert world.phase() == "gone"
        assert not world.devices.prepared

    world = play(tmp_path, story)
    counts = world.context.counts
    assert counts.pods.value() == counts.pod_errors.value() >= 3


def test_starts_and_their_errors_are_counted_as_kubelets_count_them(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.runtime.refusals["bad"] = RuntimeRefusedError("ErrImagePull", "no such image")
        first, missing = container("first", "exit", "0"), container("none", "missing")
        unset = {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "nonsense"}}}
        pods = [
            make_pod(container("good"), initContainers=[first], name="one"),
            make_pod(container("bad"), missing, name="two", restartPolicy="Never"),
            make_pod(container("odd", env=[unset]), name="three"),
        ]
        for pod in pods:
            world.cluster.put(pod)
        await world.clock.advance(1)

    counts = play(tmp_path, story).context.counts
    assert [(each.name, each.labels) for each in counts.families()] == [
        ("kubelet_started_pods_total", ()),
        ("kubelet_started_pods_errors_total", ()),
        ("kubelet_started_containers_total", ("container_type",)),
        ("kubelet_started_containers_errors_total", ("container_type", "code")),
    ]
    assert (counts.pods.value(), counts.pod_errors.value()) == (3, 0)
    assert counts.containers.value("container") == 4
    assert counts.containers.value("init_container") == 1
    for code in ("CreateContainerConfigError", "ErrImagePull", "RunContainerError"):
        assert counts.container_errors.value("container", code) == 1
