"""One running driver that registered: how it is reached, whether it is there, and how it is asked.

A driver may have several of them at a time, as when one version takes over from another.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

from mooring.kit.clock import Clock
from mooring.node.dra.replies import ERROR_CHARACTERS_MAX
from mooring.wire import grpc
from mooring.wire.services import WATCH_HEALTH, Method, call, open_socket

CALL_TIMEOUT_S = 45.0  # half of how long the kubelet waits before it tries a pod again

CALLS_MAX = 64  # under way at one driver; each costs memory, and most drivers do one at a time

# Told of each call: driver, method, status, seconds.
Observe = Callable[[str, str, str, float], None]


class CallError(Exception):
    """A call that did not get through, in the words of gRPC in Go."""

    def __init__(self, code: grpc.StatusCode, details: str) -> None:
        shown = details[:ERROR_CHARACTERS_MAX]
        super().__init__(f"rpc error: code = {code_name(code)} desc = {shown}")
        self.code = code


class Instance:
    """A connection to a driver's endpoint, kept while the driver is registered."""

    def __init__(
        self,
        driver: str,
        endpoint: str,
        *,
        version: str,
        health_version: str | None,
        clock: Clock,
        observe: Observe,
        changed: Callable[[], None],
        call_timeout_s: float = CALL_TIMEOUT_S,
    ) -> None:
        self.driver, self.endpoint = driver, endpoint
        self.version, self.health_version = version, health_version
        self.is_connected = False
        self._clock, self._observe, self._changed = clock, observe, changed
        self._call_timeout_s = call_timeout_s
        self._channel = open_socket(endpoint)
        self._turns = asyncio.Semaphore(CALLS_MAX)
        self._is_closed = False

    async def follow(self) -> None:
        """Keep the connection, and tell when it comes and goes, until cancelled."""
        while True:
            state = self._channel.get_state(try_to_connect=True)
            is_connected = state is grpc.ChannelConnectivity.READY
            if is_connected != self.is_connected:
                self.is_connected = is_connected
                self._changed()
            await self._channel.wait_for_state_change(state)

    async def ask(self, method: Method, request: Any) -> Any:
        """Return the answer to a call, or raise CallError."""
        async with self._turns:
            return await self._ask(method.of(self.version), request)

    async def _ask(self, method: Method, request: Any) -> Any:
        began_s, code = self._clock.monotonic(), grpc.StatusCode.OK
        try:
            answer = await call(self._channel, method)(request, timeout=self._call_timeout_s)
            return readable(answer, method)
        except grpc.aio.AioRpcError as error:
            code = error.code()
            raise CallError(code, error.details() or "") from error
        except CallError as error:
            code = error.code
            raise
        except grpc.aio.UsageError as error:  # closed meanwhile
            code = grpc.StatusCode.CANCELLED
            raise CallError(code, "the driver was deregistered") from error
        except asyncio.CancelledError:
            code = grpc.StatusCode.CANCELLED
            task = asyncio.current_task()
            if self._is_closed and task is not None and not task.cancelling():
                raise CallError(code, "the driver was deregistered") from None
            raise
        finally:
            taken_s = self._clock.monotonic() - began_s
            self._observe(self.driver, method.path, code_name(code), taken_s)

    async def health_reports(self) -> AsyncIterator[Any]:
        """Yield what the driver says of its devices until it ends, or raise CallError."""
        assert self.health_version is not None
        method = WATCH_HEALTH.of(self.health_version)
        stream = call(self._channel, method)(method.request())
        try:
            async for report in stream:
                yield readable(report, method)
        except grpc.aio.AioRpcError as error:
            raise CallError(error.code(), error.details() or "") from error
        finally:
            stream.cancel()

    async def close(self) -> None:
        """End the connection, and what is under way on it."""
        self._is_closed = True
        self.is_connected = False
        await self._channel.close()


def readable(answer: Any, method: Method) -> Any:
    """Return an answer, or raise CallError for bytes that are none: gRPC gives None for them."""
    if answer is None:
        name = method.response.__name__
        raise CallError(grpc.StatusCode.INTERNAL, f"the answer is no {name}")
    return answer


def code_name(code: grpc.StatusCode) -> str:
    """Return the name of a status as Go has it: `DeadlineExceeded`."""
    if code is grpc.StatusCode.OK:
        return "OK"
    if code is grpc.StatusCode.CANCELLED:
        return "Canceled"
    return code.name.title().replace("_", "")
