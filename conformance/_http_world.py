"""A server of ours in this process, kept in the state in which Kubernetes was recorded.

What other programs wrote while the recording ran (schedulers, controllers, people) is taken from
the recording: an object that an answer holds is put into the store before the request is made.
Changes by the request itself are ours. New uids, names and times are those of the recording, so
that answers can be compared; revisions are ours, and are translated in both directions.

The server is guarded by roles, and the user is the one who was recorded.

# part: an object of which only metadata was recorded; a table shows it, and its other cells are
#       not compared
"""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from collections.abc import Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE, from_hub, to_hub
from moorage.api.codec import decode_tree, to_tree
from moorage.api.errors import ApiError
from moorage.api.gates import Gates
from moorage.api.kinds import Kind
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.authenticator import Authenticator, impersonated
from moorage.apiserver.auth.authorizer import (
    NO_SENDER,
    AuthorizerInformer,
    ClusterAuthorizer,
    RBACAccessControl,
    Sender,
    core_object_reader,
)
from moorage.apiserver.auth.role_reconciler import reconcile_bootstrap_policy
from moorage.apiserver.auth.service_account_tokens import Issuer
from moorage.apiserver.auth.users import AUTHENTICATED, MASTERS, User
from moorage.apiserver.dynamic_admission.plugin import DynamicAdmission
from moorage.apiserver.http.messages import Request, Response, StreamingResponse
from moorage.apiserver.http.router import Router
from moorage.apiserver.namespace_controller import create_system_namespaces
from moorage.apiserver.resources import Resource
from moorage.apiserver.server import make_application, make_server_context
from moorage.apiserver.settings import ISSUER
from moorage.apiserver.storage.registry import written
from moorage.store.sqlite import open_sqlite

WATCH_EVENT_MAX_S = 2.0

Tree = dict[str, Any]


ADMIN = User("admin", (MASTERS, AUTHENTICATED), "admin")


class Recorded(RBACAccessControl):
    """Checks the recorded user's access by roles; the recording has no credentials."""

    user: User | None = ADMIN

    async def authenticate(
        self, headers: Mapping[str, str], sender: Sender = NO_SENDER
    ) -> User | None:
        """Return that user, or whom they act as; None for credentials that were wrong."""
        if self.user is None:
            return None
        listed = sender.headers or tuple(headers.items())
        return impersonated(self.user, listed, self.authorizer)


class World:
    """The server, and the known state of the recorded one."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._folder = Path(tempfile.mkdtemp(prefix="conformance-http-"))
        self._stack = AsyncExitStack()
        self._store = self._run(self._stack.enter_async_context(open_sqlite(self._folder)))
        self.uid, self.suffix = "", ""
        self.now = Timestamp.parse("2026-11-15T06:46:40Z")
        made = make_server_context(
            self._store,
            gates=Gates.parse(preset="moorage"),
            now=lambda: self.now,
            extensions=False,
        )
        authorizer = ClusterAuthorizer(made.gates)
        self._service = replace(
            made,
            new_uid=lambda: self.uid or made.new_uid(),
            new_suffix=lambda: self.suffix or made.new_suffix(),
            authorizer=authorizer,
            dynamic=DynamicAdmission(made.registry, made.resources),
        )
        authenticator = Authenticator(Issuer(ISSUER, (), ()), core_object_reader(made), made.now)
        self.security = Recorded(authorizer, authenticator)
        self._router: Router = make_application(self._service, self.security).router
        self.ours: dict[str, str] = {}  # recorded revisions, and ours
        self._parts: set[str] = set()  # keys of objects of which only metadata was recorded
        self._run(self._begin(authorizer))

    async def _begin(self, authorizer: ClusterAuthorizer) -> None:
        await create_system_namespaces(self._service)
        await reconcile_bootstrap_policy(self._service)
        follower = AuthorizerInformer(self._service, authorizer)
        await follower.load()
        assert self._service.dynamic is not None
        await self._service.dynamic.prepare()
        work = (follower.run(), self._service.dynamic.run())
        self._following = {asyncio.create_task(each) for each in work}

    def close(self) -> None:
        """Stop the server and forget its objects."""
        for task in self._following:
            task.cancel()
        self._run(asyncio.wait(self._following))
        self._run(self._stack.aclose())
        self._loop.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, awaitable: Any) -> Any:
        return self._loop.run_until_complete(awaitable)

    # --- requests -----------------------------------------------------------------------------

    def ask(self, request: Request) -> Response | StreamingResponse:
        """Return our answer."""
        answer: Response | StreamingResponse = self._run(self._router.handle(request))
        return answer

    def next_chunk(self, stream: StreamingResponse) -> bytes | None:
        """Return what comes next in a stream; None if nothing does."""

        async def wait() -> bytes | None:
            async with asyncio.timeout(WATCH_EVENT_MAX_S):
                return await anext(stream.chunks)

        try:
            chunk: bytes | None = self._run(wait())
        except (TimeoutError, StopAsyncIteration):
            return None
        return chunk

    def end(self, stream: StreamingResponse) -> None:
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
        self._parts.discard(self._store_value(kind, value))
        return True

    def put_part(
        self, resource: Resource, version: str, metadata: Tree, fields: Mapping[str, str]
    ) -> None:
        """Store an object of which only metadata and these fields are known.

        What we know of it from before stays.
        """
        kind = resource.kinds[version]
        old = self._run(
            self._service.registry.find(
                resource, metadata.get("namespace", ""), metadata.get("name", "")
            )
        )
        tree = {} if old is None else to_tree(from_hub(old, kind.api_version))
        for path, text in fields.items():
            _set(tree, path.split("."), text)
        tree |= {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata}
        struct: type[Any] = kind.struct
        value = to_hub(decode_tree(tree, struct).value, kind)
        self._parts.add(self._store_value(kind, value))

    def is_part(self, resource: Resource, namespace: str, name: str) -> bool:
        """Return whether only metadata of an object is known."""
        return resource.key(namespace, name) in self._parts

    def _store_value(self, kind: Kind, value: Any) -> str:
        """Store an object, note its revisions, and return its key."""
        resource = self._service.resources.of(kind.group, kind.plural)
        metadata = value.metadata
        key = resource.key(metadata.namespace, metadata.name)
        entry = self._run(self._store.get(key))
        if entry is None:
            entry = self._run(self._store.create(key, written(value)))
        elif entry.value != written(value):
            entry = self._run(self._store.update(key, written(value), expected=entry.revision))
        self.ours[metadata.resource_version] = str(entry.revision)
        return key

    def drop(self, resource: Resource, namespace: str, name: str) -> None:
        """Take an object away, as somebody else did."""
        entry = self._run(self._store.get(resource.key(namespace, name)))
        if entry is not None:
            self._run(self._store.delete(entry.key, expected=entry.revision))


def _set(tree: Tree, path: list[str], text: str) -> None:
    *above, last = path
    for name in above:
        tree = tree.setdefault(name, {})
    tree[last] = text
