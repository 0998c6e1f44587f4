"""Who asks, and whether they may: the one seam between requests and whoever guards them.

    headers ─ authenticate ─ User ─ authorize, with what is asked ─ Decision

Certificates and roles are in mooring.apiserver.guarding. Here is what goes without them: one token,
whose bearer may do everything; others may ask for health and version, and nothing else.
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from typing import NamedTuple, Protocol

from mooring.apiserver.calls import User

MASTERS = "system:masters"
AUTHENTICATED = "system:authenticated"
UNAUTHENTICATED = "system:unauthenticated"

PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})


ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))
ADMIN = User("kubernetes-admin", (MASTERS, AUTHENTICATED))


class Attributes(NamedTuple):
    """What is asked for: something of a resource, or a path."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""  # if it is no resource
    fields: Mapping[str, str] = {}  # those that a field selector wants to have a value


class Decision(NamedTuple):
    """Whether it may be, and why."""

    is_allowed: bool
    reason: str = ""


class Sender(NamedTuple):
    """What is known of a client besides its headers by name."""

    certificate: bytes | None = None  # TLS has checked it
    headers: tuple[tuple[str, str], ...] = ()  # names in lower case, in order, with repetitions


NO_SENDER = Sender()


class Security(Protocol):
    """What a server asks of whoever guards it."""

    async def authenticate(
        self, headers: Mapping[str, str], sender: Sender = NO_SENDER
    ) -> User | None:
        """Return who sends these headers; None for credentials that are wrong."""

    async def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Return whether a user may do something."""


class AdminToken:
    """One token, and everything for who has it."""

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    async def authenticate(
        self,
        headers: Mapping[str, str],
        sender: Sender = NO_SENDER,  # noqa: ARG002
    ) -> User | None:
        """Return the administrator for the token, and nobody in particular without one."""
        text = headers.get("authorization", "")
        scheme, _, token = text.partition(" ")
        if not text or scheme.lower() != "bearer":
            return ANONYMOUS
        return ADMIN if hmac.compare_digest(token.strip().encode(), self._token) else None

    async def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Allow everything to administrators, and a look at health to everybody."""
        is_public = attributes.path in PUBLIC_PATHS and attributes.verb == "get"
        return Decision(MASTERS in user.groups or is_public)


class AllowAll:
    """Everything for everybody: for a server that only its own machine can reach."""

    async def authenticate(
        self,
        headers: Mapping[str, str],  # noqa: ARG002
        sender: Sender = NO_SENDER,  # noqa: ARG002
    ) -> User | None:
        """Return the administrator, whoever it is."""
        return ADMIN

    async def authorize(self, user: User, attributes: Attributes) -> Decision:  # noqa: ARG002
        """Allow it."""
        return Decision(is_allowed=True)


def refusal_of(user: User, attributes: Attributes) -> str:
    """Return why something is forbidden, as Kubernetes says it."""
    a = attributes
    if a.path:
        return f'User "{user.name}" cannot {a.verb} path "{a.path}"'
    resource = f"{a.resource}/{a.subresource}" if a.subresource else a.resource
    where = f'in the namespace "{a.namespace}"' if a.namespace else "at the cluster scope"
    return (
        f'User "{user.name}" cannot {a.verb} resource "{resource}" in API group "{a.group}" {where}'
    )
