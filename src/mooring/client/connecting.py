"""The doors: a client for a server elsewhere, and one for a server in this process."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from mooring.client.apiclient import ApiClient
from mooring.client.errors import AccessError
from mooring.client.http.access import Access, transport_of
from mooring.client.http.connection import Bounds
from mooring.client.http.identity import Token, Tokens, token_identity
from mooring.client.http.incluster import in_cluster
from mooring.client.http.kubeconfig import kubeconfig_paths, read_kubeconfig
from mooring.client.inprocess import Application, InProcessTransport
from mooring.kit.clock import REAL, Clock

__all__ = [
    "Access",
    "AccessError",
    "Token",
    "Tokens",
    "call_client",
    "find_access",
    "http_client",
]


def find_access(
    kubeconfig: str = "", *, context: str = "", environment: Mapping[str, str] | None = None
) -> Access:
    """Return how to reach a server: by kubeconfig as kubectl does, else as a pod does."""
    paths = kubeconfig_paths(kubeconfig, environment)
    if not kubeconfig and not context and not any(map(Path.exists, paths)):
        pod = in_cluster(environment)
        if pod is not None:
            return pod
    return read_kubeconfig(kubeconfig, context=context, environment=environment)


def http_client(
    access: Access,
    *,
    manager: str = "mooring",
    bounds: Bounds = Bounds(),  # noqa: B008  # a value
    clock: Clock = REAL,
    tokens: Tokens | None = None,
) -> ApiClient:
    """Return a client of a server elsewhere; close it after use (`async with`).

    With `tokens`, it shows those, and not what the access has.
    """
    transport = transport_of(access, agent=manager, bounds=bounds, clock=clock, tokens=tokens)
    return ApiClient(transport, manager=manager, clock=clock)


def call_client(
    application: Application,
    *,
    manager: str = "mooring",
    headers: Mapping[str, str] | None = None,
    scope: Mapping[str, Any] | None = None,
    clock: Clock = REAL,
    tokens: Tokens | None = None,
) -> ApiClient:
    """Return a client of a server in this process, given as an ASGI application.

    `headers` say who asks (`authorization: Bearer …`), or `tokens` that are asked for when they
    are needed; `scope` goes into the scope of each call.
    """
    identity = None if tokens is None else token_identity(tokens, clock=clock)
    transport = InProcessTransport(
        application, headers=headers, scope=scope, agent=manager, identity=identity
    )
    return ApiClient(transport, manager=manager, clock=clock)
