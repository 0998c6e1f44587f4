"""The etcd options, named as those of kube-apiserver."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

from mooring.apiserver.settings import Etcd
from mooring.kit.extras import require

F = TypeVar("F", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path, dir_okay=False, exists=True)


def etcd_options(function: F) -> F:
    """Add the options to a command; it gets an `etcd` argument, None without servers."""

    @wraps(function)  # with the options that the function has already
    def with_etcd(
        *args: Any,
        etcd_servers: str,
        etcd_prefix: str,
        etcd_cafile: Path | None,
        etcd_certfile: Path | None,
        etcd_keyfile: Path | None,
        **kwargs: Any,
    ) -> Any:
        files = (etcd_cafile, etcd_certfile, etcd_keyfile)
        etcd = _etcd(etcd_servers, etcd_prefix, files)
        return function(*args, etcd=etcd, **kwargs)

    decorated: Any = with_etcd
    for option in reversed(_OPTIONS):
        decorated = option(decorated)
    result: F = decorated
    return result


_OPTIONS = (
    click.option(
        "--etcd-servers",
        default="",
        metavar="URL,…",
        help="Store objects in etcd instead of SQLite: the client URLs of its members.",
    ),
    click.option(
        "--etcd-prefix",
        default="/mooring",
        show_default=True,
        metavar="PATH",
        help="Prefix of all keys in etcd.",
    ),
    click.option(
        "--etcd-cafile", type=_FILE, help="CA file that verifies etcd's server certificate."
    ),
    click.option("--etcd-certfile", type=_FILE, help="Client certificate for etcd."),
    click.option("--etcd-keyfile", type=_FILE, help="Private key of the client certificate."),
)


def _etcd(servers: str, prefix: str, files: tuple[Path | None, ...]) -> Etcd | None:
    authority, certificate, key = files
    urls = tuple(part.strip() for part in servers.split(",") if part.strip())
    if (certificate is None) != (key is None):
        raise click.UsageError("--etcd-certfile and --etcd-keyfile: both, or neither")
    if not urls:
        if any(files):
            raise click.UsageError("--etcd-cafile, --etcd-certfile: only with --etcd-servers")
        return None
    for url in urls:
        if any(files) and not url.startswith("https://"):
            raise click.UsageError(
                f"--etcd-servers: {url}: --etcd-cafile and the like need https://"
            )
    if not prefix.startswith("/") or not prefix.strip("/"):
        raise click.UsageError(f"--etcd-prefix: {prefix!r} must begin with / and name something")
    etcd = Etcd(urls, f"{prefix.rstrip('/')}/", authority, certificate, key)
    require("server")
    from mooring.store.errors import BadRequestError
    from mooring.store.etcd import read_endpoint

    for url in urls:
        try:
            read_endpoint(url)
        except BadRequestError as error:
            raise click.UsageError(f"--etcd-servers: {error}") from None
    return etcd
