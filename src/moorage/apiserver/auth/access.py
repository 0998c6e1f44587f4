"""Access: what a user wants to do, and the contract of authorizers.

    RequestAttributes ─ access_of(user, …) ─ ResourceAccess | PathAccess ─ Authorizer ─ Decision

Authorizers allow a request or have no opinion; a request that no authorizer allows is forbidden.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, Protocol

from msgspec import Struct

from moorage.api.names import dns1123_subdomain
from moorage.api.resource.v1 import GROUP as RESOURCE_GROUP
from moorage.apiserver.auth.users import MASTERS, NODE_NAME, User, service_account_of
from moorage.apiserver.http.messages import Target
from moorage.apiserver.http.status import About, StatusError, forbidden
from moorage.apiserver.verbs.selectors import required_fields
from moorage.kit.go_quote import go_quote
from moorage.validation.strategy import DriverRefusal

CLAIMS = "resourceclaims"
ASSOCIATED, ARBITRARY = "associated-node:", "arbitrary-node:"

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class RequestAttributes(NamedTuple):
    """The verb of a request, and the resource or the path that it is about."""

    verb: str
    group: str = ""
    version: str = ""
    resource: str = ""
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""  # of a non-resource request
    fields: Mapping[str, str] = {}  # values that a field selector requires


def attributes_of(verb: str, target: Target, query: Mapping[str, str]) -> RequestAttributes:
    """Return the attributes of a request; a field selector may name the object of a list."""
    group, version, resource, namespace, name, subresource = target
    found = RequestAttributes(verb, group, version, resource, subresource, namespace, name)
    if verb not in ("list", "watch", "deletecollection"):
        return found
    fields = required_fields(query.get("fieldSelector", ""))
    return found._replace(name=name or fields.get("metadata.name", ""), fields=fields)


class ResourceAccess(Struct, frozen=True):
    """A user's verb on a resource, an object or a subresource."""

    user: User
    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: Mapping[str, str] = {}  # values that a field selector requires

    @property
    def combined(self) -> str:
        """The resource with its subresource, as policy rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class PathAccess(NamedTuple):
    """A user's verb on a non-resource path."""

    user: User
    verb: str
    path: str


Access = ResourceAccess | PathAccess


def access_of(user: User, attributes: RequestAttributes) -> Access:
    """Return the access that a user's request needs."""
    verb, group, _, resource, subresource, namespace, name, path, fields = attributes
    if path:
        return PathAccess(user, verb, path)
    return ResourceAccess(user, verb, group, resource, subresource, namespace, name, fields)


# --- authorizers ----------------------------------------------------------------------------------


class Allowed(NamedTuple):
    """An authorizer allows the request."""

    reason: str = ""


class NoOpinion(NamedTuple):
    """An authorizer neither allows nor denies the request."""

    reason: str = ""


Decision = Allowed | NoOpinion
_ALLOWED, _NO_OPINION = Allowed(), NoOpinion()


class Authorizer(Protocol):
    """Decides who may do what."""

    def authorize(self, access: Access) -> Decision:
        """Return the decision on an access."""
        ...


class UnionAuthorizer:
    """Asks authorizers in order; the first that allows the request decides."""

    def __init__(self, *authorizers: Authorizer) -> None:
        self._authorizers = authorizers

    def authorize(self, access: Access) -> Decision:
        """Return the first Allowed, or no opinion with the reasons of all authorizers."""
        reasons = []
        for authorizer in self._authorizers:
            decision = authorizer.authorize(access)
            if isinstance(decision, Allowed):
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return NoOpinion("\n".join(reasons))


class PrivilegedGroup:
    """Allows everything to members of system:masters, whatever roles are stored."""

    def authorize(self, access: Access) -> Decision:
        """Return whether the user is a member."""
        return _ALLOWED if MASTERS in access.user.groups else _NO_OPINION


# --- messages -------------------------------------------------------------------------------------


def require(authorizer: Authorizer, access: Access) -> None:
    """Raise 403 Forbidden unless the authorizer allows the access."""
    decision = authorizer.authorize(access)
    if isinstance(decision, NoOpinion):
        raise access_forbidden(access, decision.reason)


def access_forbidden(access: Access, reason: str) -> StatusError:
    """Return the 403 of an access that no authorizer allows."""
    message = forbidden_message(access)
    why = f"{message}: {reason}" if reason else message
    if isinstance(access, PathAccess):
        return forbidden(None, "", why)
    return forbidden(About(access.resource, "", access.group), access.name, why)


def forbidden_message(access: Access) -> str:
    """Return kube-apiserver's message for a forbidden access, with HTML escaped."""
    text = f"User {go_quote(access.user.name)} cannot {access.verb}"
    if isinstance(access, PathAccess):
        text += f" path {go_quote(access.path)}"
    else:
        text += f" resource {go_quote(access.combined)} in API group {go_quote(access.group)}"
        where = f"in the namespace {go_quote(access.namespace)}"
        text += f" {where}" if access.namespace else " at the cluster scope"
    return text.translate(_HTML)


# --- the status of claims -------------------------------------------------------------------------


class ClaimStatusAuthorizer:
    """Authorizes one request's write to the parts of a claim's status.

    Two subresources exist for policy rules only: `resourceclaims/binding` for allocation and
    reservations, and `resourceclaims/driver`, named after a driver, for what drivers report. The
    verbs of the latter say where: `associated-node:update` for claims on the node of the service
    account, `arbitrary-node:update` for all.
    """

    def __init__(self, authorizer: Authorizer, user: User, *, verb: str, namespace: str) -> None:
        self._authorizer = authorizer
        self._user = user
        self._verb = verb
        self._namespace = namespace

    def refuse_binding(self) -> str | None:
        """Return why the user may not set allocation and reservations of any claim."""
        return self._refuse(
            ResourceAccess(self._user, self._verb, RESOURCE_GROUP, CLAIMS, "binding")
        )

    def refuse_driver(self, driver: str, *, node: str | None) -> DriverRefusal | None:
        """Return why the user may not report for a driver on the node of the allocation."""
        prefixes = (ASSOCIATED, ARBITRARY) if is_associated(self._user, node) else (ARBITRARY,)
        verbs = tuple(f"{prefix}{self._verb}" for prefix in prefixes)
        reasons = []
        for verb in verbs:
            reason = self._refuse(
                ResourceAccess(
                    self._user, verb, RESOURCE_GROUP, CLAIMS, "driver", self._namespace, driver
                )
            )
            if reason is None:
                return None
            reasons.append(reason)
        return DriverRefusal(verbs, reasons[0])

    def _refuse(self, access: ResourceAccess) -> str | None:
        decision = self._authorizer.authorize(access)
        if isinstance(decision, Allowed):
            return None
        return str(access_forbidden(access, decision.reason))


def is_associated(user: User, node: str | None) -> bool:
    """Return whether a user is a service account whose token is bound to the node."""
    if not node or service_account_of(user.name) is None:
        return False
    bound = user.extra.get(NODE_NAME, ())
    return len(bound) == 1 and bound[0] == node and not dns1123_subdomain(node)
