"""What the server itself does to kinds of which only the metadata is checked.

Namespace        is active, holds itself until it is emptied, and is labelled with its name
PodGroup         is held until its pods have ended
Secret           texts become bytes; opaque, unless it says another type
PriorityClass    preempts others, unless it says otherwise
apps, batch      the status is the controllers', generations count changes of the spec
                 (what they leave open is in mooring.apiserver.workloaddefaults)
"""

from __future__ import annotations

import base64
from typing import Any

from msgspec.structs import replace

from mooring.api.batch import Job
from mooring.api.core import Namespace, Pod, Secret
from mooring.api.core.namespace import ACTIVE, NamespaceSpec, NamespaceStatus
from mooring.api.kinds import Kind
from mooring.api.scheduling import PROTECTION_FINALIZER, PodGroup, PriorityClass
from mooring.apiserver.workloaddefaults import with_defaults as with_workload_defaults
from mooring.apiserver.workloaddefaults import with_selector
from mooring.validation.admission import STRATEGIES

NAMESPACE_FINALIZER = "kubernetes"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"

_COUNTED = ("apps", "batch")  # groups whose objects have generations


def defaulted(value: Any) -> Any:
    """Return an object with what its author could have written; its author owns that."""
    match value:
        case Namespace():
            return _labelled(value)
        case Secret():
            return _sealed(value)
        case PriorityClass() if value.preemption_policy is None:
            return replace(value, preemption_policy="PreemptLowerPriority")
    return with_workload_defaults(value)


def created(value: Any, kind: Kind) -> Any:
    """Return a new object as the server completes it; nobody owns that."""
    if isinstance(value, Namespace):
        held = NamespaceSpec(finalizers=(NAMESPACE_FINALIZER,))
        return replace(value, spec=held, status=NamespaceStatus(phase=ACTIVE))
    if isinstance(value, PodGroup):
        return _protected(value)
    if kind.name in STRATEGIES:
        return value
    if isinstance(value, Job):
        value = with_selector(value)
    if hasattr(value, "status"):
        value = replace(value, status=type(value.status)())
    return _with_generation(value, 1) if kind.group in _COUNTED else value


def kept(value: Any, old: Any) -> Any:
    """Return a changed object with what the server gave it and its author need not repeat."""
    if not isinstance(value, Pod):
        return value
    spec, before = value.spec, old.spec
    priority = before.priority if spec.priority is None else spec.priority
    policy = spec.preemption_policy or before.preemption_policy
    return replace(value, spec=replace(spec, priority=priority, preemption_policy=policy))


def updated(value: Any, old: Any, kind: Kind) -> Any:
    """Return a changed object with what an update cannot change."""
    if isinstance(value, Namespace):
        return replace(value, spec=old.spec, status=old.status)
    if kind.name in STRATEGIES:
        return value
    if hasattr(value, "status"):
        value = replace(value, status=old.status)
    return _counted(value, old) if kind.group in _COUNTED else value


def status_updated(value: Any, old: Any, kind: Kind) -> Any:
    """Return an object of which only the status, and the owners of fields, are new."""
    if kind.name in STRATEGIES:
        return value
    owners = value.metadata.managed_fields
    return replace(old, status=value.status, metadata=replace(old.metadata, managed_fields=owners))


def _counted(value: Any, old: Any) -> Any:
    before = old.metadata.generation
    return _with_generation(value, before if value.spec == old.spec else before + 1)


def _with_generation(value: Any, generation: int) -> Any:
    return replace(value, metadata=replace(value.metadata, generation=generation))


def _protected(value: PodGroup) -> PodGroup:
    """Return a group that stays until a controller finds that its pods have ended."""
    held = value.metadata.finalizers
    if PROTECTION_FINALIZER in held:
        return value
    finalizers = (*held, PROTECTION_FINALIZER)
    return replace(value, metadata=replace(value.metadata, finalizers=finalizers))


def _labelled(value: Namespace) -> Namespace:
    metadata = value.metadata
    labels = {**metadata.labels, NAMESPACE_LABEL: metadata.name}
    return replace(value, metadata=replace(metadata, labels=labels))


def _sealed(value: Secret) -> Secret:
    texts = {
        name: base64.b64encode(text.encode()).decode() for name, text in value.string_data.items()
    }
    return replace(value, data={**value.data, **texts}, string_data={}, type=value.type or "Opaque")
