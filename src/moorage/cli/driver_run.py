"""`moor driver run`: one of the drivers that come with Moorage, for a node of any cluster."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import click

from moorage.cli import CONTEXT
from moorage.cli.command_classes import option_with_default
from moorage.cli.driver_devices import show
from moorage.cli.driver_options import chosen_drivers, several_drivers
from moorage.cli.errors import fail, needs_extra, needs_system
from moorage.cli.program_options import access_of, cluster_access_options, run_program
from moorage.cli.terminal import say
from moorage.drivers.catalogue import DriverOptions
from moorage.kit.process_memory import limit_malloc_arenas
from moorage.kit.system import System

if TYPE_CHECKING:
    from moorage.client.client_factory import RestConfig
    from moorage.client.contract import Client
    from moorage.driver.driver import Driver

AGAIN_AFTER_S = 5.0
PUBLISHED_S_MAX = 10.0
KUBELET_FOLDER = "/var/lib/kubelet"
FOLDER = click.Path(path_type=Path, file_okay=False)


@click.command(
    name="run",
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, 1 no devices were found (--dry-run), 2 usage error, 3 "
    "the cluster or a directory cannot be reached or used.",
)
@several_drivers
@cluster_access_options
@option_with_default(
    "--kubelet-dir",
    type=FOLDER,
    default=KUBELET_FOLDER,
    envvar="KUBELET_DIR",
    show_envvar=True,
    metavar="DIR",
    help="Kubelet directory that contains plugins and plugins_registry.",
)
@option_with_default(
    "--cdi-dir",
    type=FOLDER,
    default="/var/run/cdi",
    envvar="CDI_ROOT",
    show_envvar=True,
    metavar="DIR",
    help="Directory to write CDI specs to.",
)
@click.option(
    "--classes/--no-classes",
    "makes_classes",
    default=True,
    help="Create missing DeviceClasses of the drivers.  [default: classes]",
)
@click.option(
    "--dry-run", is_flag=True, help="Only print the ResourceSlices as YAML; needs no cluster."
)
@click.option("-v", "--verbosity", type=click.IntRange(0, 10), default=2, help="Log level.")
@needs_system(System.LINUX, unless="dry_run")
@needs_extra("drivers", unless="dry_run")
def command(
    names: tuple[str, ...],
    options: DriverOptions,
    kubelet_dir: Path,
    cdi_dir: Path,
    makes_classes: bool,
    dry_run: bool,
    verbosity: int,
    **given: Any,
) -> None:
    """Run drivers on this machine: publish their devices and prepare them for pods.

    NAME… is one or more of cpu, memory, net, nvme, nvidia and sim; net and sim may stand for
    several drivers. All of them run in one process. Missing DeviceClasses of the drivers are
    created if the user of the kubeconfig is allowed to.

    \b
    moor driver run cpu memory --node-name worker-1
    moor driver run nvidia --mig dynamic --dry-run
    """
    if dry_run:
        sys.exit(max(show(name, options, "yaml") for name in names))
    drivers = tuple(chosen_drivers(names, options))
    access = access_of(given)
    limit_malloc_arenas()
    folders = kubelet_dir.absolute(), cdi_dir.absolute()
    words = " ".join(names) if makes_classes else ""
    work = _serve(drivers, options, access, *folders, classes_of=words)
    run_program(work, verbosity=verbosity, server=access.server)


async def _make_classes(client: Client, drivers: tuple[Driver, ...], words: str) -> None:
    """Create the classes of drivers; if that is forbidden, print which are missing."""
    import asyncio

    from moorage.client.errors import ClientError, UnavailableError
    from moorage.cluster.driver_classes import class_names, make_classes

    own = [driver.name for driver in drivers]
    while True:
        try:
            await make_classes(client, own)
        except UnavailableError:
            await asyncio.sleep(AGAIN_AFTER_S)
            continue
        except ClientError as error:
            classes = ", ".join(class_names(own))
            say(
                f"note: pods need the DeviceClasses {classes}, which could not be created: "
                f"{error.message}; an administrator can create the missing ones: "
                f"moor driver classes {words} | kubectl apply -f -",
                err=True,
            )
        return


async def _serve(
    drivers: tuple[Driver, ...],
    options: DriverOptions,
    access: RestConfig,
    kubelet_dir: Path,
    cdi_dir: Path,
    *,
    classes_of: str,
) -> None:
    """Serve drivers until one of them fails, or we are stopped; `classes_of`: operators' names."""
    import asyncio

    from moorage.client.client_factory import http_client
    from moorage.driver.errors import DriverError
    from moorage.driver.serving import serving
    from moorage.driver.settings import Settings

    settings = Settings(
        node_name=options.node_name,
        kubelet_dir=kubelet_dir,
        cdi_dir=cdi_dir,
        numa_form=options.form,
    )
    try:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(http_client(access, manager="moor-driver"))
            running = [
                await stack.enter_async_context(serving(driver, settings, client))
                for driver in drivers
            ]
            names = ", ".join(driver.name for driver in drivers)
            async with asyncio.TaskGroup() as group:
                group.create_task(announce(f"{names} for node {settings.node_name}", running))
                if classes_of:
                    group.create_task(_make_classes(client, drivers, classes_of))
                for each in running:
                    group.create_task(each.wait_failed())
    except* DriverError as failed:
        fail(str(failed.exceptions[0]))


class Publishing(Protocol):
    """A running driver whose devices can be waited for."""

    async def wait_published(self) -> None:
        """Wait until the driver's devices are published; raise the error that prevents it."""


async def announce(what: str, running: Sequence[Publishing]) -> None:
    """Report that drivers run, once their devices are published or the server is unreachable."""
    import asyncio

    with suppress(TimeoutError):
        async with asyncio.timeout(PUBLISHED_S_MAX):
            for each in running:
                await each.wait_published()
    say(f"driving {what}", err=True)
