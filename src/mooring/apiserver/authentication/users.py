"""The names of users and groups that mean something."""

from __future__ import annotations

from typing import NamedTuple

from mooring.api import names
from mooring.apiserver.calls import User

ANONYMOUS = "system:anonymous"
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

NOBODY = User(ANONYMOUS, (UNAUTHENTICATED,))


class ServiceAccountKey(NamedTuple):
    """Where a service account is."""

    namespace: str
    name: str


def authenticated(user: User) -> User:
    """Return the user as a member of all who are known."""
    if user.name == ANONYMOUS or AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return user._replace(groups=(*user.groups, AUTHENTICATED))


def is_node(user: User) -> bool:
    """Return whether the user is a node, known or not."""
    return user.name.startswith(NODE_PREFIX) and NODES in user.groups


def node_of(user: User) -> str:
    """Return the node that a user is; "" if it is none."""
    return user.name.removeprefix(NODE_PREFIX) if is_node(user) else ""


def service_account_name(namespace: str, name: str) -> str:
    """Return the name of a service account as a user."""
    return f"{SERVICE_ACCOUNT_PREFIX}{namespace}:{name}"


def service_account_groups(namespace: str) -> tuple[str, ...]:
    """Return the groups of all service accounts of a namespace."""
    return SERVICE_ACCOUNTS, f"{SERVICE_ACCOUNTS}:{namespace}"


def service_account_of(user_name: str) -> ServiceAccountKey | None:
    """Return the service account that a user is; None if it is none."""
    rest = user_name.removeprefix(SERVICE_ACCOUNT_PREFIX)
    if rest == user_name:
        return None
    namespace, colon, name = rest.partition(":")
    if not colon or names.dns1123_label(namespace) or names.dns1123_subdomain(name):
        return None
    return ServiceAccountKey(namespace, name)
