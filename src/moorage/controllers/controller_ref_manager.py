"""Who controls whom: references of owners, and which objects a controller takes or lets go."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from moorage.api.codec import to_tree
from moorage.api.labels import Selector
from moorage.api.meta import OwnerReference
from moorage.claims.pod_claims import controller_of
from moorage.client.indexer import Indexer, ObjectKey, object_key
from moorage.client.writes import Patch, Target
from moorage.controllers.controller import Answers, Lookup, ObjectChange, Step
from moorage.controllers.stored_selectors import stored_selector

CONTROLLER = "controller"  # the index of objects by the uid of their controller
NAMESPACE = "namespace"  # the index of objects by their namespace
_NOBODY = "/"  # before a namespace: those that have none


def reference_to(owner: Any) -> OwnerReference:
    """Return the reference by which an object is controlled."""
    return OwnerReference(
        api_version=owner.api_version,
        kind=owner.kind,
        name=owner.metadata.name,
        uid=owner.metadata.uid,
        controller=True,
        block_owner_deletion=True,
    )


def is_controlled_by(value: Any, owner: Any) -> bool:
    """Return whether this very owner controls the object."""
    controller = controller_of(value.metadata)
    return controller is not None and controller.uid == owner.metadata.uid


def index_by_controller(objects: Indexer, *structs: type[Any]) -> None:
    """Add the index of kinds by their controllers."""
    for struct in structs:
        objects.index(struct, CONTROLLER, _controller_keys)


def index_by_namespace(objects: Indexer, *structs: type[Any]) -> None:
    """Add the index of kinds by their namespaces."""
    for struct in structs:
        objects.index(struct, NAMESPACE, lambda value: (value.metadata.namespace,))


def _controller_keys(value: Any) -> tuple[str]:
    controller = controller_of(value.metadata)
    return (_NOBODY + value.metadata.namespace if controller is None else controller.uid,)


def controlled(objects: Indexer, struct: type[Any], owner: Any) -> list[Any]:
    """Return the objects of a kind that an owner controls, by name."""
    uid, namespace = owner.metadata.uid, owner.metadata.namespace
    found = objects.by_index(struct, CONTROLLER, uid) if uid else ()
    return sorted((v for v in found if v.metadata.namespace == namespace), key=object_key)


def controller_keys(change: ObjectChange, kind: str) -> list[ObjectKey]:
    """Return the keys of the controllers of this kind that an object has or had."""
    found = set()
    for value in (change.old, change.new):
        if value is not None and value.metadata.owner_references:
            found.add(_controller_key(value, kind))
    return sorted(key for key in found if key is not None) if found else []


def _controller_key(value: Any, kind: str) -> ObjectKey | None:
    owner = controller_of(value.metadata)
    if owner is None or owner.kind != kind:
        return None
    return value.metadata.namespace, owner.name


def adopter_keys(objects: Indexer, change: ObjectChange, struct: type[Any]) -> Sequence[ObjectKey]:
    """Return the keys of the owners that may adopt an object without a controller."""
    value, old = change.new, change.old
    if value is None or controller_of(value.metadata) is not None:
        return ()
    was_free = old is not None and controller_of(old.metadata) is None
    if old is not None and was_free and old.metadata.labels == value.metadata.labels:
        return ()
    found = []
    for owner in objects.by_index(struct, NAMESPACE, value.metadata.namespace):
        selector = stored_selector(owner.spec.selector)
        if isinstance(selector, Selector) and selector.matches(value.metadata.labels):
            found.append(object_key(owner))
    return found


# --- taking and letting go --------------------------------------------------------------------


def selector_of(owner: Any) -> Selector | None:
    """Return which pods an owner selects, or None if it would not select its own.

    Such an owner would make pods without end.
    """
    selector = stored_selector(owner.spec.selector)
    if not isinstance(selector, Selector) or selector.is_empty:
        return None
    return selector if selector.matches(owner.spec.template.metadata.labels) else None


class Claimed(NamedTuple):
    """The objects of an owner, and the steps that adopt or release some."""

    values: list[Any]
    steps: list[Step]


def claim(
    objects: Indexer,
    struct: type[Any],
    owner: Any,
    selector: Selector,
    answers: Answers,
    *,
    is_wanted: Callable[[Any], bool] = lambda value: True,  # noqa: ARG005
) -> Claimed:
    """Return the objects of an owner; release those it no longer selects, adopt orphans."""
    kept: list[Any] = []
    steps: list[Step] = []
    if owner.metadata.deletion_timestamp is not None:
        return Claimed(controlled(objects, struct, owner), [])
    for value in controlled(objects, struct, owner):
        if selector.matches(value.metadata.labels):
            kept.append(value)
        elif value.metadata.deletion_timestamp is None:
            steps.append(_released(value, owner))
    orphans = objects.by_index(struct, CONTROLLER, _NOBODY + owner.metadata.namespace)
    for value in sorted(orphans, key=object_key):
        is_free = value.metadata.deletion_timestamp is None and is_wanted(value)
        if is_free and selector.matches(value.metadata.labels):
            step = _adopted(value, owner, answers)
            if step is not None:
                kept.append(value)
                steps.append(step)
    return Claimed(kept, steps)


def _adopted(value: Any, owner: Any, answers: Answers) -> Step | None:
    """Return the adoption; it needs a fresh look at the owner.

    Objects adopted by a deleted owner would be deleted with it.
    """
    ask = Lookup(type(owner), owner.metadata.namespace, owner.metadata.name)
    if ask not in answers:
        return ask
    found = answers[ask]
    if found is None or found.metadata.uid != owner.metadata.uid:
        return None
    if found.metadata.deletion_timestamp is not None:
        return None
    return with_owners(value, (*value.metadata.owner_references, reference_to(owner)))


def _released(value: Any, owner: Any) -> Patch:
    uid = owner.metadata.uid
    return with_owners(value, tuple(r for r in value.metadata.owner_references if r.uid != uid))


def with_owners(value: Any, owners: tuple[OwnerReference, ...]) -> Patch:
    """Return the write that gives this version of an object these owners."""
    metadata = {
        "uid": value.metadata.uid,
        "resourceVersion": value.metadata.resource_version,
        "ownerReferences": [to_tree(owner) for owner in owners] or None,
    }
    return Patch(Target.of(value), {"metadata": metadata})


def with_finalizers(value: Any, finalizers: tuple[str, ...]) -> Patch:
    """Return the write that gives this version of an object these finalizers."""
    metadata = {
        "uid": value.metadata.uid,
        "resourceVersion": value.metadata.resource_version,
        "finalizers": list(finalizers) or None,
    }
    return Patch(Target.of(value), {"metadata": metadata})


def without_finalizer(value: Any, finalizer: str) -> Patch:
    """Return the write that takes a finalizer off this version of an object."""
    return with_finalizers(value, tuple(f for f in value.metadata.finalizers if f != finalizer))
