"""Claims are prepared before a pod starts, and unprepared when the last pod that uses them ended.

    1. The claims of a pod are read and checked; until then nothing changed (`claimneeds`).
    2. The book notes the pod, and that is on the disk before any driver is called.
    3. Each driver is asked once for all its claims; drivers at the same time, claims of other pods,
       too. Only a claim that is being asked for is not asked for twice: who comes later waits, and
       finds it prepared.
    4. The book notes the devices, on the disk again.

Every change of the book happens at once, between two waits; nothing is locked.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Protocol

from mooring.api.core import Pod
from mooring.api.core.pod import PodResourceClaim
from mooring.api.resource.v1 import ResourceClaim
from mooring.claims.references import Named
from mooring.claims.refusals import Refused
from mooring.client.contract import Client
from mooring.client.errors import ClientError
from mooring.kit.clock import REAL, Clock
from mooring.kit.metrics import (
    Counts,
    Durations,
    Family,
    Level,
    exponential_buckets_between,
    exposition,
)
from mooring.node.contract import PREPARING, DeviceRunOptions, DevicesRefusedError
from mooring.node.dra import checkpoint, claim_requests
from mooring.node.dra.checkpoint import SavedFile
from mooring.node.dra.claim_info import PREPARE, UNPREPARE, ClaimInfo, ClaimInfoCache, ClaimKey
from mooring.node.dra.claim_requests import (
    NodeFeatures,
    check_unprepared,
    features_of,
    read_prepared,
    request_for,
)
from mooring.node.errors import CallError, NotRegisteredError, ResponseError, SaveError
from mooring.wire import services

__all__ = ["DriverClient", "ClaimManager", "FindDriver", "features_of"]

LOG = logging.getLogger(__name__)

RECONCILE_S = 60.0
SOON_S = 2.0


class DriverClient(Protocol):
    """A driver that can be asked."""

    async def ask(self, method: services.Method, request: Any) -> Any:
        """Return its answer, or raise CallError."""


# Finds a driver by its name, or raises NotRegisteredError.
FindDriver = Callable[[str], DriverClient]


class ClaimManager:
    """Gives the devices of claims to pods: a `mooring.node.contract.DeviceManager`."""

    def __init__(
        self,
        client: Client,
        folder: Path,
        features: NodeFeatures,
        *,
        clock: Clock = REAL,
    ) -> None:
        """Read what an agent before this one knew; raises CheckpointError if that is damaged."""
        path = folder / checkpoint.FILE_NAME
        self.book = ClaimInfoCache(checkpoint.read(path))
        encoder = checkpoint.Encoder()
        self.file = SavedFile(path, lambda: encoder.encode(self.book))
        self.metrics = DraMetrics(self.book.in_use)
        self.features = features
        self._client, self._clock = client, clock
        self._find: FindDriver = _nobody
        self._busy: dict[ClaimKey, asyncio.Future[None]] = {}

    def use(self, find: FindDriver) -> None:
        """Ask these drivers from now on."""
        self._find = find

    async def prepare(self, pod: Pod) -> None:
        """Have a pod's claims prepared before its first container; else DevicesRefusedError."""
        await self._timed("PrepareResources", PREPARING, self._prepare(pod))

    def given(self, pod: Pod, container: str) -> DeviceRunOptions:
        """Return the CDI ids that a container of a prepared pod gets."""
        found = claim_requests.container_of(pod, container)
        ids: dict[str, None] = {}  # in order, each once
        for key, request in claim_requests.requests_of(pod, found, self.features) if found else ():
            state = self.book.get(key)
            if state is None or pod.metadata.uid not in state.pods:
                raise DevicesRefusedError(
                    f"unable to get claim info for ResourceClaim {key.name} "
                    f"in namespace {key.namespace}"
                )
            for _, device in state.devices:
                if device.serves(request):
                    ids.update(dict.fromkeys(device.cdi_ids))
        return DeviceRunOptions(tuple(ids))

    async def before_start(self, pod: Pod, container: str) -> None:
        """Do nothing: drivers are not told of starts."""

    async def unprepare(self, pod: Pod) -> None:
        """Have a pod's claims unprepared that no other pod uses; else DevicesRefusedError."""
        await self._timed(
            "UnprepareResources", "unprepare dynamic resources", self._unprepare_pod(pod)
        )

    def may_need_unprepare(self, uid: str) -> bool:
        """Tell whether a pod has claims that it must give back before it is gone."""
        return bool(self.book.of_pod(uid))

    async def reconcile(self, active: Iterable[str]) -> None:
        """Unprepare what only pods use that are not active any more; failures are tried again."""
        gone = self.book.inactive(active).items()
        await asyncio.gather(*(self._unprepare_gone(uid, keys) for uid, keys in gone))

    async def follow_active(self, active: Callable[[], Iterable[str] | None]) -> None:
        """Reconcile every minute until cancelled; None says that pods are not known yet.

        Sooner while there is something to do: pods that went while no agent was here keep devices
        from others, and their drivers may not have registered yet.
        """
        while True:
            uids = active()
            if uids is not None:
                await self.reconcile(uids)
            is_done = uids is not None and not self.book.inactive(uids)
            await self._clock.sleep(RECONCILE_S if is_done else SOON_S)

    # --- prepare --------------------------------------------------------------------------------

    async def _prepare(self, pod: Pod) -> None:
        wanted = await self._wanted(pod)
        if not wanted:
            return
        if refused := self.book.refusal(wanted):  # at once, not after waiting
            raise DevicesRefusedError(refused.reason)
        async with self._alone([claim.key for claim in wanted]):
            todo = self.book.attach(pod.metadata.uid, wanted)
            if isinstance(todo, Refused):
                raise DevicesRefusedError(todo.reason)
            await self._save("cache")
            if not todo:
                return
            batches = self._batches(todo, PREPARE, self.metrics.prepare_skips.add)
            await _all([self._ask_prepare(name, claims) for name, claims in batches.items()])
            self.book.note_prepared(todo)
            await self._save("state")

    async def _wanted(self, pod: Pod) -> list[ClaimInfo]:
        entries = claim_requests.entries_of(pod, self.features)
        found = await asyncio.gather(*(self._look_up(pod, entry) for entry in entries))
        wanted: dict[ClaimKey, ClaimInfo] = {}
        for each in found:
            if isinstance(each, Refused):
                raise DevicesRefusedError(each.reason)
            if each is not None:
                for driver in each.drivers_to_ask(PREPARE):
                    # Even if all is prepared: without it something is wrong with this node.
                    self._driver(driver)
                wanted[each.key] = each
        return list(wanted.values())

    async def _look_up(self, pod: Pod, entry: PodResourceClaim) -> ClaimInfo | Refused | None:
        reference = claim_requests.claim_name(pod, entry)
        if not isinstance(reference, Named):
            return reference
        try:
            claim = await self._client.get(ResourceClaim, pod.metadata.namespace, reference.name)
        except ClientError as error:
            return Refused(f"fetch ResourceClaim {reference.name}: {error}")
        return claim_requests.check_found(pod, reference, claim, self.features)

    async def _ask_prepare(self, driver: str, claims: Sequence[ClaimInfo]) -> None:
        answer = await _ask(self._driver(driver), services.PREPARE, claims)
        try:
            for claim, devices in read_prepared(claims, answer.claims):
                self.book.note_devices(claim, driver, devices)
        except ResponseError as error:
            raise DevicesRefusedError(str(error)) from error

    # --- unprepare ------------------------------------------------------------------------------

    async def _unprepare_pod(self, pod: Pod) -> None:
        # Kubernetes looks at the pod itself if the book has nothing of it, and finds nothing then:
        # what is not in the book was never asked of a driver.
        keys = self.book.of_pod(pod.metadata.uid)
        if keys or self.file.is_behind:
            await self._unprepare(pod.metadata.uid, keys)

    async def _unprepare_gone(self, uid: str, keys: Sequence[ClaimKey]) -> None:
        try:
            await self._unprepare(uid, keys)
        except DevicesRefusedError as error:
            LOG.warning("claims of pod %s, which is gone: %s", uid, error)

    async def _unprepare(self, uid: str, keys: Sequence[ClaimKey]) -> None:
        async with self._alone(keys):
            last = self.book.detach(uid, keys)
            batches = self._batches(last, UNPREPARE, self.metrics.unprepare_skips.add)
            await _all([self._ask_unprepare(name, claims) for name, claims in batches.items()])
            self.book.note_unprepared(last)
            await self._save("state")

    async def _ask_unprepare(self, driver: str, claims: Sequence[ClaimInfo]) -> None:
        answer = await _ask(self._driver(driver), services.UNPREPARE, claims)
        try:
            check_unprepared(claims, answer.claims)
        except ResponseError as error:
            raise DevicesRefusedError(str(error)) from error

    # --- both -----------------------------------------------------------------------------------

    def _driver(self, name: str) -> DriverClient:
        try:
            return self._find(name)
        except NotRegisteredError as error:
            raise DevicesRefusedError(str(error)) from error

    def _batches(
        self, claims: Iterable[ClaimInfo], operation: str, skipped: Callable[[str], None]
    ) -> dict[str, list[ClaimInfo]]:
        batches: dict[str, list[ClaimInfo]] = {}
        for claim in claims:
            for name, share in claim.drivers.items():
                if share.needs(operation):
                    batches.setdefault(name, []).append(claim)
                else:
                    skipped(name)
        return dict(sorted(batches.items()))

    @asynccontextmanager
    async def _alone(self, keys: Sequence[ClaimKey]) -> AsyncIterator[None]:
        """Be the only one who has drivers called for these claims.

        Whoever waits holds nothing, so no two wait for each other.
        """
        while waited := [self._busy[key] for key in keys if key in self._busy]:
            await asyncio.wait(waited)
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._busy.update(dict.fromkeys(keys, done))
        try:
            yield
        finally:
            for key in keys:
                del self._busy[key]
            done.set_result(None)

    async def _save(self, what: str) -> None:
        try:
            await self.file.save()
        except SaveError as error:
            raise DevicesRefusedError(f"checkpoint ResourceClaim {what}: {error}") from error

    async def _timed(self, name: str, prefix: str, work: Awaitable[None]) -> None:
        began_s, is_error = self._clock.monotonic(), "true"
        try:
            await work
            is_error = "false"
        except DevicesRefusedError as error:
            raise DevicesRefusedError(f"{prefix}: {error}") from error
        finally:
            self.metrics.operations.note(self._clock.monotonic() - began_s, name, is_error)


def _nobody(driver: str) -> DriverClient:
    raise NotRegisteredError(driver)


async def _ask(driver: DriverClient, method: services.Method, claims: Sequence[ClaimInfo]) -> Any:
    try:
        return await driver.ask(method, request_for(claims, method.request))
    except CallError as error:
        raise DevicesRefusedError(f"{method.name}: {error}") from error


async def _all(calls: Sequence[Awaitable[None]]) -> None:
    """Wait for all calls, and raise the first failure only then: the others still count."""
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


# ---- from mooring.node.dra.counting: What is counted of claims on this node, under the kubelet's names.

BUCKETS_S = exponential_buckets_between(0.1, 40, 15)  # as far as a driver may take


class DraMetrics:
    """The counts of this node's claims and drivers."""

    def __init__(self, in_use: Callable[[], Mapping[str, int]]) -> None:
        self.operations = Durations(
            "dra_operations_duration_seconds",
            "Seconds to prepare or unprepare all claims of a pod.",
            BUCKETS_S,
            ("operation_name", "is_error"),
        )
        self.calls = Durations(
            "dra_grpc_operations_duration_seconds",
            "Seconds of calls to drivers.",
            BUCKETS_S,
            ("driver_name", "method_name", "grpc_status_code"),
        )
        self.prepare_skips = Counts(
            "dra_node_prepare_skips_total",
            "Claims that a driver did not need to prepare.",
            ("driver_name",),
        )
        self.unprepare_skips = Counts(
            "dra_node_unprepare_skips_total",
            "Claims that a driver did not need to unprepare.",
            ("driver_name",),
        )
        self._in_use = Level(
            "dra_resource_claims_in_use",
            "Claims that are prepared, by driver and, as <any>, in all.",
            ("driver_name",),
            lambda: {(driver,): count for driver, count in in_use().items()},
        )

    def observe_call(self, driver: str, method: str, status: str, seconds: float) -> None:
        """Note how long a driver took."""
        self.calls.note(seconds, driver, method, status)

    def families(self) -> Iterator[Family]:
        """Give all metrics."""
        yield from (self.operations, self.calls, self.prepare_skips, self.unprepare_skips)
        yield self._in_use

    def text(self) -> str:
        """Return all of it as Prometheus reads it."""
        return exposition(self.families())


# MOVED
Asked = DriverClient  # MOVED
