"""A running driver: everything around its three methods, started in order and stopped in reverse.

    async with serving(MyDriver(), Settings(node_name="node-1"), client) as running:
        await running.wait_published()

The DRA service starts before the driver registers, since the kubelet may call a registered driver
at once. A driver that cannot list its devices is not registered: `serving` raises InventoryError.
"""

from __future__ import annotations

import asyncio
import logging
import stat
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from moorage.api.names import dns1123_subdomain
from moorage.client.contract import Client
from moorage.driver.checkpoint import Checkpoint, FileSystem, PreparedClaim
from moorage.driver.claim_files import CdiFiles, MetadataFiles
from moorage.driver.claim_preparation import ClaimPreparer
from moorage.driver.driver import ClaimName, Driver, Prepared, ResultError
from moorage.driver.driver_calls import SERIALIZE_LOCK, SerialCalls, only_instance
from moorage.driver.errors import (
    DriverError,
    HealthError,
    InventoryError,
    RegistrationError,
    StartError,
)
from moorage.driver.health_service import HealthService
from moorage.driver.node_service import NodeService
from moorage.driver.settings import Settings
from moorage.driver.slice_controller import SliceController
from moorage.driver.slice_plan import Publisher
from moorage.kit.clock import REAL, Clock
from moorage.wire import registration_pb2 as wire
from moorage.wire.services import (
    DRA_PLUGIN,
    DRA_V1,
    DRA_V1BETA1,
    GET_INFO,
    NOTIFY,
    Method,
    new_server,
    serve,
)

NAME_MAX = 63
PROBLEMS_MAX = 100
LOG = logging.getLogger(__name__)
GRACE_S = 5.0  # for calls in progress, when a driver stops


class DriverProblem(NamedTuple):
    """Something that went wrong while a driver ran."""

    text: str
    error: Exception

    @property
    def is_bug(self) -> bool:
        """Whether the driver has to be fixed; an error that it raises on purpose is no bug."""
        is_deliberate = isinstance(self.error, DriverError)
        return (
            not is_deliberate
            or isinstance(self.error, InventoryError | ResultError)
            or (isinstance(self.error, HealthError) and self.error.__cause__ is not None)
        )


class DriverProblems:
    """Keeps the last problems, and reports relevant ones to the driver."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver
        self._kept: tuple[DriverProblem, ...] = ()

    def __iter__(self) -> Iterator[DriverProblem]:
        return iter(self._kept)

    def report(self, error: Exception) -> None:
        """Keep an error, and report it to the driver."""
        self.note(str(error), error)
        self._driver.report(error)

    def note(self, text: str, error: Exception) -> None:
        """Keep an error that the driver knows of."""
        # Never changed in place: tests read it from another thread.
        self._kept = (*self._kept, DriverProblem(text, error))[-PROBLEMS_MAX:]


class Running:
    """A driver that is served and published."""

    def __init__(
        self,
        slices: SliceController,
        problems: DriverProblems,
        *,
        socket: Path | None = None,
        preparer: ClaimPreparer | None = None,
        registration: Registration | None = None,
        registrar_socket: Path | None = None,
    ) -> None:
        self.socket = socket
        self.registrar_socket = registrar_socket
        self.problems = problems
        self._slices = slices
        self._preparer = preparer
        self._registration = registration
        self._failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    @property
    def claims(self) -> tuple[PreparedClaim, ...]:
        """The claims that are prepared, or about to be."""
        return self._preparer.claims if self._preparer is not None else ()

    @property
    def written(self) -> int:
        """How many slices were created, updated and deleted."""
        return self._slices.written

    def republish(self) -> None:
        """Call the driver for its devices again."""
        self._slices.republish()

    async def wait_published(self) -> None:
        """Wait until the driver's devices are published; raises what prevents that."""
        await self._unless_failed(self._slices.wait_published())

    async def wait_registered(self) -> None:
        """Wait until the kubelet has registered the driver; raises what prevents that."""
        if self._registration is not None:
            await self._unless_failed(self._registration.is_registered.wait())

    async def _unless_failed(self, wait: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.ensure_future(wait)
        try:
            await asyncio.wait((task, self._failed), return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                self._failed.result()
        finally:
            task.cancel()

    async def update_metadata(
        self, claim: ClaimName, request: str, prepared: Iterable[Prepared]
    ) -> None:
        """Replace the metadata of a request of a prepared claim."""
        assert self._preparer is not None
        await self._preparer.update_metadata(claim, request, prepared)

    async def wait_failed(self) -> None:
        """Wait until something fails that cannot be retried, and raise it."""
        await asyncio.shield(self._failed)

    def _note_end(self, task: asyncio.Task[None]) -> None:
        if not task.cancelled() and task.exception() is not None and not self._failed.done():
            self._failed.set_exception(task.exception() or StartError("stopped"))
            self._failed.exception()  # no warning if nobody waits for it


@asynccontextmanager
async def serving(
    driver: Driver,
    settings: Settings,
    client: Client,
    *,
    clock: Clock = REAL,
    files: FileSystem | None = None,
) -> AsyncIterator[Running]:
    """Run a driver for as long as a block lasts; raises DriverError if it cannot run."""
    settings.check()
    _check_name(driver)
    driver.node_name = settings.node_name
    driver.numa_form = settings.numa_form
    problems = DriverProblems(driver)
    publisher = Publisher(driver.name, settings.node_name)
    slices = SliceController(driver, client, publisher, report=problems.report, clock=clock)
    is_started = False

    async def stopped() -> None:
        if is_started:
            await driver.stopped()

    async with AsyncExitStack() as stack:
        stack.push_async_callback(stopped)  # after all else has stopped
        _enable_republish(driver, slices, stack)
        if settings.node_name:
            parts = _Parts(driver, settings, client, slices, problems, clock, files or FileSystem())
            running = await _serve_node(parts, stack)
        else:
            await slices.list_devices()
            running = Running(slices, problems)
        _run_beside(slices.run(), running, stack)
        is_started = True
        await driver.started()
        yield running


class _Parts(NamedTuple):
    driver: Driver
    settings: Settings
    client: Client
    slices: SliceController
    problems: DriverProblems
    clock: Clock
    files: FileSystem


async def _serve_node(parts: _Parts, stack: AsyncExitStack) -> Running:
    """Serve the kubelet: first the DRA service, then registration."""
    driver, settings, slices, clock = parts.driver, parts.settings, parts.slices, parts.clock
    socket = settings.socket(driver.name)
    registrar_socket = settings.registrar_socket(driver.name)
    folder = settings.data_folder(driver.name)
    is_rolling = bool(settings.pod_uid)
    stack.enter_context(only_instance(folder, shares=is_rolling))
    turns = SerialCalls(folder / SERIALIZE_LOCK if is_rolling else None)
    preparer = _claim_preparer(parts, folder)
    async with turns.one():
        await asyncio.to_thread(_recover, preparer)
    report = parts.problems.report
    health = HealthService(driver, settings.node_name, report=report, clock=clock)
    service = NodeService(
        driver,
        parts.client,
        preparer,
        turns=turns,
        published=slices.device,
        rereads=is_rolling,
        note=parts.problems.note,
        clock=clock,
    )
    versions = (DRA_V1, DRA_V1BETA1, *health.versions)
    registration = Registration(driver, socket, versions, report=report)
    running = Running(
        slices,
        parts.problems,
        socket=socket,
        preparer=preparer,
        registration=registration,
        registrar_socket=registrar_socket,
    )
    stack.push_async_callback(service.finished)
    methods = {**service.methods(), **health.methods()}
    await stack.enter_async_context(served(socket, methods))
    _run_beside(health.run(), running, stack)
    stack.callback(health.close)
    await slices.list_devices()
    await stack.enter_async_context(served(registrar_socket, registration.methods()))
    return running


def _claim_preparer(parts: _Parts, folder: Path) -> ClaimPreparer:
    driver, settings, files = parts.driver, parts.settings, parts.files
    return ClaimPreparer(
        driver,
        parts.client,
        Checkpoint(folder, files),
        CdiFiles(driver.name, settings.cdi_dir, files),
        metadata=MetadataFiles(driver.name, folder, settings.cdi_dir, settings.metadata, files),
        boot_id=settings.current_boot_id(),
        clock=parts.clock,
    )


def _recover(preparer: ClaimPreparer) -> None:
    preparer.load()
    try:
        preparer.restore()
    except OSError as error:
        raise StartError(f"CDI specs cannot be written again: {error}") from None


def _run_beside(work: Coroutine[Any, Any, None], running: Running, stack: AsyncExitStack) -> None:
    task = asyncio.create_task(work)
    task.add_done_callback(running._note_end)

    async def stop() -> None:
        task.cancel()
        with suppress(asyncio.CancelledError, Exception):
            await task

    stack.push_async_callback(stop)


def _enable_republish(driver: Driver, slices: SliceController, stack: AsyncExitStack) -> None:
    """Make `driver.republish()` work from any thread, until the driver stops."""
    loop = asyncio.get_running_loop()

    def republish() -> None:
        with suppress(RuntimeError):  # the loop is closed: the driver has stopped
            loop.call_soon_threadsafe(slices.republish)

    driver._republish = republish
    stack.callback(setattr, driver, "_republish", None)


def _check_name(driver: Driver) -> None:
    if isinstance(driver, type):
        raise StartError(f"{driver.__name__} is a class; write {driver.__name__}()")
    name = getattr(driver, "name", "")
    if not isinstance(name, str) or not name:
        raise StartError(f"{type(driver).__name__} has no name")
    wrong = dns1123_subdomain(name.lower())
    if wrong or len(name) > NAME_MAX:
        fact = wrong[0] if wrong else f"must have at most {NAME_MAX} characters"
        raise StartError(f"{name[:256]!r} cannot be the name of a driver: {fact}")


# --- registration ---------------------------------------------------------------------------------


class Registration:
    """Answers the kubelet's plugin watcher."""

    def __init__(
        self,
        driver: Driver,
        socket: Path,
        versions: tuple[str, ...],
        *,
        report: Callable[[Exception], None] | None = None,
    ) -> None:
        self._report = report or driver.report
        self._info = wire.PluginInfo(
            type=DRA_PLUGIN,
            name=driver.name,
            endpoint=str(socket),
            supported_versions=versions,
        )
        self.is_registered = asyncio.Event()

    def methods(self) -> dict[Method, Callable[..., Any]]:
        """Return the methods to serve."""
        return {GET_INFO: self._get_info, NOTIFY: self._notify}

    async def _get_info(self, _: wire.InfoRequest, __: Any) -> wire.PluginInfo:
        return self._info

    async def _notify(
        self, status: wire.RegistrationStatus, _: Any
    ) -> wire.RegistrationStatusResponse:
        if status.plugin_registered:
            LOG.info("registered with the kubelet")
            self.is_registered.set()
        else:
            self.is_registered.clear()
            fact = status.error[:1024] or "no reason given"
            self._report(RegistrationError(f"the node refused the driver: {fact}"))
        return wire.RegistrationStatusResponse()


# --- sockets --------------------------------------------------------------------------------------


@asynccontextmanager
async def served(path: Path, methods: Mapping[Method, Callable[..., Any]]) -> AsyncIterator[None]:
    """Serve methods at a socket for as long as a block lasts, or raise StartError."""
    _make_way(path)
    server = new_server()
    server.add_generic_rpc_handlers((serve(methods),))
    try:
        server.add_insecure_port(f"unix:{path}")
    except RuntimeError as error:
        raise StartError(f"cannot serve at {path}: {error}") from None
    await server.start()
    try:
        yield
    finally:
        await server.stop(GRACE_S)
        with suppress(OSError):
            path.unlink(missing_ok=True)


def _make_way(path: Path) -> None:
    """Remove the socket that an earlier run left, and nothing else."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        mode = path.lstat().st_mode
        if not stat.S_ISSOCK(mode):
            raise StartError(f"{path} is in the way: it is no socket")
        path.unlink()
    except FileNotFoundError:
        return
    except OSError as error:
        raise StartError(f"{path}: {error.strerror}") from None
