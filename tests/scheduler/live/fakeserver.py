"""A server in memory: objects with versions, writes with their rules, watch events."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from msgspec.structs import replace

from moorage.api.codec import decode_tree, to_tree
from moorage.api.core.namespace import Binding
from moorage.api.core.pod import POD_SCHEDULED, Pod, PodCondition
from moorage.api.timestamp import Timestamp
from moorage.client.writes import Create, Delete, Patch, RecordEvent, Target, Update, Write
from tests.scheduler.scenes import NOW

Key = tuple[type[Any], str, str]
Change = tuple[Any | None, Any | None]


class ServerError(Exception):
    """A refusal, or no answer at all (code 0)."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason = code, reason


def conflict(key: Key) -> ServerError:
    name = key[2]
    text = f'Operation cannot be fulfilled on "{name}": the object has been modified'
    return ServerError(409, "Conflict", text)


class FakeServer:
    """Objects by kind, namespace and name."""

    def __init__(self) -> None:
        self.objects: dict[Key, Any] = {}
        self.changes: list[Change] = []
        self.events: list[RecordEvent] = []
        self.writes: list[Write] = []
        self._versions = count(1)
        self._watchers: list[Callable[[Change], None]] = []

    # --- what tests do ----------------------------------------------------------------------------

    def watch(self, watcher: Callable[[Change], None]) -> None:
        """Tell someone all that is there, and all that happens."""
        for value in self.objects.values():
            watcher((None, value))
        self._watchers.append(watcher)

    def forget_watchers(self) -> None:
        """Tell nobody any more."""
        self._watchers.clear()

    def put(self, *values: Any) -> None:
        """Have objects, whatever was there."""
        for value in values:
            self._store(key_of(value), value)

    def delete(self, *values: Any) -> None:
        """Delete objects, if nothing holds them."""
        for value in values:
            self._delete(key_of(value))

    def drop(self, *values: Any) -> None:
        """Have objects no more, whatever holds them."""
        for value in values:
            self._tell(self.objects.pop(key_of(value)), None)

    def get(self, struct: type[Any], name: str, namespace: str = "default") -> Any:
        """Return an object."""
        return self.objects.get((struct, namespace, name))

    def all(self, struct: type[Any]) -> Iterator[Any]:
        """Give all objects of a kind."""
        return (value for key, value in tuple(self.objects.items()) if key[0] is struct)

    # --- what clients do --------------------------------------------------------------------------

    def read(self, target: Target) -> Any:
        """Return an object, or None."""
        return self.objects.get((target.struct, target.namespace, target.name))

    def write(self, write: Write) -> Any:
        """Carry out a write and return what is stored."""
        self.writes.append(write)
        match write:
            case Create(value=Binding() as binding):
                return self._bind(binding)
            case Create(value=value):
                return self._create(value)
            case Update(value=value, subresource=part):
                return self._update(value, part)
            case Patch(target=target, body=body):
                return self._patch(target, body)
            case Delete(target=target):
                return self._delete((target.struct, target.namespace, target.name), target.uid)
            case RecordEvent():
                self.events.append(write)
                return None
        raise AssertionError(write)

    def _create(self, value: Any) -> Any:
        key = key_of(value)
        if key in self.objects:
            raise ServerError(409, "AlreadyExists", f'"{key[2]}" already exists')
        uid = f"uid-{key[1]}-{key[2]}-{next(self._versions)}"
        return self._store(key, replace(value, metadata=replace(value.metadata, uid=uid)))

    def _update(self, value: Any, part: str) -> Any:
        key = key_of(value)
        old = self._find(key)
        if value.metadata.resource_version != old.metadata.resource_version:
            raise conflict(key)
        if part == "status":
            return self._store(key, replace(old, status=value.status))
        new = replace(value, status=old.status)
        if new.metadata.deletion_timestamp is not None and not new.metadata.finalizers:
            del self.objects[key]
            self._tell(old, None)
            return new
        return self._store(key, new)

    def _patch(self, target: Target, body: dict[str, Any]) -> Any:
        key = (target.struct, target.namespace, target.name)
        old = self._find(key)
        metadata = body.get("metadata", {})
        if metadata.get("uid", old.metadata.uid) != old.metadata.uid:
            raise conflict(key)
        version = metadata.get("resourceVersion", old.metadata.resource_version)
        if version != old.metadata.resource_version:
            raise conflict(key)
        merged = _merged(to_tree(old), {"status": body["status"]})
        return self._store(key, decode_tree(merged, target.struct).value)

    def _delete(self, key: Key, uid: str = "") -> Any:
        old = self._find(key)
        if uid and uid != old.metadata.uid:
            raise conflict(key)
        if old.metadata.finalizers:
            if old.metadata.deletion_timestamp is None:
                metadata = replace(old.metadata, deletion_timestamp=Timestamp(NOW))
                self._store(key, replace(old, metadata=metadata))
            return old
        del self.objects[key]
        self._tell(old, None)
        return old

    def _bind(self, binding: Binding) -> None:
        metadata = binding.metadata
        key = (Pod, metadata.namespace, metadata.name)
        pod = self._find(key)
        if pod.metadata.uid != metadata.uid or pod.metadata.deletion_timestamp is not None:
            raise conflict(key)
        if pod.spec.node_name:
            text = f"pod {metadata.name} is already assigned to node {pod.spec.node_name!r}"
            raise ServerError(409, "Conflict", text)
        scheduled = PodCondition(type=POD_SCHEDULED, status="True")
        others = tuple(each for each in pod.status.conditions if each.type != POD_SCHEDULED)
        status = replace(pod.status, conditions=(*others, scheduled), nominated_node_name="")
        spec = replace(pod.spec, node_name=binding.target.name)
        self._store(key, replace(pod, spec=spec, status=status))

    def _find(self, key: Key) -> Any:
        found = self.objects.get(key)
        if found is None:
            raise ServerError(404, "NotFound", f'"{key[2]}" not found')
        return found

    def _store(self, key: Key, value: Any) -> Any:
        old = self.objects.get(key)
        metadata = replace(value.metadata, resource_version=str(next(self._versions)))
        new = self.objects[key] = replace(value, metadata=metadata)
        self._tell(old, new)
        return new

    def _tell(self, old: Any | None, new: Any | None) -> None:
        for watcher in self._watchers:
            if old is not None and new is not None and old.metadata.uid != new.metadata.uid:
                watcher((old, None))
                watcher((None, new))
            else:
                watcher((old, new))


def key_of(value: Any) -> Key:
    return type(value), value.metadata.namespace, value.metadata.name


def _merged(tree: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(tree) if isinstance(tree, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = _merged(merged.get(name), value)
    return merged
