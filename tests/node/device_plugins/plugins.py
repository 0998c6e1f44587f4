"""A device plugin to try the manager with: a real one, at a real socket."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Self

import grpc
import grpc.aio

from moorage.api.codec import decode_tree
from moorage.api.core import Pod
from moorage.wire import deviceplugin_pb2 as wire
from moorage.wire import services

RESOURCE = "example.com/gpu"


def listing(*ids: str, sick: Sequence[str] = ()) -> wire.ListAndWatchResponse:
    """Return a list of devices."""
    message = wire.ListAndWatchResponse()
    for id_ in ids:
        message.devices.add(ID=id_, health="Unhealthy" if id_ in sick else "Healthy")
    return message


class FakePlugin:
    """Lists what it is told to, and remembers what it is asked."""

    def __init__(self, folder: Path, resource: str = RESOURCE, name: str = "gpu.sock") -> None:
        self.folder, self.resource, self.name = folder, resource, name
        self.options = wire.DevicePluginOptions()
        self.allocated: list[tuple[str, ...]] = []
        self.prestarted: list[tuple[str, ...]] = []
        self.preferences: list[wire.ContainerPreferredAllocationRequest] = []
        self.prefers: Callable[[Sequence[str]], Iterable[str]] = lambda available: ()
        self.answer = wire.ContainerAllocateResponse(envs={"GIVEN": "yes"})
        self.refusal = ""
        self.has_answer = True
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.asked = asyncio.Event()
        self._lists: asyncio.Queue[wire.ListAndWatchResponse | None] = asyncio.Queue()
        self._listed: wire.ListAndWatchResponse | None = None
        self._server = services.new_server()

    async def __aenter__(self) -> Self:
        handlers: dict[services.Method, Callable[..., Any]] = {
            services.GET_OPTIONS: self._get_options,
            services.LIST_AND_WATCH: self._list,
            services.GET_PREFERRED: self._prefer,
            services.ALLOCATE: self._allocate,
            services.PRE_START: self._pre_start,
        }
        self._server.add_generic_rpc_handlers((services.serve(handlers),))
        self._server.add_insecure_port(f"unix:{self.folder / self.name}")
        await self._server.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._server.stop(None)

    async def register(self, **fields: str) -> None:
        """Come to the node."""
        known = {"version": "v1beta1", "endpoint": self.name, "resource_name": self.resource}
        request = wire.RegisterRequest()
        for name, value in {**known, **fields}.items():
            setattr(request, name, value)
        async with services.open_socket(self.folder / "kubelet.sock") as channel:
            await services.call(channel, services.REGISTER)(request, timeout=20)

    def say(self, *ids: str, sick: Sequence[str] = ()) -> None:
        """List these devices."""
        self._lists.put_nowait(listing(*ids, sick=sick))

    def say_message(self, message: wire.ListAndWatchResponse) -> None:
        """List whatever this is."""
        self._lists.put_nowait(message)

    def end(self) -> None:
        """End the stream."""
        self._lists.put_nowait(None)

    async def _get_options(self, request: Any, context: Any) -> wire.DevicePluginOptions:
        return self.options

    async def _list(self, request: Any, context: Any) -> AsyncIterator[wire.ListAndWatchResponse]:
        # As real plugins do, begin with the list as it is: a stream that the node has left may
        # have taken what was said last.
        if self._listed is not None:
            yield self._listed
        while (message := await self._lists.get()) is not None:
            self._listed = message
            yield message

    async def _prefer(
        self,
        request: wire.PreferredAllocationRequest,
        context: Any,
    ) -> wire.PreferredAllocationResponse:
        asked = request.container_requests[0]
        self.preferences.append(asked)
        answer = wire.PreferredAllocationResponse()
        answer.container_responses.add(deviceIDs=self.prefers(asked.available_deviceIDs))
        return answer

    async def _allocate(
        self,
        request: wire.AllocateRequest,
        context: grpc.aio.ServicerContext[Any, Any],
    ) -> wire.AllocateResponse:
        self.allocated.append(tuple(request.container_requests[0].devices_ids))
        self.asked.set()
        await self.may_answer.wait()
        if self.refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, self.refusal)
        return wire.AllocateResponse(container_responses=[self.answer] if self.has_answer else [])

    async def _pre_start(self, request: wire.PreStartContainerRequest, context: Any) -> Any:
        self.prestarted.append(tuple(request.devices_ids))
        if self.refusal:
            await context.abort(grpc.StatusCode.UNKNOWN, self.refusal)
        return wire.PreStartContainerResponse()


def pod(
    uid: str = "uid-1",
    *,
    containers: dict[str, int] | None = None,
    inits: dict[str, int] | None = None,
    sidecars: Sequence[str] = (),
    resource: str = RESOURCE,
    status: dict[str, Any] | None = None,
) -> Pod:
    """Return a pod whose containers ask for so many devices."""

    def made(name: str, count: int) -> dict[str, Any]:
        limits = {resource: str(count)} if count else {}
        policy = {"restartPolicy": "Always"} if name in sidecars else {}
        return {"name": name, "resources": {"limits": limits, "requests": limits}, **policy}

    return decode_tree(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": uid, "namespace": "default", "uid": uid},
            "spec": {
                "initContainers": [made(*each) for each in (inits or {}).items()],
                "containers": [made(*each) for each in (containers or {"main": 1}).items()],
            },
            "status": status or {},
        },
        Pod,
    ).value
