"""Standalone programs: leading, waiting, and their health and metrics pages."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from moorage.api.codec import decode_tree
from moorage.api.coordination import Lease
from moorage.api.core import Pod
from moorage.api.gates import Gates
from moorage.apiserver.server import assembled
from moorage.apiserver.settings import Settings
from moorage.client.client_factory import in_process_client
from moorage.client.contract import Client
from moorage.client.errors import ForbiddenError
from moorage.client.leader_election import LeaseTimings
from moorage.client.writes import Patch, Target
from moorage.cluster.embedded import embedded
from moorage.cluster.leader_process import (
    LeaderLease,
    LeaseLostError,
    check_connection,
    run_as_leader,
)
from moorage.cluster.programs import ControllerProgram, ProgramContext, SchedulerProgram
from tests.client.servers import until

AROUND = ProgramContext()
LEAD = LeaderLease(
    "kube-system", "kube-scheduler", LeaseTimings(lease_s=3.0, renew_s=2.0, retry_s=0.02)
)


def standing(client: Client, tell: Callable[[str], None], lead: LeaderLease | None = LEAD) -> Any:
    program = SchedulerProgram(client, AROUND)
    return asyncio.create_task(
        run_as_leader(program, client, AROUND, lead=lead, place=None, tell=tell, working="at work")
    )


async def ended(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


def test_one_works_and_the_next_when_it_is_gone(tmp_path: Path) -> None:
    async def run() -> None:
        settings = Settings(tmp_path, allows_all=True)
        async with asyncio.timeout(60), assembled(settings) as server:
            client = in_process_client(server.application)
            await check_connection(client)
            one, two = list[str](), list[str]()
            first = standing(client, one.append)
            await until(lambda: "at work" in one)
            second = standing(client, two.append)
            await until(lambda: two)
            await asyncio.sleep(0)
            assert two == ["waiting for the lease kube-system/kube-scheduler"]
            await ended(first)
            await until(lambda: "at work" in two)
            await ended(second)

    asyncio.run(run())


def test_a_program_whose_lease_is_taken_ends(tmp_path: Path) -> None:
    async def run() -> None:
        settings = Settings(tmp_path, allows_all=True)
        async with asyncio.timeout(60), assembled(settings) as server:
            client = in_process_client(server.application)
            told = list[str]()
            task = standing(client, told.append)
            await until(lambda: "at work" in told)
            other = {"spec": {"holderIdentity": "another", "leaseDurationSeconds": 60}}
            await client.write(Patch(Target(Lease, "kube-system", "kube-scheduler"), other))
            with pytest.raises(LeaseLostError, match="kube-system/kube-scheduler was lost"):
                await task

    asyncio.run(run())


def test_a_user_who_may_nothing_is_told_at_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with assembled(Settings(tmp_path)) as server:
            with pytest.raises(ForbiddenError):
                await check_connection(in_process_client(server.application))

    asyncio.run(run())


def test_metrics_have_kubernetes_names_and_those_of_the_keps() -> None:
    client: Any = None  # nothing is asked
    scheduling = SchedulerProgram(client, AROUND).metrics_pages["/metrics"]()
    for name in (
        "scheduler_schedule_attempts_total",
        "scheduler_pending_pods",
        "dynamic_resource_allocation_resourceclaim_creates_total",
        "scheduler_resourceclaim_creates_total",
    ):
        assert f"# TYPE {name} " in scheduling
    controlling = ControllerProgram(client, AROUND).metrics_pages["/metrics"]()
    for name in ("resourceclaim_controller_resource_claims", "workqueue_depth"):
        assert f"# TYPE {name} " in controlling


def test_what_pods_ask_for_is_told_until_they_are_over() -> None:
    client: Any = None
    program = SchedulerProgram(client, AROUND)
    container = {
        "name": "c",
        "resources": {"requests": {"cpu": "1500m", "memory": "32Gi"}, "limits": {"cpu": "2"}},
    }
    for name, phase in (("runs", "Running"), ("done", "Succeeded")):
        spec = {"containers": [container], "nodeName": "n", "priority": 5, "schedulerName": "s"}
        tree = {"metadata": {"name": name, "namespace": "d"}, "spec": spec}
        program.loop.changed(None, decode_tree({**tree, "status": {"phase": phase}}, Pod).value)
    told = program.metrics_pages["/metrics/resources"]().splitlines()
    labels = 'namespace="d",pod="runs",node="n",scheduler="s",priority="5"'
    assert [line for line in told if not line.startswith("#")] == [
        f'kube_pod_resource_request{{{labels},resource="cpu",unit="cores"}} 1.5',
        f'kube_pod_resource_request{{{labels},resource="memory",unit="bytes"}} 34359738368',
        f'kube_pod_resource_limit{{{labels},resource="cpu",unit="cores"}} 2',
    ]


def test_a_scheduler_whose_role_has_no_groups_and_no_taint_rules_does_not_ask_for_them(
    tmp_path: Path,
) -> None:
    gates = Gates.parse(preset="kubernetes-1.37", emulated_version="1.34")

    async def run() -> None:
        async with asyncio.timeout(60), embedded(tmp_path, ProgramContext(gates=gates)) as cluster:
            assert not cluster.scheduling.informers.causes
            # The garbage collector looks for all kinds; these are not served, and not missed.
            causes = cluster.controlling.informers.causes
            assert set(causes.values()) <= {"404 page not found"}
            assert causes.keys() <= {
                "CompositePodGroup",
                "PodGroup",
                "ResourcePoolStatusRequest",
                "Workload",
            }

    asyncio.run(run())


def test_only_chosen_controllers_run() -> None:
    client: Any = None
    program = ControllerProgram(client, AROUND, chosen=lambda name: name == "job-controller")
    assert [each.controller.name for each in program.loops.running] == ["job-controller"]
