"""Namespaces that are deleted: emptied, then let go.

deleted ─► (5 s) ─► content deleted ─► conditions ─┬─► nothing left: finalized, and gone
                         ▲                         └─► something left, or a fault
                         └────────── after a while ◄────────────┘

As Kubernetes' namespace controller does it. Mooring's own server empties namespaces by itself, so
that this is for others. The first look comes late on purpose: by then every server of a cluster
knows that nothing new may be made in the namespace.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import ClassVar

from msgspec.structs import replace

from mooring.api.core import Namespace, Pod
from mooring.api.core.namespace import TERMINATING
from mooring.api.namespaceconditions import Remains, conditions_of
from mooring.api.timestamp import Timestamp
from mooring.client.objects import Key, Objects, key_of
from mooring.client.writes import LookAgain, Update
from mooring.controllers.controller import (
    Answers,
    Change,
    Controller,
    DeleteContent,
    Failed,
    Step,
)
from mooring.controllers.podstates import is_over

FINALIZER = "kubernetes"
GRACE_S = 5.0  # between the deletion and the first look
FAILED_S_MAX = 60.0  # between two looks at a namespace that cannot be emptied
FINALIZERS_S = 15  # how long finalizers are thought to take
NAMESPACE = "namespace"  # the index of pods by their namespace


class Namespaces(Controller):
    """Empties namespaces that are deleted, and lets them go."""

    name: ClassVar[str] = "namespace-controller"
    kinds = (Namespace, Pod)
    workers = 10

    def prepare(self, objects: Objects) -> None:
        """Keep pods by their namespace."""
        objects.index(Pod, NAMESPACE, lambda pod: (pod.metadata.namespace,))

    def keys(self, objects: Objects, change: Change) -> Iterable[Key]:
        """Give namespaces that are to go, also when the last of their pods has gone."""
        value = change.value
        if isinstance(value, Namespace):
            if change.new is not None and _is_ending(value):
                yield key_of(value)
            return
        name = value.metadata.namespace
        namespace = objects.find(Namespace, "", name)
        if change.new is not None or namespace is None or not _is_ending(namespace):
            return
        if not objects.by(Pod, NAMESPACE, name):
            yield "", name

    def plan(self, objects: Objects, key: Key, now: Timestamp, answers: Answers) -> Iterable[Step]:
        """Give what brings a namespace nearer to its end."""
        namespace = objects.find(Namespace, *key)
        if namespace is None or not _is_ending(namespace):
            return
        since_s = _seconds_since(namespace, now)
        if since_s < GRACE_S:
            yield LookAgain(key, GRACE_S - max(since_s, 0.0))
            return
        asked = next((each for each in answers if isinstance(each, DeleteContent)), None)
        if asked is None:
            yield DeleteContent(key[1], _grace_s(objects, key[1], since_s))
        else:
            yield from _told(namespace, key, answers[asked], asked.grace_s, now)


def _is_ending(namespace: Namespace) -> bool:
    is_deleted = namespace.metadata.deletion_timestamp is not None
    return is_deleted and FINALIZER in namespace.spec.finalizers


def _seconds_since(namespace: Namespace, now: Timestamp) -> float:
    deleted = namespace.metadata.deletion_timestamp or now
    return (now.instant - deleted.instant).total_seconds()


def _grace_s(objects: Objects, name: str, since_s: float) -> int:
    """Return how long pods may still take to end; 0 when they have had all their time."""
    pods = objects.by(Pod, NAMESPACE, name)
    graces = (pod.spec.termination_grace_period_seconds or 0 for pod in pods if not is_over(pod))
    longest_s = max(graces, default=0)
    return longest_s if since_s < longest_s else 0


def _told(
    namespace: Namespace, key: Key, remains: Remains, grace_s: int, now: Timestamp
) -> Iterator[Step]:
    """Say what remains, and let the namespace go if that is nothing."""
    status = replace(
        namespace.status,
        phase=TERMINATING,
        conditions=conditions_of(remains, namespace.status.conditions, now),
    )
    if status != namespace.status:
        namespace = replace(namespace, status=status)
        yield Update(namespace, "status")
    if remains.is_empty:
        held = tuple(each for each in namespace.spec.finalizers if each != FINALIZER)
        yield Update(replace(namespace, spec=replace(namespace.spec, finalizers=held)), "finalize")
    elif remains.failures or remains.undiscovered:
        yield Failed("; ".join((*remains.failures, *remains.undiscovered)))
        yield LookAgain(key, FAILED_S_MAX)
    else:
        estimate_s = max(grace_s, FINALIZERS_S if remains.finalizers else 0)
        yield LookAgain(key, estimate_s // 2 + 1)
