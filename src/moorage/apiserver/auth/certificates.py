"""X.509 certificates: the authority, the server's own, and those of clients.

Keys are ECDSA on P-256. Nothing here reads the clock or a file; making a key uses randomness.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from moorage.api.timestamp import Timestamp
from moorage.apiserver.errors import CertificateError
from moorage.kit.extras import optional_imports

with optional_imports():
    from cryptography import x509
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_NAME = "moorage-ca"
AUTHORITY_LIFE = timedelta(days=3650)
LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=60)
BACKDATED = timedelta(minutes=5)  # clocks differ
NAME_BYTES_MAX = 64  # what a common name and an organization can hold

LOOPBACK_NAMES = (
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
LOOPBACK_ADDRESSES = ("127.0.0.1", "::1")


class Pair(NamedTuple):
    """A certificate and its key, both in PEM."""

    certificate: bytes
    key: bytes


def new_key() -> bytes:
    """Return a new private key in PEM."""
    return _key_pem(ec.generate_private_key(ec.SECP256R1()))


def authority_certificate(key_pem: bytes, now: Timestamp, *, name: str = AUTHORITY_NAME) -> Pair:
    """Return a self-signed authority.

    With key and name of an older one it replaces that: certificates that it signed stay valid.
    """
    key = _read_key(key_pem)
    subject = _name(name, ())
    builder = _builder(subject, subject, key.public_key(), now, AUTHORITY_LIFE)
    builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    builder = builder.add_extension(_usage(signs_certificates=True), critical=True)
    builder = builder.add_extension(
        x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False
    )
    return Pair(_pem(builder.sign(key, hashes.SHA256())), key_pem)


def server_certificate(
    authority: Pair, now: Timestamp, *, names: Sequence[str] = (), addresses: Sequence[str] = ()
) -> Pair:
    """Return a certificate of the server, for loopback and further names and addresses."""
    listed = _alternatives((*LOOPBACK_NAMES, *names), (*LOOPBACK_ADDRESSES, *addresses))
    return _signed(authority, _name("moorage", ()), ExtendedKeyUsageOID.SERVER_AUTH, now, listed)


def serving_certificate(
    authority: Pair, user: str, groups: Sequence[str], hosts: Sequence[str], now: Timestamp
) -> Pair:
    """Return a certificate of another server, for these names and addresses only."""
    addresses = [host for host in hosts if _is_address(host)]
    names = [host for host in hosts if host not in addresses]
    _check_names(user, *groups)
    listed = _alternatives(names, addresses)
    return _signed(authority, _name(user, groups), ExtendedKeyUsageOID.SERVER_AUTH, now, listed)


def client_certificate(
    authority: Pair, user: str, groups: Sequence[str], now: Timestamp, *, life: timedelta = LIFE
) -> Pair:
    """Return a client certificate of a user with groups."""
    _check_names(user, *groups)
    return _signed(authority, _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH, now, life=life)


def is_due(certificate: bytes, now: Timestamp) -> bool:
    """Return whether a certificate must be renewed: it expires soon, or cannot be read."""
    try:
        expiry = x509.load_pem_x509_certificate(certificate).not_valid_after_utc
    except ValueError:
        return True
    return expiry - now.instant < RENEW_BEFORE


def is_signed_by(certificate: bytes, authority: bytes) -> bool:
    """Return whether an authority has signed a certificate."""
    try:
        read = x509.load_pem_x509_certificate(certificate)
        read.verify_directly_issued_by(x509.load_pem_x509_certificate(authority))
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def names_of(certificate: bytes) -> frozenset[str]:
    """Return the names and addresses of a server certificate."""
    read = x509.load_pem_x509_certificate(certificate)
    try:
        found = read.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    addresses = (str(address) for address in found.get_values_for_type(x509.IPAddress))
    return frozenset((*found.get_values_for_type(x509.DNSName), *addresses))


def user_of(certificate: bytes) -> str:
    """Return the common name of a certificate; "" if it has none."""
    read = x509.load_pem_x509_certificate(certificate)
    named = read.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(named[0].value) if named else ""


def public_key_of(certificate: bytes) -> object:
    """Return the public key of a certificate."""
    return x509.load_pem_x509_certificate(certificate).public_key()


# --- builders-------------------------------------------------------------------------------------


def _check_names(*texts: str) -> None:
    for text in texts:
        if not 0 < len(text.encode()) <= NAME_BYTES_MAX:
            raise CertificateError(f"{text[:80]!r} must have 1 to {NAME_BYTES_MAX} bytes")


def _alternatives(names: Sequence[str], addresses: Sequence[str]) -> x509.SubjectAlternativeName:
    try:
        listed: list[x509.GeneralName] = [x509.DNSName(name) for name in dict.fromkeys(names)]
    except ValueError as error:
        raise CertificateError(f"names of a server: {error}") from None
    for address in dict.fromkeys(addresses):
        if not _is_address(address):
            raise CertificateError(f"{address!r} is not an IP address")
        listed.append(x509.IPAddress(ipaddress.ip_address(address)))
    return x509.SubjectAlternativeName(listed)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def _signed(
    authority: Pair,
    subject: x509.Name,
    purpose: x509.ObjectIdentifier,
    now: Timestamp,
    names: x509.SubjectAlternativeName | None = None,
    *,
    life: timedelta = LIFE,
) -> Pair:
    issuer = x509.load_pem_x509_certificate(authority.certificate)
    issuer_key = _read_key(authority.key)
    life = min(life, issuer.not_valid_after_utc - now.instant)
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(subject, issuer.subject, key.public_key(), now, life)
    builder = builder.add_extension(x509.BasicConstraints(ca=False, path_length=None), True)
    builder = builder.add_extension(_usage(signs_certificates=False), critical=True)
    builder = builder.add_extension(x509.ExtendedKeyUsage([purpose]), critical=False)
    identifier = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key.public_key())
    builder = builder.add_extension(identifier, critical=False)
    if names is not None:
        builder = builder.add_extension(names, critical=False)
    return Pair(_pem(builder.sign(issuer_key, hashes.SHA256())), _key_pem(key))


def _read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"not a private key: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("not an ECDSA key")
    return key


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    now: Timestamp,
    life: timedelta,
) -> x509.CertificateBuilder:
    start: datetime = now.truncated().instant
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(start - BACKDATED)
        .not_valid_after(start + life)
    )


def _name(common_name: str, organizations: Sequence[str]) -> x509.Name:
    listed = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, name) for name in organizations]
    return x509.Name([*listed, x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )
