"""Services and field numbers are those of the kubelet's interfaces, as the digest has them."""

from __future__ import annotations

import asyncio
from asyncio import StreamReader, StreamWriter
from collections.abc import Awaitable, Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import Descriptor

from moorage.wire import deviceplugin_pb2 as plugin
from moorage.wire import dra_v1_pb2 as dra
from moorage.wire import dra_v1beta1_pb2, health_v1alpha1_pb2, services
from moorage.wire import health_v1_pb2 as health
from moorage.wire import podresources_pb2 as pods
from moorage.wire import registration_pb2 as registration
from moorage.wire.services import (
    DRA_V1BETA1,
    GET_INFO,
    HEALTH_V1ALPHA1,
    METHODS,
    Method,
    call,
    new_server,
    open_socket,
)

FIELDS = [
    (registration.PluginInfo, "type=1 name=2 endpoint=3 supported_versions=4"),
    (registration.RegistrationStatus, "plugin_registered=1 error=2"),
    (dra.Claim, "namespace=1 uid=2 name=3"),
    (dra.NodePrepareResourcesRequest, "claims=1"),
    (dra.NodePrepareResourcesResponse, "claims=1"),
    (dra.NodePrepareResourceResponse, "devices=1 error=2"),
    (dra.Device, "request_names=1 pool_name=2 device_name=3 cdi_device_ids=4 share_id=5"),
    (dra.NodeUnprepareResourcesResponse, "claims=1"),
    (dra.NodeUnprepareResourceResponse, "error=1"),
    (
        health.DeviceHealth,
        "device=1 health=2 last_updated_time=3 health_check_timeout_seconds=4 message=5",
    ),
    (health.DeviceIdentifier, "pool_name=1 device_name=2"),
    (pods.PodResources, "name=1 namespace=2 containers=3 cpu_ids=4 memory=5"),
    (pods.ContainerResources, "name=1 devices=2 cpu_ids=3 memory=4 dynamic_resources=5"),
    (pods.DynamicResource, "claim_name=2 claim_namespace=3 claim_resources=4"),
    (
        pods.ClaimResource,
        "cdi_devices=1 driver_name=2 pool_name=3 device_name=4 share_id=5",
    ),
    (plugin.RegisterRequest, "version=1 endpoint=2 resource_name=3 options=4"),
    (plugin.Device, "ID=1 health=2 topology=3"),
    (
        plugin.ContainerAllocateResponse,
        "envs=1 mounts=2 devices=3 annotations=4 cdi_devices=5",
    ),
]


@pytest.mark.parametrize(
    ("message", "wanted"), FIELDS, ids=lambda each: getattr(each, "__name__", "")
)
def test_fields_have_the_numbers_of_the_wire(message: type, wanted: str) -> None:
    descriptor: Descriptor = message.DESCRIPTOR  # type: ignore[attr-defined]
    assert " ".join(f"{each.name}={each.number}" for each in descriptor.fields) == wanted


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.path)
def test_methods_are_those_of_the_proto_files(method: Method) -> None:
    found = _methods()
    assert found[method.path] == (
        method.request.DESCRIPTOR.full_name,
        method.response.DESCRIPTOR.full_name,
        method.is_stream,
    )


def test_every_method_of_the_proto_files_is_known() -> None:
    older = [services.PREPARE.of(DRA_V1BETA1), services.UNPREPARE.of(DRA_V1BETA1)]
    older.append(services.WATCH_HEALTH.of(HEALTH_V1ALPHA1))
    assert {each.path for each in (*METHODS, *older)} == set(_methods())


def _methods() -> dict[str, tuple[str, str, bool]]:
    files = (registration, dra, dra_v1beta1_pb2, health, health_v1alpha1_pb2, pods, plugin)
    return {
        f"/{service.full_name}/{method.name}": (
            method.input_type.full_name,
            method.output_type.full_name,
            bool(method.server_streaming),
        )
        for file in files
        for service in file.DESCRIPTOR.services_by_name.values()
        for method in service.methods
    }


def test_a_program_that_is_slow_to_accept_is_waited_for(tmp_path: Path) -> None:
    """On a busy machine it takes more than a moment until a server says its first word."""

    async def scene() -> None:
        server = new_server()
        server.add_generic_rpc_handlers([_Info()])
        server.add_insecure_port(f"unix:{tmp_path / 'real'}")
        await server.start()
        relays: list[asyncio.Task[Any]] = []
        relay = _relay_late(tmp_path / "real", relays)
        slow = await asyncio.start_unix_server(relay, tmp_path / "slow")
        try:
            async with slow, open_socket(tmp_path / "slow") as channel:
                answer = await call(channel, GET_INFO)(registration.InfoRequest(), timeout=30)
        finally:
            await server.stop(None)
            await asyncio.wait(relays)
        assert answer.name == "slow.example.com"

    asyncio.run(scene())


class _Info(grpc.GenericRpcHandler):
    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any]:
        async def answer(request: Any, context: Any) -> registration.PluginInfo:
            return registration.PluginInfo(name="slow.example.com")

        return grpc.unary_unary_rpc_method_handler(
            answer,
            request_deserializer=registration.InfoRequest.FromString,
            response_serializer=registration.PluginInfo.SerializeToString,
        )


def _relay_late(
    path: Path, relays: list[asyncio.Task[Any]]
) -> Callable[[StreamReader, StreamWriter], Awaitable[None]]:
    async def relay(reader: StreamReader, writer: StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        relays.append(task)
        await asyncio.sleep(0.3)  # the point of the test; an attempt once had 50 ms
        with suppress(OSError), closing(writer):  # an attempt that comes late finds nobody
            far_reader, far_writer = await asyncio.open_unix_connection(path)
            await asyncio.gather(_copy(reader, far_writer), _copy(far_reader, writer))
            await far_writer.wait_closed()
        with suppress(OSError):
            await writer.wait_closed()

    return relay


async def _copy(reader: StreamReader, writer: StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(65536):
            writer.write(data)
            await writer.drain()
    writer.close()
