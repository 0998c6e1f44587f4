"""`moor node`: the agent of a node, which runs pods on this machine."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from msgspec.structs import replace

from moorage.api.gates import Gates
from moorage.api.quantity import Quantity
from moorage.cli import CONTEXT
from moorage.cli.command_classes import SectionedCommand, option_with_default
from moorage.cli.errors import fail, needs_extra, needs_system
from moorage.cli.gate_options import GATES, gate_options
from moorage.cli.program_options import (
    SECTIONS,
    access_of,
    cluster_access_options,
    run_program,
    status_place,
    watching_options,
)
from moorage.cli.terminal import say
from moorage.kit.system import System

if TYPE_CHECKING:
    from moorage.client.client_factory import RestConfig
    from moorage.cluster.node import KubeletEndpoint, NodeSettings
    from moorage.cluster.status_server import ListenAddress


def _pairs(_: click.Context, parameter: click.Parameter, text: str) -> dict[str, str]:
    """Parse a text such as a=1,b=2."""
    found = {}
    for part in filter(None, text.split(",")):
        key, separator, value = part.partition("=")
        if not separator or not key:
            raise click.BadParameter(f"{part!r} is not of the form NAME=VALUE", param=parameter)
        found[key] = value
    return found


def _amounts(
    context: click.Context, parameter: click.Parameter, text: str | None
) -> dict[str, Quantity] | None:
    if text is None:
        return None
    found = {}
    for name, value in _pairs(context, parameter, text).items():
        try:
            found[name] = Quantity.parse(value)
        except ValueError as error:
            raise click.BadParameter(f"{name}: {error}", param=parameter) from None
    return found


@click.command(
    name="node",
    cls=SectionedCommand,
    sections=(
        SECTIONS[0],
        ("The node", ("node_name", "node_ip", "node_labels", "max_pods", "system_reserved")),
        ("How pods run", ("root_dir", "runtime", "cdi_dirs", "stop_containers")),
        ("Logs and commands", ("credentials", "address", "port")),
        ("What it does", GATES),
        SECTIONS[-1],
    ),
    context_settings=CONTEXT,
    epilog="Exit status: 0 stopped, 2 usage error, 3 the cluster cannot be reached or used, or "
    "this machine cannot run pods that way.",
)
@click.option(
    "--node-name",
    default="",
    metavar="NAME",
    help="Name of the node. By default, the hostname.",
)
@click.option(
    "--node-ip",
    default="",
    metavar="ADDRESS",
    help="IP address of the node. By default, the one used to reach the API server.",
)
@click.option(
    "--node-labels",
    default="",
    metavar="NAME=VALUE,…",
    callback=_pairs,
    help="Labels to add when the node registers.",
)
@option_with_default(
    "--max-pods",
    type=click.IntRange(0, 10_000),
    default=110,
    help="Maximum number of pods.",
)
@click.option(
    "--system-reserved",
    default=None,
    metavar="NAME=AMOUNT,…",
    callback=_amounts,
    help="Resources reserved from pods: cpu, memory, ephemeral-storage. By default, "
    "100Mi of memory and a tenth of the disk.",
)
@option_with_default(
    "--root-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default="/var/lib/kubelet",
    metavar="FOLDER",
    help="Directory for volumes, logs and driver sockets; not shared with another agent.",
)
@option_with_default(
    "--runtime",
    type=click.Choice(["process", "podman", "sim"]),
    default="process",
    help="Container runtime: local processes, podman, or simulated.",
)
@option_with_default(
    "--cdi-dir",
    "cdi_dirs",
    type=click.Path(path_type=Path, file_okay=False),
    multiple=True,
    default=("/etc/cdi", "/var/run/cdi"),
    metavar="FOLDER",
    help="Directory of CDI specs. May be repeated; later ones take precedence.",
)
@click.option(
    "--stop-containers",
    is_flag=True,
    help="Stop containers when the agent stops. By default, they keep running.",
)
@click.option(
    "--credentials",
    type=click.Path(path_type=Path, file_okay=False, exists=True),
    default=None,
    metavar="FOLDER",
    help="Directory written by `moor kubeconfig --node`, with the kubeconfig (unless "
    "--kubeconfig is given) and the serving certificate for `kubectl logs`, `exec`, and "
    "/metrics.",
)
@option_with_default(
    "--address",
    default="127.0.0.1",
    metavar="ADDRESS",
    help="Address that the node serves logs and exec on; needs --credentials.",
)
@option_with_default(
    "--port",
    type=click.IntRange(0, 65535),
    default=10250,
    help="Port for --address; 0 picks a free one.",
)
@cluster_access_options
@watching_options(metrics="127.0.0.1:10248")
@gate_options
@needs_system(System.LINUX)
@needs_extra("drivers")
def command(gates: Gates, place: ListenAddress | None, **given: Any) -> None:
    """Run the agent of a node on this machine until interrupted.

    The machine registers as a node. The agent prepares the devices of pods bound to it with the
    drivers on this machine, runs the pods and reports their status as a kubelet does. Containers
    keep running when the agent stops, and it adopts them when it starts again.

    \b
    moor kubeconfig --data-dir ~/cluster --node worker-1 --folder ~/worker-1
    moor node --node-name worker-1 --credentials ~/worker-1
    moor node --kubeconfig node.kubeconfig
    moor node --root-dir ~/node --runtime process --node-labels zone=a
    """
    from moorage.cluster.node import NodeSettings
    from moorage.kit.process_memory import limit_malloc_arenas

    settings = NodeSettings(
        name=given["node_name"] or socket.gethostname().lower(),
        folder=given["root_dir"].absolute(),
        runtime=given["runtime"],
        cdi_folders=tuple(given["cdi_dirs"]),
        address=given["node_ip"],
        pods_max=given["max_pods"],
        reserved=given["system_reserved"],
        labels=given["node_labels"],
        endpoint=_endpoint(given),
        ends_containers=given["stop_containers"],
    )
    _use_credentials(given)
    place = status_place(place, given)
    access = access_of(given)
    settings = replace(settings, server=access.server)
    limit_malloc_arenas()
    run_program(
        _run(access, gates, settings, place), verbosity=given["verbosity"], server=access.server
    )


def _use_credentials(given: dict[str, Any]) -> None:
    """Take the kubeconfig and the certificate of status pages from the credentials."""
    folder: Path | None = given["credentials"]
    if folder is None:
        return
    given["kubeconfig"] = given["kubeconfig"] or str(folder / "kubeconfig")
    if given["tls_cert_file"] is None and given["tls_private_key_file"] is None:
        given["tls_cert_file"] = folder / "serving.crt"
        given["tls_private_key_file"] = folder / "serving.key"
        given["client_ca_file"] = given["client_ca_file"] or folder / "ca.crt"


def _endpoint(given: dict[str, Any]) -> KubeletEndpoint | None:
    """Return where the server reaches the node; None without a certificate for it."""
    from moorage.cluster.node import KubeletEndpoint
    from moorage.node.kubelet_server import TlsFiles

    folder: Path | None = given["credentials"]
    if folder is None:
        return None
    files = TlsFiles(folder / "serving.crt", folder / "serving.key", folder / "ca.crt")
    for path in files:
        if not path.is_file():
            fail(f"--credentials: {path}: there is no such file")
    return KubeletEndpoint(given["address"], given["port"], files)


async def _run(
    access: RestConfig, gates: Gates, settings: NodeSettings, place: ListenAddress | None
) -> None:
    from moorage.client.client_factory import http_client
    from moorage.cluster.leader_process import run_as_leader
    from moorage.cluster.node import AGENT, NodeError, held, node_program
    from moorage.cluster.programs import ProgramContext

    context = ProgramContext(gates=gates)
    try:
        with held(settings.folder):
            async with (
                http_client(access, manager=AGENT) as client,
                node_program(client, context, settings) as program,
            ):
                await run_as_leader(
                    program,
                    client,
                    context,
                    lead=None,
                    place=place,
                    tell=lambda text: say(text, err=True),
                    working=f"running pods of node {settings.name} for {access.server}",
                )
    except NodeError as error:
        fail(str(error))
