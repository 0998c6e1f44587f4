"""Who we are: shown with every request (tokens) or connection (certificates), renewed in time."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import NamedTuple, Protocol

from mooring.client.errors import AccessError
from mooring.kit.clock import REAL, Clock

TOKEN_BYTES_MAX = 64 * 1024
TOKEN_FILE_S = 60.0  # how long a token from a file is used; a pod's is replaced on the fly
RENEW_BEFORE = timedelta(seconds=30)


class Shown(NamedTuple):
    """What goes with requests and connections."""

    headers: str = ""  # whole lines
    context: ssl.SSLContext | None = None


class Identity(Protocol):
    """Says who we are."""

    @property
    def shown(self) -> Shown | None:
        """What to show; None when it must be made first."""

    async def show(self) -> Shown:
        """Return what to show, made anew if need be."""

    async def renew(self) -> bool:
        """Forget what was refused; False if it would be the same again."""


class NoIdentity:
    """Nobody in particular, or always the same."""

    def __init__(self, shown: Shown = Shown()) -> None:  # noqa: B008  # a value
        self._shown = shown

    @property
    def shown(self) -> Shown | None:
        """What to show."""
        return self._shown

    async def show(self) -> Shown:
        """Return what to show."""
        return self._shown

    async def renew(self) -> bool:
        """There is nothing else."""
        return False


class Fleeting(NamedTuple):
    """Something to show that does not hold for ever."""

    shown: Shown
    until: datetime | None = None


class RenewedIdentity:
    """Shows what a source gives, until its time is over or the server refuses it."""

    def __init__(self, source: Callable[[], Awaitable[Fleeting]], clock: Clock = REAL) -> None:
        self._source = source
        self._clock = clock
        self._current: Fleeting | None = None
        self._making = asyncio.Lock()

    @property
    def shown(self) -> Shown | None:
        """What to show, if it still holds."""
        current = self._current
        if current is None:
            return None
        if current.until is not None and self._clock.now() >= current.until:
            return None
        return current.shown

    async def show(self) -> Shown:
        """Return what to show; of many that ask at once, one makes it."""
        async with self._making:
            shown = self.shown
            if shown is None:
                self._current = await self._source()
                shown = self._current.shown
            return shown

    async def renew(self) -> bool:
        """Have it made anew."""
        self._current = None
        return True


class Token(NamedTuple):
    """A token, and when to ask for the next one."""

    text: str
    until: datetime | None = None


Tokens = Callable[[], Awaitable[Token]]  # asks for a token


def token_identity(
    tokens: Tokens, context: ssl.SSLContext | None = None, clock: Clock = REAL
) -> RenewedIdentity:
    """Return who shows tokens that are asked for when they are needed."""

    async def ask() -> Fleeting:
        token = await tokens()
        return Fleeting(Shown(bearer(token.text), context), token.until)

    return RenewedIdentity(ask, clock)


def bearer(token: str) -> str:
    """Return the header with a token, or raise AccessError for one that is none."""
    token = token.strip()
    if not token or not token.isascii() or not token.isprintable() or " " in token:
        raise AccessError("the token is empty or has characters that no token has")
    return f"Authorization: Bearer {token}\r\n"


def basic(user: str, password: str) -> str:
    """Return the header with a name and a password."""
    text = base64.b64encode(f"{user}:{password}".encode()).decode()
    return f"Authorization: Basic {text}\r\n"


def token_from(
    path: Path, headers: str, context: ssl.SSLContext | None, clock: Clock
) -> Callable[[], Awaitable[Fleeting]]:
    """Return a source that reads a token from a file, again from time to time."""

    async def read() -> Fleeting:
        try:
            with path.open(encoding="ascii") as file:
                token = file.read(TOKEN_BYTES_MAX)
        except (OSError, ValueError) as error:
            raise AccessError(f"token file {path}: {error}") from None
        until = clock.now() + timedelta(seconds=TOKEN_FILE_S)
        return Fleeting(Shown(headers + bearer(token), context), until)

    return read
