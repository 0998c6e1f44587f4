"""Metrics, under Kubernetes' names and those of the seeds."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from moorage.api.core import Pod
from moorage.kit.metrics import exposition
from tests.client.servers import until
from tests.stories.stage import Stage, play, trees_of
from tests.stories.tellers import SEEDS, STORIES

SERVED = ("004-34-device-class", "004-35-gpu-slice", "004-36-node-with-dra")


def controllers_text(stage: Stage) -> str:
    controlling = stage.cluster.controlling
    families = controlling.metrics.families(controlling.informers.objects)
    return exposition([*families, *controlling.queues.families()])


def scheduler_text(stage: Stage) -> str:
    return stage.cluster.scheduling.scheduler.metrics_text()


def names(text: str) -> set[str]:
    return set(re.findall(r"^# TYPE (\S+) ", text, re.MULTILINE))


def value(text: str, series: str) -> float:
    """Return the value of a series, 0 if there is none."""
    found = (line.rsplit(" ", 1) for line in text.splitlines())
    return next((float(number) for name, number in found if name == series), 0.0)


CONTROLLERS = [
    "dynamic_resource_allocation_resource_claims",
    "dynamic_resource_allocation_resourceclaim_creates_total",
    "device_taint_eviction_controller_pod_deletions_total",
    "device_taint_eviction_controller_pod_deletion_duration_seconds",
    "resourcepoolstatusrequest_controller_requests_processed_total",
    "resourcepoolstatusrequest_controller_request_processing_errors_total",
    "resourcepoolstatusrequest_controller_request_processing_duration_seconds",
    "workqueue_adds_total",
    "workqueue_depth",
    "workqueue_retries_total",
    "workqueue_queue_duration_seconds",
    "workqueue_work_duration_seconds",
    # those of the seeds
    "resourceclaim_controller_resource_claims",
    "resourceclaim_controller_creates_total",
]
SCHEDULER = [
    "dynamic_resource_allocation_resourceclaim_creates_total",
    "scheduler_dra_bindingconditions_allocations_total",
    "scheduler_dra_bindingconditions_wait_duration_seconds",
    "scheduler_schedule_attempts_total",
    "scheduler_pod_scheduling_sli_duration_seconds",
    "scheduler_pending_pods",
    "scheduler_plugin_execution_duration_seconds",
    # those of the seeds
    "scheduler_resourceclaim_creates_total",
]


def test_every_name_is_there_from_the_start(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        assert set(CONTROLLERS) <= names(controllers_text(stage))
        assert set(SCHEDULER) <= names(scheduler_text(stage))

    play(tmp_path, act)


def test_a_deployment_with_extended_resources_is_seen_in_all_of_them(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        for seed in SERVED:
            await stage.furnish(trees_of(SEEDS / f"{seed}.yaml"))
        await stage.apply(SEEDS / "004-33-deployment.yaml")
        await stage.apply(STORIES / "extended-resource" / "too-many.yaml")
        await until(lambda: value(scheduler_text(stage), attempts("scheduled")) == 1)
        text = scheduler_text(stage)
        owner = 'admin_access="false",owner_api_group="",owner_api_kind="Pod"'
        for name in (
            "dynamic_resource_allocation_resourceclaim_creates_total",
            "scheduler_resourceclaim_creates_total",
        ):
            assert value(text, f'{name}{{status="success",{owner}}}') == 1
        assert value(text, attempts("error")) >= 1
        took = "scheduler_plugin_execution_duration_seconds_count"
        labels = 'plugin="DynamicResources",extension_point="Filter"'
        assert value(text, f'{took}{{{labels},status="Success"}}') >= 1
        assert value(text, 'scheduler_pod_scheduling_sli_duration_seconds_count{attempts="1"}') == 1
        for name, source in (
            ("dynamic_resource_allocation_resource_claims", "extended_resource"),
            ("resourceclaim_controller_resource_claims", "extended-resource"),  # KEP-5004
        ):
            labels = f'allocated="true",admin_access="false",source="{source}"'
            assert value(controllers_text(stage), f"{name}{{{labels}}}") == 1
        asked = stage.cluster.scheduling.scheduler.resources_text()
        assert re.search(
            r'^kube_pod_resource_request\{.*pod="demo-.*resource="example.com/gpu",unit=""\} 1$',
            asked,
            re.MULTILINE,
        )

    def attempts(result: str) -> str:
        labels = f'profile="default-scheduler",result="{result}"'
        return f"scheduler_schedule_attempts_total{{{labels}}}"

    play(tmp_path, act)


@pytest.mark.parametrize("kind", ["success", "pending"])
def test_claims_of_templates_and_pods_that_wait_are_counted(kind: str, tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        folder = STORIES / "prioritized-list"
        await stage.furnish(trees_of(folder / "cluster.yaml"))
        for seed in ("002-10-prioritized-list-template", "002-13-cat-slice"):
            await stage.furnish(trees_of(SEEDS / f"{seed}.yaml"))
        await stage.furnish(trees_of(folder / "pods.yaml"))
        if kind == "pending":
            waiting = 'scheduler_pending_pods{queue="unschedulable"}'
            await until(lambda: value(scheduler_text(stage), waiting) == 1)
            await stage.delete(Pod, "first")
            await until(lambda: value(scheduler_text(stage), waiting) == 0)
            return
        text = controllers_text(stage)
        labels = 'status="success",admin_access="false",owner_api_group="",owner_api_kind="Pod"'
        assert value(text, f"resourceclaim_controller_creates_total{{{labels}}}") == 3
        assert value(text, 'workqueue_adds_total{name="resource_claim"}') > 0

    play(tmp_path, act)


def test_evictions_and_answers_about_pools_are_counted(tmp_path: Path) -> None:
    async def act(stage: Stage) -> None:
        await stage.furnish(trees_of(STORIES / "device-taints" / "cluster.yaml"))
        await stage.furnish(trees_of(SEEDS / "002-21-device-taint-rule.yaml"))
        deletions = "device_taint_eviction_controller_pod_deletions_total"
        await until(lambda: value(controllers_text(stage), deletions) == 1)
        took = "device_taint_eviction_controller_pod_deletion_duration_seconds_count"
        assert value(controllers_text(stage), took) == 1
        await stage.furnish(trees_of(STORIES / "pool-status" / "request.yaml"))
        prefix, labels = "resourcepoolstatusrequest_controller", '{driver_name="gpu.example.com"}'
        processed = f"{prefix}_requests_processed_total{labels}"
        await until(lambda: value(controllers_text(stage), processed) == 1)
        took = f"{prefix}_request_processing_duration_seconds_count{labels}"
        assert value(controllers_text(stage), took) == 1

    play(tmp_path, act)
