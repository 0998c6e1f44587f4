"""Values that the server itself sets on objects that it admits.

Namespace   is active, has a finalizer until it is empty, and a label with its name
PodGroup    has a finalizer until its pods have ended
Job         selects its pods by its uid, and has their labels
Pod         keeps its priority where an update leaves it out
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from moorage.api.batch import Job
from moorage.api.core import Namespace, Pod
from moorage.api.core.namespace import ACTIVE, NAME_LABEL, NamespaceSpec, NamespaceStatus
from moorage.api.meta import ObjectMeta
from moorage.api.scheduling import PROTECTION_FINALIZER, PodGroup
from moorage.validation.job import with_selector
from moorage.validation.registry import GENERATED_SUFFIX

NAMESPACE_FINALIZER = "kubernetes"
GENERATED_PREFIX_MAX = 63 - len(GENERATED_SUFFIX)


def with_namespace_label(value: Any) -> Any:
    """Return a namespace with the label of its name; the author of the write manages the label."""
    if not isinstance(value, Namespace):
        return value
    metadata = value.metadata
    labels = {**metadata.labels, NAME_LABEL: metadata.name}
    return replace(value, metadata=replace(metadata, labels=labels))


def with_server_defaults(value: Any, written: Any) -> Any:
    """Return a new object with server defaults, which no field manager owns.

    A job gets the labels of its pods if its author wrote none.
    """
    match value:
        case Namespace():
            held = value.spec.finalizers
            if NAMESPACE_FINALIZER not in held:
                held = (*held, NAMESPACE_FINALIZER)
            spec = NamespaceSpec(finalizers=held)
            return replace(value, spec=spec, status=NamespaceStatus(phase=ACTIVE))
        case PodGroup():
            return _protected(value)
        case Job():
            return with_selector(value, shares_labels=not written.metadata.labels)
    return value


def with_kept_priority(value: Any, old: Any) -> Any:
    """Return a changed pod with the priority that its author need not repeat."""
    if not isinstance(value, Pod):
        return value
    spec, before = value.spec, old.spec
    priority = before.priority if spec.priority is None else spec.priority
    policy = spec.preemption_policy or before.preemption_policy
    return replace(value, spec=replace(spec, priority=priority, preemption_policy=policy))


def _protected(value: PodGroup) -> PodGroup:
    """Return a group with the finalizer that a controller removes when its pods have ended."""
    held = value.metadata.finalizers
    if PROTECTION_FINALIZER in held:
        return value
    finalizers = (*held, PROTECTION_FINALIZER)
    return replace(value, metadata=replace(value.metadata, finalizers=finalizers))


def name_of(metadata: ObjectMeta, new_suffix: Callable[[], str]) -> str:
    """Return the name of a new object, which is generated before all checks."""
    if metadata.name or not metadata.generate_name:
        return metadata.name
    prefix = metadata.generate_name.encode()[:GENERATED_PREFIX_MAX]
    return f"{prefix.decode(errors='replace')}{new_suffix()}"
