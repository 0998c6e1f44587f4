"""What somebody wants to do, and whether they may.

# access: a verb on a resource, or on a path that is no resource
# decision: allowed, or no opinion; what nobody allows is forbidden
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Protocol

from mooring.apiserver.calls import User
from mooring.apiserver.paths import Target
from mooring.apiserver.status import About, StatusError, forbidden

MASTERS = "system:masters"

_HTML = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


class ResourceAccess(NamedTuple):
    """A verb on a resource, on one object of it, or on a part of that."""

    user: User
    verb: str
    group: str
    resource: str
    subresource: str = ""
    namespace: str = ""
    name: str = ""
    fields: Mapping[str, str] = {}  # those that a field selector wants to have a value

    @property
    def combined(self) -> str:
        """The resource with its subresource, as rules name it."""
        return f"{self.resource}/{self.subresource}" if self.subresource else self.resource


class PathAccess(NamedTuple):
    """A verb on a path."""

    user: User
    verb: str
    path: str


Access = ResourceAccess | PathAccess


class Allowed(NamedTuple):
    """It may be done."""

    reason: str = ""


class NoOpinion(NamedTuple):
    """Nothing speaks for it."""

    reason: str = ""


Decision = Allowed | NoOpinion


class Authorizer(Protocol):
    """Says who may do what."""

    def authorize(self, access: Access) -> Decision:
        """Return whether it may be done."""
        ...


class Chain:
    """Authorizers that are asked one after the other; the first that allows it decides."""

    def __init__(self, *authorizers: Authorizer) -> None:
        self._authorizers = authorizers

    def authorize(self, access: Access) -> Decision:
        """Return the first yes, or all reasons for a no."""
        reasons = []
        for authorizer in self._authorizers:
            decision = authorizer.authorize(access)
            if isinstance(decision, Allowed):
                return decision
            if decision.reason:
                reasons.append(decision.reason)
        return NoOpinion("\n".join(reasons))


class Masters:
    """Lets the members of system:masters do everything, whatever is stored."""

    def authorize(self, access: Access) -> Decision:
        """Return whether the user is one of them."""
        return Allowed() if MASTERS in access.user.groups else NoOpinion()


# --- from requests --------------------------------------------------------------------------------

_VERBS = {
    "POST": "create",
    "GET": "get",
    "HEAD": "get",
    "PUT": "update",
    "PATCH": "patch",
    "DELETE": "delete",
}


def verb_of(method: str, target: Target, *, watch: bool = False) -> str:
    """Return what a method does to a resource."""
    verb = _VERBS.get(method, "")
    if verb == "get" and watch:
        return "watch"
    if target.name:
        return verb
    return {"get": "list", "delete": "deletecollection"}.get(verb, verb)


def resource_access(
    user: User, verb: str, target: Target, fields: Mapping[str, str] | None = None
) -> ResourceAccess:
    """Return what a request for a resource wants; a field selector may name the object."""
    fields = fields or {}
    name = target.name
    if not name and verb in ("list", "watch", "deletecollection"):
        name = fields.get("metadata.name", "")
    return ResourceAccess(
        user,
        verb,
        target.group,
        target.resource,
        target.subresource,
        target.namespace,
        name,
        fields,
    )


def path_access(user: User, method: str, path: str) -> PathAccess:
    """Return what a request for something else than a resource wants."""
    return PathAccess(user, method.lower(), path)


# --- in words -------------------------------------------------------------------------------------


def message(access: Access) -> str:
    """Return what is forbidden, as kube-apiserver says it."""
    return _message(access).translate(_HTML)


def refusal(access: Access, reason: str) -> StatusError:
    """Return the answer to a request that is forbidden."""
    why = f"{message(access)}: {reason}" if reason else message(access)
    if isinstance(access, PathAccess):
        return forbidden(None, "", why)
    return forbidden(About(access.resource, "", access.group), access.name, why)


def require(authorizer: Authorizer, access: Access) -> None:
    """Raise that it is forbidden, unless it is allowed."""
    decision = authorizer.authorize(access)
    if isinstance(decision, NoOpinion):
        raise refusal(access, decision.reason)


def quoted(text: str) -> str:
    """Return a text as Go quotes it."""
    shown = "".join(_escaped(character) for character in text)
    return f'"{shown}"'


def quoted_list(texts: Sequence[str]) -> str:
    """Return texts as Go shows a list of quoted ones."""
    return f"[{' '.join(quoted(text) for text in texts)}]"


def _message(access: Access) -> str:
    who = f"User {quoted(access.user.name)} cannot {access.verb}"
    if isinstance(access, PathAccess):
        return f"{who} path {quoted(access.path)}"
    what = f"{who} resource {quoted(access.combined)} in API group {quoted(access.group)}"
    if access.namespace:
        return f"{what} in the namespace {quoted(access.namespace)}"
    return f"{what} at the cluster scope"


_SHORT = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _escaped(character: str) -> str:
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    number = ord(character)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
