"""NodePrepareResources and NodeUnprepareResources: claims prepared and undone, many in a call.

The kubelet names claims; everything else is read from the API server, and only a claim that is
still the same and has devices is prepared. An error of one claim is reported for that claim, and
the others go on. A call that the kubelet gave up finishes what it began, and begins nothing more:
otherwise it could prepare a claim after the kubelet has undone it.
"""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any, TypeVar

import msgspec

from moorage.api.resource.v1 import (
    Device,
    DeviceAllocationConfiguration,
    DeviceRequestAllocationResult,
    ResourceClaim,
)
from moorage.client.contract import Client
from moorage.client.errors import ClientError
from moorage.driver.checkpoint import PreparedClaim, PreparedDevice
from moorage.driver.claim_files import is_usable_uid
from moorage.driver.claim_preparation import ClaimPreparer
from moorage.driver.driver import (
    AllocatedDevice,
    Claim,
    ClaimName,
    Driver,
    PrepareError,
    ResultError,
)
from moorage.driver.driver_calls import SerialCalls, driver_error, run_to_completion
from moorage.driver.errors import DriverError
from moorage.kit.clock import REAL, Clock
from moorage.wire import dra_v1_pb2 as dra
from moorage.wire.services import DRA_V1, DRA_V1BETA1, PREPARE, UNPREPARE, Method

FindDevice = Callable[[str, str], Device | None]  # by pool and name

_SOURCES = {"FromClass": 0, "FromClaim": 1}
LOG = logging.getLogger(__name__)
CLAIMS_AT_ONCE = 16  # for a driver that does not serialize them
CLAIMS_MAX = 10_000
SLOW_S = 30.0  # of a call, from which on it is logged
FINISH_S = 10.0  # for calls in progress, when the driver stops
ERROR_CHARACTERS_MAX = 4096
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9.-]{0,251}[a-z0-9])?", re.ASCII)
T = TypeVar("T")
R = TypeVar("R")


async def fetch(client: Client, name: ClaimName) -> ResourceClaim:
    """Return a claim as the API server has it, or raise PrepareError."""
    try:
        value = await client.get(ResourceClaim, name.namespace, name.name)
    except ClientError as error:
        raise PrepareError(f"retrieve claim {name}: {error}") from None
    if value is None:
        raise PrepareError(
            f'retrieve claim {name}: resourceclaims.resource.k8s.io "{name.name}" not found'
        )
    if value.status.allocation is None:
        raise PrepareError(f"claim {name} not allocated")
    if value.metadata.uid != name.uid:
        raise PrepareError(f"claim {name} got replaced")
    return value


def read_claim(value: ResourceClaim, driver: str, published: FindDevice) -> Claim:
    """Return a driver's part of a claim, or raise PrepareError."""
    allocation = value.status.allocation
    assert allocation is not None
    configs = sorted(
        (
            each
            for each in allocation.devices.config
            if each.opaque is not None and each.opaque.driver == driver
        ),
        key=lambda each: _SOURCES.get(each.source, 2),
    )
    decoded = [(each, _parameters(each, value)) for each in configs]
    metadata = value.metadata
    devices = tuple(
        _allocated_device(result, decoded, published)
        for result in allocation.devices.results
        if result.driver == driver
    )
    return Claim(metadata.uid, metadata.namespace, metadata.name, devices, value)


def _allocated_device(
    result: DeviceRequestAllocationResult,
    configs: list[tuple[DeviceAllocationConfiguration, Any]],
    published: FindDevice,
) -> AllocatedDevice:
    return AllocatedDevice(
        request=result.request,
        pool=result.pool,
        name=result.device,
        share_id=result.share_id or "",
        consumed=dict(result.consumed_capacity or {}),
        has_admin_access=bool(result.admin_access),
        configs=tuple(
            parameters for config, parameters in configs if _is_for(config, result.request)
        ),
        published=published(result.pool, result.device),
    )


def _is_for(config: DeviceAllocationConfiguration, request: str) -> bool:
    """Return whether a configuration is for a request; one without requests is for all."""
    base = request.partition("/")[0]
    return not config.requests or request in config.requests or base in config.requests


def _parameters(config: DeviceAllocationConfiguration, value: ResourceClaim) -> Any:
    assert config.opaque is not None
    try:
        return msgspec.json.decode(config.opaque.parameters)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        metadata = value.metadata
        raise PrepareError(
            f"claim {metadata.namespace}/{metadata.name}: parameters cannot be read: {error}"
        ) from None


# --- the service ----------------------------------------------------------------------------------


Note = Callable[[str, Exception], None]  # called with an error, as text and itself


class NodeService:
    """Serves the kubelet's calls."""

    def __init__(
        self,
        driver: Driver,
        client: Client,
        preparer: ClaimPreparer,
        *,
        turns: SerialCalls,
        published: FindDevice,
        rereads: bool,
        note: Note | None = None,
        clock: Clock = REAL,
    ) -> None:
        self._driver = driver
        self._client = client
        self._preparer = preparer
        self._turns = turns
        self._published = published
        self._clock = clock
        self._note = note
        self._rereads = rereads  # another instance may have changed the checkpoint
        self._is_serial = driver.serialize or rereads  # two programs share one file
        self._at_once = asyncio.Semaphore(CLAIMS_AT_ONCE)
        self._calls: set[asyncio.Task[Any]] = set()

    def methods(self) -> dict[Method, Callable[..., Any]]:
        """Return the methods to serve: both versions have the same messages."""
        return {
            method.of(version): function
            for version in (DRA_V1, DRA_V1BETA1)
            for method, function in ((PREPARE, self._prepare), (UNPREPARE, self._unprepare))
        }

    async def finished(self) -> None:
        """Wait for calls that were given up, but not for those that hang."""
        if not self._calls:
            return
        waits = [
            asyncio.ensure_future(each)
            for each in (asyncio.wait(self._calls), self._clock.sleep(FINISH_S))
        ]
        await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        for each in waits:
            each.cancel()
        if self._calls:
            LOG.error("%d calls do not end: stopping the driver without them", len(self._calls))

    # --- calls ------------------------------------------------------------------------------------

    async def _prepare(
        self, request: dra.NodePrepareResourcesRequest, _: Any
    ) -> dra.NodePrepareResourcesResponse:
        return await self._called(self._prepare_all(_names(request.claims)))

    async def _unprepare(
        self, request: dra.NodeUnprepareResourcesRequest, _: Any
    ) -> dra.NodeUnprepareResourcesResponse:
        return await self._called(self._unprepare_all(_names(request.claims)))

    async def _prepare_all(self, names: list[ClaimName]) -> dra.NodePrepareResourcesResponse:
        claims = await asyncio.gather(*(self._tried(self._fetch, each) for each in names))
        answer = dra.NodePrepareResourcesResponse()
        ready = [each for each in claims if not isinstance(each, str)]
        async with self._turn():
            done = await self._each(self._prepare_one, ready)
        answers = dict(zip((each.uid for each in ready), done, strict=True))
        for name, claim in zip(names, claims, strict=True):
            found = claim if isinstance(claim, str) else answers[name.uid]
            if isinstance(found, str):
                answer.claims[name.uid].error = found
            else:
                answer.claims[name.uid].CopyFrom(found)
        return answer

    async def _unprepare_all(self, names: list[ClaimName]) -> dra.NodeUnprepareResourcesResponse:
        answer = dra.NodeUnprepareResourcesResponse()
        async with self._turn():
            done = await self._each(self._unprepare_one, names)
        for name, found in zip(names, done, strict=True):
            answer.claims[name.uid].error = found if isinstance(found, str) else ""
        return answer

    # --- one claim --------------------------------------------------------------------------------

    async def _fetch(self, name: ClaimName) -> Claim:
        _check(name)
        value = await fetch(self._client, name)
        return read_claim(value, self._driver.name, self._published)

    async def _prepare_one(self, claim: Claim) -> dra.NodePrepareResourceResponse:
        with self._warning_if_slow("prepare", claim):
            found = await self._preparer.prepare(claim)
        LOG.info("claim %s (%s): prepared", claim, claim.uid)
        return _answer(found)

    async def _unprepare_one(self, name: ClaimName) -> None:
        _check(name)
        with self._warning_if_slow("unprepare", name):
            await self._preparer.unprepare(name)
        LOG.info("claim %s (%s): unprepared", name, name.uid)

    @contextmanager
    def _warning_if_slow(self, method: str, claim: Claim | ClaimName) -> Iterator[None]:
        """Log which claim a driver hangs at: of a kubelet, it hears nothing."""
        waits = "; other claims wait for it" if self._is_serial else ""
        text = (
            "claim %s: %s() takes more than %d s; a kubelet gives up after 45 s, and calls again%s"
        )
        timer = self._clock.call_later(
            SLOW_S, lambda: LOG.warning(text, claim, method, SLOW_S, waits)
        )
        try:
            yield
        finally:
            timer.cancel()

    async def _each(
        self, function: Callable[[T], Awaitable[R]], values: Iterable[T]
    ) -> list[R | str]:
        """Return the result of a function for each value, or the text of its error."""
        if self._is_serial:
            return [await self._tried(function, each) for each in values]

        async def limited(value: T) -> R | str:
            async with self._at_once:
                return await self._tried(function, value)

        return list(await asyncio.gather(*(limited(each) for each in values)))

    async def _tried(self, function: Callable[[T], Awaitable[R]], value: T) -> R | str:
        try:
            return await function(value)
        except DriverError as error:
            level = logging.ERROR if isinstance(error, ResultError) else logging.WARNING
            LOG.log(level, "claim %s: %s", value, error)
            return self._noted(function, value, error)
        except Exception as error:  # a bug of the driver, or a full disk
            LOG.error("claim %s: cannot be prepared or undone", value, exc_info=driver_error(error))
            return self._noted(function, value, error)

    def _noted(self, function: Callable[..., Any], value: Any, error: Exception) -> str:
        """Note an error, and return its text for the kubelet."""
        text = _text(error)
        if self._note is not None:
            what = "unprepare" if function == self._unprepare_one else "prepare"
            self._note(f"{what}() of claim {value}: {text}", error)
        return text

    # --- turns ------------------------------------------------------------------------------------

    @asynccontextmanager
    async def _turn(self) -> AsyncIterator[None]:
        """Wait for our turn; whoever had it before may have changed the checkpoint."""
        if not self._is_serial:
            yield
            return
        async with self._turns.one():
            if self._rereads:
                await run_to_completion(asyncio.to_thread(self._preparer.load))
            yield

    async def _called(self, call: Coroutine[Any, Any, R]) -> R:
        """Cancel a call when its caller is gone; work that it began finishes by itself."""
        task = asyncio.create_task(call)
        self._calls.add(task)
        task.add_done_callback(self._calls.discard)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.cancel()
            raise


def _answer(claim: PreparedClaim) -> dra.NodePrepareResourceResponse:
    return dra.NodePrepareResourceResponse(devices=[_device(each) for each in claim.devices])


def _device(device: PreparedDevice) -> dra.Device:
    return dra.Device(
        request_names=[device.request.partition("/")[0]],
        pool_name=device.pool,
        device_name=device.name,
        cdi_device_ids=device.cdi_ids,
        share_id=device.share_id or None,
    )


def _names(claims: Any) -> list[ClaimName]:
    """Return the claims of a call, each once."""
    found = {each.uid: ClaimName(each.uid, each.namespace, each.name) for each in claims}
    return list(found.values())[:CLAIMS_MAX]


def _check(name: ClaimName) -> None:
    """Raise PrepareError for an impossible claim; its parts become names of files."""
    if not is_usable_uid(name.uid):
        raise PrepareError(f"{name.uid[:128]!r} cannot be the UID of a claim")
    for part in (name.namespace, name.name):
        if not _NAME.fullmatch(part):
            raise PrepareError(f"{part[:256]!r} cannot be the name or namespace of a claim")


def _text(error: Exception) -> str:
    if isinstance(error, OSError):
        where = f"{error.filename}: " if error.filename else ""
        return f"{where}{error.strerror or error}"[:ERROR_CHARACTERS_MAX]
    text = str(error) if isinstance(error, DriverError) else f"{type(error).__name__}: {error}"
    return (text or type(error).__name__)[:ERROR_CHARACTERS_MAX]
