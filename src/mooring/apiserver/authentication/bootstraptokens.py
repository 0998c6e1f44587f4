"""Tokens with which new nodes introduce themselves: ID.SECRET, kept in secrets of kube-system."""

from __future__ import annotations

import base64
import binascii
import hmac
import re

from mooring.api.core import Secret
from mooring.api.errors import ApiError
from mooring.api.timestamp import Timestamp
from mooring.apiserver.authentication.users import BOOTSTRAP_PREFIX, BOOTSTRAPPERS
from mooring.apiserver.calls import User

NAMESPACE = "kube-system"
SECRET_PREFIX = "bootstrap-token-"  # noqa: S105 - a name, not a password
TYPE = "bootstrap.kubernetes.io/token"

_TOKEN = re.compile(r"([a-z0-9]{6})\.([a-z0-9]{16})", re.ASCII)
_GROUP = re.compile(r"system:bootstrappers:[a-z0-9:-]{0,255}[a-z0-9]", re.ASCII)


def secret_name(token: str) -> str | None:
    """Return the name of the secret that a token of this form is kept in; None for other forms."""
    match = _TOKEN.fullmatch(token)
    return f"{SECRET_PREFIX}{match[1]}" if match else None


def user_of(token: str, secret: Secret, now: Timestamp) -> User | None:
    """Return whose token it is, if the secret keeps it and it may still be used."""
    match = _TOKEN.fullmatch(token)
    if match is None or secret.metadata.deletion_timestamp is not None or secret.type != TYPE:
        return None
    data = {key: _text(value) for key, value in secret.data.items()}
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


def _text(value: str) -> str:
    try:
        return base64.b64decode(value, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError, ValueError):
        return ""


def _has_expired(text: str, now: Timestamp) -> bool:
    """Return whether the time has come; a time that cannot be read has."""
    if not text:
        return False
    try:
        return not now < Timestamp.parse(text)
    except ApiError:
        return True


def _groups(text: str) -> tuple[str, ...] | None:
    """Return the groups of a token; None if one is not of those that such tokens may have."""
    found = {BOOTSTRAPPERS}
    for group in filter(None, text.split(",")):
        if not _GROUP.fullmatch(group):
            return None
        found.add(group)
    return tuple(sorted(found))
