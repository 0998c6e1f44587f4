"""A cluster as a source: informers of all kinds that the page shows, and their recent changes.

A kind that may not be listed in the whole cluster is followed in the namespaces where it may be. A
kind that may not be listed anywhere is missing, and the session says so.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any, Final

from moorage.api.catalogue import KINDS
from moorage.api.core import Namespace
from moorage.api.core.namespace import Event
from moorage.api.meta import without_managed_fields
from moorage.api.timestamp import Timestamp
from moorage.client.contract import Client
from moorage.client.errors import ClientError, ForbiddenError, NotFoundError
from moorage.client.indexer import Indexer
from moorage.client.informers import Informer
from moorage.insight.snapshot.snapshot import FIELDS, key_of
from moorage.web.feed import Feed, ObjectKey
from moorage.web.rights import Rights

COLLECT_S: Final = 0.1
NAMESPACES_MAX: Final = 500
_NAMESPACED: Final = {kind.struct for kind in KINDS if kind.namespaced}


class ClusterFeed:
    """Publishes a cluster's objects and their changes."""

    def __init__(
        self,
        client: Client,
        feed: Feed,
        now: Callable[[], Timestamp],
        *,
        namespaces: Sequence[str] = (),
    ) -> None:
        """Create a feed; `namespaces` are those to follow if namespaces may not be listed."""
        self._client, self._feed, self._now = client, feed, now
        self._namespaces = tuple(namespaces)
        self._written: dict[ObjectKey, Any] = {}
        self._removed: dict[ObjectKey, None] = {}
        self._revision = 0
        self._has_changed = asyncio.Event()
        self.rights = Rights()  # from the client itself

    async def run(self) -> None:
        """Follow the cluster until cancelled."""
        informers = await self._informers()
        async with asyncio.TaskGroup() as tasks:
            for informer in informers:
                informer.add_event_handler(self._changed)
                tasks.create_task(informer.run())
            for informer in informers:
                await informer.wait_for_sync()
            self._feed.read_events = self._events
            while True:
                self._publish()
                await self._has_changed.wait()
                await asyncio.sleep(COLLECT_S)

    # --- what may be read -----------------------------------------------------------------

    async def _informers(self) -> list[Informer]:
        spaces = await self._known_namespaces()
        found: list[Informer] = []
        limited: list[tuple[str, frozenset[str]]] = []
        everywhere = await asyncio.gather(*(self._may_list(struct) for struct in FIELDS))
        for struct, is_everywhere in zip(FIELDS, everywhere, strict=True):
            if is_everywhere:
                found.append(self._informer(struct))
                continue
            asked = spaces if struct in _NAMESPACED else ()
            answers = await asyncio.gather(*(self._may_list(struct, space) for space in asked))
            allowed = [space for space, may in zip(asked, answers, strict=True) if may]
            limited.append((struct.__name__, frozenset(allowed)))
            found += [self._informer(struct, space) for space in allowed]
        if len(limited) == len(FIELDS) and not any(spaces for _, spaces in limited):
            raise ForbiddenError("nothing of the cluster may be read", reason="Forbidden", code=403)
        self.rights = Rights(tuple(limited))
        return found

    def _informer(self, struct: type[Any], namespace: str = "") -> Informer:
        return Informer(
            self._client,
            struct,
            Indexer(),
            namespace=namespace,
            optional=True,
            random=random.random,
            transform=without_managed_fields,
        )

    async def _may_list(self, struct: type[Any], namespace: str = "") -> bool:
        try:
            await self._client.list(struct, namespace, limit=1)
        except ForbiddenError:
            return False
        except NotFoundError:
            pass  # the server does not have the kind
        return True

    async def _known_namespaces(self) -> tuple[str, ...]:
        try:
            listed = await self._client.list(Namespace, limit=NAMESPACES_MAX)
        except ForbiddenError:
            return self._namespaces
        return tuple(each.metadata.name for each in listed.values)

    # --- changes --------------------------------------------------------------------------

    def _changed(self, old: Any | None, new: Any | None) -> None:
        value: Any = old if new is None else new
        key = key_of(value)
        if new is None:
            self._written.pop(key, None)
            self._removed[key] = None
        else:
            self._removed.pop(key, None)
            self._written[key] = new
        version = value.metadata.resource_version
        if version.isdigit():
            self._revision = max(self._revision, int(version))
        self._has_changed.set()

    def _publish(self) -> None:
        written, removed = list(self._written.values()), list(self._removed)
        self._written, self._removed = {}, {}
        self._has_changed.clear()
        revision = max(self._revision, self._feed.revision + 1)
        self._feed.publish(written, removed, revision=revision, time=self._now())

    async def _events(self, kind: str, namespace: str, name: str) -> Sequence[Any]:
        """Return the events about an object, or nothing if the user may not read them."""
        fields = f"involvedObject.kind={kind},involvedObject.name={name}"
        try:
            found = await self._client.list(Event, namespace, fields=fields, limit=500)
        except ClientError:
            return ()
        return tuple(found.values)
