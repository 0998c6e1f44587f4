"""A copy of a cluster's objects, by kind, with indexes; informers keep it, plans read it (pure)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Any, TypeVar

T = TypeVar("T")
Key = tuple[str, str]  # namespace, name
IndexKeys = Callable[[Any], Iterable[str]]


def key_of(value: Any) -> Key:
    """Return the namespace and name of an object."""
    return value.metadata.namespace, value.metadata.name


def is_older(value: Any, than: Any) -> bool:
    """Tell whether a version of an object was before another, where versions can be compared."""
    one, other = value.metadata.resource_version, than.metadata.resource_version
    return one.isdigit() and other.isdigit() and int(one) < int(other)


class Index:
    """Objects of a kind by something that they say: a node, an owner, a claim."""

    def __init__(self, keys: IndexKeys) -> None:
        self._keys = keys
        self._found: dict[str, dict[Key, Any]] = {}

    def find(self, key: str) -> Collection[Any]:
        """Return the objects that say this."""
        return self._found.get(key, {}).values()

    def change(self, key: Key, old: Any | None, new: Any | None) -> None:
        """Note that an object came, went, or became another."""
        if old is not None:
            for each in self._keys(old):
                found = self._found.get(each)
                if found is not None and found.pop(key, None) is not None and not found:
                    del self._found[each]
        if new is not None:
            for each in self._keys(new):
                self._found.setdefault(each, {})[key] = new


class Objects:
    """All objects of the kinds that someone follows."""

    def __init__(self) -> None:
        self._values: dict[type[Any], dict[Key, Any]] = {}
        self._indexes: dict[type[Any], dict[str, Index]] = {}

    # --- reading --------------------------------------------------------------------------------

    def find(self, struct: type[T], namespace: str, name: str) -> T | None:
        """Return an object, if it is there."""
        return self._values.get(struct, {}).get((namespace, name))

    def all(self, struct: type[T], namespace: str | None = None) -> Iterator[T]:
        """Yield the objects of a kind, of one namespace if it is given (this reads all of them)."""
        for key, value in self._values.get(struct, {}).items():
            if namespace is None or key[0] == namespace:
                yield value

    def by(self, struct: type[T], index: str, key: str) -> Collection[T]:
        """Return the objects of a kind that an index has under a key."""
        return self._indexes[struct][index].find(key)

    def count(self, struct: type[Any]) -> int:
        """Return how many objects of a kind there are."""
        return len(self._values.get(struct, {}))

    # --- keeping --------------------------------------------------------------------------------

    def index(self, struct: type[Any], name: str, keys: IndexKeys) -> None:
        """Keep an index of a kind; asking twice for one name keeps the first."""
        indexes = self._indexes.setdefault(struct, {})
        if name in indexes:
            return
        indexes[name] = index = Index(keys)
        for key, value in self._values.get(struct, {}).items():
            index.change(key, None, value)

    def put(self, value: Any) -> Any | None:
        """Take in an object, or its newer version, and return what was there before."""
        struct, key = type(value), key_of(value)
        values = self._values.setdefault(struct, {})
        old = values.get(key)
        values[key] = value
        self._note(struct, key, old, value)
        return old

    def remove(self, struct: type[Any], namespace: str, name: str) -> Any | None:
        """Forget an object, and return it if it was there."""
        key = (namespace, name)
        old = self._values.get(struct, {}).pop(key, None)
        if old is not None:
            self._note(struct, key, old, None)
        return old

    def _note(self, struct: type[Any], key: Key, old: Any | None, new: Any | None) -> None:
        for index in self._indexes.get(struct, {}).values():
            index.change(key, old, new)
