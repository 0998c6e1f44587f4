"""The next actions of a pod: laws that always hold, and the order of actions."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from moorage.api.core import Pod
from moorage.api.core.pod import ContainerStatus
from moorage.api.timestamp import LATEST, Timestamp
from moorage.client.errors import ConflictError, UnavailableError
from moorage.kit.clock import settle
from moorage.node.pods.pod_actions import CleanUp, Requeue, SetUp, Start, Stop, plan, termination_of
from moorage.node.pods.pod_record import (
    CrashBackoff,
    FailedAttempt,
    PodRecord,
    Termination,
    next_crash_backoff,
    should_restart,
    wait_until,
)
from moorage.node.runtime.contract import ContainerId, ContainerState, Phase
from tests.node.world import NOW, World, container, make_pod, play

FINAL = ("Succeeded", "Failed")


def at(seconds: float) -> Timestamp:
    return Timestamp(NOW.instant + timedelta(seconds=seconds))


def state(name: str, attempt: int = 0, code: int | None = None) -> ContainerState:
    id_ = ContainerId("uid-p", name, attempt)
    if code is None:
        return ContainerState(id_, Phase.RUNNING, NOW)
    return ContainerState(id_, Phase.EXITED, NOW, NOW, code)


def record(*states: ContainerState, pod: Pod | None = None, **more: Any) -> PodRecord:
    running = {each.id for each in states if each.phase is Phase.RUNNING}
    found = {each.id: each for each in states}
    options = {"is_set_up": True, **more}
    return PodRecord(pod or make_pod(), states=found, started=running, ready=running, **options)


def test_devices_come_before_the_first_container() -> None:
    assert plan(PodRecord(make_pod()), NOW) == (SetUp(),)
    assert plan(PodRecord(make_pod(), in_progress={SetUp()}), NOW) == ()


def test_a_grace_period_beyond_the_calendar_is_one_without_end() -> None:
    deleted = make_pod()
    metadata = replace(
        deleted.metadata, deletion_timestamp=NOW, deletion_grace_period_seconds=2**63 - 1
    )
    spec = replace(deleted.spec, termination_grace_period_seconds=10**18)
    pod = replace(deleted, metadata=metadata, spec=spec)
    ending = termination_of(record(state("c"), pod=pod), NOW)
    assert ending is not None
    assert ending.deadline == LATEST
    steps = plan(record(state("c"), pod=pod, termination=ending), NOW)
    assert [step.id.name for step in steps if isinstance(step, Stop)] == ["c"]


def test_what_failed_is_tried_again_at_its_time() -> None:
    trouble = FailedAttempt("FailedMount", "no", at(4))
    assert plan(PodRecord(make_pod(), sync_failure=trouble), NOW) == (Requeue(4),)
    assert plan(PodRecord(make_pod(), sync_failure=trouble), at(4)) == (SetUp(),)


def test_a_start_that_is_under_way_is_not_planned_again() -> None:
    one = Start("c", 0)
    assert plan(record(), NOW) == (one,)
    assert plan(record(in_progress={one.key}), NOW) == ()


def test_sidecars_start_again_while_others_run_and_init_containers_do_not() -> None:
    side, init = container("side", restartPolicy="Always"), container("init")
    pod = make_pod(initContainers=[init, side])
    steps = plan(record(state("init", code=0), state("side", code=0), state("c"), pod=pod), NOW)
    assert [step.name for step in steps if isinstance(step, Start)] == ["side"]


def test_containers_end_before_sidecars_and_these_in_reverse_order() -> None:
    sides = [container(name, restartPolicy="Always") for name in ("a", "b")]
    pod = make_pod(initContainers=sides)
    termination = Termination(NOW, 30)
    steps = plan(record(state("a"), state("b"), state("c"), termination=termination, pod=pod), NOW)
    assert [step.id.name for step in steps if isinstance(step, Stop)] == ["c"]
    steps = plan(record(state("a"), state("b"), termination=termination, pod=pod), at(40))
    (last,) = (step for step in steps if isinstance(step, Stop))
    assert (last.id.name, last.grace_s) == ("b", 2.0)


def test_nothing_is_cleared_while_a_container_starts() -> None:
    termination = Termination(NOW, 30)
    starting = {Start("c", 0).key}
    assert plan(record(termination=termination, in_progress=starting), NOW) == ()
    assert plan(record(termination=termination), NOW) == (CleanUp(),)


def test_an_end_is_found_once_all_containers_have_ended_for_good() -> None:
    pod = make_pod(container("a"), container("b"), restartPolicy="OnFailure")
    assert termination_of(record(state("a", code=0), state("b", code=1), pod=pod), NOW) is None
    assert termination_of(record(state("a", code=0), state("b", code=0), pod=pod), NOW) is not None


def test_the_delay_of_a_crash_loop_doubles_up_to_five_minutes_and_is_forgotten() -> None:
    crash: CrashBackoff | None = None
    delays = []
    for _ in range(7):
        crash = next_crash_backoff(crash, state("c", code=1))
        delays.append(crash.delay_s)
    assert delays == [10, 20, 40, 80, 160, 300, 300]
    late = ContainerState(ContainerId("u", "c", 9), Phase.EXITED, NOW, at(601), 1)
    assert crash is not None
    assert wait_until(crash, late) is None
    assert next_crash_backoff(crash, late).delay_s == 10


def test_policies_say_whether_a_container_runs_again() -> None:
    def again(pod_policy: str, code: int, **more: Any) -> bool:
        pod = make_pod(container(**more), restartPolicy=pod_policy)
        return should_restart(pod, pod.spec.containers[0], code)

    assert again("Always", 0)
    assert not again("OnFailure", 0)
    assert again("OnFailure", 1)
    assert not again("Never", 1)
    assert again("Never", 1, restartPolicy="OnFailure")
    rule = {"action": "Restart", "exitCodes": {"operator": "NotIn", "values": [1]}}
    assert again("Never", 2, restartPolicy="Never", restartPolicyRules=[rule])
    assert not again("Never", 1, restartPolicy="Never", restartPolicyRules=[rule])


# --- whatever happens ---------------------------------------------------------------------------

CONTAINERS = st.lists(
    st.sampled_from(["run", "exit 0", "exit 1", "sleep 3"]), min_size=1, max_size=3
)
INITIAL = st.lists(st.sampled_from(["side", "exit 0", "exit 1", "sleep 2"]), max_size=3)
HAPPENINGS = st.lists(
    st.sampled_from(
        [
            "wait 1",
            "wait 12",
            "end 0",
            "end 1",
            "delete 0",
            "delete 5",
            "remove",
            "refuse",
            "allow",
            "restart",
            "conflict",
            "away",
            "stubborn",
            "slow",
            "slow",
            "fail",
        ]
    ),
    max_size=10,
)


@settings(max_examples=150)
@given(
    initial=INITIAL,
    regular=CONTAINERS,
    policy=st.sampled_from(["Always", "OnFailure", "Never"]),
    happenings=HAPPENINGS,
)
def test_whatever_happens_a_pod_stays_legal_and_leaves_nothing(
    initial: list[str], regular: list[str], policy: str, happenings: list[str]
) -> None:
    pod = make_pod(
        *(container(f"c{n}", *each.split()) for n, each in enumerate(regular)),
        initContainers=[_initial(f"i{n}", each) for n, each in enumerate(initial)],
        restartPolicy=policy,
    )

    async def story(world: World) -> None:
        seen: list[Pod] = []
        world.cluster.watchers.append(lambda _, new: seen.append(new) if new else None)
        world.cluster.put(pod)
        for each in happenings:
            await _happen(world, each)
            _check(seen)
        world.devices.refusal = ""
        world.cluster.faults.clear()
        if "p" in world.cluster.pods:
            world.cluster.delete("p", 5)
        await world.clock.advance(700)
        _check(seen)
        assert world.phase() == "gone"
        assert not world.devices.prepared
        assert not await world.runtime.containers()
        assert not world.pod_workers.pods

    with TemporaryDirectory() as folder:
        play(Path(folder), story)


def _initial(name: str, what: str) -> dict[str, Any]:
    return (
        container(name, restartPolicy="Always")
        if what == "side"
        else container(name, *what.split())
    )


async def _happen(world: World, what: str) -> None:
    """Have something happen to the pod or its containers; two attempts never run (see `start`)."""
    match what.split():
        case ["wait", seconds]:
            await world.clock.advance(float(seconds))
        case ["end", code]:
            for each in await world.runtime.containers():
                world.runtime.end(each.id, int(code))
        case ["delete", grace_s] if "p" in world.cluster.pods:
            world.cluster.delete("p", int(grace_s))
        case ["remove"] if "p" in world.cluster.pods:
            world.cluster.remove("p")
        case ["refuse"]:
            world.devices.refusal = "no"
        case ["allow"]:
            world.devices.refusal = ""
        case ["restart"]:
            await world.restart()
        case ["conflict"]:
            world.cluster.faults.append(ConflictError("another version"))
        case ["away"]:
            world.cluster.faults.append(UnavailableError("away"))
        case ["slow"]:
            world.runtime.slow_s = world.devices.slow_s = 0.7
        case ["stubborn"]:
            world.runtime.stubborn |= {"c0", "i0"}
        case ["fail"] if "p" in world.cluster.pods:
            _evict(world)
    await settle()


def _evict(world: World) -> None:
    """Have another one say that the pod failed."""
    pod = world.pod()
    if pod.status.phase not in FINAL:
        world.cluster.put(
            replace(pod, status=replace(pod.status, phase="Failed", reason="Evicted"))
        )


def _check(seen: list[Pod]) -> None:
    """Check that what was told of a pod is legal, one thing after the other."""
    counts: dict[str, int] = {}
    final = ""
    for pod in seen:
        status = pod.status
        assert status.phase in ("", "Pending", "Running", *FINAL)
        assert not final or status.phase == final
        final = status.phase if status.phase in FINAL else final
        for each in (*status.init_container_statuses, *status.container_statuses):
            _check_container(each, status.phase)
            assert each.restart_count >= counts.get(each.name, 0)
            counts[each.name] = int(each.restart_count)
        ready = {each.type: each.status for each in status.conditions}
        assert ready.get("Ready") != "True" or ready["ContainersReady"] == "True"
        types = [each.type for each in status.conditions]
        assert len(types) == len(set(types))


def _check_container(status: ContainerStatus, phase: str) -> None:
    told = (status.state.waiting, status.state.running, status.state.terminated)
    assert sum(each is not None for each in told) == 1
    assert not (status.state.waiting and status.ready)
    if status.started:
        assert status.state.running
