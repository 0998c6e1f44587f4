"""What the server itself adds to objects that it has admitted.

Namespace   is active, holds itself until it is emptied, and is labelled with its name
PodGroup    is held until its pods have ended
Job         selects its pods by the uid that it was given, and is labelled as they are
Pod         keeps its priority where its author does not repeat it
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from mooring.api.batch import Job
from mooring.api.core import Namespace, Pod
from mooring.api.core.namespace import ACTIVE, NamespaceSpec, NamespaceStatus
from mooring.api.scheduling import PROTECTION_FINALIZER, PodGroup
from mooring.validation.workloads import with_selector

NAMESPACE_FINALIZER = "kubernetes"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"


def labelled(value: Any) -> Any:
    """Return an object with the labels that its author could have written, and owns."""
    if not isinstance(value, Namespace):
        return value
    metadata = value.metadata
    labels = {**metadata.labels, NAMESPACE_LABEL: metadata.name}
    return replace(value, metadata=replace(metadata, labels=labels))


def created(value: Any, written: Any) -> Any:
    """Return a new object as the server completes what its author wrote; nobody owns that.

    A job is labelled as its pods are if its author gave it no labels.
    """
    match value:
        case Namespace():
            held = NamespaceSpec(finalizers=(NAMESPACE_FINALIZER,))
            return replace(value, spec=held, status=NamespaceStatus(phase=ACTIVE))
        case PodGroup():
            return _protected(value)
        case Job():
            return with_selector(value, shares_labels=not written.metadata.labels)
    return value


def kept(value: Any, old: Any) -> Any:
    """Return a changed object with what the server gave it and its author need not repeat."""
    if not isinstance(value, Pod):
        return value
    spec, before = value.spec, old.spec
    priority = before.priority if spec.priority is None else spec.priority
    policy = spec.preemption_policy or before.preemption_policy
    return replace(value, spec=replace(spec, priority=priority, preemption_policy=policy))


def _protected(value: PodGroup) -> PodGroup:
    """Return a group that stays until a controller finds that its pods have ended."""
    held = value.metadata.finalizers
    if PROTECTION_FINALIZER in held:
        return value
    finalizers = (*held, PROTECTION_FINALIZER)
    return replace(value, metadata=replace(value.metadata, finalizers=finalizers))
