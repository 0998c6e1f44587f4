"""Calls webhooks: one POST over TLS, with a deadline, a bounded response and no redirects.

Connections are reused for a while, because a handshake takes longer than most calls. For a webhook
behind a service, the client connects to an endpoint of the service and verifies a certificate for
NAME.NAMESPACE.svc.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import ssl
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from functools import lru_cache
from typing import Any, NamedTuple

from moorage.api.admissionregistration import AnyWebhook
from moorage.cel.library.urls import parse_url
from moorage.client.errors import ClientError
from moorage.client.http.connection import ClientBounds, Connection
from moorage.kit.go_quote import go_quote
from moorage.validation.admission_webhook import DEFAULT_PORT, TIMEOUT_S, TIMEOUT_S_MAX

ANSWER_BYTES_MAX = 8 * 1024 * 1024
IDLE_S = 30.0
IDLE_MAX = 2  # idle connections per webhook
PLACES_MAX = 200  # webhooks with idle connections
DEADLINE_EXCEEDED = "context deadline exceeded"

_BOUNDS = ClientBounds(
    body_bytes_max=ANSWER_BYTES_MAX, error_bytes_max=64 * 1024, request_s=TIMEOUT_S_MAX + 1
)
_STATUSES = {
    401: "the server has asked for the client to provide credentials",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
}

Resolve = Callable[[str, str, int], Coroutine[Any, Any, tuple[str, int]]]


class CallError(Exception):
    """A webhook could not be called."""


class Place(NamedTuple):
    """Where a webhook runs: its name in HTTP, and the host and port to connect to."""

    authority: str
    path: str
    host: str
    port: int
    server_name: str
    ca_bundle: str


class WebhookClient:
    """Calls webhooks; `deadline` ends a block after some seconds with TimeoutError."""

    def __init__(
        self, deadline: Callable[[float], AbstractAsyncContextManager[Any]] = asyncio.timeout
    ) -> None:
        self.deadline = deadline
        self._idle: dict[Place, list[Connection]] = {}  # oldest first

    async def call(self, webhook: AnyWebhook, body: bytes, resolve: Resolve) -> bytes:
        """Return the response to a review, or raise CallError.

        `resolve` returns the address of a service's port.
        """
        timeout_s = min(webhook.timeout_seconds or TIMEOUT_S, TIMEOUT_S_MAX)
        url = url_of(webhook)
        try:
            async with self.deadline(timeout_s):
                place = await _place(webhook, resolve)
                return await self._post(place, body, timeout_s)
        except TimeoutError:
            why = DEADLINE_EXCEEDED
        except ssl.SSLError as error:
            why = _tls_error(error)
        except OSError as error:
            why = _network_error(error)
        except (ValueError, OverflowError):  # names and ports that no network has
            why = "dial tcp: no such host or port"
        except ClientError as error:
            why = str(error)
        except _ServiceError as error:
            why = str(error)
        raise CallError(f"Post {go_quote(f'{url}?timeout={timeout_s}s')}: {why}")

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._forget_oldest()

    def _forget_oldest(self) -> None:
        for connection in self._idle.pop(next(iter(self._idle))):
            connection.abort()

    async def _post(self, place: Place, body: bytes, timeout_s: int) -> bytes:
        head = (
            f"POST {place.path}?timeout={timeout_s}s HTTP/1.1\r\nHost: {place.authority}\r\n"
            "Accept: application/json, */*\r\nContent-Type: application/json\r\n"
            f"User-Agent: moorage-admission\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        while True:
            connection = self._kept(place) or await self._connect(place)
            try:
                answer = await connection.send(head.encode() + body)
            except ClientError:
                if connection.is_reused and not connection.has_heard:
                    continue  # The webhook has closed it.
                raise
            except asyncio.CancelledError:
                connection.abort()
                raise
            break
        if not 200 <= answer.status < 300:
            raise _StatusError(_status_text(answer.status, answer.body))
        return answer.body

    def _kept(self, place: Place) -> Connection | None:
        kept = self._idle.get(place, [])
        now_s = asyncio.get_running_loop().time()
        while kept:
            connection = kept.pop()
            if connection.is_open and now_s - connection.free_since < IDLE_S:
                return connection
            connection.abort()
        return None

    async def _connect(self, place: Place) -> Connection:
        def free(connection: Connection) -> None:
            if not connection.is_open:
                return
            if place not in self._idle and len(self._idle) >= PLACES_MAX:
                self._forget_oldest()
            kept = self._idle.setdefault(place, [])
            if len(kept) >= IDLE_MAX:
                kept.pop(0).abort()
            kept.append(connection)

        loop = asyncio.get_running_loop()
        _, connection = await loop.create_connection(
            lambda: Connection(_BOUNDS, free),
            place.host,
            place.port,
            ssl=_tls_context(place.ca_bundle),
            server_hostname=place.server_name,
        )
        return connection


async def _place(webhook: AnyWebhook, resolve: Resolve) -> Place:
    """Return where a webhook runs at the moment."""
    config = webhook.client_config
    if config.service is not None:
        service = config.service
        port = service.port or DEFAULT_PORT
        name = f"{service.name}.{service.namespace}.svc"
        host, target = await resolve(service.namespace, service.name, port)
        path = f"/{(service.path or '').lstrip('/')}"
        return Place(f"{name}:{port}", path, host, target, name, config.ca_bundle)
    url = parse_url(config.url or "")
    name, path = url.hostname, url.path.replace(" ", "%20") or "/"
    return Place(url.host, path, name, int(url.port or DEFAULT_PORT), name, config.ca_bundle)


def url_of(webhook: AnyWebhook) -> str:
    """Return the URL of a webhook, as errors show it."""
    config = webhook.client_config
    if config.service is None:
        return config.url or ""
    service = config.service
    path = (service.path or "").lstrip("/")
    port = service.port or DEFAULT_PORT
    return f"https://{service.name}.{service.namespace}.svc:{port}/{path}"


class _ServiceError(Exception):
    """A service has no usable address."""


class _StatusError(ClientError):
    """A webhook responded with an error status."""


def service_error(text: str) -> Exception:
    """Return the error of a service without an address."""
    return _ServiceError(text)


@lru_cache(maxsize=PLACES_MAX)
def _tls_context(ca_bundle: str) -> ssl.SSLContext:
    """Return a TLS context that trusts the authorities of a bundle, or those of the system."""
    if not ca_bundle:
        return ssl.create_default_context()
    try:
        text = base64.b64decode(ca_bundle).decode("ascii")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=text)
    except (binascii.Error, UnicodeError, ssl.SSLError, ValueError):
        fact = "unable to load root certificates: unable to parse bytes as PEM block"
        raise _ServiceError(fact) from None
    return context


def _tls_error(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        unknown = ("self-signed", "self signed", "unable to get local issuer", "unable to verify")
        if any(text in why for text in unknown):
            why = "certificate signed by unknown authority"
        elif "expired" in why:
            why = "certificate has expired or is not yet valid"
        return f"tls: failed to verify certificate: x509: {why}"
    return f"tls: {error.reason or error}"


def _network_error(error: OSError) -> str:
    if isinstance(error, ConnectionRefusedError):
        return "dial tcp: connect: connection refused"
    return f"dial tcp: {error.strerror or error}"


def _status_text(status: int, body: bytes) -> str:
    if status in _STATUSES:
        return _STATUSES[status]
    if status >= 500:
        text = body[:256].decode(errors="replace").strip() or "unknown"
        return (
            f"an error on the server ({go_quote(text)}) has prevented the request from succeeding"
        )
    text = "but did not return more information"
    return f"the server responded with the status code {status} {text}"
