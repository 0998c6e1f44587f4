"""What can go wrong with a request.

ClientError                 code, reason, message, causes, as the server said it
├── BadRequestError         400
├── UnauthorizedError       401
├── ForbiddenError          403
├── NotFoundError           404
├── ConflictError           409: the object is another version than was thought
│   └── AlreadyExistsError  409: there is one of that name
├── ExpiredError            410: list or watch too old; list anew
├── InvalidError            422
├── TooManyRequestsError    429, with the seconds to wait
├── UnavailableError        the server cannot be reached, went away, or has no time: 5xx
├── UnreadableError         the answer is not what was asked for
└── AccessError             how to reach the server is not known: kubeconfig, credentials
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

TEXT_MAX = 1000


class Cause(Struct, frozen=True):
    """One thing that is wrong, and where."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ClientError(Exception):
    """A request that was refused, or did not get through."""

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        causes: tuple[Cause, ...] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.causes = causes
        self.retry_after_s = retry_after_s


class BadRequestError(ClientError):
    """The server does not understand the request."""


class UnauthorizedError(ClientError):
    """The server does not know who asks."""


class ForbiddenError(ClientError):
    """Whoever asks may not."""


class NotFoundError(ClientError):
    """There is no such object, or no such kind."""


class ConflictError(ClientError):
    """The object is another version than the write was made for."""


class AlreadyExistsError(ConflictError):
    """There is an object of that name."""


class ExpiredError(ClientError):
    """The history that was asked for is forgotten."""


class InvalidError(ClientError):
    """The object breaks rules; the causes say which."""


class TooManyRequestsError(ClientError):
    """The server has too much to do."""


class UnavailableError(ClientError):
    """The server cannot be reached, went away, or has trouble of its own."""


class UnreadableError(ClientError):
    """The answer is too large, broken, or no object of the kind."""


class AccessError(ClientError):
    """How to reach a server is not known, or what was said of it is wrong."""


class _Details(Struct):
    causes: list[Cause] | None = None
    retryAfterSeconds: float | None = None  # noqa: N815  # as the server writes it


class _Status(Struct):
    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None


_DECODER = msgspec.json.Decoder(_Status)

_BY_REASON: Mapping[str, type[ClientError]] = {
    "AlreadyExists": AlreadyExistsError,
    "Expired": ExpiredError,
    "Gone": ExpiredError,
}

_BY_CODE: Mapping[int, type[ClientError]] = {
    400: BadRequestError,
    401: UnauthorizedError,
    403: ForbiddenError,
    404: NotFoundError,
    409: ConflictError,
    410: ExpiredError,
    422: InvalidError,
    429: TooManyRequestsError,
}


def error_of(code: int, body: bytes, retry_after: str = "") -> ClientError:
    """Return the error that an answer with a code of 400 or more stands for."""
    status = read_status(body)
    if status.kind != "Status":
        text = body[:TEXT_MAX].decode("utf-8", "replace").strip()
        status = _Status(message=text or f"the server answered with {code}", code=code)
    return _error(code or status.code, status, retry_after)


def error_of_status(body: bytes) -> ClientError:
    """Return the error that a Status within a watch stands for."""
    status = read_status(body)
    return _error(status.code or 500, status, "")


def read_status(body: bytes) -> _Status:
    """Return a Status as far as the bytes are one."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Status()


def _error(code: int, status: _Status, retry_after: str) -> ClientError:
    details = status.details or _Details()
    found = _BY_REASON.get(status.reason) or _BY_CODE.get(code)
    if found is None:
        found = UnavailableError if code >= 500 else ClientError
    wait_s = details.retryAfterSeconds
    if retry_after.isascii() and retry_after.isdigit():
        wait_s = float(retry_after[:9])
    return found(
        status.message[:TEXT_MAX] or f"the server answered with {code}",
        code=code,
        reason=status.reason,
        causes=tuple(details.causes or ()),
        retry_after_s=wait_s,
    )
