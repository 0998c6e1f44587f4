"""Namespaces: what every namespace has, and how a deleted one is emptied.

The account `default` and the certificate authority of the server are created in each namespace.

deleted ─► (5 s) ─► content deleted ─► conditions ─┬─► nothing left: finalized, and gone
                         ▲                         └─► something left, or an error
                         └────────── after a while ◄────────────┘

Moorage's own server empties namespaces by itself, so this is for others. The first look comes late
on purpose: by then every server of a cluster knows that nothing new may be created there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

from msgspec.structs import replace

from moorage.api.core import ConfigMap, Namespace, Pod, ServiceAccount
from moorage.api.core.namespace import ACTIVE, TERMINATING, RemainingContent, deletion_conditions
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Create, RequeueAfter, Update
from moorage.controllers.controller import (
    Answers,
    Controller,
    DeleteContent,
    ObjectChange,
    ReconcileFailed,
    Step,
)
from moorage.controllers.pod_control import is_over

FINALIZER = "kubernetes"
GRACE_S = 5.0  # between the deletion and the first look
FAILED_S_MAX = 60.0  # between two looks at a namespace that cannot be emptied
LOOK_AGAIN_S = 3600  # between two looks, however long its pods may take to end
FINALIZERS_S = 15  # how long finalizers are thought to take
NAMESPACE = "namespace"  # the index of pods by their namespace
DEFAULT_ACCOUNT = "default"
ROOT_CA = "kube-root-ca.crt"
ROOT_CA_FIELD = "ca.crt"
DESCRIPTION = "kubernetes.io/description"
DESCRIBED = (
    "Contains a CA bundle that can be used to verify the kube-apiserver when using internal "
    "endpoints such as the internal service IP or kubernetes.default.svc. No other usage is "
    "guaranteed across distributions of Kubernetes clusters."
)


class NamespaceController(Controller):
    """Empties namespaces that are deleted, and lets them go."""

    name: ClassVar[str] = "namespace-controller"
    kinds = (Namespace, Pod)
    workers = 10

    def add_indexes(self, objects: Indexer) -> None:
        """Index pods by their namespace."""
        objects.index(Pod, NAMESPACE, lambda pod: (pod.metadata.namespace,))

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield terminating namespaces, also when the last of their pods has gone."""
        value = change.value
        if isinstance(value, Namespace):
            if change.new is not None and _is_ending(value):
                yield object_key(value)
            return
        name = value.metadata.namespace
        namespace = objects.get(Namespace, "", name)
        if change.new is not None or namespace is None or not _is_ending(namespace):
            return
        if not objects.by_index(Pod, NAMESPACE, name):
            yield "", name

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Yield the steps that bring a namespace nearer to its end."""
        namespace = objects.get(Namespace, *key)
        if namespace is None or not _is_ending(namespace):
            return
        since_s = _seconds_since(namespace, now)
        if since_s < GRACE_S:
            yield RequeueAfter(key, GRACE_S - max(since_s, 0.0))
            return
        asked = next((each for each in answers if isinstance(each, DeleteContent)), None)
        if asked is None:
            yield DeleteContent(key[1], _grace_s(objects, key[1], since_s))
        else:
            yield from _finalize(namespace, key, answers[asked], asked.grace_s, now)


def _is_ending(namespace: Namespace) -> bool:
    is_deleted = namespace.metadata.deletion_timestamp is not None
    return is_deleted and FINALIZER in namespace.spec.finalizers


def _seconds_since(namespace: Namespace, now: Timestamp) -> float:
    deleted = namespace.metadata.deletion_timestamp or now
    return (now.instant - deleted.instant).total_seconds()


def _grace_s(objects: Indexer, name: str, since_s: float) -> int:
    """Return how long pods may still take to end; 0 when they have had all their time."""
    pods = objects.by_index(Pod, NAMESPACE, name)
    graces = (pod.spec.termination_grace_period_seconds or 0 for pod in pods if not is_over(pod))
    longest_s = max(graces, default=0)
    return longest_s if since_s < longest_s else 0


def _finalize(
    namespace: Namespace, key: ObjectKey, remains: RemainingContent, grace_s: int, now: Timestamp
) -> Iterator[Step]:
    """Write what remains, and finalize the namespace if that is nothing."""
    status = replace(
        namespace.status,
        phase=TERMINATING,
        conditions=deletion_conditions(remains, namespace.status.conditions, now),
    )
    if status != namespace.status:
        namespace = replace(namespace, status=status)
        yield Update(namespace, "status")
    if remains.is_empty:
        held = tuple(each for each in namespace.spec.finalizers if each != FINALIZER)
        yield Update(replace(namespace, spec=replace(namespace.spec, finalizers=held)), "finalize")
    elif remains.failures or remains.undiscovered:
        yield ReconcileFailed("; ".join((*remains.failures, *remains.undiscovered)))
        yield RequeueAfter(key, FAILED_S_MAX)
    else:
        estimate_s = max(grace_s, FINALIZERS_S if remains.finalizers else 0)
        yield RequeueAfter(key, min(estimate_s // 2 + 1, LOOK_AGAIN_S))


def _namespace_keys(change: ObjectChange, name: str) -> Iterator[ObjectKey]:
    """Yield the namespace of a change: it came or changed, or the object of a name in it did."""
    metadata = change.value.metadata
    if isinstance(change.value, Namespace):
        if change.new is not None:
            yield "", metadata.name
    elif metadata.name == name:
        yield "", metadata.namespace


def _is_open(objects: Indexer, key: ObjectKey) -> bool:
    """Return whether objects may be made in a namespace."""
    namespace = objects.get(Namespace, *key)
    if namespace is None or namespace.metadata.deletion_timestamp is not None:
        return False
    return namespace.status.phase in ("", ACTIVE)


class ServiceAccountController(Controller):
    """Gives every namespace its account."""

    name: ClassVar[str] = "service-account-controller"
    kinds = (Namespace, ServiceAccount)

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield the namespace whose account may be missing."""
        return _namespace_keys(change, DEFAULT_ACCOUNT)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Make the account if it is not there."""
        if _is_open(objects, key) and objects.get(ServiceAccount, key[1], DEFAULT_ACCOUNT) is None:
            metadata = ObjectMeta(name=DEFAULT_ACCOUNT, namespace=key[1])
            yield Create(ServiceAccount(metadata=metadata))


class RootCAPublisher(Controller):
    """Gives every namespace the authority by which pods know the server."""

    name: ClassVar[str] = "root-ca-certificate-publisher-controller"
    kinds = (Namespace, ConfigMap)

    def __init__(self, authority: str) -> None:
        self._authority = authority  # certificates in PEM

    def keys(self, objects: Indexer, change: ObjectChange) -> Iterable[ObjectKey]:
        """Yield the namespace whose authority may be missing or changed."""
        return _namespace_keys(change, ROOT_CA)

    def reconcile(
        self, objects: Indexer, key: ObjectKey, now: Timestamp, answers: Answers
    ) -> Iterable[Step]:
        """Make the map, or put it right."""
        if not _is_open(objects, key):
            return
        data = {ROOT_CA_FIELD: self._authority}
        found: Any = objects.get(ConfigMap, key[1], ROOT_CA)
        if found is None:
            metadata = ObjectMeta(
                name=ROOT_CA, namespace=key[1], annotations={DESCRIPTION: DESCRIBED}
            )
            yield Create(ConfigMap(metadata=metadata, data=data))
        elif found.data != data:
            yield Update(replace(found, data=data))
