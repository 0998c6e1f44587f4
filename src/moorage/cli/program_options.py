"""The options of programs that run against a cluster, by Kubernetes' names, the same for each."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from moorage.api.timestamp import Timestamp
from moorage.cli.command_classes import Duration, add_options, option_with_default
from moorage.cli.errors import DOES_NOT_FIT, fail
from moorage.cli.gate_options import GATES
from moorage.cli.terminal import echo
from moorage.client.client_factory import RestConfig, load_rest_config
from moorage.client.errors import (
    AccessError,
    ClientError,
    ForbiddenError,
    UnauthorizedError,
    UnavailableError,
)
from moorage.client.leader_election import LeaseTimings
from moorage.cluster.leader_process import LeaderLease, LeaseLostError
from moorage.cluster.status_server import ListenAddress, StatusTls, parse_listen_address
from moorage.kit.clock import REAL
from moorage.kit.printable import log_to_stderr
from moorage.kit.system import on_stop

F = TypeVar("F", bound=Callable[..., Any])

SECTIONS: Final = (
    ("Which cluster", ("kubeconfig", "context")),
    (
        "One leader among many",
        (
            "leader_elect",
            "leader_elect_lease_duration",
            "leader_elect_renew_deadline",
            "leader_elect_retry_period",
            "leader_elect_resource_name",
            "leader_elect_resource_namespace",
        ),
    ),
    ("What it does", GATES),
    (
        "Watching it",
        (
            "place",
            "tls_cert_file",
            "tls_private_key_file",
            "cert_dir",
            "client_ca_file",
            "verbosity",
        ),
    ),
)
_LONG = Duration(0.1, 3600)
_FILE = click.Path(path_type=Path, exists=True, dir_okay=False)
UNGRANTED = "no token for "
LOG_FORMAT = "%(asctime)s %(levelname)s %(message)s"


def switch(name: str, *, default: bool, text: str) -> Callable[[F], F]:
    """Return an option that is on or off: --name, --name=false."""
    return click.option(
        name,
        type=click.BOOL,
        is_flag=False,
        flag_value=True,
        default=default,
        show_default=str(default).lower(),
        metavar="BOOL",
        help=text,
    )


def _place(_: click.Context, __: click.Parameter, text: str) -> ListenAddress | None:
    try:
        return parse_listen_address(text)
    except ValueError as error:
        raise click.BadParameter(str(error)) from None


def cluster_access_options(function: F) -> F:
    """Add the options that select the cluster."""
    function = click.option(
        "--context", default="", metavar="NAME", help="Context of the kubeconfig to use."
    )(function)
    return click.option(
        "--kubeconfig",
        default="",
        metavar="FILE",
        help="Kubeconfig of the cluster. By default, KUBECONFIG, ~/.kube/config, or the "
        "service account of the pod.",
    )(function)


def program_options(*, lease: str, metrics: str) -> Callable[[F], F]:
    """Return what adds the options to a command; `lease` and `metrics` are their defaults."""
    options = (
        switch("--leader-elect", default=True, text="Work only while holding the lease."),
        option_with_default(
            "--leader-elect-lease-duration",
            type=_LONG,
            default="15s",
            help="How long candidates wait before taking over a lease that is not renewed.",
        ),
        option_with_default(
            "--leader-elect-renew-deadline",
            type=_LONG,
            default="10s",
            help="How long the leader tries to renew the lease before it gives up.",
        ),
        option_with_default(
            "--leader-elect-retry-period",
            type=_LONG,
            default="2s",
            help="How long to wait between attempts to acquire or renew the lease.",
        ),
        option_with_default(
            "--leader-elect-resource-name",
            default=lease,
            metavar="NAME",
            help="Name of the lease.",
        ),
        option_with_default(
            "--leader-elect-resource-namespace",
            default="kube-system",
            metavar="NAME",
            help="Namespace of the lease.",
        ),
    )

    watching = watching_options(metrics=metrics)
    return lambda function: cluster_access_options(add_options(watching(function), options))


def watching_options(*, metrics: str, aliases: Sequence[str] = ()) -> Callable[[F], F]:
    """Return what adds the options by which a program is watched; `metrics` is the default."""
    options = (
        option_with_default(
            "--metrics-bind-address",
            *aliases,
            "place",
            default=metrics,
            metavar="HOST:PORT",
            callback=_place,
            help="Address of /metrics, /healthz and /readyz; port 0 picks a free one, 0 alone "
            "disables them. Without TLS, loopback only.",
        ),
        click.option("--tls-cert-file", type=_FILE, help="Certificate for --metrics-bind-address."),
        click.option("--tls-private-key-file", type=_FILE, help="Key of the certificate."),
        click.option(
            "--cert-dir",
            type=click.Path(path_type=Path, file_okay=False),
            help="Without --tls-cert-file: serve with a self-signed certificate that is kept in "
            "this directory.",
        ),
        click.option(
            "--client-ca-file",
            type=_FILE,
            help="CA of client certificates that are accepted besides tokens; needs TLS.",
        ),
        click.option(
            "-v",
            "--verbosity",
            type=click.IntRange(0, 10),
            default=0,
            help="Log level; from 2 on, log more than problems.",
        ),
    )

    return lambda function: add_options(function, options)


def status_place(place: ListenAddress | None, given: dict[str, Any]) -> ListenAddress | None:
    """Return where and with which certificate the status pages are served, or raise UsageError."""
    certificate, key = given["tls_cert_file"], given["tls_private_key_file"]
    authority = given["client_ca_file"]
    if (certificate is None) != (key is None):
        raise click.UsageError("--tls-cert-file: only with --tls-private-key-file, and vice versa")
    if given["cert_dir"] is not None:
        if certificate is not None:
            raise click.UsageError("--cert-dir: not with --tls-cert-file")
        if place is not None:
            certificate, key = _self_signed(given["cert_dir"], place.host)
    if authority is not None and certificate is None:
        raise click.UsageError("--client-ca-file: only with --tls-cert-file or --cert-dir")
    if place is None or certificate is None:
        if place is not None and not place.is_loopback:
            raise click.UsageError(
                f"--metrics-bind-address {place.host}: without --tls-cert-file only a loopback "
                "address is allowed; --cert-dir makes a certificate"
            )
        return place
    return place._replace(tls=StatusTls(certificate, key, authority))


def _self_signed(folder: Path, host: str) -> tuple[Path, Path]:
    """Return the files of a certificate and its key, and create them if necessary; or exit."""
    from moorage.apiserver.auth.credentials import self_signed_files
    from moorage.apiserver.errors import CredentialsError

    own = () if host in ("0.0.0.0", "::") else (host,)  # noqa: S104 - nothing listens here
    hosts = dict.fromkeys((socket.gethostname(), "localhost", "127.0.0.1", *own))
    try:
        return self_signed_files(folder, tuple(hosts), Timestamp(REAL.now()))
    except CredentialsError as error:
        fail(f"--cert-dir: {error}")


def lead_of(given: dict[str, Any]) -> LeaderLease | None:
    """Return the lease that the options ask for."""
    if not given["leader_elect"]:
        return None
    names = ("lease_duration", "renew_deadline", "retry_period")
    try:
        terms = LeaseTimings(*(given[f"leader_elect_{name}"] for name in names))
    except ValueError as error:
        raise click.UsageError(f"--leader-elect-lease-duration: {error}") from None
    namespace = given["leader_elect_resource_namespace"]
    return LeaderLease(namespace, given["leader_elect_resource_name"], terms)


def access_of(given: dict[str, Any]) -> RestConfig:
    """Return how to reach the cluster that the options name, or end."""
    try:
        return load_rest_config(given["kubeconfig"], context=given["context"])
    except AccessError as error:
        fail(str(error))


def run_program(
    work: Coroutine[Any, Any, None], *, verbosity: int, server: str, remedy: str = ""
) -> None:
    """Run until interrupted; an error of the cluster ends the program with its message.

    The remedy is for a user who gets no tokens.
    """
    level = logging.INFO if verbosity >= 2 else logging.WARNING
    log_to_stderr(level, LOG_FORMAT)
    try:
        asyncio.run(_until_stopped(work))
    except* LeaseLostError as lost:
        echo(f"error: {lost.exceptions[0]}", err=True)
        raise SystemExit(DOES_NOT_FIT) from None
    except* ClientError as found:
        fail(_cause(_first(found), server, remedy))
    except* OSError as failed:
        fail(f"--metrics-bind-address: {_first(failed)}")
    except* KeyboardInterrupt:
        pass
    echo("stopped", err=True)


def _first(group: BaseExceptionGroup[Any]) -> Any:
    found: Any = group
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return found


def _cause(error: ClientError, server: str, remedy: str) -> str:
    remedy = remedy if error.message.startswith(UNGRANTED) else ""
    match error:
        case ForbiddenError():
            return f"{server}: forbidden: {error.message}{remedy}"
        case UnauthorizedError():
            return f"{server}: the server does not accept the credentials: {error.message}"
        case UnavailableError() if error.message.startswith("cannot reach"):
            return error.message
    return f"{server}: {error.message}{remedy}"


async def _until_stopped(work: Coroutine[Any, Any, None]) -> None:
    """Do the work until it ends or a signal asks to stop."""
    task = asyncio.ensure_future(work)
    on_stop(task.cancel)
    with suppress(asyncio.CancelledError):
        await task
