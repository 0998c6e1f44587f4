"""A driver's sockets as a kubelet uses them: registration, claims, health; and its responses."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from moorage.api.resource.v1 import ResourceClaim
from moorage.testing.check import CheckFailedError
from moorage.testing.check.claims import results_of, share_ids_of
from moorage.wire import dra_v1_pb2 as dra
from moorage.wire import grpc
from moorage.wire import health_v1_pb2 as health
from moorage.wire import registration_pb2 as registration
from moorage.wire.services import (
    DRA_V1,
    DRA_V1BETA1,
    GET_INFO,
    HEALTH_V1,
    HEALTH_V1ALPHA1,
    NOTIFY,
    PREPARE,
    UNPREPARE,
    WATCH_HEALTH,
    Method,
    call,
    open_socket,
)

CALL_S = 45.0  # as long as a kubelet waits
LOOK_S = 0.05
# How long to listen to health, and the limit of reports besides one for each device: a driver may
# report each device separately.
LISTEN_S, REPORTS_MAX = 0.2, 20
DRA_VERSIONS = (DRA_V1, DRA_V1BETA1)
HEALTH_VERSIONS = (HEALTH_V1, HEALTH_V1ALPHA1)


class PluginCallError(Exception):
    """A call to a driver that failed; the text says which and why."""

    def __init__(self, text: str, code: grpc.StatusCode | None = None) -> None:
        super().__init__(text)
        self.code = code

    @property
    def is_unimplemented(self) -> bool:
        """Whether the driver does not serve the method."""
        return self.code is grpc.StatusCode.UNIMPLEMENTED

    @property
    def is_answer(self) -> bool:
        """Whether the driver responded with an error."""
        silent = (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
        return self.code is not None and not self.is_unimplemented and self.code not in silent


class ClaimKey(Struct, frozen=True):
    """The identity of a claim in calls to a driver."""

    uid: str
    namespace: str
    name: str

    @classmethod
    def of(cls, claim: ResourceClaim) -> ClaimKey:
        """Return the identity of a claim."""
        metadata = claim.metadata
        return cls(metadata.uid, metadata.namespace, metadata.name)


class PluginInfo(Struct, frozen=True):
    """The response of a driver to GetInfo."""

    type: str
    name: str
    endpoint: str
    versions: tuple[str, ...]


async def find_socket(
    registry: Path,
    within_s: float,
    given_up: Callable[[], str | None] = lambda: None,
    *,
    name: str = "",
    waited: Callable[[float], None] = lambda _: None,
) -> Path:
    """Wait for the registration socket of a driver, of any name or this one.

    `given_up` returns why waiting longer is useless, or None; `waited` is called with the time.
    """
    last = "no socket appeared"
    loop = asyncio.get_running_loop()
    until = loop.time() + within_s
    while loop.time() < until:
        if (why := given_up()) is not None:
            raise PluginCallError(why)
        waited(loop.time() - until + within_s)
        for path in sorted(each for each in registry.rglob("*") if each.is_socket()):
            try:
                found = await ask_info(path, timeout_s=1.0)
            except PluginCallError as error:
                last = str(error)
                continue
            if name in ("", found.name):
                return path
            last = f"no driver {name}, only {found.name},"
        await asyncio.sleep(LOOK_S)
    raise PluginCallError(f"{last} in {registry} within {within_s:g} s")


async def ask_info(path: Path, *, timeout_s: float = CALL_S) -> PluginInfo:
    """Call GetInfo on a registration socket."""
    async with open_socket(path) as channel:
        # The driver may have bound its socket without listening yet.
        info = await _answer(
            channel, GET_INFO, registration.InfoRequest(), timeout_s, wait_for_ready=True
        )
    return PluginInfo(info.type, info.name, info.endpoint, tuple(info.supported_versions))


async def notify_registered(path: Path, error: str = "") -> None:
    """Notify a driver that it is registered, or why not."""
    status = registration.RegistrationStatus(plugin_registered=not error, error=error)
    async with open_socket(path) as channel:
        await _answer(channel, NOTIFY, status, CALL_S)


class PluginClient:
    """The client of a registered driver, for one version of the DRA API."""

    def __init__(
        self, channel: grpc.aio.Channel, info: PluginInfo, version: str, timeout_s: float
    ) -> None:
        self._channel, self.info, self.version = channel, info, version
        self._timeout_s = timeout_s

    async def prepare(self, *claims: ClaimKey) -> dict[str, dra.NodePrepareResourceResponse]:
        """Prepare claims; return the response for each, by uid."""
        request = dra.NodePrepareResourcesRequest(claims=_named(claims))
        answer = await _answer(self._channel, PREPARE.of(self.version), request, self._timeout_s)
        return dict(answer.claims)

    async def unprepare(self, *claims: ClaimKey) -> dict[str, str]:
        """Unprepare claims; return the error of each, by uid, or ""."""
        request = dra.NodeUnprepareResourcesRequest(claims=_named(claims))
        answer = await _answer(self._channel, UNPREPARE.of(self.version), request, self._timeout_s)
        return {uid: each.error for uid, each in answer.claims.items()}

    async def health(self, version: str, most: int) -> list[Sequence[health.DeviceHealth]]:
        """Return the first reports of the health stream, at most one more than `most`."""
        watch = call(self._channel, WATCH_HEALTH.of(version))
        stream = watch(health.NodeWatchResourcesRequest())
        reports: list[Sequence[health.DeviceHealth]] = []
        try:
            async with asyncio.timeout(self._timeout_s) as limit:
                async for each in stream:
                    reports.append(list(each.devices))
                    if len(reports) == 1:
                        limit.reschedule(asyncio.get_running_loop().time() + LISTEN_S)
                    if len(reports) > most:
                        break
        except TimeoutError:
            if not reports:
                raise PluginCallError(
                    f"NodeWatchResources: no report within {self._timeout_s:g} s"
                ) from None
        except grpc.aio.AioRpcError as error:
            raise PluginCallError(
                f"NodeWatchResources: {_status_text(error)}", error.code()
            ) from None
        finally:
            stream.cancel()
        if not reports:
            raise PluginCallError("NodeWatchResources: the stream ended without a report")
        return reports


@asynccontextmanager
async def connected_plugin(
    info: PluginInfo, socket: Path, version: str = "", *, timeout_s: float = CALL_S
) -> AsyncIterator[PluginClient]:
    """Connect to a driver that is registered by a socket."""
    known = [each for each in DRA_VERSIONS if each in info.versions]  # a kubelet takes the newest
    if not version and not known:
        raise PluginCallError(f"no version that is known, of {list(info.versions)}")
    async with open_socket(info.endpoint or socket) as channel:
        yield PluginClient(channel, info, version or known[0], timeout_s)


def _named(claims: Iterable[ClaimKey]) -> list[dra.Claim]:
    return [dra.Claim(uid=c.uid, namespace=c.namespace, name=c.name) for c in claims]


async def _answer(
    channel: grpc.aio.Channel,
    method: Method,
    request: Any,
    timeout_s: float,
    *,
    wait_for_ready: bool = False,
) -> Any:
    try:
        send = call(channel, method)
        return await send(request, timeout=timeout_s, wait_for_ready=wait_for_ready)
    except grpc.aio.AioRpcError as error:
        raise PluginCallError(f"{method.name}: {_status_text(error)}", error.code()) from None


def _status_text(error: grpc.aio.AioRpcError) -> str:
    return f"{error.code().name}: {error.details()}"


# --- responses of a driver ----------------------------------------------------------------

PrepareResponse = dra.NodePrepareResourceResponse


def response_of(
    answer: Mapping[str, PrepareResponse], claim: ResourceClaim | ClaimKey
) -> PrepareResponse:
    """Return the response for a claim; the check fails if there is none."""
    uid = claim.uid if isinstance(claim, ClaimKey) else claim.metadata.uid
    if uid not in answer:
        raise CheckFailedError(f"the response has no entry for the claim with uid {uid}")
    return answer[uid]


def check_devices(claim: ResourceClaim, response: PrepareResponse) -> None:
    """Fail the check if the prepared devices are not those of the allocation."""
    # A driver need not return any device: only those that the runtime gives to containers.
    requests = {each.name for each in claim.spec.devices.requests or ()}
    allocated = set(results_of(claim))
    found = {(device.pool_name, device.device_name) for device in response.devices}
    if found - allocated:
        raise CheckFailedError(
            f"prepared {sorted(found - allocated)}, which the claim does not have"
        )
    shares = share_ids_of(claim)
    for device in response.devices:
        if device.share_id and device.share_id not in shares:
            raise CheckFailedError(f"device {device.device_name}: no share {device.share_id}")
        if unknown := set(device.request_names) - requests:
            raise CheckFailedError(f"device {device.device_name}: no request {sorted(unknown)}")


def check_uids(answer: Mapping[str, object], claims: Iterable[ResourceClaim]) -> None:
    """Fail the check if the response has claims that were not in the request."""
    if unknown := set(answer) - {claim.metadata.uid for claim in claims}:
        raise CheckFailedError(f"the response has claims not requested: {sorted(unknown)}")


def same_devices(one: Mapping[str, PrepareResponse], other: Mapping[str, PrepareResponse]) -> bool:
    """Return whether two responses are equal; the order of devices and ids does not matter."""
    return {uid: _devices(response) for uid, response in one.items()} == {
        uid: _devices(response) for uid, response in other.items()
    }


def _devices(response: PrepareResponse) -> list[tuple[object, ...]]:
    return sorted(
        (
            device.pool_name,
            device.device_name,
            device.share_id,
            sorted(device.request_names),
            sorted(device.cdi_device_ids),
        )
        for device in response.devices
    )


def describe_devices(answer: Mapping[str, PrepareResponse]) -> str:
    """Return the devices of a response, in one line."""
    devices = (device for response in answer.values() for device in response.devices)
    parts = (
        f"{device.pool_name}/{device.device_name} ({', '.join(device.cdi_device_ids) or 'no ids'})"
        for device in devices
    )
    return "; ".join(parts) or "nothing"
