"""Tokens of service accounts: what they say, and whether what they say still holds.

1. `claims_of` checks the signature, the issuer, the audience and the times of a token.
2. `lookups_of` says which objects the token lives with; somebody reads them.
3. `confirmed` compares: an object that is gone, or another one of its name, ends the token.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from mooring.api.timestamp import Timestamp
from mooring.apiserver.authentication.keys import VerifyingKey, verified
from mooring.apiserver.authentication.users import (
    CREDENTIAL_ID,
    NODE_NAME,
    NODE_UID,
    POD_NAME,
    POD_UID,
    service_account_groups,
    service_account_name,
)
from mooring.apiserver.calls import User

REMEMBERED_MAX = 512  # tokens whose signatures were good
LEEWAY_S = 60  # clocks differ; deletions take their time

_INVALIDATED = "service account token has been invalidated"


class Reference(Struct, frozen=True, omit_defaults=True):
    """An object that a token names."""

    name: str = ""
    uid: str = ""


class Bound(Struct, frozen=True, omit_defaults=True):
    """What a token says of Kubernetes: whose it is, and which objects it lives with."""

    namespace: str = ""
    serviceaccount: Reference = Reference()
    pod: Reference | None = None
    secret: Reference | None = None
    node: Reference | None = None
    warnafter: int | None = None


class Claims(Struct, frozen=True, omit_defaults=True):
    """All that a token says."""

    aud: tuple[str, ...] | str = ()
    exp: float = 0
    iat: float = 0
    iss: str = ""
    jti: str = ""
    bound: Bound = msgspec.field(name="kubernetes.io", default=Bound())
    nbf: float = 0
    sub: str = ""

    @property
    def audiences(self) -> tuple[str, ...]:
        """Whom the token is for."""
        return (self.aud,) if isinstance(self.aud, str) else self.aud


class Refused(NamedTuple):
    """Why a token does not count."""

    reason: str


class Lookup(NamedTuple):
    """An object of the core group that must be read."""

    plural: str
    namespace: str
    name: str


class Issuer(NamedTuple):
    """Whose tokens count, and for whom they are by default."""

    name: str
    keys: Sequence[VerifyingKey]
    audiences: tuple[str, ...]


def claims_of(
    token: str, issuer: Issuer, *, audiences: Sequence[str], now: Timestamp
) -> Claims | Refused | None:
    """Return what a token says; None if it is none of this issuer's."""
    try:
        claims = _signed_claims(token, issuer.name, tuple(issuer.keys))
    except _NotOursError:
        return None
    except msgspec.ValidationError:
        return Refused("service account token claims could not be validated")
    if not set(audiences) & set(claims.audiences):
        shown = f"[{' '.join(claims.audiences)}]"
        return Refused(
            f'token audiences ["{shown}"] is invalid for the target audiences '
            f"[{' '.join(audiences)}]"
        )
    return _timely(claims, now)


class _NotOursError(Exception):
    """A token that this issuer did not sign."""


# Programs show the same token for an hour, and checking a signature costs more than most answers.
# What is refused is not remembered.
@lru_cache(maxsize=REMEMBERED_MAX)
def _signed_claims(token: str, issuer: str, keys: tuple[VerifyingKey, ...]) -> Claims:
    """Return what a token of an issuer says, whenever and for whomever it is."""
    signed = verified(token, keys)
    if signed is None or signed.payload.get("iss") != issuer:
        raise _NotOursError
    return msgspec.convert(signed.payload, Claims)


def _timely(claims: Claims, now: Timestamp) -> Claims | Refused:
    seconds = now.instant.timestamp()
    if not claims.exp or seconds - LEEWAY_S > claims.exp:
        return Refused("service account token has expired")
    if claims.nbf and seconds + LEEWAY_S < claims.nbf:
        return Refused("service account token is not valid yet")
    if claims.iat and seconds + LEEWAY_S < claims.iat:
        return Refused("service account token is issued in the future")
    expected = service_account_name(claims.bound.namespace, claims.bound.serviceaccount.name)
    if claims.sub != expected:
        return Refused("service account token subject does not match its claims")
    return claims


def lookups_of(claims: Claims) -> dict[str, Lookup]:
    """Return the objects that a token lives with."""
    bound = claims.bound
    found = {
        "serviceaccount": Lookup("serviceaccounts", bound.namespace, bound.serviceaccount.name)
    }
    if bound.secret is not None:
        found["secret"] = Lookup("secrets", bound.namespace, bound.secret.name)
    if bound.pod is not None:
        found["pod"] = Lookup("pods", bound.namespace, bound.pod.name)
    elif bound.node is not None:  # with a pod, the node is only told
        found["node"] = Lookup("nodes", "", bound.node.name)
    return found


def confirmed(claims: Claims, objects: Mapping[str, Any], now: Timestamp) -> User | Refused:
    """Return the user of a token, if all that it lives with is still there."""
    bound = claims.bound
    for what in lookups_of(claims):
        reference: Reference = getattr(bound, what)
        if reason := _refuse_object(what, objects.get(what), reference, now):
            return Refused(reason)
    account = bound.serviceaccount
    return User(
        service_account_name(bound.namespace, account.name),
        service_account_groups(bound.namespace),
        account.uid,
        _extra(claims),
    )


def _refuse_object(what: str, found: Any, wanted: Reference, now: Timestamp) -> str | None:
    if found is None:
        if what == "serviceaccount":
            return f'serviceaccounts "{wanted.name}" not found'
        return _INVALIDATED
    if found.metadata.uid != wanted.uid:
        if what == "serviceaccount":
            return f"service account UID ({found.metadata.uid}) does not match claim ({wanted.uid})"
        return (
            f"{what} UID ({found.metadata.uid}) does not match service account {what} ref claim "
            f"({wanted.uid})"
        )
    deleted = found.metadata.deletion_timestamp
    if deleted is not None and deleted.instant < now.instant - timedelta(seconds=LEEWAY_S):
        return _INVALIDATED
    return None


def _extra(claims: Claims) -> dict[str, tuple[str, ...]]:
    bound = claims.bound
    told = (
        (POD_NAME, bound.pod and bound.pod.name),
        (POD_UID, bound.pod and bound.pod.uid),
        (NODE_NAME, bound.node and bound.node.name),
        (NODE_UID, bound.node and bound.node.uid),
        (CREDENTIAL_ID, claims.jti and f"JTI={claims.jti}"),
    )
    return {key: (value,) for key, value in told if value}
