"""The controllers of DRA with a real server: informers, queues, writes, events."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core import Event, Pod
from moorage.api.gates import Gates
from moorage.api.meta import without_managed_fields
from moorage.api.resource.v1 import (
    DeviceTaintRule,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceClaimTemplate,
    ResourceSlice,
)
from moorage.api.resource.v1alpha3 import ResourcePoolStatusRequest
from moorage.api.timestamp import Timestamp
from moorage.apiserver.direct_client import direct_client
from moorage.claims import protected
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import in_process_client
from moorage.client.in_process import InProcessTransport
from moorage.client.indexer import Indexer
from moorage.client.informer_factory import InformerFactory
from moorage.client.writes import Create, Delete, Patch, RequeueAfter, Target, Update
from moorage.cluster.programs import CONTROLLERS_AGENT, SCHEDULER_AGENT
from moorage.controllers.controller import Lookup
from moorage.controllers.controller_manager import ControllerManager, dra_controllers
from moorage.controllers.metrics import DraMetrics, WorkQueuesMetrics
from moorage.controllers.resource_claim_releases import ClaimReleaseController
from moorage.kit.metrics import exposition
from tests.apiserver.client import claim
from tests.client.servers import Breaking, embedded, until

NOW = Timestamp.parse("2026-01-01T00:00:00Z")
DRIVER = "dra.example.com"
FINALIZER = "resource.kubernetes.io/delete-protection"

Tree = dict[str, Any]


class World:
    """A server with controllers on it."""

    def __init__(self, wire: Breaking) -> None:
        self.wire = wire
        self.client = ApiClient(wire)
        self.metrics = DraMetrics()
        self.informers = InformerFactory(self.client, random=lambda: 0.0)
        self.queues = WorkQueuesMetrics()
        self.loops = ControllerManager(
            dra_controllers(Gates.parse(), self.metrics),
            client=self.client,
            informers=self.informers,
            random=lambda: 0.0,
            metrics=self.queues,
        )

    async def create(self, struct: type[Any], name: str, **fields: Any) -> Any:
        metadata = {"name": name}
        if struct in (Pod, ResourceClaim, ResourceClaimTemplate):
            metadata["namespace"] = "default"
        tree = {"metadata": metadata, **fields}
        return await self.client.write(Create(decode_tree(tree, struct).value))

    async def pod(self, name: str, node: str = "") -> Pod:
        spec: Tree = {
            "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "r"}]}}],
            "resourceClaims": [{"name": "r", "resourceClaimTemplateName": "t"}],
            "terminationGracePeriodSeconds": 0,
        }
        if node:
            spec["nodeName"] = node
        found = await self.create(Pod, name, spec=spec)
        assert isinstance(found, Pod)
        return found

    async def template(self) -> None:
        requests = [{"name": "d", "exactly": {"deviceClassName": "c"}}]
        spec = {"spec": {"devices": {"requests": requests}}}
        await self.create(ResourceClaimTemplate, "t", spec=spec)

    async def named_claim(self, pod: str) -> ResourceClaim:
        """Wait until the status of a pod names its claim, and return the claim."""

        def check() -> ResourceClaim | None:
            found = self.informers.objects.get(Pod, "default", pod)
            statuses = found.status.resource_claim_statuses if found is not None else None
            name = statuses[0].resource_claim_name if statuses else None
            return self.informers.objects.get(ResourceClaim, "default", name) if name else None

        found = await until(check)
        assert found is not None
        return found

    async def allocate(self, claim: ResourceClaim, *pods: Pod) -> None:
        """Allocate a claim and reserve it, as the scheduler would."""
        target = Target.of(claim)
        await self.client.write(Patch(target, {"metadata": {"finalizers": [FINALIZER]}}))
        result = {"request": "d", "driver": DRIVER, "pool": "pool", "device": "d0"}
        reserved = [
            {"resource": "pods", "name": each.metadata.name, "uid": each.metadata.uid}
            for each in pods
        ]
        status = {"allocation": {"devices": {"results": [result]}}, "reservedFor": reserved}
        await self.client.write(Patch(target, {"status": status}, "status"))

    async def slices(self) -> None:
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": "n", "pool": pool, "devices": [{"name": "d0"}]}
        await self.create(ResourceSlice, "s", spec=spec)

    def there(self, struct: type[Any]) -> int:
        return self.informers.objects.count(struct)


def play(folder: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(60), embedded(folder) as server:
            world = World(Breaking(InProcessTransport(server.application)))
            async with world.informers.running():
                task = asyncio.create_task(world.loops.run())
                try:
                    await scenario(world)
                finally:
                    task.cancel()
                    await asyncio.gather(task, return_exceptions=True)

    asyncio.run(run())


def test_claim_lives_from_template_to_release(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.template()
        made = await world.pod("p", node="n")
        claim = await world.named_claim("p")
        assert claim.metadata.owner_references[0].uid == made.metadata.uid
        await world.allocate(claim)
        await until(lambda: _reserved(world, claim.metadata.name))
        target = Target(Pod, "default", "p")
        await world.client.write(Patch(target, {"status": {"phase": "Succeeded"}}, "status"))
        await until(lambda: not world.there(ResourceClaim))
        stored = await world.client.get(Pod, "default", "p")
        assert stored is not None
        managers = {each.manager for each in stored.metadata.managed_fields}
        assert "ResourceClaimController" in managers
        text = exposition(world.queues.families())
        assert 'workqueue_depth{name="resource_claim"} 0' in text
        assert 'workqueue_work_duration_seconds_count{name="resource_claim"}' in text

    play(tmp_path, scenario)


def test_missing_template_is_told_as_an_event(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.pod("p")
        events: list[Event] = []
        while not events:
            await asyncio.sleep(0.01)
            page = await world.client.list(Event, "default")
            events = [each for each in page.values if each.reason == "FailedResourceClaimCreation"]
        assert events[0].source.component == "resource_claim"
        assert events[0].message.startswith('PodResourceClaim r: resource claim template "t":')
        await world.template()
        await world.named_claim("p")

    play(tmp_path, scenario)


def test_rule_evicts_and_its_status_tells(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.slices()
        await world.template()
        pod = await world.pod("p", node="n")
        await world.allocate(await world.named_claim("p"), pod)
        taint = {"key": "k", "effect": "NoExecute"}
        spec = {"deviceSelector": {"driver": DRIVER}, "taint": taint}
        await world.create(DeviceTaintRule, "r", spec=spec)
        await until(lambda: not world.there(Pod))
        found = await until(lambda: _conditions(world))
        assert found[0].type == "EvictionInProgress"

    play(tmp_path, scenario)


def test_request_is_answered(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.slices()
        await world.create(ResourcePoolStatusRequest, "q", spec={"driver": DRIVER})
        status = await until(lambda: _answer(world))
        assert status.pools[0].total_devices == 1

    play(tmp_path, scenario)


def test_every_pod_gets_one_claim_though_writes_fail_and_watches_break(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.template()
        for number in range(30):
            await world.pod(f"p{number}")
            if number % 10 == 5:
                world.wire.cut()
        world.wire.is_down = True
        await asyncio.sleep(0.02)
        world.wire.is_down = False
        for number in range(30):
            await world.named_claim(f"p{number}")
        page = await world.client.list(ResourceClaim, "default")
        assert len(page.values) == 30
        for number in range(30):
            await world.client.write(Delete(Target(Pod, "default", f"p{number}")))
        await until(lambda: not world.there(Pod))

    play(tmp_path, scenario)


def test_update_of_status_and_finalizer_follow_each_other(tmp_path: Path) -> None:
    async def scenario(world: World) -> None:
        await world.template()
        pod = await world.pod("p", node="n")
        claim = await world.named_claim("p")
        await world.allocate(claim, pod)
        stored = await world.client.get(ResourceClaim, "default", claim.metadata.name)
        assert stored is not None
        await world.client.write(Update(stored))
        await world.client.write(Delete(Target.of(pod)))
        await until(lambda: _is_free(world, claim.metadata.name))

    play(tmp_path, scenario)


def _reserved(world: World, name: str) -> bool:
    found = world.informers.objects.get(ResourceClaim, "default", name)
    return found is not None and bool(found.status.reserved_for)


def _is_free(world: World, name: str) -> bool:
    found = world.informers.objects.get(ResourceClaim, "default", name)
    return found is not None and not found.metadata.finalizers and found.status.allocation is None


def _conditions(world: World) -> Any:
    found = world.informers.objects.get(DeviceTaintRule, "", "r")
    return found.status.conditions if found is not None else ()


def _answer(world: World) -> Any:
    found = world.informers.objects.get(ResourcePoolStatusRequest, "", "q")
    return found.status if found is not None else None


@pytest.mark.parametrize("connect", [direct_client, in_process_client])
def test_the_server_knows_which_devices_a_scheduler_left_behind(
    tmp_path: Path, connect: Callable[..., ApiClient]
) -> None:
    async def run() -> None:
        async with embedded(tmp_path) as server:
            scheduler = connect(server.application, manager=SCHEDULER_AGENT)
            client = connect(server.application, manager=CONTROLLERS_AGENT)
            controller, objects = ClaimReleaseController(Gates.parse()), Indexer()
            controller.add_indexes(objects)
            for name, writer in (("left", scheduler), ("given", client)):
                await client.write(Create(unallocated(name)))
                stored = await client.get(ResourceClaim, "default", name)
                assert stored is not None
                await writer.write(Update(allocated(stored), with_status=True))
                claim = await client.get(ResourceClaim, "default", name)
                objects.put(without_managed_fields(claim))
                key = ("default", name)
                (wait,) = controller.reconcile(objects, key, NOW, {})
                assert wait == RequeueAfter(key, 60.0)
                later = Timestamp(NOW.instant + timedelta(seconds=60))
                ask = Lookup(ResourceClaim, *key)
                assert list(controller.reconcile(objects, key, later, {})) == [ask]
                steps = list(controller.reconcile(objects, key, later, {ask: claim}))
                assert bool(steps) == (writer is scheduler)
                # What nobody frees, an administrator may: `leftovers.freeing_command`.
                patch = Patch(Target.of(claim), {"status": {"allocation": None}}, "status")
                freeing = steps[0] if steps else patch
                assert isinstance(freeing, Update | Patch)
                freed = await client.write(freeing)
                assert freed.status == ResourceClaimStatus()

    asyncio.run(run())


def unallocated(name: str) -> ResourceClaim:
    tree = claim(namespace="default")
    tree["metadata"]["name"] = name
    return decode_tree(tree, ResourceClaim).value


def allocated(found: ResourceClaim) -> ResourceClaim:
    """Return a claim as a scheduler leaves it behind, with a driver's report on its device."""
    (request,) = found.spec.devices.requests or ()
    device = {"driver": DRIVER, "pool": "pool", "device": "d0"}
    tree = {
        "allocation": {"devices": {"results": [{"request": request.name, **device}]}},
        "devices": [{**device, "data": {"some": "thing"}}],
    }
    status = decode_tree(tree, ResourceClaimStatus).value
    return replace(protected(found), status=status)
