"""Monitors ask which devices pods have."""

from __future__ import annotations

from collections.abc import Iterable

import grpc
import grpc.aio
import pytest

from moorage.node.dra.pod_resources import SOCKET
from moorage.wire import dra_v1_pb2 as dra_wire
from moorage.wire import podresources_pb2 as wire
from moorage.wire.services import GET_ALLOCATABLE, GET_POD, LIST_PODS, call, open_socket
from tests.node.dra.worlds import World, connected, play
from tests.node.fakedriver import FakeDriver, device

GPU = "gpu.example.com"


class Plugins:
    def of_container(self, pod_uid: str, container: str) -> Iterable[wire.ContainerDevices]:
        if (pod_uid, container) == ("pod-p", "main"):
            yield wire.ContainerDevices(resource_name="example.com/fpga", device_ids=["f0"])

    def allocatable(self) -> Iterable[wire.ContainerDevices]:
        yield wire.ContainerDevices(resource_name="example.com/fpga", device_ids=["f0", "f1"])


def test_pods_are_listed_with_their_devices() -> None:
    async def scenario(world: World) -> None:
        world.settings["others"] = Plugins()
        uid = world.claim("c", GPU)
        pod = world.pod("p", "c")
        world.pod("q")
        async with world.agent() as dra, FakeDriver(world.root, GPU) as driver:
            await connected(dra, GPU)
            driver.devices[uid] = [
                device(GPU, "one"),
                dra_wire.Device(pool_name="pool", device_name="two", share_id="s"),
                device(GPU, "three"),
            ]
            await dra.manager.prepare(pod)
            async with open_socket(world.root / SOCKET) as channel:
                listed = await call(channel, LIST_PODS)(wire.ListPodResourcesRequest())
                found = await call(channel, GET_POD)(
                    wire.GetPodResourcesRequest(pod_name="p", pod_namespace="default")
                )
                everything = await call(channel, GET_ALLOCATABLE)(
                    wire.AllocatableResourcesRequest()
                )
                with pytest.raises(grpc.aio.AioRpcError) as caught:
                    await call(channel, GET_POD)(
                        wire.GetPodResourcesRequest(pod_name="x", pod_namespace="y")
                    )
        assert caught.value.details() == "pod x in namespace y not found"
        assert [each.name for each in listed.pod_resources] == ["p", "q"]
        assert listed.pod_resources[0] == found.pod_resources
        (container,) = found.pod_resources.containers
        assert container.devices[0].resource_name == "example.com/fpga"
        (claim,) = container.dynamic_resources
        assert (claim.claim_name, claim.claim_namespace) == ("c", "default")
        resources = [
            (
                each.driver_name,
                each.device_name,
                [cdi.name for cdi in each.cdi_devices],
                each.HasField("share_id"),
            )
            for each in claim.claim_resources
        ]
        assert resources == [  # each with its own ids only
            (GPU, "one", [f"{GPU}/device=one"], False),
            (GPU, "two", [], True),
            (GPU, "three", [f"{GPU}/device=three"], False),
        ]
        assert list(everything.devices[0].device_ids) == ["f0", "f1"]

    play(scenario)


def test_a_socket_of_an_agent_that_was_killed_is_in_nobodys_way() -> None:
    async def scenario(world: World) -> None:
        path = world.root / SOCKET
        path.parent.mkdir()
        path.touch()
        async with world.agent(), open_socket(path) as channel:
            assert await call(channel, LIST_PODS)(wire.ListPodResourcesRequest())

    play(scenario)
