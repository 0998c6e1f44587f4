"""Authentication and authorization of requests: the seam between the router and RBAC.

    headers, certificate ─ authenticate ─ User ─ authorizer.authorize(access) ─ Decision

    AlwaysAllow         everybody is the administrator: for servers that only this machine reaches
    AdminToken          one bearer token for the administrator; others may read health and version
    RBACAccessControl   certificates and tokens, impersonation; then the authorizers of
                        `ClusterAuthorizer`: system:masters, node authorizer, RBAC

`ClusterAuthorizer` caches what its authorizers need: roles, bindings, pods and slices. An informer
feeds it, so it may be a moment old, as in Kubernetes.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from moorage.api.core import PersistentVolume, Pod
from moorage.api.gates import Gates
from moorage.api.meta import ObjectMeta
from moorage.api.rbac import GROUP, ClusterRole, ClusterRoleBinding, Role, RoleBinding
from moorage.api.resource.v1 import GROUP as RESOURCE_GROUP
from moorage.api.resource.v1 import ResourceSlice
from moorage.apiserver.auth.access import (
    Access,
    Allowed,
    Authorizer,
    ClaimStatusAuthorizer,
    Decision,
    NoOpinion,
    PathAccess,
    PrivilegedGroup,
    UnionAuthorizer,
)
from moorage.apiserver.auth.authenticator import (
    INVALID_TOKEN,
    Authenticator,
    ObjectReader,
    TokenUser,
    impersonated,
)
from moorage.apiserver.auth.bootstrap_policy import node_rules
from moorage.apiserver.auth.node_authorizer import NodeAuthorizer, NodeGraph
from moorage.apiserver.auth.policy_rules import EVERYTHING
from moorage.apiserver.auth.rbac import HeldRules, RBACPolicy
from moorage.apiserver.auth.service_account_tokens import Lookup, TokenRefused
from moorage.apiserver.auth.users import ADMIN, ANONYMOUS, MASTERS, User
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.storage.informer import StoreInformer

if TYPE_CHECKING:
    from moorage.apiserver.server_context import ServerContext

PUBLIC_PATHS = frozenset({"/healthz", "/livez", "/readyz", "/version"})

WATCHED_RESOURCES: Final = (
    (GROUP, "clusterroles"),
    (GROUP, "clusterrolebindings"),
    (GROUP, "roles"),
    (GROUP, "rolebindings"),
    ("", "pods"),
    ("", "persistentvolumes"),
    (RESOURCE_GROUP, "resourceslices"),
)


class Sender(NamedTuple):
    """The client of a request: its certificate, and its headers with repeated ones."""

    certificate: bytes | None = None  # verified by TLS
    headers: tuple[tuple[str, str], ...] = ()  # names in lower case, in order, with repetitions


NO_SENDER = Sender()


class AccessControl(Protocol):
    """Authenticates and authorizes requests, and answers reviews about both."""

    @property
    def authorizer(self) -> Authorizer:
        """Decides what users may do."""

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of tokens that name none."""

    async def authenticate(
        self, headers: Mapping[str, str], sender: Sender = NO_SENDER
    ) -> User | None:
        """Return the user that sends a request; None for invalid credentials."""

    async def token_user(self, token: str, audiences: Sequence[str]) -> TokenUser | TokenRefused:
        """Return the user of a token, if it is for one of the audiences."""

    def held(self, user: User, namespace: str) -> HeldRules:
        """Return the rules that a user has in a namespace."""


class AlwaysAllow:
    """Allows everything to everybody."""

    audiences: tuple[str, ...] = ()

    @property
    def authorizer(self) -> Authorizer:
        """This object."""
        return self

    def authorize(self, access: Access) -> Decision:  # noqa: ARG002
        """Allow the request."""
        return Allowed()

    async def authenticate(
        self,
        headers: Mapping[str, str],  # noqa: ARG002
        sender: Sender = NO_SENDER,  # noqa: ARG002
    ) -> User | None:
        """Return the administrator, whoever sends the request."""
        return ADMIN

    async def token_user(self, token: str, audiences: Sequence[str]) -> TokenUser | TokenRefused:  # noqa: ARG002
        """Return the administrator."""
        return TokenUser(ADMIN)

    def held(self, user: User, namespace: str) -> HeldRules:  # noqa: ARG002
        """Return all rules."""
        return HeldRules(EVERYTHING)


class AdminToken:
    """Allows everything to the bearer of one token, and public paths to everybody."""

    audiences: tuple[str, ...] = ()

    def __init__(self, token: str) -> None:
        self._token = token.encode()

    @property
    def authorizer(self) -> Authorizer:
        """This object."""
        return self

    def authorize(self, access: Access) -> Decision:
        """Allow everything to the administrator, and public paths to everybody."""
        is_public = (
            isinstance(access, PathAccess) and access.path in PUBLIC_PATHS and access.verb == "get"
        )
        return Allowed() if is_public or MASTERS in access.user.groups else NoOpinion()

    async def authenticate(
        self,
        headers: Mapping[str, str],
        sender: Sender = NO_SENDER,  # noqa: ARG002
    ) -> User | None:
        """Return the administrator for the token, and the anonymous user without one."""
        text = headers.get("authorization", "")
        scheme, _, token = text.partition(" ")
        if not text or scheme.lower() != "bearer":
            return ANONYMOUS
        return ADMIN if self._is_admin(token) else None

    async def token_user(self, token: str, audiences: Sequence[str]) -> TokenUser | TokenRefused:  # noqa: ARG002
        """Return the administrator for the token."""
        return TokenUser(ADMIN) if self._is_admin(token) else TokenRefused(INVALID_TOKEN)

    def held(self, user: User, namespace: str) -> HeldRules:  # noqa: ARG002
        """Return all rules for the administrator, and none for others."""
        return HeldRules(EVERYTHING if MASTERS in user.groups else ())

    def _is_admin(self, token: str) -> bool:
        return hmac.compare_digest(token.strip().encode(), self._token)


class ClusterAuthorizer:
    """The authorizers of a cluster, and the cache of objects that they decide by."""

    def __init__(self, gates: Gates, objects: Iterable[Any] = ()) -> None:
        self.policy = RBACPolicy()
        self._graph = NodeGraph()
        nodes = NodeAuthorizer(self._graph, node_rules(gates))
        self.authorizer: Authorizer = UnionAuthorizer(PrivilegedGroup(), nodes, self.policy)
        for value in objects:
            self.on_update(value)

    def on_update(self, value: Any) -> None:
        """Cache an object, new or changed."""
        match value:
            case Role() | ClusterRole() | RoleBinding() | ClusterRoleBinding():
                self.policy.put(value)
            case Pod():
                self._graph.put_pod(value)
            case ResourceSlice():
                self._graph.put_slice(value)
            case PersistentVolume():
                self._graph.put_volume(value)

    def on_delete(self, value: Any) -> None:
        """Remove an object from the cache."""
        match value:
            case Role() | ClusterRole() | RoleBinding() | ClusterRoleBinding():
                self.policy.remove(value)
            case Pod():
                self._graph.remove_pod(value.metadata.namespace, value.metadata.name)
            case ResourceSlice():
                self._graph.remove_slice(value.metadata.name)
            case PersistentVolume():
                self._graph.remove_volume(value.metadata.name)

    def claim_status(self, user: User, *, verb: str, namespace: str) -> ClaimStatusAuthorizer:
        """Return the authorizer for the status of claims that a user writes."""
        return ClaimStatusAuthorizer(self.authorizer, user, verb=verb, namespace=namespace)


class AuthorizerInformer(StoreInformer):
    """Keeps the cache of a ClusterAuthorizer up to date while it runs."""

    def __init__(self, server: ServerContext, authorizer: ClusterAuthorizer) -> None:
        resources = [server.resources.of(group, plural) for group, plural in WATCHED_RESOURCES]
        super().__init__(server.registry, resources, authorizer, remembered=_trimmed)


def _trimmed(value: Any) -> Any:
    """Return what `remove` needs of an object: pods, slices and volumes are many and large."""
    if not isinstance(value, PersistentVolume | Pod | ResourceSlice):
        return value
    metadata = ObjectMeta(name=value.metadata.name, namespace=value.metadata.namespace)
    return type(value)(metadata=metadata)


class RBACAccessControl:
    """Authenticates by certificate and token, and authorizes by RBAC and the node authorizer."""

    def __init__(self, authorizer: ClusterAuthorizer, authenticator: Authenticator) -> None:
        self._authorizer = authorizer
        self._authenticator = authenticator

    @property
    def authorizer(self) -> Authorizer:
        """The union of all authorizers."""
        return self._authorizer.authorizer

    @property
    def audiences(self) -> tuple[str, ...]:
        """The audiences of the token issuer."""
        return self._authenticator.audiences

    async def authenticate(
        self, headers: Mapping[str, str], sender: Sender = NO_SENDER
    ) -> User | None:
        """Return the sender of a request, or the user that it impersonates."""
        try:
            user = await self._authenticator.user(
                certificate=sender.certificate, authorization=headers.get("authorization")
            )
        except StatusError:
            return None
        listed = sender.headers or tuple(headers.items())
        acting = impersonated(user, listed, self.authorizer)
        return user if acting is user else acting._replace(actor=user)

    async def token_user(self, token: str, audiences: Sequence[str]) -> TokenUser | TokenRefused:
        """Return the user of a token, if it is for one of the audiences."""
        return await self._authenticator.token_user(token, audiences)

    def held(self, user: User, namespace: str) -> HeldRules:
        """Return the rules that roles grant a user."""
        return self._authorizer.policy.held(user, namespace)


def core_object_reader(server: ServerContext) -> ObjectReader:
    """Return a reader of core objects for an authenticator."""

    async def read(lookup: Lookup) -> Any | None:
        resource = server.resources.of("", lookup.plural)
        return await server.registry.find(resource, lookup.namespace, lookup.name)

    return read
