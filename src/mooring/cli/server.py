"""`moor server`: the API server alone."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import click

from mooring.api.gates import Gates
from mooring.cli.exits import UNREADABLE
from mooring.cli.gate_options import gate_options
from mooring.kit.collector import calm_collector

if TYPE_CHECKING:
    from mooring.apiserver.authentication.statictokens import StaticTokens
    from mooring.apiserver.server import Settings

DATA_DIR = "mooring-data"


@click.command(
    name="server",
    epilog="Exit status: 0 stopped, 2 usage, 3 the folder, the store or the port cannot be used.",
)
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path, file_okay=False),
    default=DATA_DIR,
    show_default=True,
    envvar="MOORING_DATA_DIR",
    help="The folder of the server: its store, its token, its kubeconfig.",
)
@click.option(
    "--bind-address", default="127.0.0.1", show_default=True, help="The address to listen at."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=6443,
    show_default=True,
    help="The port to listen at; 0 takes a free one.",
)
@click.option(
    "--etcd-servers",
    default="",
    metavar="URL,…",
    help="Keep objects in etcd, instead of SQLite in the folder.",
)
@click.option(
    "--authorization-mode",
    type=click.Choice(["RBAC", "Token", "AlwaysAllow"]),
    default="RBAC",
    show_default=True,
    help="TLS with certificates, tokens and roles (RBAC); or, without TLS, everything for bearers "
    "of a token, or for everybody on this machine.",
)
@click.option(
    "--token-auth-file",
    type=click.Path(path_type=Path, dir_okay=False, exists=True),
    help='A file of tokens: lines of token,user,uid,"group1,group2".',
)
@click.option(
    "--max-requests-inflight",
    type=click.IntRange(1, 100_000),
    default=600,
    show_default=True,
    help="How many requests are worked on at once.",
)
@click.option(
    "--etcd-compaction-interval",
    default="5m",
    show_default=True,
    metavar="DURATION",
    help="How far back watches and lists can go, at the least; 0 forgets nothing.",
)
@gate_options
def command(
    data_dir: Path,
    bind_address: str,
    port: int,
    etcd_servers: str,
    authorization_mode: str,
    token_auth_file: Path | None,
    max_requests_inflight: int,
    etcd_compaction_interval: str,
    gates: Gates,
) -> None:
    """Run the API server until it is interrupted.

    kubectl and any other client of Kubernetes can use it: `moor kubeconfig` prints how to reach it.
    """
    try:
        import uvicorn  # noqa: F401
    except ImportError:
        _fail("uvicorn is not installed: pip install 'mooring[server]'")
    from mooring.apiserver.app import Limits
    from mooring.apiserver.server import Settings, is_loopback

    has_roles = authorization_mode == "RBAC"
    if not has_roles and not is_loopback(bind_address):
        raise click.UsageError(
            f"--bind-address {bind_address}: without TLS only a loopback address is allowed"
        )
    if token_auth_file is not None and not has_roles:
        raise click.UsageError("--token-auth-file: only with --authorization-mode RBAC")
    servers = tuple(part.strip() for part in etcd_servers.split(",") if part.strip())
    if len(servers) > 1 or etcd_servers.startswith("https://"):
        raise click.UsageError("--etcd-servers: one URL only, and without TLS, so far")
    _run(
        Settings(
            data_dir=data_dir,
            address=bind_address,
            port=port,
            etcd_servers=servers,
            gates=gates,
            allows_all=authorization_mode == "AlwaysAllow",
            has_roles=has_roles,
            tokens=_tokens(token_auth_file),
            limits=Limits(in_flight_max=max_requests_inflight),
            kept_s=_seconds(etcd_compaction_interval, "--etcd-compaction-interval"),
        )
    )


def _seconds(text: str, option: str) -> float:
    from mooring.api.errors import DecodeError
    from mooring.api.schedulerconfig import duration_ns

    try:
        nanoseconds = duration_ns(text)
    except DecodeError:
        raise click.UsageError(f"{option}: {text!r} is no duration such as 5m or 90s") from None
    if nanoseconds < 0:
        raise click.UsageError(f"{option}: {text!r} is negative")
    return nanoseconds / 1e9


def _tokens(path: Path | None) -> StaticTokens:
    from mooring.apiserver.authentication.statictokens import (
        StaticTokens,
        TokenFileError,
        read_tokens,
    )

    if path is None:
        return StaticTokens({})
    try:
        return read_tokens(path.read_text(), source=str(path))
    except (OSError, UnicodeDecodeError, TokenFileError) as error:
        _fail(str(error))


def _run(settings: Settings) -> None:
    from mooring.apiserver.credentials import CredentialsError
    from mooring.apiserver.server import serve
    from mooring.store.errors import StoreError

    def started(url: str) -> None:
        calm_collector()
        click.echo(f"serving at {url}; kubeconfig: {settings.data_dir / 'kubeconfig'}", err=True)

    try:
        asyncio.run(serve(settings, started))
    except (StoreError, CredentialsError, OSError) as error:
        _fail(str(error))
    except KeyboardInterrupt:
        click.echo("stopped", err=True)


def _fail(text: str) -> NoReturn:
    click.echo(f"error: {text}", err=True)
    raise SystemExit(UNREADABLE)
