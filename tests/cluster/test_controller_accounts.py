"""Controllers under their own accounts."""

from __future__ import annotations

import asyncio
import logging
from pathlib import Path
from typing import Any

import pytest

from moorage.api.apps import DaemonSet, Deployment
from moorage.api.authentication import TokenRequest
from moorage.api.batch import Job
from moorage.api.codec import decode_tree
from moorage.api.core import Namespace, Node, Pod, ServiceAccount
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim
from moorage.api.scheduling import PodGroup
from moorage.apiserver.auth.bootstrap_policy import CONTROLLER_PREFIX, bootstrap_roles
from moorage.client.client_factory import Tokens
from moorage.client.errors import ForbiddenError, NotFoundError
from moorage.client.writes import Create, Delete, Patch, Target
from moorage.cluster.embedded import EmbeddedCluster, embedded
from moorage.cluster.programs import (
    ControllerClients,
    ControllerProgram,
    ProgramContext,
    account_of,
)
from moorage.kit.clock import ManualClock
from tests.client.servers import until
from tests.cluster.test_embedded import furnish, pod

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "c", "image": "i"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}
JOB: dict[str, Any] = {
    "backoffLimit": 0,
    "template": {"spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}},
}


async def create(cluster: EmbeddedCluster, struct: type[Any], name: str, spec: Any) -> Any:
    metadata = {"name": name, "namespace": "team"}
    value = decode_tree({"metadata": metadata, "spec": spec}, struct).value
    return await cluster.admin.write(Create(value))


async def put_to_work(cluster: EmbeddedCluster) -> None:
    """Give every controller something to do, and wait until it is done."""
    objects = cluster.controlling.informers.objects
    team = decode_tree({"metadata": {"name": "team"}}, Namespace).value
    await cluster.admin.write(Create(team))
    await furnish(cluster)
    await pod(cluster, "with-device")
    await create(cluster, Deployment, "web", {"selector": SELECTOR, "template": TEMPLATE})
    await create(cluster, DaemonSet, "each", {"selector": SELECTOR, "template": TEMPLATE})
    await create(cluster, Job, "once", {**JOB, "ttlSecondsAfterFinished": 0})
    group = await create(cluster, PodGroup, "gang", {"schedulingPolicy": {"basic": {}}})
    await until(lambda: objects.count(Pod) == 4 and objects.count(ResourceClaim) == 1)
    await until(lambda: all(each.spec.node_name for each in objects.list(Pod)))
    await cluster.admin.write(Delete(Target.of(group)))
    (of_job,) = [each for each in objects.list(Pod) if each.metadata.name.startswith("once")]
    succeeded = {"status": {"phase": "Succeeded"}}
    await cluster.admin.write(Patch(Target.of(of_job), succeeded, "status"))
    await until(lambda: objects.count(Job) == 0 and objects.count(PodGroup) == 0)
    # A node that is gone takes its pods with it, and the devices of their claims.
    await cluster.admin.write(Delete(Target(Pod, "default", "with-device"), grace_s=0))
    await until(lambda: objects.count(ResourceClaim) == 0)
    await cluster.admin.write(Delete(Target(Deployment, "team", "web")))
    await cluster.admin.write(Delete(Target(DaemonSet, "team", "each")))
    await until(lambda: objects.count(Pod) == 0 or _all_leave(objects.list(Pod)))
    await cluster.admin.write(Delete(Target(Node, "", "node-1")))


def _all_leave(pods: Any) -> bool:
    return all(each.metadata.deletion_timestamp is not None for each in pods)


def test_no_controller_is_forbidden_what_it_does(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)

    async def run() -> None:
        async with asyncio.timeout(60), embedded(tmp_path, ProgramContext()) as cluster:
            await put_to_work(cluster)
            accounts = {
                each.metadata.name
                for each in cluster.controlling.informers.objects.list(ServiceAccount)
                if each.metadata.namespace == "kube-system"
            }
            assert {"deployment-controller", "resource-claim-controller"} <= accounts

    asyncio.run(run())
    assert [each.message for each in caplog.records if "forbidden" in each.message] == []


def test_a_controller_may_do_no_more_than_its_role_lets_it(tmp_path: Path) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), embedded(tmp_path, ProgramContext()) as cluster:
            client = cluster.accounts.client_of("deployment-controller")
            assert await client.get(Pod, "default", "none") is None
            with pytest.raises(ForbiddenError, match="kube-system:deployment-controller"):
                await client.get(Node, "", "none")

    asyncio.run(run())


class Granting:
    """A server that grants tokens and remembers for whom, and what was made before."""

    def __init__(self, *, has_accounts: bool = True) -> None:
        self.asked: list[str] = []
        self._has_accounts = has_accounts

    async def write(self, write: Create) -> Any:
        value = write.value
        self.asked.append(f"{value.kind} {value.metadata.namespace}/{value.metadata.name}")
        if isinstance(value, ServiceAccount):
            self._has_accounts = True
            return value
        if not self._has_accounts:
            raise NotFoundError("there is none", code=404)
        spec, status = {"expirationSeconds": 600}, {"token": f"t{len(self.asked)}"}
        return decode_tree({"spec": spec, "status": status}, TokenRequest).value


def test_an_account_that_is_not_there_is_made_and_its_token_renewed_in_time() -> None:
    async def run() -> None:
        sources: list[Tokens] = []
        clock = ManualClock()
        server: Any = Granting(has_accounts=False)
        connect: Any = sources.append
        accounts = ControllerClients(server, connect, clock=clock)
        accounts.client_of("daemonset-controller")
        token = await sources[0]()
        assert server.asked == [
            "TokenRequest kube-system/daemon-set-controller",
            "ServiceAccount kube-system/daemon-set-controller",
            "TokenRequest kube-system/daemon-set-controller",
        ]
        assert token.until is not None
        assert (token.until - clock.now()).total_seconds() == 480

    asyncio.run(run())


def test_every_controller_has_a_role() -> None:
    controlling = ControllerProgram(
        None,  # type: ignore[arg-type]  # nothing is asked
        ProgramContext(gates=Gates.parse()),
        authority="x",
    )
    roles = {name.removeprefix(CONTROLLER_PREFIX) for name in bootstrap_roles()}
    assert {account_of(each.controller.name) for each in controlling.loops.running} <= roles
