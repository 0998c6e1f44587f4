"""One driver under test: started, registered, called and restarted."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path
from typing import TypeVar

from moorage.api.cdi import ContainerEdits
from moorage.api.resource.v1 import ResourceClaim, ResourceSlice
from moorage.client.errors import ClientError
from moorage.node.errors import UnresolvableError
from moorage.node.runtime.cdi import CdiSpecs
from moorage.testing.check import REPUBLISH_S, START_S, CheckFailedError, CheckSkippedError
from moorage.testing.check.bench import Bench, DriverProgram
from moorage.testing.check.claims import ClaimFactory
from moorage.testing.check.plugin_client import (
    CALL_S,
    LOOK_S,
    ClaimKey,
    PluginCallError,
    PluginClient,
    PluginInfo,
    PrepareResponse,
    ask_info,
    check_devices,
    check_uids,
    connected_plugin,
    find_socket,
    notify_registered,
    response_of,
)

PROGRESS_S = 5.0

T = TypeVar("T")


class Trial:
    """The driver that checks use: its client, claims, and ways to disturb it."""

    def __init__(
        self,
        bench: Bench,
        *,
        process: DriverProgram | None = None,
        socket: Path | None = None,
        name: str = "",
        start_s: float = START_S,
        republish_s: float = REPUBLISH_S,
        call_s: float = CALL_S,
    ) -> None:
        self.bench, self.process = bench, process
        self._own_socket, self._start_s, self._call_s = socket, start_s, call_s
        self._republish_s = republish_s
        # Called with the event that the trial waits for.
        self.progress: Callable[[str], None] = lambda _: None
        self._remarks: list[str] = []
        self._name = name  # empty: the first driver that responds
        self._publishes = True  # until waiting for slices timed out
        self._stack = AsyncExitStack()
        self._socket: Path | None = None
        self._plug: PluginClient | None = None
        self._claims: ClaimFactory | None = None

    # --- the driver -----------------------------------------------------------------------------

    async def begin(self) -> PluginInfo:
        """Start the driver if it has a command, register it, and return its info."""
        if self.process is not None:
            await self.process.start()
        waiting = self._waiting("the driver to register", self._start_s)
        self._socket = self._own_socket or await find_socket(
            self.bench.folders.registry,
            self._start_s,
            self.death,
            name=self._name,
            waited=waiting.been,
        )
        info = await ask_info(self._socket)
        self._name = info.name
        await notify_registered(self._socket)
        self._plug = await self._stack.enter_async_context(self.plugged(info))
        self._claims = self._claims or ClaimFactory(self.bench, info.name, reserves=True)
        return info

    def plugged(
        self, info: PluginInfo, version: str = ""
    ) -> AbstractAsyncContextManager[PluginClient]:
        """Connect to the driver, with a version of the DRA API."""
        return connected_plugin(info, self.socket, version, timeout_s=self._call_s)

    async def end(self) -> None:
        """Disconnect and stop the driver."""
        await self._unplug()
        if self._claims is not None:
            with suppress(ClientError):
                await self._claims.end()
        if self.process is not None:
            await self.process.stop()

    async def crash(self) -> None:
        """Kill the driver."""
        process = self.own_process
        await self._unplug()
        await process.kill()

    @property
    def own_process(self) -> DriverProgram:
        """The driver's process; without one the check is skipped."""
        if self.process is None:
            raise CheckSkippedError("the driver was not started here: pass its command")
        return self.process

    @property
    def socket(self) -> Path:
        """The registration socket of the driver."""
        assert self._socket is not None
        return self._socket

    @property
    def plug(self) -> PluginClient:
        """The client of the driver; without one the check is skipped."""
        if self._plug is None:
            raise CheckSkippedError("the driver is not registered")
        return self._plug

    def death(self) -> str | None:
        """Return how the driver exited by itself, or None."""
        if self.process is None or (code := self.process.exit_code) is None:
            return None
        return f"the driver ended with status {code}{self._words_of_driver()}"

    async def has_ended(self, within_s: float) -> bool:
        """Return whether the driver exits by itself within a time."""
        loop = asyncio.get_running_loop()
        end_s = loop.time() + within_s
        while self.death() is None:
            if self.process is None or loop.time() > end_s:
                return False
            await asyncio.sleep(LOOK_S)
        return True

    def _words_of_driver(self) -> str:
        """Return the end of the output of the driver, to append to a message."""
        words = "" if self.process is None else self.process.last_words()
        return f"; its last words:\n{words}" if words else ""

    async def revive(self) -> None:
        """Restart a driver that exited by itself."""
        await self._unplug()
        await self.begin()

    async def _unplug(self) -> None:
        self._plug = None
        await self._stack.aclose()
        self._stack = AsyncExitStack()

    # --- claims ---------------------------------------------------------------------------------

    @property
    def claims(self) -> ClaimFactory:
        """The factory of claims; without one the check is skipped."""
        if self._claims is None:
            raise CheckSkippedError("the driver is not registered")
        return self._claims

    async def published(self) -> list[ResourceSlice]:
        """Wait until the driver has published complete pools, and return their slices."""
        if not self._publishes:
            raise CheckSkippedError("it publishes no devices")
        try:
            return await self._whole_pools("its slices", self._start_s)
        except CheckFailedError:
            self._publishes = False
            raise

    async def republished(self) -> list[ResourceSlice]:
        """Wait until deleted slices are published again."""
        return await self._whole_pools("its slices to be published again", self._republish_s)

    async def _whole_pools(self, what: str, limit_s: float) -> list[ResourceSlice]:
        loop = asyncio.get_running_loop()
        begin_s = loop.time()
        waiting = self._waiting(what, limit_s)
        while True:
            slices = await self.claims.slices()
            if slices and _are_whole(slices):
                return slices
            waiting.been(loop.time() - begin_s)
            if loop.time() - begin_s > limit_s:
                others = "" if slices else _shown_others(await self.claims.other_slices())
                said = self._words_of_driver()
                raise CheckFailedError(f"{_what_lacks(slices, limit_s)}{others}{said}")
            await asyncio.sleep(LOOK_S)

    def _waiting(self, what: str, limit_s: float) -> _Waiting:
        return _Waiting(what, limit_s, self.progress)

    async def claim(self) -> ResourceClaim:
        """Create a claim with a device of its own; without one the check is skipped."""
        await self.published()
        claim = await self.claims.allocated()
        if claim is None:
            raise CheckSkippedError("the driver has not enough devices")
        return claim

    async def prepare(self, *claims: ResourceClaim) -> dict[str, PrepareResponse]:
        """Prepare claims; an error or an invalid response fails the check."""
        answer = await called(self.plug.prepare(*map(ClaimKey.of, claims)))
        check_uids(answer, claims)
        for claim in claims:
            response = response_of(answer, claim)
            if response.error:
                raise CheckFailedError(f"claim {claim.metadata.name}: {response.error}")
            check_devices(claim, response)
        return answer

    def remark(self, text: str) -> None:
        """Add a remark to the outcome of the check."""
        if text not in self._remarks:
            self._remarks.append(text)

    def take_remarks(self) -> str:
        """Return the remarks since the last call, one per line."""
        remarks, self._remarks = self._remarks, []
        return "\n".join(remarks)

    async def unprepare(self, *claims: ResourceClaim) -> None:
        """Unprepare claims; an error fails the check."""
        answer = await called(self.plug.unprepare(*map(ClaimKey.of, claims)))
        check_uids(answer, claims)
        for claim in claims:
            uid = claim.metadata.uid
            if uid not in answer:
                raise CheckFailedError(f"claim {claim.metadata.name} is not in the response")
            if answer[uid]:
                raise CheckFailedError(f"claim {claim.metadata.name}: {answer[uid]}")

    async def clear(self, *claims: ResourceClaim) -> None:
        """Unprepare and delete claims."""
        await self.unprepare(*claims)
        for claim in claims:
            await self.claims.drop(claim)

    async def tidy(self) -> None:
        """Unprepare and delete the claims that a failed check left."""
        if self._claims is None:
            return
        for claim in self._claims.left:
            with suppress(CheckFailedError, CheckSkippedError):
                await self.unprepare(claim)
            await self._claims.drop(claim)

    async def refusal(self, key: ClaimKey) -> str:
        """Prepare a claim that must be rejected; return the error, or "".

        A call that fails as a whole counts as rejection.
        """
        try:
            return response_of(await self.plug.prepare(key), key).error
        except PluginCallError as error:
            return str(error)

    # --- CDI ------------------------------------------------------------------------------------

    def edits(self, response: PrepareResponse) -> ContainerEdits:
        """Return the container edits of a response; unknown CDI ids fail the check."""
        specs = CdiSpecs([Path("/etc/cdi"), Path("/var/run/cdi"), self.bench.folders.cdi])
        try:
            return specs.edits(id_ for device in response.devices for id_ in device.cdi_device_ids)
        except UnresolvableError as error:
            raise CheckFailedError(str(error)) from None


class _Waiting:
    """Reports from time to time how long a wait has taken."""

    def __init__(self, what: str, limit_s: float, report: Callable[[str], None]) -> None:
        self._what, self._limit_s, self._report = what, limit_s, report
        self._next_s = PROGRESS_S

    def been(self, seconds: float) -> None:
        """Record the time that has passed."""
        if seconds >= self._next_s:
            self._next_s += PROGRESS_S
            self._report(f"waiting for {self._what}: {seconds:.0f} s of {self._limit_s:g} s")


def _are_whole(slices: Iterable[ResourceSlice]) -> bool:
    pools: dict[str, list[ResourceSlice]] = {}
    for each in slices:
        pools.setdefault(each.spec.pool.name, []).append(each)
    for members in pools.values():
        newest = max(each.spec.pool.generation for each in members)
        current = [each for each in members if each.spec.pool.generation == newest]
        if (
            len(current) != len(members)
            or len(current) != current[0].spec.pool.resource_slice_count
        ):
            return False
    return True


def _what_lacks(slices: list[ResourceSlice], within_s: float) -> str:
    if not slices:
        return f"no ResourceSlice of the driver for this node within {within_s:g} s"
    pools = ((each.metadata.name, each.spec.pool) for each in slices)
    counts = ", ".join(
        f"{name} (pool {pool.name}, generation {pool.generation}, "
        f"{pool.resource_slice_count} slices)"
        for name, pool in pools
    )
    return f"no pool was whole within {within_s:g} s: {counts}"


def _shown_others(others: Mapping[str, str]) -> str:
    return "".join(f"\nthere is {name}: {why}" for name, why in list(others.items())[:4])


async def called(awaitable: Awaitable[T]) -> T:
    """Await a call; if it fails, the check fails."""
    try:
        return await awaitable
    except PluginCallError as error:
        raise CheckFailedError(str(error)) from None
