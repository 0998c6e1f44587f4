"""Who may read the status pages of a program: the API server says so, as for Kubernetes' programs.

    certificate ─────────────┐
    token ─ TokenReview ─────┴─ user ─ SubjectAccessReview: get PATH ─ page, or 401, 403

Answers are kept for some seconds. Somebody who sends one bad token after the other costs the API
server a bounded number of reviews, and cannot push out the answers for good tokens.
"""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any, Final, Generic, NamedTuple, Protocol, TypeVar

from moorage.api.authentication import TokenReview, TokenReviewSpec
from moorage.api.authorization import (
    NonResourceAttributes,
    SubjectAccessReview,
    SubjectAccessReviewSpec,
)
from moorage.client.errors import ClientError
from moorage.client.writes import Create
from moorage.kit.go_quote import go_quote
from moorage.kit.lru import LRU

LOG = logging.getLogger(__name__)

KEPT_S: Final = 10.0  # as Kubernetes' programs keep answers
CACHED_MAX: Final = 256
REVIEWS_PER_S: Final = 5.0  # of tokens and users that were not accepted lately
REVIEWS_AT_ONCE: Final = 20
REVIEW_S_MAX: Final = 5.0
WARN_EVERY_S: Final = 60.0
AUTHENTICATED: Final = "system:authenticated"
BEARER: Final = "bearer"

T = TypeVar("T")
Extra = tuple[tuple[str, tuple[str, ...]], ...]


class StatusUser(NamedTuple):
    """A user, as the API server or a certificate has it."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Extra = ()


class AccessRefusal(NamedTuple):
    """Why a page is not shown."""

    code: HTTPStatus
    text: str


UNAUTHORIZED: Final = AccessRefusal(HTTPStatus.UNAUTHORIZED, "Unauthorized\n")
TOO_MANY: Final = AccessRefusal(
    HTTPStatus.TOO_MANY_REQUESTS, "too many requests, please try again later\n"
)
UNREVIEWED: Final = AccessRefusal(
    HTTPStatus.SERVICE_UNAVAILABLE, "the API server could not be asked who may read this\n"
)


class ReviewClient(Protocol):
    """A client that creates reviews."""

    async def write(self, write: Create) -> Any:
        """Create an object and return the server's answer; may raise ClientError."""


def bearer_token(header: str) -> str:
    """Return the token of an Authorization header; "" if it has none that could be valid."""
    scheme, _, token = header.strip().partition(" ")
    token = token.strip()
    is_token = token.isascii() and token.isprintable() and " " not in token
    return token if scheme.lower() == BEARER and is_token else ""


def certificate_user(certificate: Any) -> StatusUser | None:
    """Return the user of a verified client certificate: its common name and organizations."""
    pairs = [pair for part in (certificate or {}).get("subject", ()) for pair in part]
    names = [value for key, value in pairs if key == "commonName"]
    if len(names) != 1 or not names[0]:
        return None
    groups = (value for key, value in pairs if key == "organizationName")
    return StatusUser(names[0], (*groups, AUTHENTICATED))


class StatusAccess:
    """Decides who may read a page, by asking the API server."""

    def __init__(self, client: ReviewClient, *, monotonic: Callable[[], float]) -> None:
        self._client = client
        self._monotonic = monotonic
        self._accepted = _Answers[StatusUser](monotonic)  # by the digest of the token
        self._rejected = _Answers[bool](monotonic)
        self._allowed = _Answers[bool](monotonic)  # by user and path
        self._forbidden = _Answers[bool](monotonic)
        self._allowance = _Allowance(monotonic)
        self._reviewing = asyncio.Lock()  # One at a time: the others find its answer.
        self._warned_at: float | None = None

    async def refusal(
        self, path: str, *, certificate: Any, authorization: str
    ) -> AccessRefusal | None:
        """Return why a page is not shown; None if it is."""
        try:
            async with asyncio.timeout(REVIEW_S_MAX):
                user = certificate_user(certificate)
                if user is None:
                    user = await self._token_user(bearer_token(authorization))
                if user is None:
                    return UNAUTHORIZED
                if await self._is_allowed(user, path):
                    return None
        except _TooManyReviewsError:
            return TOO_MANY
        except (ClientError, TimeoutError) as error:
            self._warn(error)
            return UNREVIEWED
        text = f'forbidden: User {go_quote(user.name)} cannot get path "{path}"\n'
        return AccessRefusal(HTTPStatus.FORBIDDEN, text)

    async def _token_user(self, token: str) -> StatusUser | None:
        if not token:
            return None
        key = hashlib.sha256(token.encode()).digest()
        if (user := self._accepted.get(key)) is not None or self._rejected.get(key):
            return user
        self._take(is_known=key in self._accepted)
        async with self._reviewing:
            if (user := self._accepted.get(key)) is not None or self._rejected.get(key):
                return user
            review = TokenReview(spec=TokenReviewSpec(token=token))
            status = (await self._client.write(Create(review))).status
            if not status.authenticated:
                self._accepted.discard(key)
                self._rejected.put(key, True)
                return None
            found = status.user
            user = StatusUser(
                found.username,
                tuple(found.groups),
                found.uid,
                tuple((name, tuple(values)) for name, values in found.extra_values.items()),
            )
            self._accepted.put(key, user)
            return user

    async def _is_allowed(self, user: StatusUser, path: str) -> bool:
        key = (user, path)
        if (answer := self._decision(key)) is not None:
            return answer
        self._take(is_known=key in self._allowed)
        async with self._reviewing:
            if (answer := self._decision(key)) is not None:
                return answer
            spec = SubjectAccessReviewSpec(
                non_resource_attributes=NonResourceAttributes(path=path, verb="get"),
                user=user.name,
                groups=user.groups,
                uid=user.uid,
                extra_values=dict(user.extra),
            )
            review = await self._client.write(Create(SubjectAccessReview(spec=spec)))
            is_allowed = bool(review.status.allowed)
            if not is_allowed:
                self._allowed.discard(key)
            (self._allowed if is_allowed else self._forbidden).put(key, True)
            return is_allowed

    def _decision(self, key: tuple[StatusUser, str]) -> bool | None:
        if self._allowed.get(key):
            return True
        return False if self._forbidden.get(key) else None

    def _take(self, *, is_known: bool) -> None:
        """Take a review from the allowance; who was accepted before needs none of it."""
        if not is_known and not self._allowance.take():
            raise _TooManyReviewsError

    def _warn(self, error: Exception) -> None:
        now = self._monotonic()
        if self._warned_at is None or now - self._warned_at >= WARN_EVERY_S:
            self._warned_at = now
            LOG.warning("status pages: the API server answers no reviews: %s", error or "timeout")


class _TooManyReviewsError(Exception): ...


class _Answers(Generic[T]):
    """Answers that are kept for some seconds; their keys are known for longer."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._known = LRU[Any, tuple[T, float]](CACHED_MAX)

    def __contains__(self, key: object) -> bool:
        return key in self._known

    def get(self, key: Any) -> T | None:
        """Return an answer that is not too old."""
        found = self._known.get(key)
        return None if found is None or found[1] <= self._monotonic() else found[0]

    def put(self, key: Any, answer: T) -> None:
        """Keep an answer."""
        self._known.put(key, (answer, self._monotonic() + KEPT_S))

    def discard(self, key: Any) -> None:
        """Forget an answer."""
        self._known.discard(key)


class _Allowance:
    """How many reviews may be made now: a bucket that fills at a constant rate."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._left = float(REVIEWS_AT_ONCE)
        self._at = monotonic()

    def take(self) -> bool:
        """Take one, if one is left."""
        now = self._monotonic()
        self._left = min(REVIEWS_AT_ONCE, self._left + (now - self._at) * REVIEWS_PER_S)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True
