"""A guard that keeps up with a store, and security made of it for a server.

What the guard knows may be a moment old, as in Kubernetes. When a watch breaks, everything is read
anew, and what is not there any more is forgotten: no permission outlives its binding.
"""

from __future__ import annotations

import asyncio
import gc
import logging
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
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
from mooring.apiserver.guard import FOLLOWED, Guard
from mooring.apiserver.resources import Resource
from mooring.apiserver.security import NO_SENDER, Attributes, Decision, Sender
from mooring.apiserver.service import Service
from mooring.apiserver.status import StatusError, bad_request
from mooring.store.contract import Deletion, Put
from mooring.store.errors import StoreError

LOG = logging.getLogger(__name__)

AGAIN_AFTER_S = 0.5

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


class Follower:
    """Hands what is stored to a guard, for as long as it runs."""

    def __init__(self, service: Service, guard: Guard) -> None:
        self._service = service
        self._guard = guard
        self._known: dict[str, dict[str, Any]] = {}  # by resource, by key
        self._loaded: dict[str, int] = {}  # the revisions that were read first, by resource

    async def load(self) -> None:
        """Read everything once: before this is done a server must not answer."""
        with _without_collector():
            for group, plural in FOLLOWED:
                resource = self._service.resources.of(group, plural)
                self._loaded[resource.prefix] = await self._read(resource)

    async def run(self) -> None:
        """Follow everything until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for group, plural in FOLLOWED:
                tasks.create_task(self._follow(self._service.resources.of(group, plural)))

    async def _follow(self, resource: Resource) -> None:
        while True:
            try:
                revision = self._loaded.pop(resource.prefix, None)
                await self._watch(resource, revision or await self._read(resource))
            except StoreError as error:
                LOG.warning("following %s: %s", resource.plural, error)
            await asyncio.sleep(AGAIN_AFTER_S)

    async def _read(self, resource: Resource) -> int:
        """Take all objects of a resource, forget those that are gone, and return the revision."""
        registry = self._service.registry
        page = await registry.store.list(resource.prefix)
        known = self._known.get(resource.prefix, {})
        for key in known.keys() - {entry.key for entry in page.entries}:
            self._guard.remove(known.pop(key))
        for entry in page.entries:
            value = registry.read(resource, entry)
            self._guard.put(value)
            known[entry.key] = _remembered(value)
        self._known[resource.prefix] = known
        return page.revision

    async def _watch(self, resource: Resource, revision: int) -> None:
        registry, known = self._service.registry, self._known[resource.prefix]
        watch = await registry.store.watch(resource.prefix, after=revision)
        try:
            async for event in watch:
                match event:
                    case Put(entry):
                        value = registry.read_shared(resource, entry)
                        self._guard.put(value)
                        known[entry.key] = _remembered(value)
                    case Deletion(previous):
                        gone = known.pop(previous.key, None)
                        if gone is not None:
                            self._guard.remove(gone)
        finally:
            watch.close()


def _remembered(value: Any) -> Any:
    """Return what must be known of an object to forget it: pods and slices are many and large."""
    if not isinstance(value, Pod | ResourceSlice):
        return value
    metadata = ObjectMeta(name=value.metadata.name, namespace=value.metadata.namespace)
    return type(value)(metadata=metadata)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Look for no garbage while much is read that stays."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


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
        return impersonated(user, listed, self._guard.authorizer)

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
