"""Who asks: by certificate, by bearer token, or nobody.

A certificate of ours goes first. A token that is there must be good: a bad one is an error, not
the anonymous user.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any, NamedTuple

from msgspec import Struct

from mooring.api.timestamp import Timestamp
from mooring.apiserver.authentication import bootstraptokens, peers
from mooring.apiserver.authentication.serviceaccounts import (
    Claims,
    Issuer,
    Lookup,
    Refused,
    claims_of,
    confirmed,
    lookups_of,
)
from mooring.apiserver.authentication.statictokens import StaticTokens
from mooring.apiserver.authentication.users import NOBODY, authenticated
from mooring.apiserver.calls import User
from mooring.apiserver.status import unauthorized

TOKEN_BYTES_MAX = 16 * 1024

Find = Callable[[Lookup], Awaitable[Any | None]]  # reads an object of the core group


class Known(NamedTuple):
    """A user, and whom the token that told so is for."""

    user: User
    audiences: tuple[str, ...] = ()


class Authenticator(Struct, frozen=True):
    """All ways in which users are known."""

    issuer: Issuer
    find: Find
    now: Callable[[], Timestamp]
    static: StaticTokens = StaticTokens({})

    async def user(self, *, certificate: bytes | None, authorization: str | None) -> User:
        """Return who sends a request, or raise that this is not who it says."""
        if certificate is not None:
            known = peers.user_of(certificate)
            if known is not None:
                if not peers.is_valid_at(certificate, self.now()):
                    raise unauthorized()
                return authenticated(known)
        token = bearer_token(authorization)
        if token is None:
            return NOBODY
        found = await self.token_user(token, self.issuer.audiences)
        if isinstance(found, Refused):
            raise unauthorized()
        return found.user

    async def token_user(self, token: str, audiences: Sequence[str]) -> Known | Refused:
        """Return whose token it is, if it is for one of the audiences."""
        if not token or len(token) > TOKEN_BYTES_MAX:
            return Refused("invalid bearer token")
        own = tuple(a for a in self.issuer.audiences if a in audiences)
        if own:
            user = self.static.find(token) or await self._bootstrap_user(token)
            if user is not None:
                return Known(authenticated(user), own)
        return await self._account_user(token, audiences)

    async def _bootstrap_user(self, token: str) -> User | None:
        name = bootstraptokens.secret_name(token)
        if name is None:
            return None
        secret = await self.find(Lookup("secrets", bootstraptokens.NAMESPACE, name))
        return None if secret is None else bootstraptokens.user_of(token, secret, self.now())

    async def _account_user(self, token: str, audiences: Sequence[str]) -> Known | Refused:
        now = self.now()
        claims = claims_of(token, self.issuer, audiences=audiences, now=now)
        if not isinstance(claims, Claims):
            return claims or Refused("invalid bearer token")
        objects = {what: await self.find(where) for what, where in lookups_of(claims).items()}
        user = confirmed(claims, objects, now)
        if isinstance(user, Refused):
            return user
        accepted = tuple(a for a in claims.audiences if a in audiences)
        return Known(authenticated(user), accepted)


def bearer_token(authorization: str | None) -> str | None:
    """Return the token of an Authorization header; None if it has none."""
    if authorization is None:
        return None
    kind, _, token = authorization.strip().partition(" ")
    token = token.strip()
    return token if kind.lower() == "bearer" and token else None
