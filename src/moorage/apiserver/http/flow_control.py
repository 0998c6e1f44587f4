"""Flow control: seats for requests in flight, shared fairly among users.

Reads, writes and watches have seats of their own. A user gets another seat while they hold fewer
than twice the number of free seats:

    one busy user      2/3 of the seats, 1/3 stays free for others
    two                2/5 each, 1/5 stays free
    n                  2/(2n+1) each

So a new user finds a seat, however many requests others send, as long as there are more seats than
users; nothing needs to be configured. A request without a seat gets 429 with Retry-After. Members
of system:masters are bound by the number of seats alone: who repairs a cluster must get in.

The selectors of watches are shared in the same way: each change is compared with all of them.

Networks know this as the dynamic threshold by which ports share the memory of a switch.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from enum import Enum

from msgspec import Struct

from moorage.apiserver.auth.users import MASTERS, User
from moorage.apiserver.http.status import too_many_requests
from moorage.kit.metrics import Family, Gauge

FREE_SEATS_FACTOR = 2
RETRY_AFTER_S = 1


SELECTOR_BYTES_MAX = 2**20  # of all open watches: some 10 ms for each change
SELECTOR_ALWAYS_BYTES = 256  # a selector that is not longer needs no room


class RequestClass(Enum):
    """The class of a request; each class has its own seats."""

    READING = "readOnly"
    WRITING = "mutating"
    WATCHING = "watch"

    __hash__ = object.__hash__  # Enum hashes names, by Python code.


class Seats(Struct, frozen=True):
    """The number of seats of each class."""

    reading_max: int = 400
    writing_max: int = 200
    watching_max: int = 10_000


class FlowControl:
    """Assigns seats to requests."""

    def __init__(self, seats: Seats = Seats()) -> None:  # noqa: B008
        self._seats_max = {
            RequestClass.READING: seats.reading_max,
            RequestClass.WRITING: seats.writing_max,
            RequestClass.WATCHING: seats.watching_max,
        }
        self._taken = dict.fromkeys(RequestClass, 0)
        self._by_user: Counter[tuple[RequestClass, str]] = Counter()
        self.refused: Counter[RequestClass] = Counter()
        self._selectors = SharedBytes(SELECTOR_BYTES_MAX, SELECTOR_ALWAYS_BYTES)

    def taken(self, kind: RequestClass) -> int:
        """Return how many seats of a class are taken."""
        return self._taken[kind]

    def seat(self, user: User, kind: RequestClass) -> _Seat:
        """Hold a seat within a block, or raise 429."""
        return _Seat(self, user, kind)

    def families(self) -> Iterator[Family]:
        """Yield the metrics of seats."""
        yield Gauge(
            "apiserver_current_inflight_requests",
            "Requests in progress, by kind: readOnly or mutating.",
            ("request_kind",),
            lambda: {
                (s.value,): self._taken[s] for s in (RequestClass.READING, RequestClass.WRITING)
            },
        )
        yield Gauge(
            "moorage_apiserver_dropped_requests_total",
            "Requests that found no seat and were answered with 429, by kind.",
            ("request_kind",),
            lambda: {(kind.value,): self.refused[kind] for kind in RequestClass},
            is_counter=True,
        )

    def take(self, user: User, kind: RequestClass) -> None:
        """Take a seat, or raise 429 if there is none for the user."""
        free = self._seats_max[kind] - self._taken[kind]
        is_over = self._by_user[kind, user.name] >= FREE_SEATS_FACTOR * free
        if free <= 0 or (is_over and MASTERS not in user.groups):
            self.refused[kind] += 1
            raise too_many_requests(RETRY_AFTER_S)
        self._taken[kind] += 1
        self._by_user[kind, user.name] += 1

    def take_watch(self, user: User, selector_bytes: int) -> None:
        """Take the seat of a watch, or raise 429."""
        if not self._selectors.has_room(user.name, selector_bytes):
            self.refused[RequestClass.WATCHING] += 1
            raise too_many_requests(RETRY_AFTER_S)
        self.take(user, RequestClass.WATCHING)
        self._selectors.change(user.name, selector_bytes)

    def leave_watch(self, user: User, selector_bytes: int) -> None:
        """Release the seat of a watch."""
        self._selectors.change(user.name, -selector_bytes)
        self.leave(user, RequestClass.WATCHING)

    def leave(self, user: User, kind: RequestClass) -> None:
        """Release a seat."""
        self._taken[kind] -= 1
        left = self._by_user[kind, user.name] - 1
        if left:
            self._by_user[kind, user.name] = left
        else:
            del self._by_user[kind, user.name]  # keeps no entries of users without seats


class _Seat:
    """A seat in a block."""

    __slots__ = ("_flow", "_kind", "_user")

    def __init__(self, flow: FlowControl, user: User, kind: RequestClass) -> None:
        self._flow, self._user, self._kind = flow, user, kind

    def __enter__(self) -> None:
        self._flow.take(self._user, self._kind)

    def __exit__(self, *_: object) -> None:
        self._flow.leave(self._user, self._kind)


def request_class(method: str, verb: str) -> RequestClass:
    """Return the class of a request while it is answered."""
    if verb in ("get", "list", "watch") or method in ("GET", "HEAD"):
        return RequestClass.READING
    return RequestClass.WRITING


# --- responses ------------------------------------------------------------------------------------

ALWAYS_BYTES = 16 * 1024  # a response that is not larger needs no room


class SharedBytes:
    """Bytes of something that the server holds for its clients, shared among users like seats.

    A client may ask for a list and never read it. Of responses that are not read, one user gets two
    thirds of all bytes, two users two fifths each, and so on. The first response of a user is never
    too large, as long as there is room at all: a list may be larger than any bound. Small ones need
    no room.
    """

    def __init__(self, bytes_max: int, always_bytes: int = ALWAYS_BYTES) -> None:
        self._bytes_max = bytes_max
        self._always_bytes = always_bytes
        self._by_user: Counter[str] = Counter()
        self.total = 0

    def has_room(self, user: str, size: int) -> bool:
        """Return whether there is room for so many bytes."""
        held, free = self._by_user[user], self._bytes_max - self.total
        if size <= self._always_bytes or (free > 0 and not held):
            return True
        return held + size <= FREE_SEATS_FACTOR * (free - size)

    def held(self, user: str, size: int) -> HeldBytes:
        """Hold bytes in a block."""
        return HeldBytes(self, user, size)

    def change(self, user: str, size: int) -> None:
        """Count bytes of a user, or fewer."""
        self.total += size
        held = self._by_user[user] + size
        if held:
            self._by_user[user] = held
        else:
            del self._by_user[user]


class HeldBytes:
    """Bytes that are held in a block."""

    __slots__ = ("_left", "_shared", "_user")

    def __init__(self, shared: SharedBytes, user: str, size: int) -> None:
        self._shared, self._user, self._left = shared, user, size

    def sent(self, count: int) -> None:
        """Note that bytes have gone."""
        count = min(count, self._left)
        self._left -= count
        self._shared.change(self._user, -count)

    def __enter__(self) -> HeldBytes:
        self._shared.change(self._user, self._left)
        return self

    def __exit__(self, *_: object) -> None:
        self._shared.change(self._user, -self._left)
