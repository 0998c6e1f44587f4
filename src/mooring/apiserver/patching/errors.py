"""How a patch is refused.

PatchError   a value: what the server answers (doors of this room return it)
Refusal      an exception that carries one, inside the room only
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
    """The Status that a patch is refused with."""

    status: int
    reason: str
    message: str
    causes: tuple[PatchCause, ...] = ()
    detail: str = ""  # what Kubernetes leaves out of its answer; for logs


class PatchRefused(Exception):  # noqa: N818  # it is one
    """Carries a PatchError to the door."""

    def __init__(self, error: PatchError) -> None:
        super().__init__(error.message)
        self.error = error


def bad_request(message: str) -> PatchRefused:
    """Return the refusal of what cannot be understood."""
    return PatchRefused(PatchError(400, "BadRequest", message))


def unprocessable(detail: str) -> PatchRefused:
    """Return the refusal of a patch that does not apply; Kubernetes does not say why."""
    return PatchRefused(PatchError(422, "Invalid", _REJECTED, detail=detail))


def too_large(message: str) -> PatchRefused:
    """Return the refusal of what is beyond a limit."""
    return PatchRefused(PatchError(413, "RequestEntityTooLarge", message))
