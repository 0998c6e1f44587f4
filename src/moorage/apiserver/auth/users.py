"""Users, the names of users and groups that have a meaning, and static tokens.

`--token-auth-file` names a file with lines of token,user,uid[,"group1,group2"].
"""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Mapping
from typing import NamedTuple

from moorage.api import names
from moorage.apiserver.errors import TokenFileError

ANONYMOUS_NAME = "system:anonymous"
MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

NODES = "system:nodes"
NODE_PREFIX = "system:node:"

SERVICE_ACCOUNTS = "system:serviceaccounts"
SERVICE_ACCOUNT_PREFIX = "system:serviceaccount:"

BOOTSTRAPPERS = "system:bootstrappers"
BOOTSTRAP_PREFIX = "system:bootstrap:"

POD_NAME = "authentication.kubernetes.io/pod-name"
POD_UID = "authentication.kubernetes.io/pod-uid"
NODE_NAME = "authentication.kubernetes.io/node-name"
NODE_UID = "authentication.kubernetes.io/node-uid"
CREDENTIAL_ID = "authentication.kubernetes.io/credential-id"

TOKEN_FILE_BYTES_MAX = 1 << 20
TOKEN_COLUMNS_MIN = 3


class User(NamedTuple):
    """The user that sends a request."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}
    actor: User | None = None  # the user that impersonates this one


ANONYMOUS = User(ANONYMOUS_NAME, (UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))


class ServiceAccountKey(NamedTuple):
    """The namespace and name of a service account."""

    namespace: str
    name: str


def authenticated(user: User) -> User:
    """Return the user as a member of system:authenticated."""
    if (
        user.name == ANONYMOUS_NAME
        or AUTHENTICATED in user.groups
        or UNAUTHENTICATED in user.groups
    ):
        return user
    return user._replace(groups=(*user.groups, AUTHENTICATED))


def is_node(user: User) -> bool:
    """Return whether the user is a node, registered or not."""
    return user.name.startswith(NODE_PREFIX) and NODES in user.groups


def node_of(user: User) -> str:
    """Return the name of the node that a user is; "" if it is not a node."""
    return user.name.removeprefix(NODE_PREFIX) if is_node(user) else ""


def service_account_name(namespace: str, name: str) -> str:
    """Return the user name of a service account."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of all service accounts in a namespace."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def service_account_of(user_name: str) -> ServiceAccountKey | None:
    """Return the service account with a user name; None if it is not a service account."""
    rest = user_name.removeprefix(SERVICE_ACCOUNT_PREFIX)
    if rest == user_name:
        return None
    namespace, colon, name = rest.partition(":")
    if not colon or names.dns1123_label(namespace) or names.dns1123_subdomain(name):
        return None
    return ServiceAccountKey(namespace, name)


# --- static tokens --------------------------------------------------------------------------------


class StaticTokens(NamedTuple):
    """Users by the digests of their tokens."""

    users: Mapping[bytes, User]

    def find(self, token: str) -> User | None:
        """Return the user of a token.

        The digest is looked up, so that the time it takes reveals nothing about other tokens.
        """
        return self.users.get(_digest(token))


def read_tokens(text: str, *, source: str = "token file") -> StaticTokens:
    """Return the tokens of a file, or raise TokenFileError."""
    if len(text) > TOKEN_FILE_BYTES_MAX:
        raise TokenFileError(f"{source}: larger than {TOKEN_FILE_BYTES_MAX} bytes")
    users: dict[bytes, User] = {}
    reader = csv.reader(io.StringIO(text), skipinitialspace=True, strict=True)
    try:
        for row in reader:
            if row and not row[0].startswith("#"):
                token, user = _read_row(row, f"{source}, line {reader.line_num}")
                users[_digest(token)] = user
    except csv.Error as error:
        raise TokenFileError(f"{source}, line {reader.line_num}: {error}") from None
    return StaticTokens(users)


def _read_row(row: list[str], place: str) -> tuple[str, User]:
    if len(row) < TOKEN_COLUMNS_MIN:
        raise TokenFileError(f"{place}: token, user name and user uid are needed, found {len(row)}")
    token, name, uid = (cell.strip() for cell in row[:TOKEN_COLUMNS_MIN])
    if not token or not name:
        raise TokenFileError(f"{place}: the token and the user name may not be empty")
    groups = tuple(group.strip() for group in ",".join(row[TOKEN_COLUMNS_MIN:]).split(","))
    return token, User(name, tuple(group for group in groups if group), uid)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode()).digest()
