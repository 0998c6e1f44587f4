"""Jobs run until enough pods have succeeded, or too many have failed; each counts once."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.batch import Job
from moorage.api.core import ContainerState, ContainerStateTerminated, ContainerStatus, Pod
from moorage.api.scheduling import PodGroup, Workload
from moorage.controllers.garbage_collector import GarbageCollector
from moorage.controllers.job_tracking import read_indexes, write_indexes
from moorage.controllers.jobs import JobController
from moorage.controllers.pod_gc import TTLAfterFinishedController
from tests.controllers.things import World, template, thing


def job(**spec: Any) -> Any:
    pods = template("work", restartPolicy="Never")
    return thing("batch/v1", "Job", "work", spec={"template": pods, **spec})


def world_of(*, makes_groups: bool = False, **spec: Any) -> World:
    jobs = JobController(makes_groups=makes_groups)
    world = World(jobs, GarbageCollector(), TTLAfterFinishedController())
    world.put(job(**spec))
    return world


def active(world: World) -> list[Pod]:
    return [p for p in world.all(Pod) if p.status.phase not in ("Succeeded", "Failed")]


def end(world: World, pod: Pod, phase: str, code: int = 0) -> None:
    ended = ContainerStateTerminated(exit_code=code, finished_at=world.model.now)
    status = ContainerStatus(name="main", state=ContainerState(terminated=ended))
    world.report(pod, phase, container_statuses=(status,))
    world.settle()


def conditions(world: World) -> dict[str, str]:
    return {
        c.type: c.reason for c in world.get(Job, "work").status.conditions if c.status == "True"
    }


def test_a_job_that_says_nothing_runs_one_pod_once() -> None:
    world = world_of()
    (pod,) = world.all(Pod)
    assert pod.metadata.labels["job-name"] == "work"
    assert pod.metadata.finalizers == ("batch.kubernetes.io/job-tracking",)
    end(world, pod, "Succeeded")
    status = world.get(Job, "work").status
    assert conditions(world) == {
        "SuccessCriteriaMet": "CompletionsReached",
        "Complete": "CompletionsReached",
    }
    assert (status.succeeded, status.active, status.completion_time) == (1, 0, world.model.now)
    assert world.all(Pod)[0].metadata.finalizers == ()
    assert world.told("Completed") == ["Job completed"]


def test_as_many_run_at_once_as_may_and_no_more_than_are_needed() -> None:
    world = world_of(parallelism=2, completions=3)
    assert len(active(world)) == 2
    end(world, active(world)[0], "Succeeded")
    assert len(active(world)) == 2
    end(world, active(world)[0], "Succeeded")
    assert len(active(world)) == 1
    end(world, active(world)[0], "Succeeded")
    assert "Complete" in conditions(world)


def test_after_a_failure_the_next_pod_waits_longer_each_time() -> None:
    world = world_of(backoffLimit=3)
    end(world, active(world)[0], "Failed")
    assert active(world) == []
    world.advance(11)
    end(world, active(world)[0], "Failed")
    world.advance(11)
    assert active(world) == []
    world.advance(10)
    assert len(active(world)) == 1


def test_too_many_failures_end_the_job_and_its_other_pods() -> None:
    world = world_of(parallelism=3, completions=9, backoffLimit=0)
    end(world, active(world)[0], "Failed")
    assert conditions(world) == {
        "FailureTarget": "BackoffLimitExceeded",
        "Failed": "BackoffLimitExceeded",
    }
    assert active(world) == []
    assert world.told("BackoffLimitExceeded") == ["Job has reached the specified backoff limit"]


def test_a_job_that_takes_too_long_ends() -> None:
    world = world_of(activeDeadlineSeconds=30)
    world.advance(29)
    assert conditions(world) == {}
    world.advance(2)
    assert conditions(world)["Failed"] == "DeadlineExceeded"
    assert world.all(Pod) == []


def test_indexes_are_done_one_by_one() -> None:
    world = world_of(parallelism=2, completions=4, completionMode="Indexed")
    pods = active(world)
    label = "batch.kubernetes.io/job-completion-index"
    assert sorted(p.metadata.labels[label] for p in pods) == ["0", "1"]
    assert {p.spec.hostname for p in pods} == {"work-0", "work-1"}
    assert pods[0].spec.containers[0].env[0]["name"] == "JOB_COMPLETION_INDEX"
    for _ in range(4):
        end(world, active(world)[0], "Succeeded")
    status = world.get(Job, "work").status
    assert (status.completed_indexes, status.succeeded) == ("0-3", 4)


def test_an_index_that_failed_is_tried_again() -> None:
    world = world_of(parallelism=1, completions=1, completionMode="Indexed")
    end(world, active(world)[0], "Failed")
    world.advance(11)
    (pod,) = active(world)
    assert pod.metadata.name.startswith("work-0-")


def test_failed_indexes_leave_the_others_alone() -> None:
    world = world_of(parallelism=2, completions=2, completionMode="Indexed", backoffLimitPerIndex=0)
    first, second = sorted(active(world), key=lambda p: p.metadata.name)
    end(world, first, "Failed")
    world.advance(60)
    assert [p.metadata.uid for p in active(world)] == [second.metadata.uid]
    end(world, second, "Succeeded")
    assert conditions(world)["Failed"] == "FailedIndexes"
    status = world.get(Job, "work").status
    assert (status.completed_indexes, status.failed_indexes) == ("1", "0")


def test_a_suspended_job_has_no_pods_and_starts_anew() -> None:
    world = world_of(suspend=True)
    assert world.all(Pod) == []
    assert conditions(world) == {"Suspended": "JobSuspended"}
    world.change(job(), suspend=False)
    assert len(active(world)) == 1
    world.change(job(), suspend=True)
    assert world.all(Pod) == []
    assert world.get(Job, "work").status.failed == 0
    assert world.told("Suspended") == ["Job suspended", "Job suspended"]


def test_a_policy_can_end_the_job_or_ignore_a_failure() -> None:
    rules = [
        {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}},
        {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]},
    ]
    world = world_of(podFailurePolicy={"rules": rules})
    (pod,) = active(world)
    end(world, pod, "Failed", code=42)
    found = next(c for c in world.get(Job, "work").status.conditions if c.type == "Failed")
    assert found.reason == "PodFailurePolicy"
    assert found.message == (
        f"Container main for pod default/{pod.metadata.name} failed with exit code 42 "
        "matching FailJob rule at index 0"
    )


def test_pods_of_a_job_that_is_gone_lose_our_finalizer() -> None:
    world = world_of()
    world.delete(job(), "Background")
    assert world.all(Job) == world.all(Pod) == []


def test_a_finished_job_goes_after_its_time_with_its_pods() -> None:
    world = world_of(ttlSecondsAfterFinished=100)
    end(world, active(world)[0], "Succeeded")
    world.advance(99)
    assert world.get(Job, "work") is not None
    world.advance(2)
    assert world.all(Job) == world.all(Pod) == []


def test_without_the_feature_a_job_gets_no_group() -> None:
    world = World(JobController())
    world.put(job(scheduling={"schedulingPolicy": {"gang": {}}}))
    (pod,) = world.all(Pod)
    assert pod.spec.scheduling_group is None
    assert world.all(Workload) == world.all(PodGroup) == []


def test_a_job_that_says_how_it_is_scheduled_gets_a_group_for_its_pods() -> None:
    gang: Any = {"schedulingPolicy": {"gang": {}}}
    world = world_of(makes_groups=True, parallelism=2, completions=2, scheduling=gang)
    (workload,), (group,) = world.all(Workload), world.all(PodGroup)
    assert workload.spec.controller_ref.name == "work"
    assert workload.spec.pod_group_templates[0].name == "work-pgt-0"
    assert group.metadata.name.startswith(f"{workload.metadata.name}-work-pgt-0-")
    assert group.spec.scheduling_policy.gang.min_count == 2
    assert group.spec.workload_ref.workload_name == workload.metadata.name
    pods = world.all(Pod)
    assert {p.spec.scheduling_group.pod_group_name for p in pods} == {group.metadata.name}
    assert [r.kind for r in pods[0].metadata.owner_references] == ["Job", "PodGroup"]
    world.change(job(), parallelism=3)
    assert world.all(PodGroup)[0].spec.scheduling_policy.gang.min_count == 3
    world.delete(job(), "Foreground")
    assert world.all(Workload) == world.all(PodGroup) == world.all(Pod) == []


def test_a_job_that_says_nothing_gets_a_group_with_the_basic_policy() -> None:
    world = world_of(makes_groups=True, parallelism=2, completions=2)
    (group,) = world.all(PodGroup)
    policy = group.spec.scheduling_policy
    assert policy.basic is not None
    assert policy.gang is None
    pods = world.all(Pod)
    assert {p.spec.scheduling_group.pod_group_name for p in pods} == {group.metadata.name}


def test_a_job_whose_template_names_a_group_gets_no_other() -> None:
    pods = template("work", restartPolicy="Never", schedulingGroup={"podGroupName": "own"})
    world = world_of(makes_groups=True, template=pods)
    assert world.all(Workload) == world.all(PodGroup) == []
    assert len(world.all(Pod)) == 1


def test_a_schedule_that_cannot_be_read_is_told_and_makes_no_pods() -> None:
    gang: Any = {"schedulingPolicy": {"gang": {"minCount": "many"}}}
    world = world_of(makes_groups=True, scheduling=gang)
    assert world.all(Pod) == []
    (message,) = world.told("FailedWorkloadCompilation")
    assert message.startswith("Failed to compile Workload for Job work: ")


@settings(max_examples=80)
@given(
    st.integers(1, 4),
    st.integers(1, 6),
    st.booleans(),
    st.lists(st.tuples(st.integers(0, 5), st.sampled_from("sfdx")), max_size=12),
)
def test_any_history_ends_and_every_pod_counts_once(
    parallelism: int, completions: int, is_indexed: bool, history: list[tuple[int, str]]
) -> None:
    mode = "Indexed" if is_indexed else "NonIndexed"
    world = world_of(
        parallelism=parallelism, completions=completions, completionMode=mode, backoffLimit=99
    )
    failed = 0
    for place, what in history:
        pods = active(world)
        if pods and what != "x":
            pod = pods[place % len(pods)]
            if what == "d":
                world.delete(pod)
            else:
                end(world, pod, "Succeeded" if what == "s" else "Failed")
            failed += what != "s"
        world.advance(601)
        assert len(active(world)) <= parallelism
    while active(world):
        end(world, active(world)[0], "Succeeded")
        world.advance(601)
    status = world.get(Job, "work").status
    assert "Complete" in conditions(world)
    assert (status.succeeded, status.failed, status.active) == (completions, failed, 0)
    assert status.uncounted_terminated_pods == {}
    assert all(pod.metadata.finalizers == () for pod in world.all(Pod))


@given(st.sets(st.integers(0, 60)))
def test_indexes_are_read_as_they_are_written(indexes: set[int]) -> None:
    assert read_indexes(write_indexes(indexes), 61) == indexes


def test_odd_texts_name_no_indexes() -> None:
    assert read_indexes("x,3-,-4,1-99999999999,,2", 5) == {1, 2, 3, 4}
