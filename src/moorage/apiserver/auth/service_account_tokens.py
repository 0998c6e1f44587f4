"""Service account tokens: the keys that sign them, and their claims.

1. `claims_of` verifies the signature, the issuer, the audience and the times of a token.
2. `lookups_of` names the objects that the token is bound to; the authenticator reads them.
3. `confirmed` compares: a token is invalid once an object is gone or was replaced by another.

Tokens are JWTs, signed with RS256 or ES256.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.users import (
    CREDENTIAL_ID,
    NODE_NAME,
    NODE_UID,
    POD_NAME,
    POD_UID,
    User,
    service_account_groups,
    service_account_name,
)
from moorage.apiserver.errors import SigningKeyError
from moorage.kit.extras import optional_imports

with optional_imports():
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import (
        decode_dss_signature,
        encode_dss_signature,
    )

VERIFIED_TOKENS_MAX = 512  # whose signatures are not verified again
LEEWAY_S = 60  # clocks differ; deletions take their time
JWT_BYTES_MAX = 16 * 1024
RSA_BITS_MIN = 2048
_COORDINATE_BYTES = 32

_INVALIDATED = "service account token has been invalidated"

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class BoundReference(Struct, frozen=True, omit_defaults=True):
    """An object that a token is bound to."""

    name: str = ""
    uid: str = ""


class BoundObjects(Struct, frozen=True, omit_defaults=True):
    """The service account of a token, and the objects that the token is bound to."""

    namespace: str = ""
    serviceaccount: BoundReference = BoundReference()
    pod: BoundReference | None = None
    secret: BoundReference | None = None
    node: BoundReference | None = None
    warnafter: int | None = None


class TokenClaims(Struct, frozen=True, omit_defaults=True):
    """The claims of a token."""

    aud: tuple[str, ...] | str = ()
    exp: float = 0
    iat: float = 0
    iss: str = ""
    jti: str = ""
    bound: BoundObjects = msgspec.field(name="kubernetes.io", default=BoundObjects())
    nbf: float = 0
    sub: str = ""

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of the token."""
        return (self.aud,) if isinstance(self.aud, str) else self.aud


class TokenRefused(NamedTuple):
    """Why a token is invalid."""

    reason: str


class Lookup(NamedTuple):
    """The key of an object of the core group."""

    plural: str
    namespace: str
    name: str


class Issuer(NamedTuple):
    """The issuer of tokens, its keys, and the default audiences."""

    name: str
    keys: Sequence[VerifyingKey]
    audiences: tuple[str, ...]


def claims_of(
    token: str, issuer: Issuer, *, audiences: Sequence[str], now: Timestamp
) -> TokenClaims | TokenRefused | None:
    """Return the claims of a token; None if another issuer signed it."""
    try:
        claims = _signed_claims(token, issuer.name, tuple(issuer.keys))
    except _NotOursError:
        return None
    except msgspec.ValidationError:
        return TokenRefused("service account token claims could not be validated")
    if not set(audiences) & set(claims.audiences):
        shown = f"[{' '.join(claims.audiences)}]"
        return TokenRefused(
            f'token audiences ["{shown}"] is invalid for the target audiences '
            f"[{' '.join(audiences)}]"
        )
    return _timely(claims, now)


class _NotOursError(Exception):
    """A token that this issuer did not sign."""


# Programs send the same token for an hour, and verifying a signature costs more than most requests.
# Invalid tokens are not cached.
@lru_cache(maxsize=VERIFIED_TOKENS_MAX)
def _signed_claims(token: str, issuer: str, keys: tuple[VerifyingKey, ...]) -> TokenClaims:
    """Return the claims of an issuer's token, whatever its times and audiences."""
    payload = verified(token, keys)
    if payload is None or payload.get("iss") != issuer:
        raise _NotOursError
    return msgspec.convert(payload, TokenClaims)


def _timely(claims: TokenClaims, now: Timestamp) -> TokenClaims | TokenRefused:
    seconds = now.instant.timestamp()
    if not claims.exp or seconds - LEEWAY_S > claims.exp:
        return TokenRefused("service account token has expired")
    if claims.nbf and seconds + LEEWAY_S < claims.nbf:
        return TokenRefused("service account token is not valid yet")
    if claims.iat and seconds + LEEWAY_S < claims.iat:
        return TokenRefused("service account token is issued in the future")
    expected = service_account_name(claims.bound.namespace, claims.bound.serviceaccount.name)
    if claims.sub != expected:
        return TokenRefused("service account token subject does not match its claims")
    return claims


def lookups_of(claims: TokenClaims) -> dict[str, Lookup]:
    """Return the keys of the objects that a token is bound to."""
    bound = claims.bound
    found = {
        "serviceaccount": Lookup("serviceaccounts", bound.namespace, bound.serviceaccount.name)
    }
    if bound.secret is not None:
        found["secret"] = Lookup("secrets", bound.namespace, bound.secret.name)
    if bound.pod is not None:
        found["pod"] = Lookup("pods", bound.namespace, bound.pod.name)
    elif bound.node is not None:  # with a pod, the node is informative only
        found["node"] = Lookup("nodes", "", bound.node.name)
    return found


def confirmed(
    claims: TokenClaims, objects: Mapping[str, Any], now: Timestamp
) -> User | TokenRefused:
    """Return the user of a token, if all objects that it is bound to still exist."""
    bound = claims.bound
    for what in lookups_of(claims):
        reference: BoundReference = getattr(bound, what)
        if reason := _refuse_object(what, objects.get(what), reference, now):
            return TokenRefused(reason)
    account = bound.serviceaccount
    return User(
        service_account_name(bound.namespace, account.name),
        service_account_groups(bound.namespace),
        account.uid,
        _extra(claims),
    )


def _refuse_object(what: str, found: Any, wanted: BoundReference, now: Timestamp) -> str | None:
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
    if deleted is not None and deleted.after(LEEWAY_S) < now:
        return _INVALIDATED
    return None


def _extra(claims: TokenClaims) -> dict[str, tuple[str, ...]]:
    bound = claims.bound
    values = (
        (POD_NAME, bound.pod and bound.pod.name),
        (POD_UID, bound.pod and bound.pod.uid),
        (NODE_NAME, bound.node and bound.node.name),
        (NODE_UID, bound.node and bound.node.uid),
        (CREDENTIAL_ID, claims.jti and f"JTI={claims.jti}"),
    )
    return {key: (value,) for key, value in values if value}


# --- keys -----------------------------------------------------------------------------------------


class SigningKey:
    """A private key that signs tokens."""

    def __init__(self, key: PrivateKey) -> None:
        self._key = key
        self.public = VerifyingKey(key.public_key())

    @classmethod
    def from_pem(cls, pem: bytes) -> SigningKey:
        """Return the key of a PEM file, or raise SigningKeyError."""
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as error:
            raise SigningKeyError(f"not a private key: {error}") from None
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise SigningKeyError("tokens are signed with RSA or with ECDSA on P-256")
        return cls(key)

    def sign(self, payload: Mapping[str, Any]) -> str:
        """Return a signed token."""
        header = {"alg": self.public.algorithm, "kid": self.public.id}
        parts = (_encoded(msgspec.json.encode(part)) for part in (header, payload))
        text = ".".join(parts)
        return f"{text}.{_encoded(self._signature(text.encode()))}"

    def _signature(self, text: bytes) -> bytes:
        if isinstance(self._key, rsa.RSAPrivateKey):
            return self._key.sign(text, padding.PKCS1v15(), hashes.SHA256())
        r, s = decode_dss_signature(self._key.sign(text, ec.ECDSA(hashes.SHA256())))
        return b"".join(number.to_bytes(_COORDINATE_BYTES, "big") for number in (r, s))


class VerifyingKey:
    """A public key that verifies tokens."""

    def __init__(self, key: PublicKey) -> None:
        if isinstance(key, rsa.RSAPublicKey):
            if key.key_size < RSA_BITS_MIN:
                raise SigningKeyError(
                    f"an RSA key of {key.key_size} bits, {RSA_BITS_MIN} are needed"
                )
            self.algorithm = "RS256"
        else:
            if not isinstance(key.curve, ec.SECP256R1):
                raise SigningKeyError(f"a key on {key.curve.name}; P-256 is needed")
            self.algorithm = "ES256"
        self._key = key
        form = serialization.PublicFormat.SubjectPublicKeyInfo
        der = key.public_bytes(serialization.Encoding.DER, form)
        self.id = _encoded(hashlib.sha256(der).digest())

    def accepts(self, text: bytes, signature: bytes) -> bool:
        """Return whether this key has signed the text."""
        try:
            if isinstance(self._key, rsa.RSAPublicKey):
                self._key.verify(signature, text, padding.PKCS1v15(), hashes.SHA256())
            else:
                self._key.verify(_der(signature), text, ec.ECDSA(hashes.SHA256()))
        except (InvalidSignature, ValueError):
            return False
        return True


def verified(token: str, keys: Sequence[VerifyingKey]) -> Mapping[str, Any] | None:
    """Return the payload of a token if one of the keys has signed it.

    The key determines the algorithm, never the token.
    """
    if len(token) > JWT_BYTES_MAX or token.count(".") != 2 or not token.isascii():
        return None
    text, _, signature = token.rpartition(".")
    head, _, body = text.partition(".")
    try:
        header = msgspec.json.decode(_decoded(head), type=dict[str, Any])
        payload = msgspec.json.decode(_decoded(body), type=dict[str, Any])
        raw = _decoded(signature)
    except (msgspec.MsgspecError, binascii.Error, ValueError, RecursionError):
        return None
    for key in _candidates(header, keys):
        if key.accepts(text.encode(), raw):
            return payload
    return None


def _candidates(header: Mapping[str, Any], keys: Sequence[VerifyingKey]) -> list[VerifyingKey]:
    fitting = [key for key in keys if key.algorithm == header.get("alg")]
    named = [key for key in fitting if key.id == header.get("kid")]
    return named or fitting


def _der(signature: bytes) -> bytes:
    if len(signature) != 2 * _COORDINATE_BYTES:
        raise ValueError("not a signature on P-256")
    halves = signature[:_COORDINATE_BYTES], signature[_COORDINATE_BYTES:]
    r, s = (int.from_bytes(half, "big") for half in halves)
    return encode_dss_signature(r, s)


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decoded(text: str) -> bytes:
    if "=" in text:
        raise ValueError("padding is not allowed")
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
