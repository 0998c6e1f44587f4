"""Status: the response to a request that returns no object, with Kubernetes' messages.

    StatusError
    ├── of the request   bad_request, unauthorized, forbidden, not_acceptable, unsupported_media …
    ├── of the object    not_found, already_exists, conflict, invalid …
    └── of the server    too_old, too_new, too_many, internal …

Each function returns an error to raise; it carries the response.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from http import HTTPStatus

from msgspec.structs import replace

from moorage.api.structs import Closed, Int32, always, named
from moorage.store.errors import (
    BadRequestError,
    ClosedError,
    NoSpaceError,
    OverloadedError,
    StoreError,
    UnavailableError,
)
from moorage.validation.errors import FieldError


class StatusCause(Closed, frozen=True):
    """One cause of an error, and the field that it concerns."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(Closed, frozen=True):
    """The object that a Status is about, and the causes."""

    name: str = ""
    group: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] = ()
    retry_after_seconds: Int32 = 0


class StatusMeta(Closed, frozen=True):
    """The metadata of a Status; `continue` resumes a list that has expired."""

    continue_: str = named("continue", "")


class Status(Closed, frozen=True):
    """The response to a request that returns no object."""

    kind: str = always("Status")
    api_version: str = always("v1")
    metadata: StatusMeta = always(StatusMeta())
    status: str = ""
    message: str = ""
    reason: str = ""
    details: StatusDetails | None = None
    code: Int32 = 0


class About:
    """The resource that a Status is about."""

    __slots__ = ("group", "kind", "plural")

    def __init__(self, plural: str, kind: str, group: str) -> None:
        self.plural = plural
        self.kind = kind
        self.group = group

    @property
    def title(self) -> str:
        """The plural with its group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def kind_title(self) -> str:
        """The kind with its group."""
        return f"{self.kind}.{self.group}" if self.group else self.kind


class StatusError(Exception):
    """A request that fails, with its Status and warnings."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status
        self.warnings: tuple[str, ...] = ()


class warned:  # noqa: N801  # a block, as those of contextlib
    """Add warnings to a StatusError that is raised within."""

    __slots__ = ("_warnings",)

    def __init__(self, warnings: tuple[str, ...]) -> None:
        self._warnings = warnings

    def __enter__(self) -> None:
        pass

    def __exit__(self, _: type | None, error: BaseException | None, __: object) -> None:
        if isinstance(error, StatusError):
            error.warnings = (*self._warnings, *error.warnings)


def failure(
    code: HTTPStatus, reason: str, message: str, details: StatusDetails | None = None
) -> StatusError:
    """Return an error with a Status."""
    return StatusError(
        Status(status="Failure", message=message, reason=reason, details=details, code=int(code))
    )


# --- the request ----------------------------------------------------------------------------------


def bad_request(message: str) -> StatusError:
    """Return 400: the request is malformed."""
    return failure(HTTPStatus.BAD_REQUEST, "BadRequest", message)


def unauthorized() -> StatusError:
    """Return 401: the credentials are invalid."""
    return failure(HTTPStatus.UNAUTHORIZED, "Unauthorized", "Unauthorized")


def forbidden(
    about: About | None, name: str, why: str, causes: tuple[StatusCause, ...] = ()
) -> StatusError:
    """Return 403: the user may not do this."""
    if about is None:
        return failure(HTTPStatus.FORBIDDEN, "Forbidden", f"forbidden: {why}", StatusDetails())
    shown = f'{about.title} "{name}"' if name else about.title
    details = StatusDetails(name=name, group=about.group, kind=about.plural, causes=causes)
    return failure(HTTPStatus.FORBIDDEN, "Forbidden", f"{shown} is forbidden: {why}", details)


def not_acceptable(offers: Sequence[str]) -> StatusError:
    """Return 406: no representation is acceptable."""
    message = f"406: Not Acceptable\n\nAvailable representations: {', '.join(offers)}"
    return failure(HTTPStatus.NOT_ACCEPTABLE, "NotAcceptable", message, StatusDetails())


def unsupported_media(accepted: Sequence[str]) -> StatusError:
    """Return 415: the body has an unknown media type."""
    message = (
        "the body of the request was in an unknown format - accepted media types include: "
        f"{', '.join(accepted)}"
    )
    return failure(HTTPStatus.UNSUPPORTED_MEDIA_TYPE, "UnsupportedMediaType", message)


def unsupported_patch() -> StatusError:
    """Return 415: the patch has an unknown media type."""
    message = "415: Unsupported Media Type"
    code = HTTPStatus.UNSUPPORTED_MEDIA_TYPE
    return failure(code, "UnsupportedMediaType", message, StatusDetails())


def unknown_resource() -> StatusError:
    """Return 404: there is no such resource."""
    message = "the server could not find the requested resource"
    return failure(HTTPStatus.NOT_FOUND, "NotFound", message, StatusDetails())


def method_not_allowed() -> StatusError:
    """Return 405: the resource does not support the method."""
    message = "the server does not allow this method on the requested resource"
    return failure(HTTPStatus.METHOD_NOT_ALLOWED, "MethodNotAllowed", message, StatusDetails())


def too_large(bytes_max: int) -> StatusError:
    """Return 413: the body is too large."""
    message = f"Request entity too large: limit is {bytes_max}"
    code = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
    return failure(code, "RequestEntityTooLarge", message)


def too_many_requests(retry_after_s: int) -> StatusError:
    """Return 429: the client should retry later."""
    message = "too many requests, please try again later"
    details = StatusDetails(retry_after_seconds=retry_after_s)
    return failure(HTTPStatus.TOO_MANY_REQUESTS, "TooManyRequests", message, details)


def timed_out() -> StatusError:
    """Return 504: the response took too long."""
    text = "Timeout: request did not complete within the allotted timeout"
    return failure(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", text)


# --- the object -----------------------------------------------------------------------------------


def not_found(about: About, name: str) -> StatusError:
    """Return 404: there is no such object."""
    details = StatusDetails(name=name, group=about.group, kind=about.plural)
    return failure(HTTPStatus.NOT_FOUND, "NotFound", f'{about.title} "{name}" not found', details)


def already_exists(about: About, name: str, *, is_leaving: bool = False) -> StatusError:
    """Return 409: an object of this name exists, perhaps not for long."""
    details = StatusDetails(name=name, group=about.group, kind=about.plural)
    message = f'{about.title} "{name}" already exists'
    if is_leaving:
        message = f"object is being deleted: {message}"
    return failure(HTTPStatus.CONFLICT, "AlreadyExists", message, details)


def conflict(about: About, name: str, why: str, causes: Iterable[StatusCause] = ()) -> StatusError:
    """Return 409: the object was modified."""
    details = StatusDetails(name=name, group=about.group, kind=about.plural, causes=tuple(causes))
    message = f'Operation cannot be fulfilled on {about.title} "{name}": {why}'
    return failure(HTTPStatus.CONFLICT, "Conflict", message, details)


MODIFIED = (
    "the object has been modified; please apply your changes to the latest version and try again"
)


def precondition_failed(
    about: About, name: str, field: str, wanted: str, found: str
) -> StatusError:
    """Return 409: a precondition of a delete does not hold."""
    why = (
        f"the {field} in the precondition ({wanted}) does not match the {field} in record "
        f"({found}). The object might have been "
    )
    why += "deleted and then recreated" if field == "UID" else "modified"
    details = StatusDetails(name=name, group=about.group, kind=about.kind)
    message = f'Operation cannot be fulfilled on {about.kind_title} "{name}": {why}'
    return failure(HTTPStatus.CONFLICT, "Conflict", message, details)


def invalid(about: About, name: str, errors: Sequence[FieldError]) -> StatusError:
    """Return 422: the object is invalid."""
    shown = [str(error) for error in errors]
    text = shown[0] if len(shown) == 1 else f"[{', '.join(shown)}]"
    causes = tuple(
        StatusCause(reason=error.type.value, message=error.body, field=str(error.path))
        for error in errors
    )
    details = StatusDetails(name=name, group=about.group, kind=about.kind, causes=causes)
    message = f'{about.kind_title} "{name}" is invalid: {text}'
    return failure(HTTPStatus.UNPROCESSABLE_ENTITY, "Invalid", message, details)


# --- the server -----------------------------------------------------------------------------------


def too_old(message: str, continue_: str = "") -> StatusError:
    """Return 410: the revision is compacted; `continue_` resumes a list at the newest one."""
    error = failure(HTTPStatus.GONE, "Expired", message)
    return StatusError(replace(error.status, metadata=StatusMeta(continue_=continue_)))


def too_new(wanted: int, current: int) -> StatusError:
    """Return 504: the revision is in the future."""
    cause = StatusCause(reason="ResourceVersionTooLarge", message="Too large resource version")
    details = StatusDetails(causes=(cause,), retry_after_seconds=1)
    message = f"Timeout: Too large resource version: {wanted}, current: {current}"
    return failure(HTTPStatus.GATEWAY_TIMEOUT, "Timeout", message, details)


def unavailable(message: str) -> StatusError:
    """Return 503: the server cannot answer now."""
    return failure(HTTPStatus.SERVICE_UNAVAILABLE, "ServiceUnavailable", message)


def internal(message: str) -> StatusError:
    """Return 500: an internal error."""
    text = f"Internal error occurred: {message}"
    cause = StatusCause(message=message)
    details = StatusDetails(causes=(cause,))
    return failure(HTTPStatus.INTERNAL_SERVER_ERROR, "InternalError", text, details)


def unexplained(message: str) -> StatusError:
    """Return 500 without a reason, as Kubernetes does for errors of nodes."""
    return failure(HTTPStatus.INTERNAL_SERVER_ERROR, "", message)


def of_store(error: StoreError) -> StatusError:
    """Return the answer to a request that the store did not carry out."""
    match error:
        case OverloadedError():
            return too_many_requests(1)
        case BadRequestError():
            return bad_request(str(error))
        case NoSpaceError() | ClosedError() | UnavailableError():
            return unavailable(str(error))
    return internal(str(error))
