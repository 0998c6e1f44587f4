"""The gRPC services between a node and its drivers: their methods, for clients and servers.

    async with open_socket(path) as channel:
        info = await call(channel, GET_INFO)(InfoRequest(), timeout=5)

    server.add_generic_rpc_handlers((serve({GET_INFO: info, NOTIFY: note}),))

A service with another name in another version has the same messages: `of` returns a method under
that name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from moorage.wire import deviceplugin_pb2, dra_v1_pb2, grpc, health_v1_pb2, podresources_pb2
from moorage.wire import registration_pb2 as registration

MESSAGE_BYTES_MAX = 16 * 1024 * 1024  # from other programs
SOCKET_PATH_BYTES_MAX = 107  # of a unix socket: 108 with the NUL at the end
CONNECT_MS_MAX = 5_000  # until a program answers after it accepted a connection

# The versions that drivers register.
DRA_V1, DRA_V1BETA1 = "v1.DRAPlugin", "v1beta1.DRAPlugin"
HEALTH_V1, HEALTH_V1ALPHA1 = "v1.DRAResourceHealth", "v1alpha1.DRAResourceHealth"

_DRA_PACKAGES = "k8s.io.kubelet.pkg.apis.dra"
# The services of those versions, whose names on the wire may differ.
SERVICE_OF = {
    DRA_V1: f"{_DRA_PACKAGES}.v1.DRAPlugin",
    DRA_V1BETA1: f"{_DRA_PACKAGES}.v1beta1.DRAPlugin",
    HEALTH_V1: HEALTH_V1,
    HEALTH_V1ALPHA1: HEALTH_V1ALPHA1,
}

DRA_PLUGIN, DEVICE_PLUGIN = "DRAPlugin", "DevicePlugin"  # types of plugins that register


class Method(NamedTuple):
    """One method of a service, with the types of its messages."""

    service: str
    name: str
    request: type[Any]
    response: type[Any]
    is_stream: bool = False  # of responses; requests never are

    @property
    def path(self) -> str:
        """The method on the wire."""
        return f"/{self.service}/{self.name}"

    def of(self, version: str) -> Method:
        """Return the same method in a version, as drivers name it."""
        return self._replace(service=SERVICE_OF[version])


_REGISTRATION = "pluginregistration.Registration"
GET_INFO = Method(_REGISTRATION, "GetInfo", registration.InfoRequest, registration.PluginInfo)
NOTIFY = Method(
    _REGISTRATION,
    "NotifyRegistrationStatus",
    registration.RegistrationStatus,
    registration.RegistrationStatusResponse,
)

PREPARE = Method(
    SERVICE_OF[DRA_V1],
    "NodePrepareResources",
    dra_v1_pb2.NodePrepareResourcesRequest,
    dra_v1_pb2.NodePrepareResourcesResponse,
)
UNPREPARE = Method(
    SERVICE_OF[DRA_V1],
    "NodeUnprepareResources",
    dra_v1_pb2.NodeUnprepareResourcesRequest,
    dra_v1_pb2.NodeUnprepareResourcesResponse,
)
WATCH_HEALTH = Method(
    SERVICE_OF[HEALTH_V1],
    "NodeWatchResources",
    health_v1_pb2.NodeWatchResourcesRequest,
    health_v1_pb2.NodeWatchResourcesResponse,
    is_stream=True,
)

_LISTER = "v1.PodResourcesLister"
LIST_PODS = Method(
    _LISTER,
    "List",
    podresources_pb2.ListPodResourcesRequest,
    podresources_pb2.ListPodResourcesResponse,
)
GET_ALLOCATABLE = Method(
    _LISTER,
    "GetAllocatableResources",
    podresources_pb2.AllocatableResourcesRequest,
    podresources_pb2.AllocatableResourcesResponse,
)
GET_POD = Method(
    _LISTER,
    "Get",
    podresources_pb2.GetPodResourcesRequest,
    podresources_pb2.GetPodResourcesResponse,
)

_PLUGIN = "v1beta1.DevicePlugin"
REGISTER = Method(
    "v1beta1.Registration", "Register", deviceplugin_pb2.RegisterRequest, deviceplugin_pb2.Empty
)
GET_OPTIONS = Method(
    _PLUGIN,
    "GetDevicePluginOptions",
    deviceplugin_pb2.Empty,
    deviceplugin_pb2.DevicePluginOptions,
)
LIST_AND_WATCH = Method(
    _PLUGIN,
    "ListAndWatch",
    deviceplugin_pb2.Empty,
    deviceplugin_pb2.ListAndWatchResponse,
    is_stream=True,
)
GET_PREFERRED = Method(
    _PLUGIN,
    "GetPreferredAllocation",
    deviceplugin_pb2.PreferredAllocationRequest,
    deviceplugin_pb2.PreferredAllocationResponse,
)
ALLOCATE = Method(
    _PLUGIN, "Allocate", deviceplugin_pb2.AllocateRequest, deviceplugin_pb2.AllocateResponse
)
PRE_START = Method(
    _PLUGIN,
    "PreStartContainer",
    deviceplugin_pb2.PreStartContainerRequest,
    deviceplugin_pb2.PreStartContainerResponse,
)

METHODS = (
    *(GET_INFO, NOTIFY, PREPARE, UNPREPARE, WATCH_HEALTH, LIST_PODS, GET_ALLOCATABLE, GET_POD),
    *(REGISTER, GET_OPTIONS, LIST_AND_WATCH, GET_PREFERRED, ALLOCATE, PRE_START),
)

_BOUNDS = [
    ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
    ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
]


def open_socket(path: Path | str) -> grpc.aio.Channel:
    """Return a channel to a unix socket; it connects on first use, and reconnects quickly."""
    reconnecting = [
        ("grpc.initial_reconnect_backoff_ms", 50),
        # Despite its name this bounds an attempt: a busy machine needs time.
        ("grpc.min_reconnect_backoff_ms", CONNECT_MS_MAX),
        ("grpc.max_reconnect_backoff_ms", 1000),
        ("grpc.use_local_subchannel_pool", 1),  # a recreated socket is another one
        ("grpc.default_authority", "localhost"),  # Go rejects the escaped path
    ]
    return grpc.aio.insecure_channel(f"unix:{path}", [*_BOUNDS, *reconnecting])


def new_server() -> grpc.aio.Server:
    """Return a server that accepts messages up to our bound."""
    return grpc.aio.server(options=_BOUNDS)


def call(channel: grpc.aio.Channel, method: Method) -> Any:
    """Return a callable of a method: `await it(request, timeout=…)`, or `async for` a stream."""
    make = channel.unary_stream if method.is_stream else channel.unary_unary
    return make(
        method.path,
        request_serializer=method.request.SerializeToString,
        response_deserializer=method.response.FromString,
    )


def serve(methods: Mapping[Method, Callable[..., Any]]) -> grpc.GenericRpcHandler:
    """Return a handler for methods, each an async function of the request and the context."""
    handlers: dict[str, grpc.RpcMethodHandler[Any, Any]] = {}
    for method, function in methods.items():
        make = (
            grpc.unary_stream_rpc_method_handler
            if method.is_stream
            else grpc.unary_unary_rpc_method_handler
        )
        handlers[method.path] = make(
            function,
            request_deserializer=method.request.FromString,
            response_serializer=method.response.SerializeToString,
        )
    return _Handlers(handlers)


class _Handlers(grpc.GenericRpcHandler):
    """Finds the handler of a method by its path."""

    def __init__(self, handlers: Mapping[str, grpc.RpcMethodHandler[Any, Any]]) -> None:
        self._handlers = handlers

    def service(
        self, handler_call_details: grpc.HandlerCallDetails
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        """Return the handler of a call, None if the method is not served."""
        return self._handlers.get(handler_call_details.method)
