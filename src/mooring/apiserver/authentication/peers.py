"""Users by their certificates: the common name is the user, organizations are its groups.

TLS has checked that the certificate is signed by our authority. It does not look at the time, so
that one that has expired can be told apart from none.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from functools import lru_cache

from mooring.api.timestamp import Timestamp
from mooring.apiserver.authentication.users import CREDENTIAL_ID
from mooring.apiserver.calls import User
from mooring.kit.extras import optional_imports

with optional_imports():
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

BYTES_MAX = 16 * 1024


def is_valid_at(certificate: bytes, now: Timestamp) -> bool:
    """Return whether a DER certificate is valid at a time; one that cannot be read is not."""
    try:
        begin, end = _validity(certificate)
    except ValueError:
        return False
    return begin <= now.instant <= end


@lru_cache(maxsize=1024)
def _validity(certificate: bytes) -> tuple[datetime, datetime]:
    read = x509.load_der_x509_certificate(certificate)
    return read.not_valid_before_utc, read.not_valid_after_utc


def user_of(certificate: bytes) -> User | None:
    """Return the user that a DER certificate names; None if it is for something else."""
    return None if len(certificate) > BYTES_MAX else _read(certificate)


@lru_cache(maxsize=256)  # a client shows one certificate for all that it asks
def _read(certificate: bytes) -> User | None:
    try:
        read = x509.load_der_x509_certificate(certificate)
        subject, is_client = read.subject, _is_for_clients(read)
        names = [_text(name) for name in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
        oid = NameOID.ORGANIZATION_NAME
        groups = tuple(_text(name) for name in subject.get_attributes_for_oid(oid))
    except ValueError:
        return None
    if not is_client or not names or not names[-1]:
        return None
    digest = hashlib.sha256(certificate).hexdigest()
    return User(names[-1], groups, extra={CREDENTIAL_ID: (f"X509SHA256={digest}",)})


def _is_for_clients(certificate: x509.Certificate) -> bool:
    try:
        usage = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    except x509.ExtensionNotFound:
        return False
    wanted = (ExtendedKeyUsageOID.CLIENT_AUTH, ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE)
    return any(oid in usage for oid in wanted)


def _text(name: x509.NameAttribute[str | bytes]) -> str:
    value = name.value
    return value if isinstance(value, str) else value.decode("latin-1")
