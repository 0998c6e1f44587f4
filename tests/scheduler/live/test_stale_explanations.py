"""Explanations that name what is gone: which pods need another one, and what finding them takes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.core.pod import Pod
from moorage.scheduler.cluster import Cluster
from moorage.scheduler.live import SchedulerConfig
from moorage.scheduler.live.stale_explanations import StaleExplanations, names_in
from moorage.scheduler.scheduling_cycle import Pending
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import claim, device_class, group, slice_of, taint_rule

NAMED: dict[str, Any] = {
    "node": node("node-2", unschedulable=True),
    "class": device_class("odd.example.com"),
    "slice": slice_of("node-1", name="slice-1"),
    "device": slice_of("node-1", name="slice-1", listed=[{"name": "gpu-7"}]),
    "rule": taint_rule("rule-1", device="gpu-9"),
    "group": group("gang-1"),
    "claim": claim("claim-1"),
    "pod": pod("pod-1", nodeName="node-1"),
}


class Naming:
    """Explains every pod by an object, as long as there is one."""

    def __init__(self, server: FakeServer, value: Any, name: str) -> None:
        self._server, self._struct, self.name = server, type(value), name
        self.times = 0

    def __call__(self, cluster: Cluster, waiting: Pod, pending: Pending) -> str:
        self.times += 1
        is_there = any(self._struct is struct for struct, _, name in self._server.objects if name)
        there = [each.metadata.name for each in self._server.all(self._struct)] if is_there else []
        names = {*there, *(d.name for d in self._devices())}
        return f"Moorage: see default/{self.name}." if self.name in names else "Moorage: no room."

    def _devices(self) -> Any:
        for key, value in self._server.objects.items():
            if key[2] == "slice-1":
                yield from value.spec.devices


@pytest.mark.parametrize("kind", NAMED)
def test_every_kind_of_object_can_be_gone(kind: str) -> None:
    value = NAMED[kind]
    made = FakeServer()
    made.put(node("node-1", unschedulable=True), value, *(pod(f"p-{n}") for n in range(3)))
    name = "gpu-7" if kind == "device" else value.metadata.name
    explain = Naming(made, value, name)
    rig = Rig(made, explain=explain)
    rig.run(for_s=30)
    assert all(f"see default/{name}." in rig.condition(f"p-{n}") for n in range(3))
    made.drop(value)
    rig.run(for_s=10)
    assert all("no room" in rig.condition(f"p-{n}") for n in range(3))


def test_a_change_that_takes_nothing_away_explains_nobody_anew() -> None:
    made = FakeServer()
    made.put(node("node-1", unschedulable=True), node("node-2", unschedulable=True))
    made.put(*(pod(f"p-{n}") for n in range(3)))
    explain = Naming(made, node("node-2"), "node-2")
    rig = Rig(made, explain=explain)
    rig.run(for_s=30)
    times = explain.times
    made.put(node("node-3", unschedulable=True), claim("c"), device_class())
    made.delete(made.get(type(NAMED["class"]), "gpu", ""))
    rig.run(for_s=1)
    assert explain.times <= times + 1, "one of a kind is tried when something changes"


def test_pods_are_tried_while_many_explanations_are_renewed() -> None:
    made = FakeServer()
    made.put(node("node-1", unschedulable=True), node("node-2", unschedulable=True))
    made.put(*(pod(f"p-{n}", nodeSelector={"no": "where"}) for n in range(40)))
    rig = Rig(made, SchedulerConfig(), explain=Naming(made, node("node-2"), "node-2"))
    rig.run(for_s=30)
    made.drop(made.get(type(node()), "node-2", ""))
    while rig.hear():
        pass
    rig.elapsed_s += 3  # all are overdue
    made.put(node("node-3"), *(pod(f"q-{n}") for n in range(3)))
    while rig.hear():
        pass
    for _ in range(20):
        rig.decide()
        rig.write()
    assert all(rig.node_of(f"q-{n}") for n in range(3))


words = st.sampled_from(["a", "b-1", "c.d", "node", "x"])
texts = st.lists(words, max_size=4).map(" ".join)


@given(st.lists(st.tuples(st.sampled_from("pqr"), texts), max_size=20), words)
def test_who_is_stale_is_who_would_be_found_by_a_look_at_all(
    said: list[tuple[str, str]], gone: str
) -> None:
    index, plain = StaleExplanations(), dict[str, str]()
    for key, text in said:
        index.put(key, text)
        plain[key] = text
    index.vanish(gone, 1.0)
    found = set()
    while (stale := index.first(1.0)) is not None:
        found.add(stale.key)
        index.discard(stale.key)
    assert found == {key for key, text in plain.items() if gone in names_in(text)}
    for key in plain:
        index.discard(key)
    index.vanish(gone, 2.0)
    assert index.first(2.0) is None
    assert not any(vars(index).values()), "nothing is kept of pods that are gone"
