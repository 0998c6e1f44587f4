"""`moor run`: one local command, with devices of this machine."""

from __future__ import annotations

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from moorage.cli import CONTEXT
from moorage.cli.command_classes import Duration, option_with_default
from moorage.cli.errors import DOES_NOT_FIT, fail, needs_extra, needs_system
from moorage.cli.server_options import data_dir_option
from moorage.cli.terminal import echo, printable
from moorage.kit.system import System

if TYPE_CHECKING:
    from moorage.cluster.run.claim_requests import NoClassError
    from moorage.cluster.run.holder_pod import HeldDevices, Run
    from moorage.cluster.state_folder import NodeState

STAGING = "staging"


@click.command(
    name="run",
    context_settings={**CONTEXT, "allow_interspersed_args": False},
    epilog="Exit status: that of COMMAND, or 128 + N if signal N ended it. Without "
    "devices: 1 none were allocated, 2 usage error, 3 no cluster is running, 126 "
    "COMMAND cannot be executed, 127 COMMAND was not found.",
)
@data_dir_option
@click.option(
    "--claim",
    "claims",
    multiple=True,
    required=True,
    metavar="NAME=AMOUNT,…",
    help="Devices to request: cpu, memory, hugepages, nic, net, vf, disk, gpu, mig, tpu, "
    "or a DeviceClass, with a number of devices, or an amount of cpu or memory. May "
    "be repeated.",
)
@click.option(
    "--match",
    "matches",
    multiple=True,
    metavar="ATTRIBUTE",
    help="Attribute that must be equal on all devices: numaNode, pcieRoot, or one with "
    "its domain. May be repeated.",
)
@click.option(
    "--selector",
    "selectors",
    multiple=True,
    metavar="NAME=CEL",
    help="CEL expression that devices for NAME must match. May be repeated.",
)
@option_with_default(
    "--timeout",
    "timeout_s",
    type=Duration(1, 86400),
    default="30s",
    help="How long to wait for devices.",
)
@click.option("--dry-run", is_flag=True, help="Print the claim and the pod without creating them.")
@click.option("-q", "--quiet", is_flag=True, help="Do not print which devices were allocated.")
@click.argument("command_line", metavar="COMMAND…", nargs=-1, required=True, type=click.UNPROCESSED)
@needs_system(System.LINUX)
@needs_extra("server")
def command(data_dir: Path, command_line: tuple[str, ...], **given: Any) -> None:
    """Run a command on this machine with devices, and release them when it ends.

    Needs a cluster that `moor up` runs on this machine. The devices are allocated and prepared as
    for a pod; nobody else gets them meanwhile. COMMAND… runs in this terminal and directory, with
    the environment variables, CPUs, memory nodes, device files and mounts of its devices.

    \b
    moor run --claim cpu=2,memory=4Gi --match numaNode -- make test
    moor run --claim gpu=1,nic=1 --match pcieRoot -- python train.py
    """
    from moorage.cluster.run.command import CommandError, check_command

    try:
        if not given["dry_run"]:
            check_command(command_line, os.environ.get("PATH"))
        sys.exit(asyncio.run(_run(data_dir.absolute(), command_line, given)))
    except CommandError as error:
        echo(f"error: {error}", err=True)
        sys.exit(error.exit_status)


async def _run(data_dir: Path, command_line: tuple[str, ...], given: dict[str, Any]) -> int:
    from moorage.client.client_factory import http_client, load_rest_config
    from moorage.client.errors import ClientError, InvalidError
    from moorage.cluster.run.claim_requests import ClaimRequestError, NoClassError
    from moorage.cluster.run.holder_pod import NotGivenError
    from moorage.node.errors import UnresolvableError
    from moorage.node.runtime.contract import RuntimeRefusedError

    node = _node(data_dir)
    try:
        async with http_client(load_rest_config(str(data_dir / "kubeconfig"))) as client:
            devices = await _devices(client, node, given)
            return await _with_devices(client, data_dir, node, devices, command_line, given)
    except NoClassError as error:
        echo(f"error: {error}\n{_remedy(error, data_dir, node)}", err=True)
        return DOES_NOT_FIT
    except ClaimRequestError as error:
        raise click.UsageError(str(error)) from None
    except InvalidError as error:
        raise click.UsageError(error.message) from None
    except (NotGivenError, UnresolvableError, RuntimeRefusedError) as error:
        echo(f"error: {error}", err=True)
        return DOES_NOT_FIT
    except ClientError as error:
        fail(error.message)


def _remedy(error: NoClassError, data_dir: Path, node: NodeState) -> str:
    """Return how to create a missing DeviceClass, and the alternatives."""
    from moorage.cluster.driver_classes import maker_of

    makers = [maker for each in error.classes if (maker := maker_of(each)) is not None]
    if makers:
        start = f"moor driver run {makers[0]} {node.driver_options(data_dir)}"
        lines = [
            f"  it comes with the driver {makers[0]}, which does not run in this cluster",
            f"  start it with: {start}",
            f"  or the cluster: moor up --drivers {','.join((*node.drivers, makers[0]))}",
        ]
    else:
        lines = ["  no driver of Moorage makes it: install that of the devices' maker"]
    known = ", ".join(error.known) or "nothing: no driver runs"
    return "\n".join((*lines, f"  what can be asked for: {known}"))


def _node(data_dir: Path) -> NodeState:
    """Return this machine as a node of the cluster that runs, or end."""
    from moorage.cluster.state_folder import StateFolder

    folder = StateFolder(data_dir)
    pid, state = folder.runner(), folder.read()
    if not pid or state is None or state.pid != pid:
        fail(f"no cluster runs in {data_dir}; `moor up --detach` starts one")
    if state.node is None:
        fail(f"the cluster in {data_dir} has no node on this machine; `moor up --node` adds it")
    if state.node.runtime != "process":
        fail(
            f"pods run here by the {state.node.runtime} runtime; a local command needs "
            "`moor up --runtime process`"
        )
    return state.node


async def _devices(client: Any, node: NodeState, given: dict[str, Any]) -> dict[str, Any]:
    """Return the requests of the claim, or raise ClaimRequestError."""
    from moorage.api.resource.v1 import DeviceClass, ResourceSlice
    from moorage.client.contract import list_all
    from moorage.cluster.run.claim_requests import NodeOffer, claim_devices, parse_requests

    asks = parse_requests(given["claims"])
    classes = (await list_all(client, DeviceClass)).values
    slices = (await list_all(client, ResourceSlice)).values
    offer = NodeOffer.of(classes, slices, node=node.name)
    return claim_devices(asks, offer, matches=given["matches"], selectors=given["selectors"])


async def _with_devices(
    client: Any,
    data_dir: Path,
    node: NodeState,
    devices: dict[str, Any],
    command_line: tuple[str, ...],
    given: dict[str, Any],
) -> int:
    """Run the command with its devices, and release them however it ends."""
    from moorage.cluster.run.holder_pod import FOLDER, DeviceHolder, Run, remove_leftovers

    name = f"run-{secrets.token_hex(4)}"
    run = Run(name, os.getpid(), data_dir / FOLDER / name, node.name)
    if given["dry_run"]:
        return _print(run, devices)
    await remove_leftovers(client)
    with _pipe(run.pipe):
        holder = DeviceHolder(client, run, node_folder=Path(node.folder))
        async with _signals() as signals:
            try:
                held = await holder.take(devices, timeout_s=given["timeout_s"], tell=_print_line)
                if not given["quiet"]:
                    _print_line("; ".join(held.devices))
                return await _command(data_dir, command_line, held, signals)
            except asyncio.CancelledError:
                return 128 + signals.last
            finally:
                signals.ignore()
                if not await holder.release():
                    _print_line(
                        f"the devices are not free yet: pod and claim {name} are still there"
                    )


async def _command(
    data_dir: Path, command_line: tuple[str, ...], held: HeldDevices, signals: Signals
) -> int:
    from moorage.api.cdi import DYNAMIC_FOLDER, STATIC_FOLDER
    from moorage.cluster.run.command import (
        CommandContext,
        command_launch,
        exit_status,
        start_command,
    )
    from moorage.cluster.run.holder_pod import FOLDER
    from moorage.cluster.state_folder import CDI
    from moorage.node.runtime.cdi import CdiSpecs

    specs = CdiSpecs([Path(STATIC_FOLDER), Path(DYNAMIC_FOLDER), data_dir / CDI])
    context = CommandContext(os.environ, os.getcwd(), data_dir / FOLDER / STAGING)
    launch = command_launch(command_line, specs.edits(held.cdi_ids), context)
    if launch.note:
        _print_line(launch.note)
    signals.hold()
    process = await start_command(launch, context)
    signals.pass_on_to(process.pid)
    return exit_status(await process.wait())


@contextmanager
def _pipe(path: Path) -> Iterator[None]:
    """Keep a pipe open during a block; when it closes, others see that we have ended."""
    try:
        path.parent.mkdir(mode=0o700, exist_ok=True)
        os.mkfifo(path, 0o600)
        pipe = os.open(path, os.O_RDWR | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        fail(f"{path}: {error.strerror}")
    try:
        yield
    finally:
        os.close(pipe)
        path.unlink(missing_ok=True)


class Signals:
    """Signals that we get: they end the wait for devices, go to the command, then nowhere."""

    def __init__(self, cancel: Callable[[], object]) -> None:
        self.last = 0
        self._cancel = cancel
        self._pid = 0
        self._held: int | None = None  # one that came while the command was started
        self._is_holding = self._is_over = False

    def hold(self) -> None:
        """Keep one signal for the command that is being started: it may run before we know."""
        self._is_holding = True

    def pass_on_to(self, pid: int) -> None:
        """Send signals to the command from now on, also one that was kept."""
        self._pid = pid
        if self._held is not None:
            self._pass_on(self._held)

    def ignore(self) -> None:
        """Ignore signals from now on."""
        self._is_over = True

    def got(self, number: int) -> None:
        """Handle a signal."""
        self.last = number
        if self._is_over:
            return
        if self._pid:
            self._pass_on(number)
        elif self._is_holding and self._held is None:
            self._held = number
        else:
            self._cancel()

    def _pass_on(self, number: int) -> None:
        from_terminal = (signal.SIGINT, signal.SIGQUIT)
        if number not in from_terminal or not _is_in_foreground():
            with suppress(ProcessLookupError):
                os.kill(self._pid, number)


@asynccontextmanager
async def _signals() -> AsyncIterator[Signals]:
    loop, task = asyncio.get_running_loop(), asyncio.current_task()
    assert task is not None
    signals = Signals(task.cancel)
    passed_on = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT)
    numbers = [each for each in passed_on if signal.getsignal(each) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, signals.got, number)
    try:
        yield signals
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _is_in_foreground() -> bool:
    """Return whether a terminal sends its signals to us and our child alike."""
    with suppress(OSError):
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_CLOEXEC | os.O_NOCTTY)
        try:
            return os.tcgetpgrp(terminal) == os.getpgrp()
        finally:
            os.close(terminal)
    return False


def _print_line(text: str) -> None:
    echo(f"moor run: {printable(text)}", err=True)


def _print(run: Run, devices: dict[str, Any]) -> int:
    """Print the manifests."""
    from moorage.cli.output import yaml_text
    from moorage.cluster.run.holder_pod import claim_tree, pod_tree

    trees = [claim_tree(run, devices), pod_tree(run)]
    echo(yaml_text(trees))
    return 0
