"""Malformed objects of one user, of any kind that is read here, keep no pod from its node."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from moorage.api.core.pod import Pod
from moorage.kit.bulkhead import Fault
from moorage.scheduler.errors import INTERNAL_ERROR
from moorage.scheduler.live import binding_cycle, pre_bind
from moorage.scheduler.live.assume_cache import AssumeCache
from moorage.scheduler.live.config import KINDS
from moorage.scheduler.live.effects import Sleep, Steps
from soak._malformed import PYTHON_TEXT, SAMPLES, decodable
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig, check_devices
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, device_class, slice_of, user

STRUCTS = {struct.__name__: struct for struct in KINDS}
NUMBER = 60


def good(index: int) -> list[Any]:
    name = f"good-{index}"
    return [claim(name), user(name, name), pod(f"{name}-plain", requests={"cpu": "1m"})]


@pytest.mark.parametrize("kind", sorted(STRUCTS.keys() & SAMPLES.keys()))
@pytest.mark.parametrize("seed", range(3))
def test_good_pods_are_scheduled_beside_malformed_objects(
    kind: str, seed: int, faults: list[Fault]
) -> None:
    server = FakeServer()
    for value in (node("node-1"), device_class(), slice_of("node-1", 4), *good(0)):
        server.put(value)
    rig = Rig(server)
    namespace = {"namespace": "bad"} if kind in ("Pod", "ResourceClaim", "ReplicaSet") else {}
    sample = SAMPLES[kind]
    if kind == "Pod" and seed % 2:
        sample = {**sample, "spec": {**sample["spec"], "nodeName": "node-1"}}
    bad = list(decodable(Random(seed), sample, STRUCTS[kind], NUMBER, **namespace))
    for value in bad[: NUMBER // 2]:
        server.put(value)
    rig.run(for_s=30)
    for value in good(1):
        server.put(value)
    for value in bad[NUMBER // 2 :]:
        server.put(value)
    rig.run(for_s=30)
    for value in bad:
        server.drop(value)
    for value in good(2):
        server.put(value)
    rig.run(for_s=30)
    found = {
        pod.metadata.name: pod.spec.node_name
        for pod in server.all(Pod)
        if pod.metadata.namespace == "default"
    }
    assert all(found.values()), (found, faults[:1])
    assert {each.subject.partition(" ")[0] for each in faults} <= {kind}
    check_devices(server)
    texts = [each.message for each in server.events]
    assert not [text for text in texts if PYTHON_TEXT.search(text)]
    assert "scheduler_pending_pods" in rig.scheduler.metrics_text()
    assert 'pod="good-0-plain"' in rig.scheduler.resources_text()


def test_a_task_that_fails_ends_and_no_other(faults: list[Fault]) -> None:
    server = FakeServer()
    for value in (node("node-1"), device_class(), slice_of("node-1", 4), *good(0)):
        server.put(value)
    rig = Rig(server)

    def failing() -> Steps[None]:
        yield Sleep(1.0)
        raise KeyError("a bug")

    rig.scheduler.effects.start(failing())
    rig.run(for_s=30)
    assert all(pod.spec.node_name for pod in server.all(Pod))
    assert [(each.place, each.subject) for each in faults] == [("a task", "failing")]
    rig.check()


def test_a_bug_in_a_binding_cycle_undoes_it(
    monkeypatch: pytest.MonkeyPatch, faults: list[Fault]
) -> None:
    server = FakeServer()
    for value in (node("node-1"), device_class(), slice_of("node-1", 4), *good(0), *good(1)):
        server.put(value)
    rig = Rig(server)
    check_alive = pre_bind.check_alive

    def stumble(cache: AssumeCache, one: Pod) -> None:
        if one.metadata.name == "good-0" and rig.elapsed_s < 5:
            raise ZeroDivisionError("a bug")
        check_alive(cache, one)

    monkeypatch.setattr(binding_cycle, "check_alive", stumble)
    rig.run()
    assert (rig.node_of("good-0"), rig.node_of("good-1")) == ("", "node-1")
    assert rig.told("FailedScheduling") == [INTERNAL_ERROR]
    rig.run(for_s=30)
    assert rig.node_of("good-0") == "node-1"
    assert {each.subject for each in faults} == {"Pod default/good-0 (uid default/good-0)"}
    rig.check()
