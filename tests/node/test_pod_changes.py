"""Running pods that are changed: ephemeral containers are added, resources are resized."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from moorage.api.codec import decode_tree, to_tree
from moorage.api.core import Pod
from moorage.api.core.pod import PodCondition
from moorage.kit.clock import settle
from moorage.node.runtime.contract import RuntimeRefusedError
from tests.node.world import World, container, make_pod, play


def changed(pod: Pod, **spec: Any) -> Pod:
    """Return a pod with another spec, of the next generation."""
    tree = to_tree(pod)
    tree["spec"] |= spec
    tree["metadata"]["generation"] = pod.metadata.generation + 1
    return decode_tree(tree, Pod).value


def sized(cpu: str) -> dict[str, Any]:
    return container("c", resources={"requests": {"cpu": cpu}, "limits": {"cpu": "2"}})


def test_an_ephemeral_container_runs_once_in_a_running_pod(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(container("c")))
        await settle()
        debugger = container("debugger", "sleep", "5")
        world.cluster.put(changed(world.pod(), ephemeralContainers=[debugger]))
        await world.clock.advance(1)
        (status,) = world.pod().status.ephemeral_container_statuses
        assert (status.name, status.state.running is not None, status.ready) == (
            "debugger",
            True,
            False,
        )
        await world.clock.advance(600)
        (status,) = world.pod().status.ephemeral_container_statuses
        assert status.state.terminated is not None
        assert world.phase() == "Running"
        await world.restart()
        await world.clock.advance(600)

    world = play(tmp_path, story)
    assert world.runtime.log.count("start debugger") == 1
    assert world.runtime.log.count("start c") == 1
    about = [each.about.field_path for each in world.told if "debugger" in each.about.field_path]
    assert about[0] == "spec.ephemeralContainers{debugger}"


@pytest.mark.parametrize(
    ("own", "fact"),
    [
        ({"runAsUser": 0}, "container's runAsUser breaks non-root policy"),
        ({"seccompProfile": {"type": "Localhost", "localhostProfile": "x"}}, "cannot load seccomp"),
        ({"capabilities": {"add": ["NO_SUCH"]}}, "is no capability"),
    ],
)
def test_an_ephemeral_container_has_a_security_context_as_others(
    tmp_path: Path, own: dict[str, Any], fact: str
) -> None:
    async def story(world: World) -> None:
        pod = make_pod(container("c"), securityContext={"runAsNonRoot": True, "runAsUser": 1000})
        world.cluster.put(pod)
        await settle()
        fine, bad = container("fine"), container("bad", securityContext=own)
        world.cluster.put(changed(world.pod(), ephemeralContainers=[fine, bad]))
        await world.clock.advance(1)

    world = play(tmp_path, story)
    assert world.runtime.log.count("start fine") == 1
    assert "start bad" not in world.runtime.log
    specs = {spec.id.name: spec.security for spec in world.runtime.specs.values()}
    assert (specs["fine"].user, specs["fine"].is_non_root) == (1000, True)
    status = world.pod().status.ephemeral_container_statuses[1]
    assert status.state.waiting["reason"] == "CreateContainerConfigError"
    assert fact in status.state.waiting["message"]


def test_an_ephemeral_container_does_not_keep_a_pod_alive(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(container("c", "sleep", "5"), restartPolicy="Never"))
        await settle()
        debugger = container("debugger", "sleep", "1000")
        world.cluster.put(changed(world.pod(), ephemeralContainers=[debugger]))
        await world.clock.advance(40)

    world = play(tmp_path, story)
    assert world.phase() == "Succeeded"


def test_an_ephemeral_container_helps_where_an_init_container_fails(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        broken = container("i", "missing")
        world.cluster.put(make_pod(container("c"), initContainers=[broken]))
        await settle()
        world.cluster.put(changed(world.pod(), ephemeralContainers=[container("debugger")]))
        await world.clock.advance(1)

    world = play(tmp_path, story)
    assert "start debugger" in world.runtime.log
    assert "start c" not in world.runtime.log


def conditions(world: World) -> dict[str, PodCondition]:
    return {each.type: each for each in world.pod().status.conditions}


def requests(world: World) -> tuple[str, str]:
    """Return the CPUs that the container has, and those that the node has granted."""
    (status,) = world.pod().status.container_statuses
    assert status.resources is not None
    return str(status.resources.requests["cpu"]), str(status.allocated_resources["cpu"])


def changes(world: World) -> list[str]:
    return [line for line in world.runtime.log if line.split()[0] in ("start", "update", "end")]


def test_a_running_container_is_resized(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(sized("1")))
        await settle()
        world.cluster.put(changed(world.pod(), containers=[sized("2")]))
        await world.clock.advance(1)
        assert changes(world) == ["start c", "update c"]
        assert world.runtime.limits[world.id("c")].cpu_millis == 2000
        assert requests(world) == ("2", "2")

    world = play(tmp_path, story)
    assert not {"PodResizePending", "PodResizeInProgress"} & conditions(world).keys()
    reasons = [each.reason for each in world.told if "Resize" in each.reason]
    assert reasons == ["ResizeStarted", "ResizeCompleted"]


def test_a_resize_waits_for_room_on_the_node(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(sized("1")))
        world.cluster.put(make_pod(sized("5"), name="other"))
        await settle()
        world.cluster.put(changed(world.pod(), containers=[sized("6")]))
        await world.clock.advance(1)
        pending = conditions(world)["PodResizePending"]
        assert (pending.status, pending.reason) == ("True", "Deferred")
        assert pending.message == (
            "Node didn't have enough resource: cpu, requested: 6000, used: 5000, capacity: 8000"
        )
        assert requests(world) == ("1", "1")
        await world.restart()
        await world.clock.advance(1)
        assert "PodResizePending" in conditions(world)
        assert requests(world) == ("1", "1")
        world.cluster.delete("other", grace_s=0)
        await world.clock.advance(5)
        assert requests(world) == ("6", "6")

    world = play(tmp_path, story)
    assert "PodResizePending" not in conditions(world)
    assert world.runtime.log.count("update c") == 1


def test_a_resize_that_the_runtime_refuses_is_tried_again(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(sized("1")))
        await settle()
        world.runtime.refusals["c"] = RuntimeRefusedError("ResizeError", "no such file")
        world.cluster.put(changed(world.pod(), containers=[sized("2")]))
        await world.clock.advance(1)
        progress = conditions(world)["PodResizeInProgress"]
        assert (progress.reason, progress.message) == ("Error", "no such file")
        assert requests(world) == ("1", "2")
        del world.runtime.refusals["c"]
        await world.clock.advance(20)
        assert requests(world) == ("2", "2")

    world = play(tmp_path, story)
    assert "PodResizeInProgress" not in conditions(world)


def test_a_container_is_restarted_for_resources_if_its_policy_says_so(tmp_path: Path) -> None:
    policy = [{"resourceName": "cpu", "restartPolicy": "RestartContainer"}]

    async def story(world: World) -> None:
        before = {**sized("1"), "resizePolicy": policy}
        world.cluster.put(make_pod(before, restartPolicy="OnFailure"))
        await settle()
        after = {**sized("2"), "resizePolicy": policy}
        world.cluster.put(changed(world.pod(), containers=[after]))
        await world.clock.advance(1)
        assert changes(world) == ["start c", "end c 143", "start c"]
        assert requests(world) == ("2", "2")
        assert world.phase() == "Running"

    world = play(tmp_path, story)
    texts = [each.message for each in world.told if each.reason == "Killing"]
    assert texts[0] == "Container c resize requires restart"


def test_podman_cannot_join_the_processes_of_another_container(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.runtime.title = "podman://5"
        world.cluster.put(make_pod(container("c")))
        await settle()
        debugger = {**container("debugger"), "targetContainerName": "c"}
        world.cluster.put(changed(world.pod(), ephemeralContainers=[debugger]))
        await world.clock.advance(1)

    world = play(tmp_path, story)
    (status,) = world.pod().status.ephemeral_container_statuses
    assert status.state.waiting["reason"] == "CreateContainerConfigError"
    assert "targetContainerName" in status.state.waiting["message"]
