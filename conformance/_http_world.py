"""A server of ours in this process, kept in the state in which Kubernetes was recorded.

What other programs wrote while the recording ran (schedulers, controllers, people) is taken from
the recording: an object that an answer holds is put into the store before the request is made.
What the request itself changes is ours. New uids, names and times are those of the recording, so
that answers can be compared; revisions are ours, and are translated in both directions.
"""

from __future__ import annotations

import asyncio
import atexit
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from mooring.api.catalogue import CATALOGUE, to_hub
from mooring.api.codec import decode_tree
from mooring.api.errors import ApiError
from mooring.api.gates import Gates
from mooring.api.timestamp import Timestamp
from mooring.apiserver.calls import User
from mooring.apiserver.exchange import Answer, Request, Streaming
from mooring.apiserver.namespaces import make_namespaces
from mooring.apiserver.registry import written
from mooring.apiserver.resources import Resource
from mooring.apiserver.router import Router
from mooring.apiserver.security import NO_SENDER, AllowAll, Sender
from mooring.apiserver.server import make_application, make_service
from mooring.store.sqlite import open_sqlite

WATCH_EVENT_MAX_S = 2.0

Tree = dict[str, Any]


class Recorded(AllowAll):
    """Lets the user who was recorded do everything."""

    async def authenticate(
        self,
        headers: Mapping[str, str],  # noqa: ARG002
        sender: Sender = NO_SENDER,  # noqa: ARG002
    ) -> User | None:
        """Return that user."""
        return User("admin", ("system:masters", "system:authenticated"), "admin")


class World:
    """The server, and what is known of the recorded one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-http-"))
        self._stack = AsyncExitStack()
        self._store = self._run(self._stack.enter_async_context(open_sqlite(self._folder)))
        self.uid, self.suffix = "", ""
        self.now = Timestamp.parse("2026-11-15T06:46:40Z")
        made = make_service(
            self._store,
            gates=Gates.parse(preset="mooring"),
            now=lambda: self.now,
            extensions=False,
        )
        self._service = replace(
            made,
            new_uid=lambda: self.uid or made.new_uid(),
            new_suffix=lambda: self.suffix or made.new_suffix(),
        )
        self._router: Router = make_application(self._service, Recorded()).router
        self.ours: dict[str, str] = {}  # recorded revisions, and ours
        self._run(make_namespaces(self._service))
        atexit.register(self.close)

    def close(self) -> None:
        """End the server and forget what it stored."""
        if not self._loop.is_closed():
            self._run(self._stack.aclose())
            self._loop.close()
            shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, awaitable: Any) -> Any:
        return self._loop.run_until_complete(awaitable)

    # --- requests -----------------------------------------------------------------------------

    def ask(self, request: Request) -> Answer | Streaming:
        """Return our answer."""
        answer: Answer | Streaming = self._run(self._router.answer(request))
        return answer

    def next_chunk(self, stream: Streaming) -> bytes | None:
        """Return what comes next in a stream; None if nothing does."""

        async def wait() -> bytes | None:
            async with asyncio.timeout(WATCH_EVENT_MAX_S):
                return await anext(stream.chunks)

        try:
            chunk: bytes | None = self._run(wait())
        except (TimeoutError, StopAsyncIteration):
            return None
        return chunk

    def end(self, stream: Streaming) -> None:
        """End a stream."""
        self._run(stream.chunks.aclose())  # type: ignore[attr-defined]

    # --- state --------------------------------------------------------------------------------

    def find(self, api_version: str, plural: str) -> Resource | None:
        """Return the resource, if it is served."""
        group, _, version = api_version.rpartition("/")
        return self._service.resources.find(group, version, plural)

    def has(self, resource: Resource, namespace: str, name: str) -> bool:
        """Return whether there is such an object."""
        found = self._run(self._service.registry.find(resource, namespace, name))
        return found is not None

    def objects(self, resource: Resource, namespace: str) -> dict[tuple[str, str], Any]:
        """Return all objects by namespace and name."""
        page = self._run(self._store.list(resource.below(namespace)))
        values = [self._service.registry.read(resource, entry) for entry in page.entries]
        return {(v.metadata.namespace, v.metadata.name): v for v in values}

    @property
    def revision(self) -> int:
        """The newest revision."""
        newest: int = self._run(self._store.revision())
        return newest

    def put(self, tree: Mapping[str, Any]) -> bool:
        """Store an object as it was recorded; say whether it could be."""
        try:
            kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
            struct: type[Any] = kind.struct
            value = to_hub(decode_tree(dict(tree), struct).value, kind)
        except (ApiError, KeyError):
            return False
        resource = self._service.resources.of(kind.group, kind.plural)
        metadata = value.metadata
        theirs = metadata.resource_version
        key = resource.key(metadata.namespace, metadata.name)
        entry = self._run(self._store.get(key))
        if entry is not None and entry.value == written(value):
            self.ours[theirs] = str(entry.revision)
            return True
        if entry is None:
            stored = self._run(self._store.create(key, written(value)))
        else:
            stored = self._run(self._store.update(key, written(value), expected=entry.revision))
        self.ours[theirs] = str(stored.revision)
        return True

    def drop(self, resource: Resource, namespace: str, name: str) -> None:
        """Take an object away, as somebody else did."""
        entry = self._run(self._store.get(resource.key(namespace, name)))
        if entry is not None:
            self._run(self._store.delete(entry.key, expected=entry.revision))
