"""Signing in: a link that works once, and the session cookie that it gives.

Tokens and cookies are random, and only their digests are stored, so nobody can sign in with what is
logged or dumped.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from hashlib import sha256
from http.cookies import CookieError, SimpleCookie
from typing import Final, Generic, NamedTuple, TypeVar

U = TypeVar("U")
COOKIE: Final = "moor-ui"
LINK_S: Final = 600.0
SESSION_S: Final = 12 * 3600.0
LINKS_MAX: Final = 1000
SESSIONS_MAX: Final = 10_000
EACH_MAX: Final = 50  # links, and sessions, of one user
TOKEN_BYTES: Final = 32
COOKIE_LENGTH_MAX: Final = 4096


class _Grant(NamedTuple, Generic[U]):
    user: U
    until_s: float


class Logins(Generic[U]):
    """The valid links and open sessions, with their users."""

    def __init__(
        self,
        clock: Callable[[], float],
        new_token: Callable[[], str] = lambda: secrets.token_urlsafe(TOKEN_BYTES),
    ) -> None:
        self._clock = clock
        self._new_token = new_token
        self._links: dict[bytes, _Grant[U]] = {}
        self._sessions: dict[bytes, _Grant[U]] = {}

    def link_token(self, user: U) -> str:
        """Return a token that signs in a user once."""
        return self._grant(self._links, user, LINK_S, LINKS_MAX)

    def redeem(self, token: str) -> str | None:
        """Return the cookie for a token, or None if it is unknown, used or too old."""
        grant = self._links.pop(_digest(token), None)
        if grant is None or grant.until_s <= self._clock():
            return None
        return self._grant(self._sessions, grant.user, SESSION_S, SESSIONS_MAX)

    @staticmethod
    def cookie_name(host: str) -> str:
        """Return the name of the cookie, with the port, because ports of a host share cookies."""
        port = host.rpartition(":")[2]
        return f"{COOKIE}-{port}" if port.isascii() and port.isdigit() else COOKIE

    def user(self, header: str, host: str) -> U | None:
        """Return the user of a Cookie header, or None if nobody is signed in."""
        value = _cookie_value(header, self.cookie_name(host))
        grant = self._sessions.get(_digest(value)) if value else None
        return None if grant is None or grant.until_s <= self._clock() else grant.user

    def _grant(self, grants: dict[bytes, _Grant[U]], user: U, lasts_s: float, most: int) -> str:
        now_s = self._clock()
        for digest in [each for each, grant in grants.items() if grant.until_s <= now_s]:
            del grants[digest]
        mine = [digest for digest, grant in grants.items() if grant.user == user]
        if len(mine) >= EACH_MAX:
            del grants[mine[0]]  # the oldest
        while len(grants) >= most:
            del grants[next(iter(grants))]
        token = self._new_token()
        grants[_digest(token)] = _Grant(user, now_s + lasts_s)
        return token


def cookie_header(name: str, value: str, *, is_secure: bool) -> str:
    """Return the Set-Cookie header of a session."""
    secure = "; Secure" if is_secure else ""
    return f"{name}={value}; Path=/ui; Max-Age={int(SESSION_S)}; HttpOnly; SameSite=Strict{secure}"


def _cookie_value(header: str, name: str) -> str:
    if len(header) > COOKIE_LENGTH_MAX:
        return ""
    try:
        found = SimpleCookie(header).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _digest(token: str) -> bytes:
    return sha256(token.encode("utf-8", "replace")).digest()
