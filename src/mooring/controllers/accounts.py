"""What every namespace has: the account `default`, and the authority that signs for the server."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from msgspec.structs import replace

from mooring.api.core import ConfigMap, Namespace, ServiceAccount
from mooring.api.core.namespace import ACTIVE
from mooring.api.meta import ObjectMeta
from mooring.api.timestamp import Timestamp
from mooring.client.objects import Key, Objects
from mooring.client.writes import Create, Update
from mooring.controllers.controller import Answers, Change, Controller, Step

DEFAULT_ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"
ROOT_CA_FIELD = "ca.crt"
DESCRIPTION = "kubernetes.io/description"
DESCRIBED = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


def _namespace_keys(change: Change, name: str) -> Iterator[Key]:
    """Give the namespace of a change: it came or changed, or the object of a name in it did."""
    metadata = change.value.metadata
    if isinstance(change.value, Namespace):
        if change.new is not None:
            yield "", metadata.name
    elif metadata.name == name:
        yield "", metadata.namespace


def _is_open(objects: Objects, key: Key) -> bool:
    """Tell whether objects may be made in a namespace."""
    namespace = objects.find(Namespace, *key)
    if namespace is None or namespace.metadata.deletion_timestamp is not None:
        return False
    return namespace.status.phase in ("", ACTIVE)


class ServiceAccounts(Controller):
    """Gives every namespace its account."""

    name: ClassVar[str] = "service-account-controller"
    kinds = (Namespace, ServiceAccount)

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:  # noqa: ARG002
        """Give the namespace whose account may be missing."""
        return _namespace_keys(change, DEFAULT_ACCOUNT)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Make the account if it is not there."""
        if _is_open(objects, key) and objects.find(ServiceAccount, key[1], DEFAULT_ACCOUNT) is None:
            metadata = ObjectMeta(name=DEFAULT_ACCOUNT, namespace=key[1])
            yield Create(ServiceAccount(metadata=metadata))


class RootCertificates(Controller):
    """Gives every namespace the authority by which pods know the server."""

    name: ClassVar[str] = "root-ca-certificate-publisher-controller"
    kinds = (Namespace, ConfigMap)

    def __init__(self, authority: str) -> None:
        self._authority = authority  # certificates in PEM

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:  # noqa: ARG002
        """Give the namespace whose authority may be missing or changed."""
        return _namespace_keys(change, ROOT_CA)

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:  # noqa: ARG002
        """Make the map, or put it right."""
        if not _is_open(objects, key):
            return
        data = {ROOT_CA_FIELD: self._authority}
        found: Any = objects.find(ConfigMap, key[1], ROOT_CA)
        if found is None:
            metadata = ObjectMeta(
                name=ROOT_CA, namespace=key[1], annotations={DESCRIPTION: DESCRIBED}
            )
            yield Create(ConfigMap(metadata=metadata, data=data))
        elif found.data != data:
            yield Update(replace(found, data=data))
