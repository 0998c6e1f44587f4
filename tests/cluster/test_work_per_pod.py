"""The work that a pod causes: requests, reconciles, attempts. Counts hold on every machine."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.core.pod import Pod
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaimTemplate, ResourceClaimTemplateSpec
from moorage.api.timestamp import Timestamp
from moorage.client.errors import ForbiddenError
from moorage.client.writes import Apply, Create, Delete, Patch, Update
from moorage.cluster.programs import (
    ControllerProgram,
    ProgramContext,
    SchedulerProgram,
    run_all,
    shared_informers,
)
from moorage.scheduler.live import SchedulerConfig
from tests.cluster.model_server import ModelServer
from tests.scheduler.makers import node
from tests.scheduler.scenes import NOW, claim, device_class, slice_of, user

PODS = 20


class Work(NamedTuple):
    """What was done for all pods."""

    requests: Counter[str]
    reconciles: Counter[str]  # by the name of the queue
    attempts: int


class WithoutJoinedWrites(ModelServer):
    """A server that refuses an object together with its status."""

    async def write(self, write: Create | Update | Patch | Apply | Delete) -> Any:
        """Carry out other writes."""
        if isinstance(write, Update) and write.with_status:
            raise ForbiddenError("not both at once", code=403, reason="Forbidden")
        return await super().write(write)


async def _work(*, joins_writes: bool = False, kind: type[ModelServer] = ModelServer) -> Work:
    """Let pods come that share a template, and return what was done until they were bound."""
    server = kind(Timestamp(NOW))
    spec = ResourceClaimTemplateSpec(spec=claim("c").spec)
    metadata = ObjectMeta(name="template", namespace="default")
    server.model.put(device_class(), node("n1"), slice_of("n1", PODS))
    server.model.put(ResourceClaimTemplate(metadata=metadata, spec=spec))
    context = ProgramContext()
    informers = shared_informers(server, context)
    config = SchedulerConfig(joins_claim_writes=joins_writes)
    scheduling = SchedulerProgram(server, context, config=config, informers=informers)
    controlling = ControllerProgram(server, context, informers=informers)
    task = asyncio.create_task(run_all(informers, scheduling, controlling))
    await informers.wait_for_sync()
    await asyncio.sleep(0.01)  # the controllers of nodes have looked at theirs
    before = _reconciles(controlling)
    server.requests.clear()
    for number in range(PODS):
        await server.write(Create(_pod(f"p{number}")))
    async with asyncio.timeout(30):
        while server.requests["create Event"] < PODS:
            await asyncio.sleep(0)
    counted = Counter({key: n for key, n in server.requests.items() if key != "create Pod"})
    reconciles = _reconciles(controlling) - before
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    return Work(counted, reconciles, scheduling.scheduler.metrics.algorithm_s.count())


def _reconciles(program: ControllerProgram) -> Counter[str]:
    names = {each.controller.source or each.controller.name for each in program.loops.running}
    return Counter({name: program.queues.worked.count(name) for name in names})


def _pod(name: str) -> Pod:
    made = user(name, "c")
    (entry,) = made.spec.resource_claims
    entry = replace(entry, resource_claim_name=None, resource_claim_template_name="template")
    spec: Any = replace(made.spec, resource_claims=(entry,))
    return replace(made, metadata=replace(made.metadata, uid=""), spec=spec)


def test_a_pod_with_a_claim_template_takes_six_requests() -> None:
    work = asyncio.run(_work())
    assert work.requests == dict.fromkeys(
        (
            "create ResourceClaim",  # from the template
            "apply Pod/status",  # names the claim
            "update ResourceClaim",  # the finalizer, before there is anything to protect
            "update ResourceClaim/status",  # devices and reservation
            "create Pod/binding",
            "create Event",  # Scheduled
        ),
        PODS,
    )


def test_in_one_process_it_takes_five() -> None:
    work = asyncio.run(_work(joins_writes=True))
    assert work.requests == dict.fromkeys(
        (
            "create ResourceClaim",
            "apply Pod/status",
            "update ResourceClaim/and status",  # finalizer, devices and reservation
            "create Pod/binding",
            "create Event",
        ),
        PODS,
    )
    assert work.attempts == PODS


def test_a_joined_write_that_is_refused_is_made_in_two() -> None:
    work = asyncio.run(_work(joins_writes=True, kind=WithoutJoinedWrites))
    assert work.requests["update ResourceClaim"] == PODS
    assert work.requests["update ResourceClaim/status"] == PODS
    assert work.attempts == PODS


def test_the_scheduler_tries_a_pod_once() -> None:
    assert asyncio.run(_work()).attempts == PODS


def test_of_all_controllers_only_that_of_claims_looks_at_a_pod_once() -> None:
    assert asyncio.run(_work()).reconciles == {"resource_claim": PODS}
