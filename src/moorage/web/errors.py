"""Errors of the page: each becomes the response to a request.

PageError
├── BadQuestionError     400
├── NotSignedInError     401
├── ForbiddenError       403
├── NotFoundError        404
├── MethodError          405
├── DeadlineError        408
├── UnknownTimeError     409
├── TooLargeError        413
├── UnusableError        422
├── BusyError            429
└── NotReadyError        503
"""

from __future__ import annotations

from typing import ClassVar


class PageError(Exception):
    """A request that fails; the page responds with this error."""

    status: ClassVar[int] = 500
    code: ClassVar[str] = "internal"

    def __init__(self, text: str, code: str = "") -> None:
        super().__init__(text)
        self.text, self.reason = text, code or self.code


class BadQuestionError(PageError):
    """A parameter or the body is invalid."""

    status, code = 400, "bad-request"


class NotSignedInError(PageError):
    """The request has no valid cookie or other credentials."""

    status, code = 401, "not-signed-in"


class ForbiddenError(PageError):
    """The user lacks the rights, or used another host name."""

    status, code = 403, "forbidden"


class NotFoundError(PageError):
    """The path, object or device does not exist."""

    status, code = 404, "not-found"


class MethodError(PageError):
    """The path does not support the method."""

    status, code = 405, "method"


class DeadlineError(PageError):
    """The answer took too long."""

    status, code = 408, "deadline"


class UnknownTimeError(PageError):
    """The history does not contain the moment."""

    status, code = 409, "unknown-moment"


class TooLargeError(PageError):
    """The body is too large."""

    status, code = 413, "too-large"


class UnusableError(PageError):
    """The question cannot be answered."""

    status, code = 422, "unusable"


class BusyError(PageError):
    """The user has too many questions in progress."""

    status, code = 429, "busy"


class NotReadyError(PageError):
    """The page is still reading the cluster."""

    status, code = 503, "not-ready"
