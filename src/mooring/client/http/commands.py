"""Credentials from a program, as a kubeconfig's `exec` asks for (client.authentication.k8s.io).

The program is told what is wanted in KUBERNETES_EXEC_INFO, and prints an ExecCredential. What it
prints is used until the time it gives, or until the server refuses it. It never gets a terminal.
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

from mooring.api.errors import ApiError
from mooring.api.timestamp import Timestamp
from mooring.client.errors import AccessError
from mooring.client.http.identity import RENEW_BEFORE, Fleeting, Shown, bearer
from mooring.client.http.tls import make_context

if TYPE_CHECKING:
    from mooring.client.http.access import Access, Command

COMMAND_S = 60.0
OUTPUT_BYTES_MAX = 1024 * 1024
SHOWN_BYTES_MAX = 500
API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")


class _Given(Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: str | None = None


class _ExecCredential(Struct, rename="camel"):
    api_version: str = ""
    kind: str = ""
    status: _Given | None = None


def credentials_of(
    access: Access, headers: str, context: ssl.SSLContext | None
) -> Callable[[], Awaitable[Fleeting]]:
    """Return a source of credentials that runs the command of an access."""
    command = access.command
    assert command is not None

    async def run() -> Fleeting:
        given = _read(command, await _output(command, _wanted(access, command)))
        shown = headers + bearer(given.token) if given.token else headers
        mine = context
        if given.client_certificate_data and context is not None:
            certificate = given.client_certificate_data.encode()
            mine = make_context(access, certificate, (given.client_key_data or "").encode())
        return Fleeting(Shown(shown, mine), _until(command, given))

    return run


def _wanted(access: Access, command: Command) -> bytes:
    spec: dict[str, Any] = {"interactive": False}
    if command.provides_cluster:
        cluster: dict[str, Any] = {"server": access.server}
        if access.authority:
            cluster["certificate-authority-data"] = base64.b64encode(access.authority).decode()
        if access.server_name:
            cluster["tls-server-name"] = access.server_name
        if access.skips_verification:
            cluster["insecure-skip-tls-verify"] = True
        spec["cluster"] = cluster
    wanted = {"kind": "ExecCredential", "apiVersion": command.api_version, "spec": spec}
    return msgspec.json.encode(wanted)


async def _output(command: Command, wanted: bytes) -> bytes:
    """Return what a command prints, or raise AccessError with what it says of its failure."""
    environment = {**os.environ, **dict(command.environment)}
    environment["KUBERNETES_EXEC_INFO"] = wanted.decode()
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
        said = errors[-SHOWN_BYTES_MAX:].decode("utf-8", "replace").strip()
        raise AccessError(f"exec: {command.program} ended with {status}: {said}")
    return output


async def _bounded(reader: asyncio.StreamReader) -> bytes:
    """Return all that is printed up to a bound; what is beyond is read and forgotten."""
    kept = b""
    while part := await reader.read(64 * 1024):
        kept = (kept + part)[: OUTPUT_BYTES_MAX + 1]
    return kept


def _read(command: Command, output: bytes) -> _Given:
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
    given = found.status
    if given is None or not (given.token or given.client_certificate_data):
        raise AccessError(f"exec: {command.program} gave neither a token nor a certificate")
    return given


def _until(command: Command, given: _Given) -> Any:
    if not given.expiration_timestamp:
        return None
    try:
        return Timestamp.parse(given.expiration_timestamp).instant - RENEW_BEFORE
    except (ApiError, OverflowError) as error:
        raise AccessError(f"exec: {command.program}: expirationTimestamp: {error}") from None
