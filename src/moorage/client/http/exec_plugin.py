"""Credentials from an exec plugin of a kubeconfig (client.authentication.k8s.io).

The plugin reads KUBERNETES_EXEC_INFO and prints an ExecCredential, which is used until it expires
or the server rejects it. A plugin never gets a terminal.
"""

from __future__ import annotations

import asyncio
import base64
import os
import ssl
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct

from moorage.api.errors import ApiError
from moorage.api.timestamp import Timestamp
from moorage.client.errors import AccessError
from moorage.client.http.credentials import (
    RENEW_BEFORE,
    ExpiringAuth,
    RequestAuth,
    bearer,
    make_context,
)

if TYPE_CHECKING:
    from moorage.client.http.rest_config import ExecConfig, RestConfig

COMMAND_S = 60.0
OUTPUT_BYTES_MAX = 1024 * 1024
SHOWN_BYTES_MAX = 500
API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class _ExecStatus(Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _ExecStatus | None = None


def exec_source(
    config: RestConfig, headers: str, context: ssl.SSLContext | None
) -> Callable[[], Awaitable[ExpiringAuth]]:
    """Return a source of credentials that runs the plugin of a config."""
    command = config.command
    assert command is not None

    async def run() -> ExpiringAuth:
        status = _read(command, await _output(command, _exec_info(config, command)))
        lines = headers + bearer(status.token) if status.token else headers
        own = context
        if status.client_certificate_data and context is not None:
            certificate = status.client_certificate_data.encode()
            own = make_context(config, certificate, (status.client_key_data or "").encode())
        return ExpiringAuth(RequestAuth(lines, own), _until(command, status))

    return run


def _exec_info(config: RestConfig, command: ExecConfig) -> bytes:
    spec: dict[str, Any] = {"interactive": False}
    if command.provides_cluster:
        cluster: dict[str, Any] = {"server": config.server}
        if config.authority:
            cluster["certificate-authority-data"] = base64.b64encode(config.authority).decode()
        if config.server_name:
            cluster["tls-server-name"] = config.server_name
        if config.skips_verification:
            cluster["insecure-skip-tls-verify"] = True
        spec["cluster"] = cluster
    info = {"kind": "ExecCredential", "apiVersion": command.api_version, "spec": spec}
    return msgspec.json.encode(info)


async def _output(command: ExecConfig, info: bytes) -> bytes:
    """Return the output of a plugin, or raise AccessError with its error output."""
    environment = {**os.environ, **dict(command.environment)}
    environment["KUBERNETES_EXEC_INFO"] = info.decode()
    try:
        process = await asyncio.create_subprocess_exec(
            command.program,
            *command.arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env=environment,
        )
    except (OSError, ValueError) as error:
        hint = f"; {command.install_hint[:SHOWN_BYTES_MAX]}" if command.install_hint else ""
        raise AccessError(f"exec: {command.program} cannot be run: {error}{hint}") from None
    assert process.stdout is not None
    assert process.stderr is not None
    try:
        async with asyncio.timeout(COMMAND_S):
            output, errors, status = await asyncio.gather(
                _bounded(process.stdout), _bounded(process.stderr), process.wait()
            )
    except TimeoutError:
        raise AccessError(f"exec: {command.program} took more than {COMMAND_S:g} s") from None
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    if status != 0:
        text = errors[-SHOWN_BYTES_MAX:].decode("utf-8", "replace").strip()
        raise AccessError(f"exec: {command.program} ended with {status}: {text}")
    return output


async def _bounded(reader: asyncio.StreamReader) -> bytes:
    """Read to the end and keep the output up to a bound."""
    kept = b""
    while part := await reader.read(64 * 1024):
        kept = (kept + part)[: OUTPUT_BYTES_MAX + 1]
    return kept


def _read(command: ExecConfig, output: bytes) -> _ExecStatus:
    if len(output) > OUTPUT_BYTES_MAX:
        raise AccessError(f"exec: {command.program} printed more than {OUTPUT_BYTES_MAX} bytes")
    try:
        found = msgspec.json.decode(output, type=_ExecCredential)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise AccessError(f"exec: {command.program} printed no ExecCredential: {error}") from None
    if found.kind != "ExecCredential" or found.api_version != command.api_version:
        raise AccessError(
            f"exec: {command.program} printed {found.kind or 'no kind'} of "
            f"{found.api_version or 'no version'}, not ExecCredential of {command.api_version}"
        )
    status = found.status
    if status is None or not (status.token or status.client_certificate_data):
        raise AccessError(f"exec: {command.program} printed neither a token nor a certificate")
    return status


def _until(command: ExecConfig, status: _ExecStatus) -> Any:
    if not status.expiration_timestamp:
        return None
    try:
        return Timestamp.parse(status.expiration_timestamp).instant - RENEW_BEFORE
    except (ApiError, OverflowError) as error:
        raise AccessError(f"exec: {command.program}: expirationTimestamp: {error}") from None
