"""A cache of a cluster's objects by kind, with indexes (pure): informers update it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from moorage.api.meta import object_text
from moorage.kit.bulkhead import FAULTS

T = TypeVar("T")
ObjectKey = tuple[str, str]  # namespace, name
IndexFunc = Callable[[Any], Iterable[str]]

CHANGES_MAX = 256  # that an index notes before it takes them in
NOTHING: dict[Any, Any] = {}


def object_key(value: Any) -> ObjectKey:
    """Return the namespace and name of an object."""
    return value.metadata.namespace, value.metadata.name


def is_older(value: Any, than: Any) -> bool:
    """Return whether an object has an older resource version, if the two can be compared."""
    one, other = value.metadata.resource_version, than.metadata.resource_version
    return one.isdigit() and other.isdigit() and int(one) < int(other)


class Index:
    """Objects of a kind by a value in them: a node, an owner, a claim.

    Many indexes are read rarely. So changes are only noted, and taken in when someone reads, or
    when there are many: several changes of one object then count as one. An object whose values
    cannot be read is in the cache, and under no key of the index.
    """

    def __init__(self, name: str, keys: IndexFunc, values: Mapping[ObjectKey, Any]) -> None:
        self._name = name
        self._keys = keys
        self._values = values  # the cached objects
        self._found: dict[str, dict[ObjectKey, Any]] = {}
        # Objects that were added, changed or deleted, as they are in the index.
        self.changed: dict[ObjectKey, Any | None] = dict.fromkeys(values)

    def find(self, key: str) -> Collection[Any]:
        """Return the objects with this value."""
        if self.changed:
            self.catch_up()
        return self._found.get(key, NOTHING).values()

    def catch_up(self) -> None:
        """Take in what has changed."""
        changed, self.changed = self.changed, {}
        for key, old in changed.items():
            self._change(key, old, self._values.get(key))

    def _change(self, key: ObjectKey, old: Any | None, new: Any | None) -> None:
        before = () if old is None else self._keys_of(old)
        after = () if new is None else self._keys_of(new)
        for each in before:
            if each in after:  # as with most changes
                continue
            found = self._found.get(each)
            if found is not None and found.pop(key, None) is not None and not found:
                del self._found[each]
        for each in after:
            found = self._found.get(each)
            if found is None:
                self._found[each] = {key: new}
            else:
                found[key] = new

    def _keys_of(self, value: Any) -> Collection[str]:
        try:
            keys = self._keys(value)
            return keys if isinstance(keys, tuple | set | list) else tuple(keys)
        except Exception as error:
            FAULTS.note(f"index {self._name}", lambda: object_text(value), error)
            return ()


class Indexer:
    """The objects of all watched kinds."""

    def __init__(self) -> None:
        self._values: dict[type[Any], dict[ObjectKey, Any]] = {}
        self._indexes: dict[type[Any], dict[str, Index]] = {}

    # --- reading --------------------------------------------------------------------------------

    def get(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object, if it exists."""
        values = self._values.get(struct)
        return None if values is None else values.get((namespace, name))

    def list(self, struct: type[T], namespace: str | None = None) -> Iterator[T]:
        """Yield the objects of a kind, optionally of one namespace (this scans all of them)."""
        for key, value in self._values.get(struct, {}).items():
            if namespace is None or key[0] == namespace:
                yield value

    def by_index(self, struct: type[T], index: str, key: str) -> Collection[T]:
        """Return the objects of a kind under a key of an index."""
        return self._indexes[struct][index].find(key)

    def count(self, struct: type[Any]) -> int:
        """Return the number of objects of a kind."""
        return len(self._values.get(struct, {}))

    # --- updating -------------------------------------------------------------------------------

    def index(self, struct: type[Any], name: str, keys: IndexFunc) -> None:
        """Add an index for a kind, unless one of that name exists."""
        indexes = self._indexes.setdefault(struct, {})
        if name in indexes:
            return
        indexes[name] = Index(name, keys, self._values.setdefault(struct, {}))

    def put(self, value: Any) -> Any | None:
        """Add or replace an object and return the previous one."""
        struct, key = type(value), object_key(value)
        values = self._values.get(struct)
        if values is None:
            values = self._values[struct] = {}
        old = values.get(key)
        values[key] = value
        self._note(struct, key, old)
        return old

    def remove(self, struct: type[Any], namespace: str, name: str) -> Any | None:
        """Remove an object and return it."""
        key = (namespace, name)
        old = self._values.get(struct, {}).pop(key, None)
        if old is not None:
            self._note(struct, key, old)
        return old

    def _note(self, struct: type[Any], key: ObjectKey, old: Any | None) -> None:
        for index in self._indexes.get(struct, NOTHING).values():
            changed = index.changed
            if key not in changed:
                changed[key] = old
                if len(changed) > CHANGES_MAX:
                    index.catch_up()
