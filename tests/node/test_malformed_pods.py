"""Malformed pods of one user leave all others on the node alone, also after a restart."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

import pytest

from moorage.api.core import Pod
from moorage.kit.bulkhead import Fault
from moorage.kit.clock import settle
from moorage.kit.http_head import Head
from moorage.node.kubelet_server.handlers import (
    LogResponse,
    PlainResponse,
    RequestHandler,
    StreamResponse,
)
from soak._malformed import PYTHON_TEXT, SAMPLES, decodable
from tests.node.world import World, container, make_pod, play

NUMBER = 40
SEEDS = 4
UPGRADE = {
    "upgrade": "websocket",
    "connection": "upgrade",
    "sec-websocket-version": "13",
    "sec-websocket-key": "x" * 22 + "==",
    "sec-websocket-protocol": "v5.channel.k8s.io",
}


class Lister:
    """The pods of a world, as the kubelet server asks for them."""

    def __init__(self, world: World) -> None:
        self._world = world

    def find(self, namespace: str, name: str) -> Pod | None:
        return self._world.pod_workers.find_named(namespace, name)

    def all(self) -> list[Pod]:
        return self._world.pod_workers.current()


def bad_pods(seed: int) -> list[Pod]:
    """Return malformed pods; every second time of such that need nothing of the cluster."""
    spec = {**SAMPLES["Pod"]["spec"], "nodeName": "n"}
    if seed % 2:
        spec["volumes"] = [each for each in spec["volumes"] if each["name"] in ("data", "down")]
        spec["containers"] = [{**each, "envFrom": []} for each in spec["containers"]]
    sample = {**SAMPLES["Pod"], "spec": spec}
    return list(decodable(Random(seed), sample, Pod, NUMBER, namespace="bad"))


def good_pod(name: str) -> Pod:
    return make_pod(container("c", "sleep", "9999"), name=name)


def check_served(world: World, *names: str) -> None:
    """See that good pods run, and are listed, logged and entered."""
    handler = RequestHandler(Lister(world), world.runtime, clock=world.clock)

    def get(path: str, **headers: str) -> Any:
        return handler.answer(Head(("GET", path, "HTTP/1.1"), headers))

    listed = get("/pods")
    assert isinstance(listed, PlainResponse)
    found = {each["metadata"]["name"] for each in json.loads(listed.body)["items"]}
    assert {*names, *world.cluster.pods} == found
    for name in names:
        assert world.phase(name) == "Running"
        log = get(f"/containerLogs/default/{name}/c")
        assert isinstance(log, LogResponse), log
        answer = get(f"/exec/default/{name}/c?command=a&output=1", **UPGRADE)
        assert isinstance(answer, StreamResponse), answer


def check_told(world: World, faults: list[Fault]) -> None:
    """See that no user reads Python, and that the log names the bad ones only."""
    texts = [each.message for each in world.told]
    statuses = [pod.status for pod in world.cluster.pods.values()]
    texts += [
        str((each.state.waiting or {}).get("message", ""))
        for status in statuses
        for each in status.container_statuses
        if isinstance(each.state.waiting, dict)
    ]
    assert not [text for text in texts if PYTHON_TEXT.search(text)]
    assert not [each for each in faults if "good" in each.subject]


@pytest.mark.parametrize("seed", range(SEEDS))
def test_others_run_beside_malformed_pods_across_a_restart(
    tmp_path: Path, seed: int, faults: list[Fault]
) -> None:
    async def story(world: World) -> None:
        world.cluster.put(good_pod("good-1"))
        for pod in bad_pods(seed):
            world.cluster.put(pod)
        world.cluster.put(good_pod("good-2"))
        await world.clock.advance(20)
        check_served(world, "good-1", "good-2")
        await world.restart()
        await world.clock.advance(20)
        world.cluster.put(good_pod("good-3"))
        await world.clock.advance(5)
        check_served(world, "good-1", "good-2", "good-3")
        assert [each.id.attempt for each in await world.runtime.containers("uid-good-1")] == [0]
        world.cluster.delete("good-1", grace_s=1)
        await world.clock.advance(5)
        assert world.phase("good-1") == "gone"

    check_told(play(tmp_path, story), faults)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_malformed_pods_can_be_deleted(tmp_path: Path, seed: int, faults: list[Fault]) -> None:
    async def story(world: World) -> None:
        for pod in bad_pods(seed):
            world.cluster.put(pod)
        await world.clock.advance(5)
        for name in list(world.cluster.pods):
            world.cluster.delete(name, grace_s=1)
        for _ in range(20):
            await world.clock.advance(30)
        assert [*world.cluster.pods] == []
        assert world.pod_workers.pods == []
        assert not list(await world.runtime.containers())

    check_told(play(tmp_path, story), faults)


@pytest.mark.parametrize(
    "spec",
    [
        {"volumeMounts": ["x"]},
        {"volumeMounts": [{"name": ["x"], "mountPath": 7}]},
        {"env": ["x"]},
        {"env": [{"name": "A", "valueFrom": "x"}]},
        {"envFrom": [3]},
        {"lifecycle": "x"},
        {"lifecycle": {"postStart": "x", "preStop": ["x"]}},
        {"livenessProbe": "x"},
        {"readinessProbe": {"httpGet": "x", "periodSeconds": []}},
        {"startupProbe": [1]},
        {"securityContext": "x"},
        {"restartPolicyRules": ["x"]},
    ],
    ids=json.dumps,
)
def test_one_malformed_container_harms_no_other_pod(
    tmp_path: Path, spec: dict[str, Any], faults: list[Fault]
) -> None:
    async def story(world: World) -> None:
        world.cluster.put(good_pod("good-1"))
        world.cluster.put(make_pod(container("c", "sleep", "1", **spec), name="bad"))
        await world.clock.advance(20)
        check_served(world, "good-1")
        await world.restart()
        await world.clock.advance(20)
        check_served(world, "good-1")
        world.cluster.delete("bad", grace_s=1)
        for _ in range(4):
            await world.clock.advance(30)
        assert world.phase("bad") == "gone"
        check_served(world, "good-1")

    check_told(play(tmp_path, story), faults)


def test_containers_of_a_pod_that_cannot_be_read_go_on(tmp_path: Path) -> None:
    async def story(world: World) -> None:
        world.cluster.put(good_pod("p"))
        await world.clock.advance(2)
        await world.pod_workers.close()
        world.pod_workers = type(world.pod_workers)(world.context, lambda: world.node)
        states = list(await world.runtime.containers())
        world.pod_workers.take_over(states, (), ["uid-p"])
        await settle()
        assert world.pod_workers.active == {"uid-p"}
        assert [state.id.pod_uid for state in await world.runtime.containers()] == ["uid-p"]
        world.pod_workers.see(world.pod("p"))  # it was repaired
        await world.clock.advance(2)
        assert world.phase("p") == "Running"
        assert [each.id.attempt for each in await world.runtime.containers()] == [0]

    play(tmp_path, story)


def test_a_worker_that_fails_begins_again(tmp_path: Path, faults: list[Fault]) -> None:
    async def story(world: World) -> None:
        world.cluster.put(good_pod("p"))
        await world.clock.advance(2)
        worker = world.pod_workers.find("uid-p")
        assert worker is not None
        sleep = worker._sleep

        async def fail(wait_s: float | None) -> None:
            del wait_s
            worker._sleep = sleep  # type: ignore[method-assign]
            raise KeyError("a bug")

        worker._sleep = fail  # type: ignore[method-assign]
        worker.look()
        await world.clock.advance(5)
        assert world.pod_workers.active == {"uid-p"}
        world.cluster.delete("p", grace_s=1)
        await world.clock.advance(5)
        assert world.phase("p") == "gone"

    play(tmp_path, story)
    assert [each.subject for each in faults] == ["Pod default/p (uid uid-p)"]
