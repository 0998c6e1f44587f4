"""A driver as a program: arguments, logs, signals and exit status."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
from collections.abc import Coroutine, Mapping, Sequence
from pathlib import Path
from typing import Any

from moorage.api.cdi import DYNAMIC_FOLDER
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.errors import ClientError
from moorage.driver.driver import Driver
from moorage.driver.errors import DriverError
from moorage.driver.serving import serving
from moorage.driver.settings import KUBELET_DIR, METADATA_VERSIONS, Settings
from moorage.hardware.attributes import NumaNodeForm
from moorage.kit.printable import log_to_stderr, printable_message
from moorage.kit.process_memory import limit_malloc_arenas
from moorage.kit.system import on_stop

LOG = logging.getLogger("moorage.driver")

STOPPED, FAILED, USAGE = 0, 1, 2
_FORMS = {"scalar": NumaNodeForm.SCALAR, "list": NumaNodeForm.LIST}


def main(
    driver: Driver,
    arguments: Sequence[str] | None = None,
    environment: Mapping[str, str] | None = None,
) -> int:
    """Run a driver until SIGTERM or SIGINT, and return the exit status."""
    environment = os.environ if environment is None else environment
    reader = parser(driver, environment)
    options = reader.parse_args(arguments)
    if driver.needs_node and not options.node_name:
        reader.error("the node is not known: use --node-name or set NODE_NAME")
    log_to_stderr(
        logging.DEBUG if options.verbose else logging.INFO,
        "%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    limit_malloc_arenas()
    try:
        settings = settings_of(options)
        settings.check()
        asyncio.run(_run(driver, settings, options.kubeconfig, environment))
    except (ClientError, DriverError) as error:
        _complain(str(error))
        return FAILED
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        _complain(f"{where}{error.strerror or error}")
        return FAILED
    except KeyboardInterrupt:
        return STOPPED
    except Exception as error:  # a bug, in the driver or the SDK
        LOG.error("the driver failed", exc_info=True)
        _complain(f"{type(error).__name__}: {error}")
        return FAILED
    return STOPPED


def _complain(text: str) -> None:
    print(f"error: {printable_message(text)}", file=sys.stderr)


def parser(driver: Driver, environment: Mapping[str, str]) -> argparse.ArgumentParser:
    """Return the parser of a driver's arguments."""
    first_line = (type(driver).__doc__ or f"The DRA driver {driver.name}.").strip().splitlines()[0]
    found = argparse.ArgumentParser(description=first_line, allow_abbrev=False)
    add = found.add_argument
    add(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="how to reach the server (default: $KUBECONFIG, or as a pod)",
    )
    add(
        "--node-name",
        default=environment.get("NODE_NAME", ""),
        metavar="NAME",
        help="the node that the driver runs on (default: $NODE_NAME)",
    )
    add(
        "--kubelet-dir",
        type=Path,
        default=Path(environment.get("KUBELET_DIR") or KUBELET_DIR),
        metavar="DIR",
        help="the folder of the kubelet, with plugins and plugins_registry "
        f"(default: $KUBELET_DIR, or {KUBELET_DIR})",
    )
    add("--registrar-dir", type=Path, metavar="DIR", help="where the node looks for drivers")
    add("--data-dir", type=Path, metavar="DIR", help="where the driver keeps its own files")
    add(
        "--cdi-dir",
        type=Path,
        default=Path(environment.get("CDI_ROOT") or DYNAMIC_FOLDER),
        metavar="DIR",
        help=f"where CDI specs are written (default: $CDI_ROOT, or {DYNAMIC_FOLDER})",
    )
    add(
        "--pod-uid",
        default=environment.get("POD_UID", ""),
        metavar="UID",
        help="lets the driver run beside its next version (default: $POD_UID)",
    )
    add(
        "--metadata",
        default="",
        metavar="VERSIONS",
        help="write device metadata for containers, such as v1beta1 or v1beta1,v1alpha1",
    )
    add(
        "--numa-node",
        choices=sorted(_FORMS),
        default="scalar",
        help="how numaNode is published; a list needs DRAListTypeAttributes (default: %(default)s)",
    )
    add("-v", "--verbose", action="store_true", help="log more")
    return found


def settings_of(options: argparse.Namespace) -> Settings:
    """Return the settings that arguments mean."""
    versions = tuple(each for each in options.metadata.split(",") if each)
    return Settings(
        node_name=options.node_name,
        kubelet_dir=options.kubelet_dir.absolute(),
        registrar_dir=options.registrar_dir and options.registrar_dir.absolute(),
        data_dir=options.data_dir and options.data_dir.absolute(),
        cdi_dir=options.cdi_dir.absolute(),
        pod_uid=options.pod_uid,
        metadata=tuple(METADATA_VERSIONS.get(each, each) for each in versions),
        numa_form=_FORMS[options.numa_node],
    )


async def _run(
    driver: Driver, settings: Settings, kubeconfig: str, environment: Mapping[str, str]
) -> None:
    stop = asyncio.Event()
    on_stop(stop.set)
    access = load_rest_config(kubeconfig, environment=environment)
    async with (
        http_client(access, manager=driver.name) as client,
        serving(driver, settings, client) as running,
    ):
        LOG.info("%s runs on node %s", driver.name, settings.node_name or "(none)")
        await _first(stop.wait(), running.wait_failed())
        LOG.info("stopping")


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    """Wait until one is done, and raise its error."""
    tasks = [asyncio.create_task(each) for each in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for each in done:
            each.result()
    finally:
        for each in tasks:
            each.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
