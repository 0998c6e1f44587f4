"""Keys that sign tokens, and signed tokens (JWT) with RS256 or ES256."""

from __future__ import annotations

import base64
import binascii
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from mooring.kit.extras import optional_imports

with optional_imports():
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
    from cryptography.hazmat.primitives.asymmetric.utils import (
        decode_dss_signature,
        encode_dss_signature,
    )

BYTES_MAX = 16 * 1024
RSA_BITS_MIN = 2048
_COORDINATE_BYTES = 32

PublicKey = rsa.RSAPublicKey | ec.EllipticCurvePublicKey
PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class SigningKeyError(Exception):
    """A key that cannot be used; the text says why."""


class Signed(NamedTuple):
    """What a token says, signed by a key of ours."""

    payload: Mapping[str, Any]


class SigningKey:
    """A private key that signs tokens."""

    def __init__(self, key: PrivateKey) -> None:
        self._key = key
        self.public = VerifyingKey(key.public_key())

    @classmethod
    def from_pem(cls, pem: bytes) -> SigningKey:
        """Return the key of a PEM file."""
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError) as error:
            raise SigningKeyError(f"not a private key: {error}") from None
        if not isinstance(key, rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey):
            raise SigningKeyError("tokens are signed with RSA or with ECDSA on P-256")
        return cls(key)

    def sign(self, payload: Mapping[str, Any]) -> str:
        """Return a token."""
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
    """A public key that tokens are checked with."""

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
        """Return whether the signature is of this key and text."""
        try:
            if isinstance(self._key, rsa.RSAPublicKey):
                self._key.verify(signature, text, padding.PKCS1v15(), hashes.SHA256())
            else:
                self._key.verify(_der(signature), text, ec.ECDSA(hashes.SHA256()))
        except (InvalidSignature, ValueError):
            return False
        return True


def looks_signed(token: str) -> bool:
    """Return whether a token has the three parts of a signed one."""
    return token.count(".") == 2


def verified(token: str, keys: Sequence[VerifyingKey]) -> Signed | None:
    """Return what a token says if one of the keys has signed it.

    The algorithm is that of the key, never what the token asks for.
    """
    if len(token) > BYTES_MAX or not looks_signed(token) or not token.isascii():
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
            return Signed(payload)
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
