"""Errors of requests.

ClientError                 code, reason, message and causes from the server's Status
├── BadRequestError         400
├── UnauthorizedError       401
├── ForbiddenError          403
├── NotFoundError           404
├── ConflictError           409: the object has another resource version or uid
│   └── AlreadyExistsError  409: an object of that name exists
├── ExpiredError            410: the list or watch is too old; list again
├── InvalidError            422
├── TooManyRequestsError    429, with the seconds to wait
├── UnavailableError        5xx, or the server cannot be reached
├── UnreadableError         the response is too large or malformed
└── AccessError             kubeconfig or credentials are missing or wrong
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec import Struct

from moorage.kit.errors import MoorageError

TEXT_MAX = 1000


class StatusCause(Struct, frozen=True):
    """One violation and its field."""

    reason: str = ""
    message: str = ""
    field: str = ""


class ClientError(MoorageError):
    """A request was rejected or failed."""

    def __init__(
        self,
        message: str,
        *,
        code: int = 0,
        reason: str = "",
        causes: tuple[StatusCause, ...] = (),
        retry_after_s: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.reason = reason
        self.causes = causes
        self.retry_after_s = retry_after_s


class BadRequestError(ClientError):
    """The request is malformed."""


class UnauthorizedError(ClientError):
    """The client is not authenticated."""


class ForbiddenError(ClientError):
    """The user is not authorized."""


class NotFoundError(ClientError):
    """The object or its kind does not exist."""


class ConflictError(ClientError):
    """The object has another resource version or uid than the write requires."""


class AlreadyExistsError(ConflictError):
    """An object of that name exists."""


class ExpiredError(ClientError):
    """The requested history was compacted."""


class InvalidError(ClientError):
    """The object is invalid; the causes say why."""


class TooManyRequestsError(ClientError):
    """The server is overloaded."""


class UnavailableError(ClientError):
    """The server cannot be reached or failed."""


class UnreadableError(ClientError):
    """The response is too large, malformed, or not an object of the kind."""


class AccessError(ClientError):
    """The kubeconfig or the credentials are missing or wrong."""


class _Details(Struct):
    causes: list[StatusCause] | None = None
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
    """Return the error for a response with a status of 400 or more."""
    status = read_status(body)
    if status.kind != "Status":
        text = body[:TEXT_MAX].decode("utf-8", "replace").strip()
        status = _Status(message=text or f"the server answered with {code}", code=code)
    return _error(code or status.code, status, retry_after)


def error_of_status(body: bytes) -> ClientError:
    """Return the error for a Status within a watch."""
    status = read_status(body)
    return _error(status.code or 500, status, "")


def read_status(body: bytes) -> _Status:
    """Parse a Status; return an empty one for anything else."""
    try:
        return _DECODER.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return _Status()


def _error(code: int, status: _Status, retry_after: str) -> ClientError:
    details = status.details or _Details()
    wait_s = details.retryAfterSeconds
    if retry_after.isascii() and retry_after.isdigit():
        wait_s = float(retry_after[:9])
    return make_error(
        code,
        status.message,
        reason=status.reason,
        causes=tuple(details.causes or ()),
        retry_after_s=wait_s,
    )


def make_error(
    code: int,
    message: str,
    *,
    reason: str,
    causes: tuple[StatusCause, ...] = (),
    retry_after_s: float | None = None,
) -> ClientError:
    """Return the error for the parts of a Status."""
    found = _BY_REASON.get(reason) or _BY_CODE.get(code)
    if found is None:
        found = UnavailableError if code >= 500 else ClientError
    return found(
        message[:TEXT_MAX] or f"the server answered with {code}",
        code=code,
        reason=reason,
        causes=causes,
        retry_after_s=retry_after_s,
    )
