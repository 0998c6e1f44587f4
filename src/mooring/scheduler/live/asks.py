"""What a job asks for and what it is answered: jobs are generators and do nothing themselves.

    answer = yield Update(claim, "status")

Writes are those of `mooring.client.writes`. Besides, a job can read an object, take its turn at a
claim, and wait.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, TypeVar

from msgspec import Struct

from mooring.client.writes import Target, Write
from mooring.scheduler.cluster import ClaimKey
from mooring.scheduler.live.hints import Topic

# --- what is asked --------------------------------------------------------------------------------


class Read(Struct, frozen=True):
    """Give me an object as the server has it; None if it has none."""

    target: Target


class Turn(Struct, frozen=True):
    """Let me write this claim once nobody else does; answered with what ends the turn."""

    key: ClaimKey


class Sleep(Struct, frozen=True):
    """Go on after a while."""

    for_s: float


class Until(Struct, frozen=True):
    """Go on when one of these topics is fired, or after a while."""

    topics: tuple[Topic, ...]
    for_s: float
    is_long: bool = False  # others may go on meanwhile, however many wait like this


Ask = Read | Write | Turn | Sleep | Until

# --- what is answered -----------------------------------------------------------------------------

CONFLICT = "Conflict"
NOT_FOUND = "NotFound"
ALREADY_EXISTS = "AlreadyExists"


class Done(Struct, frozen=True):
    """It was carried out: the object as it is stored now, if there is one."""

    value: Any = None


class Refused(Struct, frozen=True):
    """The server said no, with its reason; nothing was changed."""

    reason: str
    message: str


class Lost(Struct, frozen=True):
    """Nobody knows whether it was carried out, or will be: there was no answer."""

    message: str


EndTurn = Callable[[], None]
Answer = Done | Refused | Lost

T = TypeVar("T")
# Each ask is answered: reads and writes by an Answer, a turn by what ends it, waits by None.
Steps = Generator[Ask, Any, T]

# --- faults ---------------------------------------------------------------------------------------


class Setback(Exception):  # noqa: N818
    """The pod cannot be bound as was decided; the text says why."""


class Rivalled(Setback):
    """Another claim got the devices first."""


class Joined(Setback):
    """Another scheduler has given other devices to a claim, for the very same pod."""


class Gone(Setback):
    """The pod is being deleted, or is not there any more."""
