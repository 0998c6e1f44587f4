"""Errors of patches.

PatchError     a value: the Status that the client gets, returned by the entry points
PatchRefused   an exception that carries it, inside this package only
"""

from __future__ import annotations

from msgspec import Struct

FIELD_MANAGER_CONFLICT = "FieldManagerConflict"

_REJECTED = "the server rejected our request due to an error in our request"


class PatchCause(Struct, frozen=True):
    """One cause in the details of a Status."""

    reason: str
    message: str
    field: str


class PatchError(Struct, frozen=True):
    """The Status of a patch that fails."""

    status: int
    reason: str
    message: str
    causes: tuple[PatchCause, ...] = ()
    detail: str = ""  # for logs; Kubernetes' response leaves it out


class PatchRefused(Exception):  # noqa: N818  # it is one
    """Carries a PatchError to the entry points of the package."""

    def __init__(self, error: PatchError) -> None:
        super().__init__(error.message)
        self.error = error


def bad_request(message: str) -> PatchRefused:
    """Return 400: the patch is malformed."""
    return PatchRefused(PatchError(400, "BadRequest", message))


def unprocessable(detail: str) -> PatchRefused:
    """Return 422: the patch does not apply; Kubernetes' message does not say why."""
    return PatchRefused(PatchError(422, "Invalid", _REJECTED, detail=detail))


def too_large(message: str) -> PatchRefused:
    """Return 413: the patch exceeds a limit."""
    return PatchRefused(PatchError(413, "RequestEntityTooLarge", message))
