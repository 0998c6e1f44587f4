"""Claims are prepared before a pod starts, and unprepared when the last pod that uses them ended.

    1. Read and check the pod's claims (`claim_requests`); nothing has changed so far.
    2. Note the pod in the claim info cache, and write the checkpoint before any driver is called.
    3. Call each driver once for all its claims, drivers and other pods' claims in parallel.
       Only a claim with a call in progress is not called for twice: a later pod waits, and finds it
       prepared.
    4. Note the devices in the cache, and write the checkpoint again.

The cache changes atomically, between two awaits; nothing is locked. `NodeDraMetrics` has the
kubelet's dra_* metrics.
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

from moorage.api.core import Pod
from moorage.api.core.pod import PodResourceClaim
from moorage.api.resource.v1 import ResourceClaim
from moorage.claims.pod_claims import ClaimRejection, Named
from moorage.client.contract import Client
from moorage.client.errors import ClientError
from moorage.kit.bulkhead import FAULTS
from moorage.kit.clock import REAL, Clock
from moorage.kit.metrics import (
    Counter,
    Family,
    Gauge,
    Histogram,
    exponential_buckets_between,
    exposition,
)
from moorage.node.contract import PREPARING, DeviceRunOptions, DevicesRefusedError
from moorage.node.dra import checkpoint, claim_requests
from moorage.node.dra.checkpoint import SavedFile
from moorage.node.dra.claim_info import PREPARE, UNPREPARE, ClaimInfo, ClaimInfoCache, ClaimKey
from moorage.node.dra.claim_requests import (
    NodeFeatures,
    check_unprepared,
    features_of,
    read_prepared,
    request_for,
)
from moorage.node.errors import CallError, NotRegisteredError, ResponseError, SaveError
from moorage.wire import services

__all__ = ["ClaimManager", "DriverClient", "FindDriver", "features_of"]

LOG = logging.getLogger(__name__)

RECONCILE_S = 60.0
SOON_S = 2.0
BUCKETS_S = exponential_buckets_between(0.1, 40, 15)  # up to a driver's timeout


class DriverClient(Protocol):
    """A driver that can be called."""

    async def call(self, method: services.Method, request: Any) -> Any:
        """Return its response, or raise CallError."""


# Finds a driver by its name, or raises NotRegisteredError.
FindDriver = Callable[[str], DriverClient]


class ClaimManager:
    """Gives the devices of claims to pods: a `moorage.node.contract.DeviceManager`."""

    def __init__(
        self,
        client: Client,
        folder: Path,
        features: NodeFeatures,
        *,
        clock: Clock = REAL,
    ) -> None:
        """Read the checkpoint of an earlier agent; raises CheckpointError if it is damaged."""
        path = folder / checkpoint.FILE_NAME
        self.cache = ClaimInfoCache(checkpoint.read(path))
        encoder = checkpoint.Encoder()
        self.file = SavedFile(path, lambda: encoder.encode(self.cache))
        self.metrics = NodeDraMetrics(self.cache.in_use)
        self.features = features
        self._client, self._clock = client, clock
        self._find: FindDriver = _no_driver
        self._busy: dict[ClaimKey, asyncio.Future[None]] = {}

    def use(self, find: FindDriver) -> None:
        """Call these drivers from now on."""
        self._find = find

    async def prepare(self, pod: Pod) -> None:
        """Prepare a pod's claims before its first container; else DevicesRefusedError."""
        await self._timed("PrepareResources", PREPARING, self._prepare(pod))

    def run_options(self, pod: Pod, container: str) -> DeviceRunOptions:
        """Return the CDI ids that a container of a prepared pod gets."""
        found = claim_requests.container_of(pod, container)
        ids: dict[str, None] = {}  # in order, each once
        for key, request in claim_requests.requests_of(pod, found, self.features) if found else ():
            state = self.cache.get(key)
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
        """Do nothing: drivers do not hear of starts."""

    async def unprepare(self, pod: Pod) -> None:
        """Unprepare a pod's claims that no other pod uses; else DevicesRefusedError."""
        await self._timed(
            "UnprepareResources", "unprepare dynamic resources", self._unprepare_pod(pod)
        )

    async def reconcile(self, active: Iterable[str]) -> None:
        """Unprepare claims that only inactive pods use; failures are tried again."""
        gone = self.cache.inactive(active).items()
        await asyncio.gather(*(self._unprepare_gone(uid, keys) for uid, keys in gone))

    async def follow_active(self, active: Callable[[], Iterable[str] | None]) -> None:
        """Reconcile every minute until cancelled; None means that pods are not known yet.

        Sooner while there is something to do: pods that went away while no agent ran keep devices
        from others, and their drivers may not have registered yet.
        """
        while True:
            uids = active()
            if uids is not None:
                await self.reconcile(uids)
            is_done = uids is not None and not self.cache.inactive(uids)
            await self._clock.sleep(RECONCILE_S if is_done else SOON_S)

    # --- prepare ----------------------------------------------------------------------------------

    async def _prepare(self, pod: Pod) -> None:
        wanted = await self._pod_claims(pod)
        if not wanted:
            return
        if refused := self.cache.refusal(wanted):  # fail fast, without waiting for other pods
            raise DevicesRefusedError(refused.reason)
        async with self._exclusive([claim.key for claim in wanted]):
            todo = self.cache.attach(pod.metadata.uid, wanted)
            if isinstance(todo, ClaimRejection):
                raise DevicesRefusedError(todo.reason)
            await self._save("cache")
            if not todo:
                return
            batches = self._batches(todo, PREPARE, self.metrics.prepare_skips.inc)
            await _gather([self._ask_prepare(name, claims) for name, claims in batches.items()])
            self.cache.note_prepared(todo)
            await self._save("state")

    async def _pod_claims(self, pod: Pod) -> list[ClaimInfo]:
        entries = claim_requests.entries_of(pod, self.features)
        found = await asyncio.gather(*(self._look_up(pod, entry) for entry in entries))
        wanted: dict[ClaimKey, ClaimInfo] = {}
        for each in found:
            if isinstance(each, ClaimRejection):
                raise DevicesRefusedError(each.reason)
            if each is not None:
                for driver in each.drivers_to_ask(PREPARE):
                    # Even if all is prepared: a missing driver is an error of this node.
                    self._driver(driver)
                wanted[each.key] = each
        return list(wanted.values())

    async def _look_up(
        self, pod: Pod, entry: PodResourceClaim
    ) -> ClaimInfo | ClaimRejection | None:
        reference = claim_requests.claim_name(pod, entry)
        if not isinstance(reference, Named):
            return reference
        try:
            claim = await self._client.get(ResourceClaim, pod.metadata.namespace, reference.name)
        except ClientError as error:
            return ClaimRejection(f"fetch ResourceClaim {reference.name}: {error}")
        return claim_requests.check_found(pod, reference, claim, self.features)

    async def _ask_prepare(self, driver: str, claims: Sequence[ClaimInfo]) -> None:
        answer = await _ask(self._driver(driver), services.PREPARE, claims)
        try:
            for claim, devices in read_prepared(claims, answer.claims):
                self.cache.note_devices(claim, driver, devices)
        except ResponseError as error:
            raise DevicesRefusedError(str(error)) from error

    # --- unprepare --------------------------------------------------------------------------------

    async def _unprepare_pod(self, pod: Pod) -> None:
        # Kubernetes also looks at the pod itself, in vain: without an entry in the cache, no driver
        # was ever called.
        keys = self.cache.of_pod(pod.metadata.uid)
        if keys or self.file.is_outdated:
            await self._unprepare(pod.metadata.uid, keys)

    async def _unprepare_gone(self, uid: str, keys: Sequence[ClaimKey]) -> None:
        try:
            await self._unprepare(uid, keys)
        except DevicesRefusedError as error:
            LOG.warning("claims of pod %s, which is gone: %s", uid, error)
        except Exception as error:
            FAULTS.note("claims of pods that are gone", f"pod {uid}", error, "keep their devices")

    async def _unprepare(self, uid: str, keys: Sequence[ClaimKey]) -> None:
        async with self._exclusive(keys):
            last = self.cache.detach(uid, keys)
            batches = self._batches(last, UNPREPARE, self.metrics.unprepare_skips.inc)
            await _gather([self._ask_unprepare(name, claims) for name, claims in batches.items()])
            self.cache.note_unprepared(last)
            await self._save("state")

    async def _ask_unprepare(self, driver: str, claims: Sequence[ClaimInfo]) -> None:
        answer = await _ask(self._driver(driver), services.UNPREPARE, claims)
        try:
            check_unprepared(claims, answer.claims)
        except ResponseError as error:
            raise DevicesRefusedError(str(error)) from error

    # --- both -------------------------------------------------------------------------------------

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
    async def _exclusive(self, keys: Sequence[ClaimKey]) -> AsyncIterator[None]:
        """Allow no other calls to drivers for these claims.

        A waiting caller holds nothing, so no two wait for each other.
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
            self.metrics.operations.observe(self._clock.monotonic() - began_s, name, is_error)


def _no_driver(driver: str) -> DriverClient:
    raise NotRegisteredError(driver)


async def _ask(driver: DriverClient, method: services.Method, claims: Sequence[ClaimInfo]) -> Any:
    try:
        return await driver.call(method, request_for(claims, method.request))
    except CallError as error:
        raise DevicesRefusedError(f"{method.name}: {error}") from error


async def _gather(calls: Sequence[Awaitable[None]]) -> None:
    """Await all calls, and raise the first failure only then: the others still count."""
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


# --- metrics --------------------------------------------------------------------------------------


class NodeDraMetrics:
    """The kubelet's metrics of claims and drivers."""

    def __init__(self, in_use: Callable[[], Mapping[str, int]]) -> None:
        self.operations = Histogram(
            "dra_operations_duration_seconds",
            "Seconds to prepare or unprepare all claims of a pod.",
            BUCKETS_S,
            ("operation_name", "is_error"),
        )
        self.calls = Histogram(
            "dra_grpc_operations_duration_seconds",
            "Seconds of calls to drivers.",
            BUCKETS_S,
            ("driver_name", "method_name", "grpc_status_code"),
        )
        self.prepare_skips = Counter(
            "dra_node_prepare_skips_total",
            "Claims that a driver did not need to prepare.",
            ("driver_name",),
        )
        self.unprepare_skips = Counter(
            "dra_node_unprepare_skips_total",
            "Claims that a driver did not need to unprepare.",
            ("driver_name",),
        )
        self._in_use = Gauge(
            "dra_resource_claims_in_use",
            "Claims that are prepared, by driver and, as <any>, in all.",
            ("driver_name",),
            lambda: {(driver,): count for driver, count in in_use().items()},
        )

    def observe_call(self, driver: str, method: str, status: str, seconds: float) -> None:
        """Note how long a call took."""
        self.calls.observe(seconds, driver, method, status)

    def families(self) -> Iterator[Family]:
        """Yield all metrics."""
        yield from (self.operations, self.calls, self.prepare_skips, self.unprepare_skips)
        yield self._in_use

    def text(self) -> str:
        """Return all metrics in Prometheus' text format."""
        return exposition(self.families())
