"""Entry points: a client for a remote server, and one for a server in this process."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from moorage.client.api_client import ApiClient
from moorage.client.errors import AccessError
from moorage.client.http.credentials import Token, Tokens, token_credentials
from moorage.client.http.kubeconfig import kubeconfig_paths, read_kubeconfig
from moorage.client.http.rest_config import RestConfig, in_cluster_config, transport_for
from moorage.client.in_process import Application, InProcessTransport
from moorage.kit.clock import REAL, Clock

__all__ = [
    "AccessError",
    "RestConfig",
    "Token",
    "Tokens",
    "http_client",
    "in_process_client",
    "load_rest_config",
]


def load_rest_config(
    kubeconfig: str = "", *, context: str = "", environment: Mapping[str, str] | None = None
) -> RestConfig:
    """Return the config for a server: from a named kubeconfig, else as in a pod, else ~/.kube.

    A pod is its service account, also where it runs as a process that sees a home directory.
    """
    values = os.environ if environment is None else environment
    named = kubeconfig_paths("", values) if values.get("KUBECONFIG") else []
    if not (kubeconfig or context or any(map(Path.exists, named))):
        pod = in_cluster_config(environment)
        if pod is not None:
            return pod
    return read_kubeconfig(kubeconfig, context=context, environment=environment)


def http_client(
    config: RestConfig, *, manager: str = "moorage", tokens: Tokens | None = None
) -> ApiClient:
    """Return a client for a remote server; close it after use (`async with`).

    `tokens` replace the credentials of the config.
    """
    return ApiClient(transport_for(config, agent=manager, tokens=tokens), manager=manager)


def in_process_client(
    application: Application,
    *,
    manager: str = "moorage",
    headers: Mapping[str, str] | None = None,
    scope: Mapping[str, Any] | None = None,
    clock: Clock = REAL,
    tokens: Tokens | None = None,
) -> ApiClient:
    """Return a client for a server in this process, an ASGI application.

    `headers` (`authorization: Bearer …`) or `tokens`, requested when needed, authenticate it;
    `scope` is added to the ASGI scope of each request.
    """
    credentials = None if tokens is None else token_credentials(tokens, clock=clock)
    transport = InProcessTransport(
        application, headers=headers, scope=scope, agent=manager, credentials=credentials
    )
    return ApiClient(transport, manager=manager, clock=clock)
