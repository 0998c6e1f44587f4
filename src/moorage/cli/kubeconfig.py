"""`moor kubeconfig`: how clients and nodes reach the server of a folder."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import click
import yaml

from moorage.api.names import dns1123_subdomain
from moorage.api.timestamp import Timestamp
from moorage.cli import CONTEXT
from moorage.cli.errors import fail
from moorage.cli.server_options import data_dir_option
from moorage.cli.terminal import echo


@click.command(
    name="kubeconfig",
    context_settings=CONTEXT,
    epilog="Exit status: 0 success, 2 usage error, 3 no server has run in the directory.",
)
@data_dir_option
@click.option(
    "--node", metavar="NAME", help="Write the credentials of a node with this name to --folder."
)
@click.option(
    "--folder",
    type=click.Path(path_type=Path, file_okay=False),
    help="Directory for the node's kubeconfig, ca.crt, serving.crt and serving.key.",
)
@click.option(
    "--host",
    "hosts",
    metavar="HOST",
    multiple=True,
    help="Hostname or IP address of the node for its serving certificate. May be "
    "repeated. Default: the node's name.",
)
def command(data_dir: Path, node: str | None, folder: Path | None, hosts: tuple[str, ...]) -> None:
    """Print the kubeconfig of the server that runs, or last ran, in a directory.

    Write it to a file and set KUBECONFIG to its path. With --node, the command writes the
    credentials with which a node authenticates to the server and serves its requests; running it
    again renews those that are about to expire.

    \b
    moor kubeconfig > config && export KUBECONFIG=$PWD/config
    moor kubeconfig --node worker-1 --folder ./worker-1
    """
    path = data_dir / "kubeconfig"
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        fail(f"{path}: {error.strerror}; run `moor up` or `moor server` first")
    if node is None:
        if folder is not None or hosts:
            raise click.UsageError("--folder and --host go with --node")
        echo(text, nl=False)
        return
    if folder is None:
        raise click.UsageError("--node needs --folder")
    if problems := dns1123_subdomain(node):
        raise click.BadParameter(f"{node!r}: {problems[0]}", param_hint="--node")
    echo(_write(data_dir, folder, node, hosts or (node,), _server_of(path, text)))


def _server_of(path: Path, text: str) -> str:
    try:
        url = yaml.safe_load(text)["clusters"][0]["cluster"]["server"]
    except (yaml.YAMLError, LookupError, TypeError):
        fail(f"{path}: names no server")
    if not str(url).startswith("https://"):
        fail(
            f"{path}: the server at {url} has no certificates; nodes need --authorization-mode RBAC"
        )
    return str(url)


def _write(data_dir: Path, folder: Path, node: str, hosts: tuple[str, ...], server: str) -> str:
    from moorage.apiserver.auth.credentials import write_node_folder
    from moorage.apiserver.errors import CredentialsError

    try:
        made = write_node_folder(
            folder,
            node=node,
            hosts=hosts,
            server=server,
            pki=data_dir / "pki",
            now=Timestamp(datetime.now(UTC).replace(microsecond=0)),
        )
    except CredentialsError as error:
        fail(str(error))
    return str(made.kubeconfig)
