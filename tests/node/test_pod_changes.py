"""Running pods that are changed: ephemeral containers are added, resources are resized."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mooring.api.codec import decode_tree, to_tree
from mooring.api.core import Pod
from mooring.kit.clock import settle
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


def test_new_resources_wait_until_the_container_starts_again(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(make_pod(sized("1")))
        await settle()
        world.cluster.put(changed(world.pod(), containers=[sized("2")]))
        await world.clock.advance(1)
        told = world.pod().status
        (pending,) = (each for each in told.conditions if each.type == "PodResizePending")
        assert (pending.status, pending.reason) == ("True", "Deferred")
        assert "[c] apply when they start again" in pending.message
        (status,) = told.container_statuses
        assert status.resources is not None
        assert str(status.resources.requests["cpu"]) == "1"
        await world.restart()
        await settle()
        assert "PodResizePending" in {each.type for each in world.pod().status.conditions}
        world.runtime.end(world.id("c"), 1)
        await world.clock.advance(60)

    world = play(tmp_path, story)
    told = world.pod().status
    assert "PodResizePending" not in {each.type for each in told.conditions}
    (status,) = told.container_statuses
    assert status.resources is not None
    assert str(status.resources.requests["cpu"]) == "2"


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
