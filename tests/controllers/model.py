"""A server in memory: what writes make of objects, with no clock, network or randomness.

It keeps to what controllers lean on and no more: names and uids are made by counting, every write
is one revision, an update meets only the version that it was made from, an object with finalizers
stays until they are gone, and a scheduled pod stays as long as its grace says. There is neither
validation nor admission.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.namespace import Binding
from moorage.api.core.pod import FAILED, POD_SCHEDULED, SUCCEEDED, Pod, PodCondition
from moorage.api.meta import ObjectMeta
from moorage.api.timestamp import Timestamp
from moorage.client.indexer import Indexer, object_key
from moorage.client.writes import Apply, Create, Delete, Patch, RecordEvent, Target, Update, Write
from moorage.controllers.controller import Lookup, ObjectChange, WriteRefused

GRACE_S = 30
FOREGROUND, ORPHAN = "foregroundDeletion", "orphan"

_KEYS = ("name", "type", "uid")  # what tells items of a list apart, for Apply
_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


class RefusedError(Exception):
    """The server did not take a write."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.refused = WriteRefused(reason, message)


EVERYTHING = "*"  # the object and its status


class Model:
    """Objects, and what writes make of them."""

    def __init__(self, now: Timestamp, objects: Indexer | None = None) -> None:
        self.now = now
        self.objects = objects or Indexer()
        self.told: list[RecordEvent] = []
        self.follow: Callable[[ObjectChange], None] = lambda change: None
        self.revision = 0
        # Says why a create is refused, as quota and admission would: reason and message.
        self.admits: Callable[[Any], WriteRefused | None] = lambda value: None
        # Says why a change is refused, as validation would: of what was there, to what shall be.
        self.allows: Callable[[Any, Any], WriteRefused | None] = lambda old, new: None

    def put(self, *values: Any) -> None:
        """Create objects."""
        for value in values:
            self.write(Create(value))

    def get(self, struct: type[Any], namespace: str, name: str) -> Any:
        """Return an object, or None when it is not there."""
        return self.objects.get(struct, namespace, name)

    def answer(self, ask: Lookup) -> Any:
        """Return what a plan asks for."""
        return self.get(ask.struct, ask.namespace, ask.name)

    def write(self, write: Write) -> Any:
        """Carry out a write and return the object as it is stored now; or raise RefusedError."""
        match write:
            case RecordEvent():
                self.told.append(write)
                return None
            case Create(value=Binding() as binding):
                return self._bind(binding)
            case Create(value=value):
                return self._create(value)
            case Update(value=value, with_status=True):
                return self._update(value, EVERYTHING)
            case Update(value=value, subresource=part):
                return self._update(value, part)
            case Patch(target=target, body=body, subresource=part):
                return self._change(target, body, part, _merged)
            case Apply(target=target, body=body, subresource=part):
                return self._change(target, body, part, _applied)
            case Delete():
                return self._delete(write)

    # --- making and changing --------------------------------------------------------------------

    def _create(self, value: Any) -> Any:
        if (refused := self.admits(value)) is not None:
            raise RefusedError(refused.reason, refused.message)
        number = self.revision + 1
        metadata: ObjectMeta = value.metadata
        name = metadata.name or f"{metadata.generate_name}{_suffix(number)}"
        if self.get(type(value), metadata.namespace, name) is not None:
            raise RefusedError("AlreadyExists", f'"{name}" already exists')
        metadata = replace(
            metadata,
            name=name,
            uid=metadata.uid or f"uid-{number}",
            generation=1,
            creation_timestamp=metadata.creation_timestamp or self.now,
            deletion_timestamp=None,
        )
        return self._store(None, replace(value, metadata=metadata))

    def _update(self, value: Any, part: str) -> Any:
        old = self._found(Target.of(value))
        revision = value.metadata.resource_version
        if revision not in ("", old.metadata.resource_version):
            raise RefusedError("Conflict", f'"{old.metadata.name}" has been modified')
        return self._replace(old, value, part)

    def _change(self, target: Target, body: Any, part: str, merge: Any) -> Any:
        old = self._found(target)
        said = body.get("metadata", {})
        if said.get("uid", "") not in ("", old.metadata.uid):
            raise RefusedError("Conflict", f'the UID in the precondition is not "{target.name}"\'s')
        if said.get("resourceVersion", "") not in ("", old.metadata.resource_version):
            raise RefusedError("Conflict", f'"{target.name}" has been modified')
        tree = merge(to_tree(old), body)
        return self._replace(old, decode_tree(tree, target.struct).value, part)

    def _replace(self, old: Any, value: Any, part: str) -> Any:
        """Store a version of an object; a part, or all but the status, is taken from `value`."""
        if part and part != EVERYTHING:
            value = replace(old, **{_field(part): getattr(value, _field(part))})
        elif not part and hasattr(old, "status"):
            value = replace(value, status=old.status)
        kept = {name: getattr(old.metadata, name) for name in _KEPT}
        spec_changed = getattr(old, "spec", None) != getattr(value, "spec", None)
        generation = old.metadata.generation + spec_changed
        metadata = replace(value.metadata, **kept, generation=generation)
        value = replace(value, metadata=metadata)
        if value == old:
            return old
        if (refused := self.allows(old, value)) is not None:
            raise RefusedError(refused.reason, refused.message)
        if metadata.deletion_timestamp and old.metadata.finalizers and not metadata.finalizers:
            return self._remove(value)
        return self._store(old, value)

    def _bind(self, binding: Binding) -> None:
        """Put a pod on a node, once."""
        metadata = binding.metadata
        pod = self._found(Target(Pod, metadata.namespace, metadata.name, metadata.uid))
        if pod.metadata.deletion_timestamp is not None or pod.spec.node_name:
            where = pod.spec.node_name or "nowhere: it is being deleted"
            raise RefusedError("Conflict", f"pod {metadata.name} is already assigned to {where}")
        scheduled = PodCondition(type=POD_SCHEDULED, status="True")
        others = tuple(each for each in pod.status.conditions if each.type != POD_SCHEDULED)
        status = replace(pod.status, conditions=(*others, scheduled), nominated_node_name="")
        spec = replace(pod.spec, node_name=binding.target.name)
        self._store(pod, replace(pod, spec=spec, status=status))

    # --- deleting -------------------------------------------------------------------------------

    def _delete(self, write: Delete) -> Any:
        old = self._found(write.target)
        if write.revision not in ("", old.metadata.resource_version):
            raise RefusedError("Conflict", f'"{write.target.name}" has been modified')
        metadata: ObjectMeta = old.metadata
        added = {"Foreground": (FOREGROUND,), "Orphan": (ORPHAN,)}.get(write.propagation, ())
        finalizers = (
            *metadata.finalizers,
            *(each for each in added if each not in metadata.finalizers),
        )
        if not finalizers and not _waits(old, write.grace_s):
            return self._remove(old)
        if metadata.deletion_timestamp is not None:
            return old
        return self._store(
            old,
            replace(
                old,
                metadata=replace(metadata, deletion_timestamp=self.now, finalizers=finalizers),
            ),
        )

    def _remove(self, value: Any) -> Any:
        self.revision += 1
        old = self.objects.remove(type(value), *object_key(value))
        self.follow(ObjectChange(old, None))
        return value

    def _store(self, old: Any, value: Any) -> Any:
        self.revision += 1
        metadata = replace(value.metadata, resource_version=str(self.revision))
        value = replace(value, metadata=metadata)
        self.objects.put(value)
        self.follow(ObjectChange(old, value))
        return value

    def _found(self, target: Target) -> Any:
        found = self.get(target.struct, target.namespace, target.name)
        if found is None:
            raise RefusedError("NotFound", f'"{target.name}" not found')
        if target.uid not in ("", found.metadata.uid):
            raise RefusedError("Conflict", f'the UID in the precondition is not "{target.name}"\'s')
        return found


# Nobody changes these by an update.
_KEPT = ("name", "namespace", "uid", "creation_timestamp", "deletion_timestamp")


def _field(part: str) -> str:
    return "spec" if part == "scale" else part


def _waits(value: Any, grace_s: int | None) -> bool:
    """Tell whether a pod's containers are still to be stopped by a kubelet."""
    if not isinstance(value, Pod) or not value.spec.node_name:
        return False
    if value.status.phase in (SUCCEEDED, FAILED):
        return False
    given = value.spec.termination_grace_period_seconds
    return (grace_s if grace_s is not None else GRACE_S if given is None else given) > 0


def _suffix(number: int) -> str:
    """Return five letters that no other number has."""
    letters = []
    for _ in range(5):
        number, place = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[place])
    return "".join(reversed(letters))


def _merged(current: Any, patch: Any) -> Any:
    """Return a tree with a JSON merge patch in it."""
    if not isinstance(patch, dict):
        return patch
    found = dict(current) if isinstance(current, dict) else {}
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        else:
            found[key] = _merged(found.get(key), value)
    return found


def _applied(current: Any, body: Any) -> Any:
    """Return a tree with fields applied: maps by key, lists of objects by what names the items.

    Fields that the same manager applied before and leaves out now stay, unlike in Kubernetes.
    """
    if isinstance(body, dict) and isinstance(current, dict):
        return {**current, **{key: _applied(current.get(key), item) for key, item in body.items()}}
    if isinstance(body, list) and body and isinstance(current, list):
        key = next((each for each in _KEYS if all(each in item for item in body)), None)
        if key is not None:
            items = {item[key]: item for item in current}
            items.update((item[key], _applied(items.get(item[key]), item)) for item in body)
            return list(items.values())
    return body
