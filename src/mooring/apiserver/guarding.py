"""A guard that keeps up with a store, and security made of it for a server.

What the guard knows may be a moment old; but no permission outlives its binding for longer.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec.structs import replace

from mooring.api.authentication import SelfSubjectReview, TokenReview
from mooring.api.authorization import SelfSubjectRulesReview
from mooring.api.codec import decode_tree, to_tree
from mooring.api.core import Pod
from mooring.api.errors import ApiError
from mooring.api.kinds import Kind
from mooring.api.meta import ObjectMeta
from mooring.api.resource.v1 import ResourceSlice
from mooring.apiserver.authentication.authenticator import Authenticator, Find
from mooring.apiserver.authentication.impersonation import impersonated
from mooring.apiserver.authentication.reviews import answer_self, answer_token
from mooring.apiserver.authentication.serviceaccounts import Lookup
from mooring.apiserver.authorization.access import Access, Allowed, PathAccess, ResourceAccess
from mooring.apiserver.authorization.bootstrap import bootstrap_objects, reconciled
from mooring.apiserver.authorization.reviews import answer_access, answer_rules
from mooring.apiserver.calls import User
from mooring.apiserver.following import Follower
from mooring.apiserver.guard import FOLLOWED, Guard
from mooring.apiserver.security import NO_SENDER, Attributes, Decision, Sender
from mooring.apiserver.service import Service
from mooring.apiserver.status import StatusError, bad_request

PLURALS = {
    "ClusterRole": "clusterroles",
    "ClusterRoleBinding": "clusterrolebindings",
    "Role": "roles",
    "RoleBinding": "rolebindings",
}


async def make_roles(service: Service) -> None:
    """Store the roles and bindings that must be there, with all that they must have."""
    for wanted in bootstrap_objects(service.gates):
        resource = service.resources.of("rbac.authorization.k8s.io", PLURALS[wanted.kind])
        metadata = wanted.metadata
        stored = await service.registry.find(resource, metadata.namespace, metadata.name)
        value = reconciled(wanted, stored)
        if value is None:
            continue
        if stored is None:
            new = replace(metadata, uid=service.new_uid(), creation_timestamp=service.now())
            await service.registry.create(resource, replace(value, metadata=new))
        else:
            await service.registry.change(
                resource, metadata.namespace, metadata.name, _again(wanted)
            )


def _again(wanted: Any) -> Any:
    async def change(old: Any) -> Any:
        return reconciled(wanted, old) or old

    return change


class GuardFollower(Follower):
    """Hands what is stored to a guard, for as long as it runs."""

    def __init__(self, service: Service, guard: Guard) -> None:
        resources = [service.resources.of(group, plural) for group, plural in FOLLOWED]
        super().__init__(service.registry, resources, guard, remembered=_remembered)


def _remembered(value: Any) -> Any:
    """Return what must be known of an object to forget it: pods and slices are many and large."""
    if not isinstance(value, Pod | ResourceSlice):
        return value
    metadata = ObjectMeta(name=value.metadata.name, namespace=value.metadata.namespace)
    return type(value)(metadata=metadata)


class RoleSecurity:
    """Certificates and tokens say who asks; roles, bindings and nodes say what they may."""

    def __init__(self, guard: Guard, authenticator: Authenticator) -> None:
        self._guard = guard
        self._authenticator = authenticator

    async def authenticate(
        self, headers: Mapping[str, str], sender: Sender = NO_SENDER
    ) -> User | None:
        """Return who asks, or whom they act as; None for credentials that are wrong."""
        authorization = headers.get("authorization")
        try:
            user = await self._authenticator.user(
                certificate=sender.certificate, authorization=authorization
            )
        except StatusError:
            return None
        listed = sender.headers or tuple(headers.items())
        acting = impersonated(user, listed, self._guard.authorizer)
        return user if acting is user else acting._replace(actor=user)

    async def review(self, kind: Kind, tree: Any, user: User, namespace: str) -> Any:
        """Return a question about users with its answer."""
        struct: type[Any] = kind.struct
        try:
            value = decode_tree({**tree, "apiVersion": kind.api_version, "kind": kind.name}, struct)
        except ApiError as error:
            raise bad_request(f"the {kind.name} cannot be read: {error}") from None
        return to_tree(await self._answer(value.value, user, namespace))

    async def _answer(self, asked: Any, user: User, namespace: str) -> Any:
        match asked:
            case TokenReview():
                return await answer_token(asked, self._authenticator)
            case SelfSubjectReview():
                return answer_self(asked, user, self._authenticator.now())
            case SelfSubjectRulesReview():
                return answer_rules(asked, user=user, policy=self._guard.policy)
        authorizer = self._guard.authorizer
        return answer_access(asked, user=user, authorizer=authorizer, namespace=namespace)

    async def authorize(self, user: User, attributes: Attributes) -> Decision:
        """Return whether a user may do something."""
        decision = self._guard.authorizer.authorize(_access(user, attributes))
        return Decision(isinstance(decision, Allowed), decision.reason)


def _access(user: User, attributes: Attributes) -> Access:
    if attributes.path:
        return PathAccess(user, attributes.verb, attributes.path)
    return ResourceAccess(
        user,
        attributes.verb,
        attributes.group,
        attributes.resource,
        attributes.subresource,
        attributes.namespace,
        attributes.name,
        attributes.fields,
    )


def finder(service: Service) -> Find:
    """Return what reads objects of the core group for an authenticator."""

    async def find(where: Lookup) -> Any | None:
        resource = service.resources.of("", where.plural)
        return await service.registry.find(resource, where.namespace, where.name)

    return find
