"""One driver on trial: it is started, found, asked and started again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from pathlib import Path

from mooring.api.cdi import ContainerEdits
from mooring.api.resource.v1 import ResourceClaim, ResourceSlice
from mooring.node.runtime.cdi import CdiSpecs, UnresolvableError
from mooring.testing.check.bench import Bench, Program
from mooring.testing.check.claims import Claims, results_of
from mooring.testing.check.outcomes import CheckFailedError, CheckSkippedError
from mooring.testing.check.plug import (
    CALL_S,
    LOOK_S,
    ClaimKey,
    Plug,
    PlugError,
    Registered,
    ask_info,
    find_socket,
    plugged,
    tell_registered,
)
from mooring.wire import dra_v1_pb2 as dra

START_S = 30.0

Said = dra.NodePrepareResourceResponse


class Trial:
    """What checks need: the driver's plug, claims, and ways to disturb it."""

    def __init__(
        self,
        bench: Bench,
        *,
        process: Program | None = None,
        socket: Path | None = None,
        name: str = "",
        start_s: float = START_S,
        call_s: float = CALL_S,
    ) -> None:
        self.bench, self.process = bench, process
        self._given, self._start_s, self._call_s = socket, start_s, call_s
        self._name = name  # empty: the first that answers; then it is that one
        self._publishes = True  # until it was waited for in vain
        self._stack = AsyncExitStack()
        self._socket: Path | None = None
        self._plug: Plug | None = None
        self._claims: Claims | None = None

    # --- the driver -----------------------------------------------------------------------------

    async def begin(self) -> Registered:
        """Start the driver if it is ours to start, register it, and return who it is."""
        if self.process is not None:
            await self.process.start()
        self._socket = self._given or await find_socket(
            self.bench.folders.registry, self._start_s, self.death, name=self._name
        )
        info = await ask_info(self._socket)
        self._name = info.name
        await tell_registered(self._socket)
        self._plug = await self._stack.enter_async_context(self.plugged(info))
        self._claims = self._claims or Claims(self.bench, info.name)
        return info

    def plugged(self, info: Registered, version: str = "") -> AbstractAsyncContextManager[Plug]:
        """Give a plug of the driver, of a version."""
        return plugged(info, self.socket, version, timeout_s=self._call_s)

    async def end(self) -> None:
        """Unplug and stop the driver."""
        await self._unplug()
        if self.process is not None:
            await self.process.stop()

    async def crash(self) -> None:
        """Kill the driver."""
        process = self.own_process
        await self._unplug()
        await process.kill()

    @property
    def own_process(self) -> Program:
        """The driver's process; a check that needs one is skipped without."""
        if self.process is None:
            raise CheckSkippedError("the driver was not started here: give its command")
        return self.process

    @property
    def socket(self) -> Path:
        """The socket by which the driver registers."""
        assert self._socket is not None
        return self._socket

    @property
    def plug(self) -> Plug:
        """The driver's sockets."""
        if self._plug is None:
            raise CheckSkippedError("the driver is not registered")
        return self._plug

    def death(self) -> str | None:
        """Return how the driver ended by itself; None if it runs."""
        if self.process is None or (code := self.process.exit_code) is None:
            return None
        return f"the driver ended with status {code}{self._words_of_driver()}"

    def _words_of_driver(self) -> str:
        """Return what the driver said last, to be put behind a fact."""
        words = "" if self.process is None else self.process.last_words()
        return f"; its last words:\n{words}" if words else ""

    async def revive(self) -> None:
        """Start a driver again that ended by itself."""
        await self._unplug()
        await self.begin()

    async def _unplug(self) -> None:
        self._plug = None
        await self._stack.aclose()
        self._stack = AsyncExitStack()

    # --- claims ---------------------------------------------------------------------------------

    @property
    def claims(self) -> Claims:
        """Where claims come from."""
        if self._claims is None:
            raise CheckSkippedError("the driver is not registered")
        return self._claims

    async def published(self) -> list[ResourceSlice]:
        """Wait until the driver has published whole pools, and return their slices."""
        loop = asyncio.get_running_loop()
        until = loop.time() + self._start_s
        if not self._publishes:
            raise CheckSkippedError("it publishes no devices")
        while True:
            slices = await self.claims.slices()
            if slices and _are_whole(slices):
                return slices
            if loop.time() > until:
                self._publishes = False
                said = self._words_of_driver()
                raise CheckFailedError(f"{_what_lacks(slices, self._start_s)}{said}")
            await asyncio.sleep(LOOK_S)

    async def claim(self) -> ResourceClaim:
        """Return a claim with a device that nobody else has; without one the check is skipped."""
        await self.published()
        claim = await self.claims.allocated()
        if claim is None:
            raise CheckSkippedError("the driver has not enough devices")
        return claim

    async def prepare(self, *claims: ResourceClaim) -> dict[str, Said]:
        """Have claims prepared; what is not well formed fails the check."""
        answer = await self._answered(claims)
        for claim in claims:
            said = _of(answer, claim)
            if said.error:
                raise CheckFailedError(f"claim {claim.metadata.name}: {said.error}")
            _check_devices(claim, said)
        return answer

    async def unprepare(self, *claims: ResourceClaim) -> None:
        """Have claims taken back; an error fails the check."""
        answer = await self._call_unprepare(ClaimKey.of(claim) for claim in claims)
        for claim in claims:
            uid = claim.metadata.uid
            if uid not in answer:
                raise CheckFailedError(f"claim {claim.metadata.name} is not in the answer")
            if answer[uid]:
                raise CheckFailedError(f"claim {claim.metadata.name}: {answer[uid]}")

    async def clear(self, *claims: ResourceClaim) -> None:
        """Take claims back and out of the world."""
        await self.unprepare(*claims)
        for claim in claims:
            await self.claims.drop(claim)

    async def tidy(self) -> None:
        """Take back and out of the world what a check left that came to a sudden end."""
        if self._claims is None:
            return
        for claim in self._claims.left:
            with suppress(CheckFailedError, CheckSkippedError):
                await self.unprepare(claim)
            await self._claims.drop(claim)

    async def refusal(self, key: ClaimKey) -> str:
        """Have a claim prepared that must be refused; return the words, "" if it was not.

        A call that fails as a whole refuses it, too.
        """
        try:
            return _of(await self.plug.prepare(key), key).error
        except PlugError as error:
            return str(error)

    async def _answered(self, claims: Iterable[ResourceClaim]) -> dict[str, Said]:
        return await self._call_prepare([ClaimKey.of(claim) for claim in claims])

    async def _call_prepare(self, keys: Iterable[ClaimKey]) -> dict[str, Said]:
        try:
            return await self.plug.prepare(*keys)
        except PlugError as error:
            raise CheckFailedError(str(error)) from None

    async def _call_unprepare(self, keys: Iterable[ClaimKey]) -> dict[str, str]:
        try:
            return await self.plug.unprepare(*keys)
        except PlugError as error:
            raise CheckFailedError(str(error)) from None

    # --- CDI ------------------------------------------------------------------------------------

    def edits(self, said: Said) -> ContainerEdits:
        """Return what a container would get; ids that mean nothing fail the check."""
        specs = CdiSpecs([Path("/etc/cdi"), Path("/var/run/cdi"), self.bench.folders.cdi])
        ids = [id_ for device in said.devices for id_ in device.cdi_device_ids]
        try:
            return specs.edits(dict.fromkeys(ids))
        except UnresolvableError as error:
            raise CheckFailedError(str(error)) from None


def _of(answer: Mapping[str, Said], claim: ResourceClaim | ClaimKey) -> Said:
    uid = claim.uid if isinstance(claim, ClaimKey) else claim.metadata.uid
    if uid not in answer:
        raise CheckFailedError(f"the answer has no entry for the claim with uid {uid}")
    return answer[uid]


def _check_devices(claim: ResourceClaim, said: Said) -> None:
    """See whether what was prepared is what was allocated."""
    requests = {each.name for each in claim.spec.devices.requests or ()}
    wanted = set(results_of(claim))
    found = {(device.pool_name, device.device_name) for device in said.devices}
    if found - wanted:
        raise CheckFailedError(f"prepared {sorted(found - wanted)}, which the claim does not have")
    if wanted - found:
        raise CheckFailedError(f"the claim has {sorted(wanted - found)}, which was not prepared")
    for device in said.devices:
        if unknown := set(device.request_names) - requests:
            raise CheckFailedError(f"device {device.device_name}: no request {sorted(unknown)}")


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
        return f"no ResourceSlice of the driver for this node within {within_s:.0f} s"
    pools = ((each.metadata.name, each.spec.pool) for each in slices)
    counts = ", ".join(
        f"{name} (pool {pool.name}, generation {pool.generation}, "
        f"{pool.resource_slice_count} slices)"
        for name, pool in pools
    )
    return f"no pool was whole within {within_s:.0f} s: {counts}"


def shown(answer: Mapping[str, Said]) -> str:
    """Return what a driver says of claims, in a line."""
    devices = (device for said in answer.values() for device in said.devices)
    parts = (
        f"{device.pool_name}/{device.device_name} ({', '.join(device.cdi_device_ids) or 'no ids'})"
        for device in devices
    )
    return "; ".join(parts) or "nothing"
