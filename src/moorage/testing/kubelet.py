"""The half of a kubelet that talks to drivers, and the faults that it can have.

The real claim manager of the node, on real sockets, with its own API server and without pods: a
test creates claims, prepares and unprepares them, and injects faults.
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace

from moorage.api.cdi import ContainerEdits
from moorage.api.core import Node, Pod
from moorage.api.core.pod import Container, PodResourceClaim, PodSpec
from moorage.api.core.resources import ContainerClaim, ResourceRequirements
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim, ResourceClaimConsumerReference
from moorage.apiserver.server import assembled
from moorage.apiserver.settings import Settings as ServerSettings
from moorage.client.client_factory import in_process_client
from moorage.client.writes import Create, Update
from moorage.node.contract import DevicesRefusedError
from moorage.node.dra.checkpoint import FILE_NAME
from moorage.node.dra.manager import DriverClient
from moorage.node.dra.service import Dra, DraSettings
from moorage.node.errors import CallError, NotRegisteredError
from moorage.node.runtime.cdi import CdiSpecs
from moorage.testing.check.bench import Bench, Folders
from moorage.testing.check.claims import ClaimFactory
from moorage.testing.served_drivers import START_S, ServedDrivers, background
from moorage.wire import grpc

if TYPE_CHECKING:
    from moorage.driver.driver import Driver
    from moorage.driver.serving import Running
    from moorage.wire.services import Method

__all__ = ["DevicesRefusedError", "FakeKubelet", "Fault", "fake_kubelet"]
__tracebackhide__ = True  # pytest shows the test, not us

T = TypeVar("T")

NODE_NAME = "node-1"
CONTAINER = "main"


class Fault(Enum):
    """What happens to a call to a driver."""

    CUT = "the connection was cut before the driver heard of it"
    LOST = "the driver answered, and the answer was lost"
    GIVEN_UP = "the driver was asked, and nobody waited for the answer"


class FakeKubelet:
    """A node that prepares claims; all methods block until they are done."""

    def __init__(self, bench: Bench) -> None:
        self._background, self._bench = background(), bench
        self._stack = AsyncExitStack()
        self._faults: list[Fault] = []
        self._pods: dict[str, Pod] = {}  # by the uid of their claim
        self._claims: dict[str, ClaimFactory] = {}
        self._dra: Dra | None = None
        self._drivers = ServedDrivers()

    @property
    def kubelet_dir(self) -> Path:
        """The root folder of the kubelet, in which drivers register."""
        return self._bench.folders.root

    @property
    def cdi_dir(self) -> Path:
        """The folder of CDI specs."""
        return self._bench.folders.cdi

    # --- claims ---------------------------------------------------------------------------------

    def claim(self, driver: str) -> ResourceClaim:
        """Return a new claim with a device of a driver that no other claim has."""
        claims = self._claims.setdefault(driver, ClaimFactory(self._bench, driver))
        found = self._background.run(claims.allocated())
        if found is None:
            raise AssertionError(f"{driver} has no device left")
        return found

    def prepare(self, claim: ResourceClaim) -> ContainerEdits:
        """Prepare a claim, as for a pod; return the edits of its container.

        Raises DevicesRefusedError with the text that users of the pod would read, caused by the
        exception of the driver.
        """
        return self._background.run(self._with_cause(self._prepare(claim)))

    def unprepare(self, claim: ResourceClaim) -> None:
        """Unprepare a claim, as when its pod ended; raises as `prepare` does."""
        pod = self._pods[claim.metadata.uid]
        self._background.run(self._with_cause(self.dra.manager.unprepare(pod)))

    async def _with_cause(self, work: Coroutine[Any, Any, T]) -> T:
        try:
            return await work
        except DevicesRefusedError as refused:
            raise refused from self._drivers.last_bug()

    async def _prepare(self, claim: ResourceClaim) -> ContainerEdits:
        pod = self._pods.get(claim.metadata.uid) or await self._new_pod(claim)
        await self.dra.manager.prepare(pod)
        options = self.dra.manager.run_options(pod, CONTAINER)
        return CdiSpecs([self.cdi_dir]).edits(options.cdi_ids)

    async def _new_pod(self, claim: ResourceClaim) -> Pod:
        """Return a pod for which a claim is reserved."""
        uid, name = f"pod-of-{claim.metadata.uid}", f"pod-of-{claim.metadata.name}"
        reference = ResourceClaimConsumerReference(resource="pods", name=name, uid=uid)
        status = replace(claim.status, reserved_for=(reference,))
        await self._bench.client.write(Update(replace(claim, status=status), "status"))
        wanted = ResourceRequirements(claims=(ContainerClaim(name="devices"),))
        spec = PodSpec(
            node_name=NODE_NAME,
            containers=(Container(name=CONTAINER, resources=wanted),),
            resource_claims=(
                PodResourceClaim(name="devices", resource_claim_name=claim.metadata.name),
            ),
        )
        metadata = ObjectMeta(name=name, namespace=claim.metadata.namespace, uid=uid)
        self._pods[claim.metadata.uid] = pod = Pod(metadata=metadata, spec=spec)
        return pod

    # --- faults ---------------------------------------------------------------------------------

    def fail(self, fault: Fault, calls: int = 1) -> None:
        """Let the next calls to drivers fail."""
        self._faults += [fault] * calls

    def restart(self) -> None:
        """Restart with the checkpoint, and wait until the drivers are registered."""
        self._background.run(self._restart(lambda: None))

    def forget(self) -> None:
        """Restart without the checkpoint."""
        checkpoint = self.kubelet_dir / FILE_NAME
        self._background.run(self._restart(lambda: checkpoint.unlink(missing_ok=True)))

    def lose_specs(self) -> None:
        """Empty the folder of CDI specs, as a reboot does."""
        self._bench.reboot()

    async def _restart(self, meanwhile: Callable[[], None]) -> None:
        names = list(self._claims)
        await self.stop()
        meanwhile()
        await self.start()
        for name in names:
            await self.until_registered(name)

    # --- life -----------------------------------------------------------------------------------

    @property
    def dra(self) -> Dra:
        """The node's half of DRA."""
        assert self._dra is not None
        return self._dra

    async def start(self) -> None:
        """Serve claims."""
        settings = DraSettings(
            root=self.kubelet_dir,
            node=NODE_NAME,
            gates=Gates.parse(),
            pods=lambda: list(self._pods.values()),
            active=lambda: None,
        )
        self._dra = dra = Dra(self._bench.client, settings)
        dra.manager.use(lambda name: _Faulty(dra.drivers.get(name), self._faults))
        await self._stack.enter_async_context(dra.serving())

    async def stop(self) -> None:
        """Stop serving claims."""
        stack, self._stack = self._stack, AsyncExitStack()
        await stack.aclose()

    async def until_registered(self, driver: str) -> None:
        """Wait until a driver is registered."""
        while True:
            try:
                self.dra.drivers.get(driver)
            except NotRegisteredError:
                await asyncio.sleep(0.01)
            else:
                return

    @contextmanager
    def run(self, driver: Driver, within_s: float = START_S) -> Iterator[Running]:
        """Run a driver during a `with` block, registered and published.

        Raises InventoryError, caused by the driver's own exception, if `devices` fails, and
        DriverFailedError if something takes too long.
        """
        with self._drivers.run(
            driver,
            self._bench.client,
            lambda _: self.until_registered(driver.name),
            within_s,
            node_name=NODE_NAME,
            kubelet_dir=self.kubelet_dir,
            cdi_dir=self.cdi_dir,
        ) as running:
            yield running


class _Faulty:
    """A driver whose next calls fail."""

    def __init__(self, driver: DriverClient, faults: list[Fault]) -> None:
        self._driver, self._faults = driver, faults

    async def call(self, method: Method, request: Any) -> Any:
        """Return its response, or raise CallError."""
        if not self._faults:
            return await self._driver.call(method, request)
        match fault := self._faults.pop(0):
            case Fault.LOST:
                await self._driver.call(method, request)
            case Fault.GIVEN_UP:
                call = asyncio.ensure_future(self._driver.call(method, request))
                await asyncio.wait((call,), timeout=0.01)
                call.cancel()
                await asyncio.gather(call, return_exceptions=True)
        raise CallError(grpc.StatusCode.UNAVAILABLE, fault.value)


@contextmanager
def fake_kubelet() -> Iterator[FakeKubelet]:
    """Run a kubelet during a `with` block; nothing is left of it."""
    folder = Path(tempfile.mkdtemp(prefix="moor-", dir="/tmp"))
    try:
        with background().entered(_running(folder)) as found:
            yield found
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@asynccontextmanager
async def _running(folder: Path) -> AsyncIterator[FakeKubelet]:
    folders = Folders(folder / "kubelet", folder / "cdi")
    folders.make()
    async with assembled(ServerSettings(folder / "server", allows_all=True)) as server:
        client = in_process_client(server.application)
        node = await client.write(Create(Node(metadata=ObjectMeta(name=NODE_NAME))))
        found = FakeKubelet(Bench(folders, folder / "none", client, node))
        await found.start()
        try:
            yield found
        finally:
            await found.stop()
