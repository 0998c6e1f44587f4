"""Registry: objects in the store, as values of their hub versions.

An object is stored as JSON of its hub version, without a resourceVersion: that is the revision of
its entry. JSON of drivers within it keeps their text. A write is retried if the object was changed
meanwhile, unless the client named the revision to change.

A stored object may not fit its kind any more, as in a store of an older version. To read it is an
error with its key; lists and watches leave it out, so that others are served. Only claims are not
left out where a scheduler would take the list for complete.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any, NamedTuple

from msgspec.structs import replace

from moorage.api.codec import decode_json, encode_stored_json, in_one_line
from moorage.api.core import Namespace
from moorage.api.custom_resource import CustomResource
from moorage.api.errors import ApiError
from moorage.api.meta import ObjectMeta
from moorage.api.resource.v1 import ResourceClaim
from moorage.apiserver.http.status import (
    MODIFIED,
    StatusError,
    already_exists,
    conflict,
    internal,
    not_found,
)
from moorage.apiserver.resources import Resource
from moorage.kit.bulkhead import FAULTS
from moorage.kit.lru import LRU
from moorage.store.contract import Entry, Store
from moorage.store.errors import ConflictError, KeyExistsError, KeyMissingError
from moorage.store.keys import check_value

RETRIES_MAX = 16
SHARED_MAX = 2048  # objects that watches share
SHARED_BYTES_MAX = 16 * 2**20  # as stored
RECENT_MAX, RECENT_BYTES_MAX = 2048, 4 * 2**20

PLACE = "reading the store"
UID = b'"uid":"'
UID_WITHIN_BYTES = 4096  # names are shorter

ObjectChange = Callable[[Any], Awaitable[Any]]  # stored object -> new object


class ReadEntries(NamedTuple):
    """Objects of the store, and warnings about those among them that cannot be read."""

    values: list[Any]
    warnings: tuple[str, ...]


class Registry:
    """The objects of a store."""

    def __init__(self, store: Store) -> None:
        self.store = store
        # By resourceVersion. Responses soon after a write reuse the stored text of the entry, with
        # the revision inserted.
        self._shared = LRU[str, tuple[Any, Entry]](SHARED_MAX, SHARED_BYTES_MAX)
        # By revision, the last of these: watches ask for a change one after the other.
        self._recent: dict[int, tuple[Any, Entry]] = {}
        self._recent_bytes = 0
        self._being_written: dict[bytes, Any] = {}  # without revisions

    async def get(self, resource: Resource, namespace: str, name: str) -> Any:
        """Return an object, or raise 404."""
        return self.read_shared(resource, await self._entry(resource, namespace, name))

    async def find(self, resource: Resource, namespace: str, name: str) -> Any | None:
        """Return an object, or None."""
        entry = await self.store.get(resource.key(namespace, name))
        return None if entry is None else self.read_shared(resource, entry)

    async def create(self, resource: Resource, value: Any) -> Any:
        """Store a new object and return it with its revision."""
        metadata = value.metadata
        key = resource.key(metadata.namespace, metadata.name)
        stored = self._note(value)
        try:
            entry = await self.store.create(key, stored, ttl_s=resource.ttl_s)
            return self.read_shared(resource, entry)
        except KeyExistsError as refusal:
            current = self.read_shared(resource, refusal.current).metadata
            is_leaving = current.deletion_timestamp is not None
            raise already_exists(resource.about, metadata.name, is_leaving=is_leaving) from None
        finally:
            self._being_written.pop(stored, None)

    async def change(
        self, resource: Resource, namespace: str, name: str, change: ObjectChange
    ) -> Any:
        """Apply a change to an object and store it; retry on a conflict.

        An object that was to be deleted and that nothing holds any longer goes with the change.
        """
        for _ in range(RETRIES_MAX):
            entry = await self._entry(resource, namespace, name)
            old = self.read_shared(resource, entry)
            new = await change(old)
            value = self._note(new)
            # With the same length, they may differ in key order only.
            is_same_length = len(value) == len(entry.value)
            try:
                if value == entry.value or (is_same_length and _bare(new) == _bare(old)):
                    return old  # Nothing is written, and watches see nothing.
                if is_released(new):
                    deletion = await self.store.delete(entry.key, expected=entry.revision)
                    return with_revision(new, deletion.revision)
                stored = await self.store.update(
                    entry.key, value, expected=entry.revision, ttl_s=resource.ttl_s
                )
                return self.read_shared(resource, stored)
            except ConflictError:
                continue
            except KeyMissingError:
                raise not_found(resource.about, name) from None
            finally:
                self._being_written.pop(value, None)
        raise conflict(resource.about, name, MODIFIED)

    async def replace(self, resource: Resource, value: Any) -> Any:
        """Store a newer version of an object unless it changed since it was read."""
        metadata = value.metadata
        key = resource.key(metadata.namespace, metadata.name)
        expected, stored = int(metadata.resource_version), self._note(value)
        try:
            entry = await self.store.update(key, stored, expected=expected)
            return self.read_shared(resource, entry)
        except ConflictError:
            raise conflict(resource.about, metadata.name, MODIFIED) from None
        except KeyMissingError:
            raise not_found(resource.about, metadata.name) from None
        finally:
            self._being_written.pop(stored, None)

    async def remove(self, resource: Resource, value: Any) -> Any:
        """Delete an object unless it changed since it was read; return it with the new revision."""
        metadata = value.metadata
        key = resource.key(metadata.namespace, metadata.name)
        try:
            deletion = await self.store.delete(key, expected=int(metadata.resource_version))
        except ConflictError:
            raise conflict(resource.about, metadata.name, MODIFIED) from None
        except KeyMissingError:
            raise not_found(resource.about, metadata.name) from None
        return with_revision(value, deletion.revision)

    async def remove_unreadable(
        self, resource: Resource, namespace: str, name: str, *, is_dry_run: bool = False
    ) -> Any | None:
        """Delete an object that cannot be read; return what is known of it, None if it can."""
        entry = await self._entry(resource, namespace, name)
        if self.find_readable(resource, entry) is not None:
            return None
        revision = entry.revision
        if not is_dry_run:
            try:
                revision = (await self.store.delete(entry.key, expected=revision)).revision
            except ConflictError:
                raise conflict(resource.about, name, MODIFIED) from None
        return with_revision(identity_of(resource, entry), revision)

    def read(self, resource: Resource, entry: Entry) -> Any:
        """Return the object of an entry, with its revision, or raise 500 with its key."""
        struct: type[Any] = resource.hub_struct
        try:
            return with_revision(decode_json(entry.value, struct).value, entry.revision)
        except ApiError as error:
            raise internal(f"{entry.key}: the stored object cannot be decoded: {error}") from None

    def readable(self, resource: Resource, entries: Iterable[Entry]) -> ReadEntries:
        """Return the objects that can be read, and a warning for each that cannot."""
        values, warnings = [], []
        for entry in entries:
            try:
                values.append(self.read(resource, entry))
            except StatusError as error:
                FAULTS.note(PLACE, f"{resource.plural} {entry.key}", error, "is left out")
                warnings.append(f"{entry.key} is left out: the stored object cannot be decoded")
        return ReadEntries(values, tuple(warnings))

    def complete(self, resource: Resource, entries: Iterable[Entry]) -> ReadEntries:
        """Return the same, or raise 500 if a claim cannot be read.

        A scheduler would give the devices of a claim away again that is missing in its list.
        """
        found = self.readable(resource, entries)
        if found.warnings and resource.hub_struct is ResourceClaim:
            raise internal(found.warnings[0].replace(" is left out", "", 1))
        return found

    def find_readable(self, resource: Resource, entry: Entry) -> Any | None:
        """Return the shared object of an entry, or None if it cannot be read."""
        try:
            return self.read_shared(resource, entry)
        except StatusError as error:
            FAULTS.note(PLACE, f"{resource.plural} {entry.key}", error, "is left out")
            return None

    def read_shared(self, resource: Resource, entry: Entry) -> Any:
        """Return the object of an entry from the cache that all requests share."""
        known = self._recent.get(entry.revision)
        if known is not None and known[1] is entry and isinstance(known[0], resource.hub_struct):
            return known[0]
        version = str(entry.revision)
        known = self._shared.get(version)
        # Another writer of etcd may change several keys at one revision.
        struct = resource.hub_struct
        if known is not None and known[1].key == entry.key and isinstance(known[0], struct):
            return known[0]
        made = self._being_written.get(entry.value)
        if made is not None and not isinstance(made, struct):
            made = None  # The definition of a custom resource changed.
        value = self.read(resource, entry) if made is None else with_revision(made, entry.revision)
        self._share(version, value, entry)
        return value

    def _share(self, version: str, value: Any, entry: Entry) -> None:
        size = len(entry.value)
        self._shared.put(version, (value, entry), size)
        if len(self._recent) >= RECENT_MAX or self._recent_bytes + size > RECENT_BYTES_MAX:
            self._recent.clear()
            self._recent_bytes = 0
        self._recent[entry.revision] = (value, entry)
        self._recent_bytes += size

    def text_of(self, value: Any) -> bytes | None:
        """Return the JSON of an object in its hub version, if it is cached."""
        known = self._shared.get(value.metadata.resource_version)
        if known is None or known[0] is not value or isinstance(value, CustomResource):
            return None
        return text_with_revision(known[1], value.api_version, value.kind)

    def size_of(self, value: Any) -> int:
        """Return the number of bytes of an object as JSON."""
        known = self._shared.get(value.metadata.resource_version)
        if known is not None and known[0] is value:
            return len(known[1].value)
        return len(encode_stored_json(value))

    def _note(self, value: Any) -> bytes:
        """Return the stored object, and keep it for the watches that hear of it first."""
        bare = _bare(value)
        stored = encode_stored_json(bare)
        self._being_written[stored] = bare
        return stored

    async def _entry(self, resource: Resource, namespace: str, name: str) -> Entry:
        entry = await self.store.get(resource.key(namespace, name))
        if entry is None:
            raise not_found(resource.about, name)
        return entry


def _bare(value: Any) -> Any:
    """Return an object without its resourceVersion."""
    if not value.metadata.resource_version:
        return value
    return replace(value, metadata=replace(value.metadata, resource_version=""))


def identity_of(resource: Resource, entry: Entry) -> Any:
    """Return an object with its name alone, for one that cannot be read."""
    namespace, _, name = entry.key.removeprefix(resource.prefix).rpartition("/")
    return resource.hub_struct(metadata=ObjectMeta(name=name, namespace=namespace))


def is_released(value: Any) -> bool:
    """Return whether an object is marked as deleted and nothing holds it."""
    metadata = value.metadata
    if metadata.deletion_timestamp is None or metadata.finalizers:
        return False
    if isinstance(value, Namespace) and value.spec.finalizers:
        return False
    return not metadata.deletion_grace_period_seconds


def written(value: Any) -> bytes:
    """Return the stored object."""
    return encode_stored_json(_bare(value))


def check_size(resource: Resource, value: Any) -> None:
    """Raise what the store would raise of an object that is too large, before it is complete."""
    metadata = replace(value.metadata, managed_fields=())  # The server writes them anew.
    key = resource.key(metadata.namespace, metadata.name)
    check_value(key, written(replace(value, metadata=metadata)))


def text_with_revision(entry: Entry, api_version: str, kind: str) -> bytes | None:
    """Return a stored object as JSON with its revision; None if it must be decoded.

    The revision comes after the uid. What comes before are names in quotes, in which a quote is
    escaped: so the first `"uid":"` is the key.
    """
    value = in_one_line(entry.value)
    head = f'{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"name":'.encode()
    place = value.find(UID, len(head), len(head) + UID_WITHIN_BYTES)
    if place < 0 or not value.startswith(head):
        return None
    after = value.index(b'"', place + len(UID)) + 1
    return b'%s,"resourceVersion":"%d"%s' % (value[:after], entry.revision, value[after:])


def with_revision(value: Any, revision: int) -> Any:
    """Return an object with the revision that it was stored at."""
    return replace(value, metadata=replace(value.metadata, resource_version=str(revision)))
