"""Authentication: the user of a request, by certificate, by bearer token, or anonymous.

    certificate ─► certificate_user ────┐
    static token, bootstrap token ──────┼─► User ─ Impersonate-… headers ─► impersonated User
    service account token ──────────────┘

A client certificate goes first. A bearer token must be valid: an invalid one is an error, not the
anonymous user.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from msgspec import Struct

from moorage.api.authentication import GROUP
from moorage.api.core import Secret
from moorage.api.errors import ApiError
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.access import Authorizer, ResourceAccess, require
from moorage.apiserver.auth.service_account_tokens import (
    Issuer,
    Lookup,
    TokenClaims,
    TokenRefused,
    claims_of,
    confirmed,
    lookups_of,
)
from moorage.apiserver.auth.users import (
    ANONYMOUS,
    ANONYMOUS_NAME,
    AUTHENTICATED,
    BOOTSTRAP_PREFIX,
    BOOTSTRAPPERS,
    CREDENTIAL_ID,
    UNAUTHENTICATED,
    StaticTokens,
    User,
    authenticated,
    service_account_groups,
    service_account_of,
)
from moorage.apiserver.http.status import bad_request, unauthorized
from moorage.kit.extras import optional_imports

with optional_imports():
    from cryptography import x509
    from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

TOKEN_BYTES_MAX = 16 * 1024
CERTIFICATE_BYTES_MAX = 16 * 1024
INVALID_TOKEN = "invalid bearer token"  # noqa: S105  # a message

BOOTSTRAP_NAMESPACE = "kube-system"
BOOTSTRAP_SECRET_PREFIX = "bootstrap-token-"  # noqa: S105  # a name
BOOTSTRAP_SECRET_TYPE = "bootstrap.kubernetes.io/token"  # noqa: S105  # a type

_BOOTSTRAP_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_BOOTSTRAP_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)

ObjectReader = Callable[[Lookup], Awaitable[Any | None]]  # reads an object of the core group


class TokenUser(NamedTuple):
    """The user of a valid token, and the audiences of the token."""

    user: User
    audiences: tuple[str, ...] = ()


class Authenticator(Struct, frozen=True):
    """Authenticates requests by all means that are configured."""

    issuer: Issuer
    find: ObjectReader
    now: Callable[[], Timestamp]
    static: StaticTokens = StaticTokens({})

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of tokens that name none."""
        return self.issuer.audiences

    async def user(self, *, certificate: bytes | None, authorization: str | None) -> User:
        """Return the user that sends a request, or raise 401 Unauthorized."""
        if certificate is not None:
            known = _authenticated_by(certificate)
            if known is not None:
                if not is_certificate_valid(certificate, self.now()):
                    raise unauthorized()
                return known
        token = bearer_token(authorization)
        if token is None:
            return ANONYMOUS
        found = await self.token_user(token, self.issuer.audiences)
        if isinstance(found, TokenRefused):
            raise unauthorized()
        return found.user

    async def token_user(self, token: str, audiences: Sequence[str]) -> TokenUser | TokenRefused:
        """Return the user of a token, if it is for one of the audiences."""
        if not token or len(token) > TOKEN_BYTES_MAX:
            return TokenRefused(INVALID_TOKEN)
        own = tuple(a for a in self.issuer.audiences if a in audiences)
        if own:
            user = self.static.find(token) or await self._bootstrap_user(token)
            if user is not None:
                return TokenUser(authenticated(user), own)
        return await self._account_user(token, audiences)

    async def _bootstrap_user(self, token: str) -> User | None:
        name = bootstrap_secret_name(token)
        if name is None:
            return None
        secret = await self.find(Lookup("secrets", BOOTSTRAP_NAMESPACE, name))
        return None if secret is None else bootstrap_token_user(token, secret, self.now())

    async def _account_user(self, token: str, audiences: Sequence[str]) -> TokenUser | TokenRefused:
        now = self.now()
        claims = claims_of(token, self.issuer, audiences=audiences, now=now)
        if not isinstance(claims, TokenClaims):
            return claims or TokenRefused(INVALID_TOKEN)
        objects = {what: await self.find(where) for what, where in lookups_of(claims).items()}
        user = confirmed(claims, objects, now)
        if isinstance(user, TokenRefused):
            return user
        accepted = tuple(a for a in claims.audiences if a in audiences)
        return TokenUser(authenticated(user), accepted)


def bearer_token(authorization: str | None) -> str | None:
    """Return the bearer token of an Authorization header, if it has one."""
    if authorization is None:
        return None
    kind, _, token = authorization.strip().partition(" ")
    token = token.strip()
    return token if kind.lower() == "bearer" and token else None


# --- client certificates --------------------------------------------------------------------------
#
# TLS has verified that our authority signed the certificate. It ignores the validity period, so
# that an expired certificate is refused and not mistaken for none. The common name is the user, the
# organizations are its groups.


def is_certificate_valid(certificate: bytes, now: Timestamp) -> bool:
    """Return whether a time is in the validity period of a DER certificate."""
    try:
        begin, end = _validity(certificate)
    except ValueError:
        return False
    return begin <= now.instant <= end


@lru_cache(maxsize=1024)
def _validity(certificate: bytes) -> tuple[datetime, datetime]:
    read = x509.load_der_x509_certificate(certificate)
    return read.not_valid_before_utc, read.not_valid_after_utc


def _authenticated_by(certificate: bytes) -> User | None:
    """Return the user of a certificate as a member of system:authenticated."""
    return None if len(certificate) > CERTIFICATE_BYTES_MAX else _authenticated(certificate)


@lru_cache(maxsize=256)
def _authenticated(certificate: bytes) -> User | None:
    user = _read(certificate)
    return None if user is None else authenticated(user)


def certificate_user(certificate: bytes) -> User | None:
    """Return the user of a DER client certificate; None for other certificates."""
    return None if len(certificate) > CERTIFICATE_BYTES_MAX else _read(certificate)


@lru_cache(maxsize=256)  # a client uses one certificate for all requests
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


# --- bootstrap tokens -----------------------------------------------------------------------------
#
# New nodes join with ID.SECRET; the token is kept in a secret of kube-system.


def bootstrap_secret_name(token: str) -> str | None:
    """Return the name of a bootstrap token's secret; None for other tokens."""
    match = _BOOTSTRAP_TOKEN.fullmatch(token)
    return f"{BOOTSTRAP_SECRET_PREFIX}{match[1]}" if match else None


def bootstrap_token_user(token: str, secret: Secret, now: Timestamp) -> User | None:
    """Return the user of a bootstrap token that its secret confirms and that has not expired."""
    match = _BOOTSTRAP_TOKEN.fullmatch(token)
    if (
        match is None
        or secret.metadata.deletion_timestamp is not None
        or secret.type != BOOTSTRAP_SECRET_TYPE
    ):
        return None
    data = {key: _decoded(value) for key, value in secret.data.items()}
    if not hmac.compare_digest(data.get("token-secret", "").encode(), match[2].encode()):
        return None
    is_usable = (
        data.get("token-id") == match[1]
        and data.get("usage-bootstrap-authentication") == "true"
        and not _has_expired(data.get("expiration", ""), now)
    )
    groups = _groups(data.get("auth-extra-groups", ""))
    if not is_usable or groups is None:
        return None
    return User(f"{BOOTSTRAP_PREFIX}{match[1]}", groups)


def _decoded(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


def _has_expired(text: str, now: Timestamp) -> bool:
    """Return whether an expiration is over; an unreadable one is."""
    if not text:
        return False
    try:
        return not now < Timestamp.parse(text)
    except ApiError:
        return True


def _groups(text: str) -> tuple[str, ...] | None:
    """Return the groups of a token; None if it names a group outside system:bootstrappers."""
    found = {BOOTSTRAPPERS}
    for group in filter(None, text.split(",")):
        if not _BOOTSTRAP_GROUP.fullmatch(group):
            return None
        found.add(group)
    return tuple(sorted(found))


# --- impersonation --------------------------------------------------------------------------------

ImpersonationHeaders = Sequence[tuple[str, str]]  # names in lower case, in the order of the request

IMPERSONATE = "impersonate-"
IMPERSONATE_EXTRA = "impersonate-extra-"
IMPERSONATED_VALUES_MAX = 256

_ESCAPES = re.compile(rb"%([0-9a-f]{2})")


class Impersonation(NamedTuple):
    """The user that the Impersonate-… headers of a request name."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: tuple[tuple[str, str], ...] = ()


def impersonation_of(headers: ImpersonationHeaders) -> Impersonation | None:
    """Return whom the headers name, if anybody; raise if they name groups or extras but no user."""
    headers = tuple(header for header in headers if header[0].startswith(IMPERSONATE))
    if not headers:
        return None
    name = next((value for key, value in headers if key == f"{IMPERSONATE}user"), "")
    groups = tuple(value for key, value in headers if key == f"{IMPERSONATE}group")
    uid = next((value for key, value in headers if key == f"{IMPERSONATE}uid"), "")
    extra = tuple(
        (_unescaped(key.removeprefix(IMPERSONATE_EXTRA).lower()), value)
        for key, value in headers
        if key.startswith(IMPERSONATE_EXTRA)
    )
    if len(groups) + len(extra) > IMPERSONATED_VALUES_MAX:
        raise bad_request(
            f"more than {IMPERSONATED_VALUES_MAX} groups and extra values to impersonate"
        )
    if not name:
        if groups or uid or extra:
            parts = [("Group", groups), ("UserExtra", extra), ("UID", (uid,) if uid else ())]
            asked = " ".join(kind for kind, values in parts if values)
            raise bad_request(f"requested [{asked}] without impersonating a user")
        return None
    return Impersonation(name, groups, uid, extra)


def accesses(user: User, impersonation: Impersonation) -> list[ResourceAccess]:
    """Return the accesses that a user needs for an impersonation."""
    account = service_account_of(impersonation.name)
    if account is None:
        found = [ResourceAccess(user, "impersonate", "", "users", name=impersonation.name)]
    else:
        found = [
            ResourceAccess(
                user,
                "impersonate",
                "",
                "serviceaccounts",
                namespace=account.namespace,
                name=account.name,
            )
        ]
    found += [
        ResourceAccess(user, "impersonate", "", "groups", name=g) for g in impersonation.groups
    ]
    found += [
        ResourceAccess(user, "impersonate", GROUP, "userextras", key, name=value)
        for key, value in impersonation.extra
    ]
    if impersonation.uid:
        found.append(ResourceAccess(user, "impersonate", GROUP, "uids", name=impersonation.uid))
    return found


def impersonated(user: User, headers: ImpersonationHeaders, authorizer: Authorizer) -> User:
    """Return the user that a request acts as, or raise 403 Forbidden."""
    impersonation = impersonation_of(headers)
    if impersonation is None:
        return user
    for access in accesses(user, impersonation):
        require(authorizer, access)
    return _acting(impersonation)


def _acting(impersonation: Impersonation) -> User:
    groups = impersonation.groups
    account = service_account_of(impersonation.name)
    if account is not None and not groups:
        groups = service_account_groups(account.namespace)
    if impersonation.name == ANONYMOUS_NAME:
        if UNAUTHENTICATED not in groups:
            groups = (*groups, UNAUTHENTICATED)
    elif AUTHENTICATED not in groups and UNAUTHENTICATED not in groups:
        groups = (*groups, AUTHENTICATED)
    extra: dict[str, tuple[str, ...]] = {}
    for key, value in impersonation.extra:
        extra[key] = (*extra.get(key, ()), value)
    return User(impersonation.name, groups, impersonation.uid, extra)


def _unescaped(key: str) -> str:
    """Return a key with its %-escapes decoded; a malformed key stays as it is."""
    if "%" in re.sub("%[0-9a-f]{2}", "", key):
        return key
    data = _ESCAPES.sub(lambda match: bytes([int(match[1], 16)]), key.encode())
    return data.decode(errors="replace")
