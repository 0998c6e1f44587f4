"""Pods whose expressions cost much: they are tried in slices, and hold nobody up.

Time is work here: an evaluation of an expensive expression takes 20 ms of the scheduler's clock,
and nothing else takes any.
"""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core.pod import Pod
from moorage.api.resource.v1 import ResourceClaim, ResourceSlice
from moorage.cel.device import COMPILE_COST
from moorage.scheduler.live import SchedulerConfig
from moorage.scheduler.live.evaluation_turns import (
    LANE_COST_PER_S,
    LIGHT_COST,
    LIGHT_S,
    SLICE_S,
    EvaluationTurns,
)
from moorage.scheduler.plugins.registry import Profile
from tests.scheduler.live.fakeserver import FakeServer
from tests.scheduler.live.harness import Rig
from tests.scheduler.makers import node, pod
from tests.scheduler.scenes import GPU, claim, device_class, group, slice_of, wanting

EVALUATION_S = 0.02
COMPILING_S = 0.1
LONG = 5_000  # characters
IN_A_SLICE = round(SLICE_S / EVALUATION_S) + 1
TEN = "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
# Never evaluated here, but it might be: that is what an estimate says.
WORK = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, {TEN}.all(d, {TEN}.all(e, true)))))"
# An estimate of some thousands, although evaluating it takes as long here.
MEDIUM = f"{TEN}.all(a, {TEN}.all(b, {TEN}.all(c, true)))"
ID = f'device.attributes["{GPU}"].id'


def selecting(text: str) -> dict[str, Any]:
    request = wanting()
    request["exactly"]["selectors"] = [{"cel": {"expression": text}}]
    return request


def slow(number: int, *, match: str = "false") -> dict[str, Any]:
    """Return a request with an expensive selector of its own."""
    return selecting(f"{ID} != {-number} && ({match}) && {WORK}")


def underestimated(number: int) -> dict[str, Any]:
    """Return a request with a selector of its own that takes longer than its estimate says."""
    return selecting(f"{ID} != {-number} && false && {MEDIUM}")


def slices(pools: int, devices: int) -> list[ResourceSlice]:
    """Return pools of devices that are all different."""
    return [
        slice_of(
            "node-1",
            name=f"slice-{pool}",
            pool=f"pool-{pool}",
            listed=[
                {"name": f"gpu-{n}", "attributes": {"id": {"int": pool * devices + n}}}
                for n in range(devices)
            ],
        )
        for pool in range(pools)
    ]


def used(name: str, namespace: str, request: dict[str, Any]) -> tuple[ResourceClaim, Pod]:
    """Return a pod and its claim."""
    entry = {"name": "gpu", "resourceClaimName": name}
    return (
        claim(name, request, namespace=namespace, uid=f"{namespace}-{name}"),
        pod(name, namespace=namespace, resourceClaims=[entry]),
    )


class Clocked(Rig):
    """A scheduler for whom evaluations take time."""

    def __init__(
        self, server: FakeServer, config: SchedulerConfig | None = None, **more: Any
    ) -> None:
        super().__init__(server, config, **more)
        self.meter = self.scheduler.cache.cluster.inventory.compiler.meter
        self._idle_s = 0.0
        self.clock = lambda: self._idle_s + self._busy_s

    @property
    def _busy_s(self) -> float:
        return self.slow_evaluations * EVALUATION_S + self.long_compiled * COMPILING_S

    @property
    def long_compiled(self) -> int:
        """How many long expressions were compiled."""
        return sum(len(text) > LONG for text, _ in self.meter.slowest(10_000))

    @property
    def slow_evaluations(self) -> int:
        works = self.meter.slowest(10_000)
        return sum(work.evaluations for text, work in works if WORK in text or MEDIUM in text)

    def pass_time(self, seconds: float) -> None:
        self._idle_s += seconds
        self.elapsed_s = self.clock()

    def step(self) -> bool:
        """Do one thing; the clock goes on by what it took."""
        is_busy = self.hear() or self.write() or self.decide() or self.write()
        self.elapsed_s = self.clock()
        next_s = self.scheduler.next_s()
        if not is_busy and next_s is not None and next_s - self.elapsed_s < 0.5:
            self.pass_time(next_s - self.elapsed_s)  # a break between slices
            return True
        return is_busy

    def settle(self) -> None:
        while self.step():
            pass

    def evaluations_until(self, name: str, namespace: str) -> int:
        """Return how many expensive evaluations there are until a pod has a node."""
        before = self.slow_evaluations
        while not self.server.get(Pod, name, namespace).spec.node_name:
            assert self.step(), "it rests, and the pod has no node"
        return self.slow_evaluations - before

    def condition_of(self, name: str, namespace: str) -> str:
        for each in self.server.get(Pod, name, namespace).status.conditions:
            if each.type == "PodScheduled":
                return f"{each.reason}: {each.message}"
        return ""


def made(*pods: tuple[ResourceClaim, Pod], pools: int = 6, devices: int = 128) -> FakeServer:
    server = FakeServer()
    server.put(device_class(), node("node-1"), *slices(pools, devices))
    for each in pods:
        server.put(*each)
    return server


def test_another_pod_waits_for_a_slice_at_most() -> None:
    rig = Clocked(made(used("slow", "a", slow(1))))
    while rig.slow_evaluations < 20:
        assert rig.step()
    rig.server.put(*used("quick", "b", selecting(f"{ID} == 700")))
    assert rig.evaluations_until("quick", "b") <= IN_A_SLICE


def test_a_pod_without_claims_waits_for_a_slice_at_most() -> None:
    rig = Clocked(made(used("slow", "a", slow(1))))
    while rig.slow_evaluations < 20:
        assert rig.step()
    rig.server.put(pod("plain", namespace="b"))
    assert rig.evaluations_until("plain", "b") <= IN_A_SLICE


def test_many_expensive_pods_delay_another_no_more_than_one() -> None:
    crowd = [used(f"slow-{n}", "a", slow(n)) for n in range(1, 30)]
    rig = Clocked(made(*crowd))
    while rig.slow_evaluations < 5:
        assert rig.step()
    rig.server.put(*used("quick", "b", selecting(f"{ID} == 700")))
    assert rig.evaluations_until("quick", "b") <= IN_A_SLICE


def test_an_expression_that_takes_longer_than_estimated_is_put_off() -> None:
    rig = Clocked(made(used("slow", "a", underestimated(1))))
    before = 0
    while rig.step():
        assert rig.slow_evaluations - before <= LIGHT_S / EVALUATION_S + 1
        before = rig.slow_evaluations
    assert rig.slow_evaluations > LIGHT_S / EVALUATION_S + 1


def test_many_namespaces_together_delay_another_by_less_than_a_second() -> None:
    crowd = [used("slow", f"a{number}", underestimated(number)) for number in range(1, 200)]
    rig = Clocked(made(*crowd, used("quick", "b", selecting(f"{ID} == 700"))))
    assert rig.evaluations_until("quick", "b") * EVALUATION_S < 1.0


def test_a_namespace_that_is_put_off_for_the_first_time_has_the_next_slice() -> None:
    crowd = [used("slow", f"a{number}", slow(number)) for number in range(1, 40)]
    rig = Clocked(made(*crowd))
    while rig.slow_evaluations < 50:
        assert rig.step()
    rig.server.put(*used("quick", "b", slow(100, match=f"{ID} >= 1")))
    assert rig.evaluations_until("quick", "b") <= 3 * IN_A_SLICE


def test_an_expression_that_takes_long_to_compile_is_compiled_in_a_slice() -> None:
    texts = [" && ".join(f"{ID} != {-k * 1000 - n}" for k in range(1, 250)) for n in range(12)]
    request = wanting()
    request["exactly"]["selectors"] = [{"cel": {"expression": text}} for text in texts]
    rig = Clocked(made(used("slow", "a", request), pools=1, devices=1))
    assert COMPILE_COST * len(texts[0]) > LIGHT_COST
    before = 0
    while rig.step():
        assert rig.long_compiled <= before + 1
        before = rig.long_compiled
    assert rig.long_compiled == len(texts)
    assert rig.server.get(Pod, "slow", "a").spec.node_name


def test_namespaces_with_expensive_pods_take_turns() -> None:
    crowd = [used(f"slow-{n}", "a", slow(n)) for n in range(1, 10)]
    rig = Clocked(made(*crowd, used("fair", "b", slow(100, match=f"{ID} >= 30"))))
    found = rig.evaluations_until("fair", "b")
    assert found > 2 * 30, "the other namespace had slices, too"
    assert found <= 2 * 30 + 4 * IN_A_SLICE


def test_what_was_evaluated_in_a_slice_is_not_evaluated_again() -> None:
    rig = Clocked(made(used("slow", "a", slow(1, match=f"{ID} >= 70"))))
    assert rig.evaluations_until("slow", "a") == 71


def test_the_filter_timeout_ends_it_with_kubernetes_message() -> None:
    rig = Clocked(made(used("slow", "a", slow(1))))
    rig.settle()
    assert rig.condition_of("slow", "a") == (
        'SchedulerError: running "DynamicResources" filter plugin: node node-1: '
        "timed out trying to allocate devices"
    )
    timeout = round(10.0 / EVALUATION_S)
    assert timeout <= rig.slow_evaluations <= timeout + 1
    # The next try goes on with the devices that were not asked.
    rig.pass_time(2.0)
    rig.settle()
    assert rig.slow_evaluations == 768
    assert rig.condition_of("slow", "a").startswith("Unschedulable: 0/1 nodes are available")


def test_slices_of_others_do_not_count_for_the_filter_timeout() -> None:
    pods = [used(name, name, slow(n, match=f"{ID} >= 300")) for n, name in enumerate("abc", 1)]
    rig = Clocked(made(*pods))
    rig.settle()
    assert rig.slow_evaluations == 3 * 301, "devices in use are not asked"
    assert all(rig.server.get(Pod, name, name).spec.node_name for name in "abc")
    assert rig.elapsed_s > 10.0


def test_without_a_filter_timeout_it_takes_as_long_as_it_takes() -> None:
    config = SchedulerConfig((Profile(filter_timeout_s=0.0),))
    rig = Clocked(made(used("slow", "a", slow(1))), config)
    rig.settle()
    assert rig.slow_evaluations == 768
    assert rig.condition_of("slow", "a").startswith("Unschedulable")


def test_a_pod_that_is_deleted_meanwhile_is_not_tried_again() -> None:
    rig = Clocked(made(used("slow", "a", slow(1))))
    while rig.slow_evaluations < 20:
        assert rig.step()
    rig.server.drop(rig.server.get(Pod, "slow", "a"))
    before = rig.slow_evaluations
    rig.settle()
    assert rig.slow_evaluations <= before + IN_A_SLICE


def test_a_cheap_expression_is_not_put_off() -> None:
    rig = Clocked(made(used("quick", "a", selecting(f"{ID} == 100"))))
    rig.settle()
    text = rig.scheduler.metrics_text()
    assert (
        'scheduler_schedule_attempts_total{profile="default-scheduler",result="scheduled"} 1'
        in text
    )
    assert rig.server.get(Pod, "quick", "a").spec.node_name == "node-1"


def test_a_namespace_with_many_cheap_expressions_has_an_allowance() -> None:
    """What many pods of a namespace take together counts as what one takes."""
    now_s = 0.0
    turns = EvaluationTurns(lambda: now_s)
    admitted = 0
    while not turns.is_put_off:
        turns.begin("a")
        admitted += turns.admit(LIGHT_COST // 2) is None
    assert admitted == LANE_COST_PER_S // (LIGHT_COST // 2)
    turns.begin("b")
    assert turns.admit(LIGHT_COST // 2) is None, "another namespace has its own"
    turns.begin("a", used_s=0.0)
    assert turns.admit(LIGHT_COST // 2) is None, "in a slice, time counts"
    now_s = 1.0
    turns.begin("a")
    assert turns.admit(LIGHT_COST // 2) is None


def test_a_slice_admits_one_evaluation_however_late() -> None:
    times = iter([0.0, 5.0, 5.0, 5.0])
    turns = EvaluationTurns(lambda: next(times))
    turns.begin("a", used_s=0.0)
    assert turns.admit(10**9) is None
    assert turns.admit(1) is not None
    assert turns.is_put_off


def test_a_pod_group_is_put_off_as_a_whole() -> None:
    server = made()
    request = slow(1, match=f"{ID} >= 40")
    server.put(group("gang", least=2))
    for name in ("one", "two"):
        wanted, one = used(name, "default", request)
        entry = {"name": "gpu", "resourceClaimName": name}
        member = pod(name, resourceClaims=[entry], schedulingGroup={"podGroupName": "gang"})
        assert one.metadata.name == member.metadata.name
        server.put(wanted, member)
    rig = Clocked(server)
    rig.settle()
    assert all(rig.server.get(Pod, name).spec.node_name for name in ("one", "two"))
    assert rig.slow_evaluations == 42


def test_explanations_of_pods_evaluate_nothing_expensive() -> None:
    server = made(used("slow", "a", slow(1)), pools=1, devices=20)
    explained: list[int] = []

    def explain(cluster: Any, one: Pod, _pending: Any) -> str:
        explained.append(1)
        for facts in cluster.inventory.view(cluster.node("node-1")).pools:
            facts.selected((f"{ID} != 1 && {WORK}",))
        return f"never for {one.metadata.name}"

    rig = Clocked(server, explain=explain)
    rig.settle()
    assert explained
    assert rig.slow_evaluations == 20
    assert "never" not in rig.condition_of("slow", "a")


@pytest.mark.parametrize(
    "name", ["moorage_cel_expression_seconds", "moorage_cel_expression_evaluations"]
)
def test_the_slowest_expressions_are_metrics(name: str) -> None:
    rig = Clocked(made(used("slow", "a", slow(1)), pools=1))
    rig.settle()
    lines = [each for each in rig.scheduler.metrics_text().splitlines() if each.startswith(name)]
    assert lines, name
    assert "…" in lines[0], "only the beginning of a long expression is shown"
    assert all(len(each) < 400 for each in lines)
