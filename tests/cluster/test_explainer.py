"""The explainer: an event for each pod with claims whose cause is new, and no more."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import decode_tree
from moorage.api.core import Event, Pod
from moorage.api.gates import Gates
from moorage.api.resource.v1 import ResourceClaim
from moorage.apiserver.server import assembled
from moorage.apiserver.settings import Settings
from moorage.client.client_factory import in_process_client
from moorage.client.writes import Create
from moorage.cluster.explainer import EVENTS_MAX, Explainer, ExplainerProgram
from moorage.cluster.programs import ControllerProgram, ProgramContext
from moorage.kit.clock import EPOCH, ManualClock
from tests.insight.monitor.clusters import busy_objects, objects_of

GATES = Gates.parse()
CLAIM = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: {name}, namespace: team}}
spec:
  devices:
    requests: [{{name: r, exactly: {{deviceClassName: gpu.nvidia.com, count: {count}}}}}]
---
apiVersion: v1
kind: Pod
metadata: {{name: {name}, namespace: team}}
spec:
  schedulerName: {scheduler}
  resourceClaims: [{{name: c, resourceClaimName: {name}}}]
  containers: [{{name: c, image: i, resources: {{claims: [{{name: c}}]}}}}]
"""


def waiting(name: str, count: int = 20, scheduler: str = "default-scheduler") -> list[Any]:
    return objects_of(CLAIM.format(name=name, count=count, scheduler=scheduler))


def machines() -> list[Any]:
    """Return the cluster without pods, and without the pool that is incomplete."""
    return [
        each
        for each in busy_objects(EPOCH)
        if not isinstance(each, Pod) and each.metadata.name != "half"
    ]


def told(explainer: Explainer, objects: list[Any], after_s: float = 0) -> dict[str, str]:
    now = EPOCH + timedelta(seconds=after_s)
    return {each.pod.metadata.name: each.text for each in explainer.work(objects, now)}


def test_a_pod_is_told_once_why_it_waits_and_again_when_that_changes() -> None:
    explainer = Explainer(GATES, ManualClock())
    many = "request r asks for 20 devices of class gpu.nvidia.com, node dgx-h100-0 has 8"
    first = told(explainer, [*machines(), *waiting("p")])
    assert list(first) == ["p"]
    assert first["p"].startswith(f"Moorage: {many}")
    assert told(explainer, [*machines(), *waiting("p")], 120) == {}
    changed = [*machines(), *waiting("p", 8)]
    assert told(explainer, changed, 130)["p"] != first["p"]


def test_a_pod_gets_an_event_once_a_minute_at_most() -> None:
    explainer = Explainer(GATES, ManualClock())
    assert told(explainer, [*machines(), *waiting("p")])
    changed = [*machines(), *waiting("p", 8)]
    assert told(explainer, changed, 30) == {}
    assert list(told(explainer, changed, 61)) == ["p"]


def test_an_event_that_names_what_is_gone_is_followed_by_another_at_once() -> None:
    explainer = Explainer(GATES, ManualClock())
    taken = [held(f"h-{number}", number) for number in range(8)]
    first = told(explainer, [*machines(), *waiting("p", 8), *taken])
    assert "h-0" in first["p"]
    claims = machines() + waiting("p", 8)
    assert told(explainer, [*claims, *taken[1:], held("other", 0)], 5).keys() == {"p"}
    assert told(explainer, [*claims, *taken[:5]], 10).keys() == {"p"}, "two of those named are gone"


def held(name: str, number: int) -> Any:
    """Return a claim that has a GPU and is reserved for a pod of its name."""
    metadata = {"name": name, "namespace": "team", "uid": name}
    device = {"request": "r", "driver": "gpu.nvidia.com", "pool": "dgx-h100-0"}
    results = [{**device, "device": f"gpu-{number}"}]
    status = {
        "allocation": {"devices": {"results": results}},
        "reservedFor": [{"resource": "pods", "name": name, "uid": name}],
    }
    requests = [{"name": "r", "exactly": {"deviceClassName": "gpu.nvidia.com"}}]
    spec = {"devices": {"requests": requests}}
    return decode_tree({"metadata": metadata, "spec": spec, "status": status}, ResourceClaim).value


def test_pods_that_fit_or_have_no_claims_or_another_scheduler_are_left_alone() -> None:
    explainer = Explainer(GATES, ManualClock())
    (plain,) = objects_of(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: plain, namespace: team}\n"
        "spec: {containers: [{name: c, image: i, resources: {requests: {cpu: 1000}}}]}\n"
    )
    objects = [*machines(), plain, *waiting("fits", 1), *waiting("other", 20, "volcano")]
    assert told(explainer, objects) == {}


def test_a_pass_records_a_bounded_number_and_others_come_next() -> None:
    explainer = Explainer(GATES, ManualClock())
    objects = [*machines()]
    for number in range(EVENTS_MAX + 5):
        objects += waiting(f"p-{number}")
    first = told(explainer, objects)
    assert len(first) == EVENTS_MAX
    second = told(explainer, objects, 15)
    assert len(second) == 5
    assert not first.keys() & second.keys()


def test_what_is_known_of_a_pod_that_is_gone_is_forgotten() -> None:
    explainer = Explainer(GATES, ManualClock())
    assert told(explainer, [*machines(), *waiting("p")])
    assert told(explainer, machines(), 1) == {}
    assert list(told(explainer, [*machines(), *waiting("p")], 2)) == ["p"]


def test_beside_controllers_it_records_events(tmp_path: Path) -> None:
    async def run() -> None:
        context = ProgramContext()
        settings = Settings(tmp_path, allows_all=True)
        async with asyncio.timeout(60), assembled(settings) as server:
            client = in_process_client(server.application)
            await _create_namespace(client)
            for each in (*machines()[:30], *waiting("p")):
                if each.kind in ("Node", "DeviceClass", "ResourceSlice") or (
                    each.metadata.name == "p"
                ):
                    await client.write(Create(_new(each)))
            program = ControllerProgram(client, context, chosen=lambda _: False)
            program.beside = (
                ExplainerProgram(client, context, program.informers, interval_s=0.05),
            )
            task = asyncio.create_task(program.run())
            found: list[Event] = []

            async def recorded() -> bool:
                found[:] = (await client.list(Event)).values
                return bool(found)

            while not await recorded():
                await asyncio.sleep(0.05)
                assert not task.done()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert [(each.reason, each.involved_object.name) for each in found] == [
                ("Explained", "p")
            ]
            assert found[0].source.component == "moorage-explainer"

    asyncio.run(run())


async def _create_namespace(client: Any) -> None:
    (namespace,) = objects_of("apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n")
    await client.write(Create(_new(namespace)))


def _new(value: Any) -> Any:
    return replace(value, metadata=replace(value.metadata, uid=""))
