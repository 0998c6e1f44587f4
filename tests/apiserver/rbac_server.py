"""A server behind certificates, tokens and roles, asked through its router."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec.structs import replace

from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth import certificates
from moorage.apiserver.auth.authenticator import Authenticator
from moorage.apiserver.auth.authorizer import (
    AuthorizerInformer,
    ClusterAuthorizer,
    RBACAccessControl,
    core_object_reader,
)
from moorage.apiserver.auth.role_reconciler import reconcile_bootstrap_policy
from moorage.apiserver.auth.service_account_tokens import Issuer, SigningKey
from moorage.apiserver.auth.token_requests import TokenSigner
from moorage.apiserver.auth.users import read_tokens
from moorage.apiserver.discovery import version_document
from moorage.apiserver.http.messages import Request, Response
from moorage.apiserver.http.non_resource import ServerDocuments
from moorage.apiserver.http.router import Router
from moorage.apiserver.namespace_controller import create_system_namespaces
from moorage.apiserver.resources import REVIEWS
from moorage.apiserver.server import make_server_context
from moorage.apiserver.server_context import ServerContext
from moorage.store.sqlite import open_sqlite

NOW = Timestamp(datetime(2026, 1, 1, tzinfo=UTC))
TOKENS = read_tokens(
    "root,root,1,system:masters\nann,ann,2\nnode-a,system:node:node-a,3,system:nodes\n"
    "scheduler,system:kube-scheduler,4\n"
)
KEY = SigningKey.from_pem(certificates.new_key())
RBAC = "/apis/rbac.authorization.k8s.io/v1"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"


class SignallingAuthorizer(ClusterAuthorizer):
    """An authorizer that signals every event."""

    def __init__(self, gates: Any) -> None:
        super().__init__(gates)
        self.changed = asyncio.Event()

    def on_update(self, value: Any) -> None:
        super().on_update(value)
        self.changed.set()

    def on_delete(self, value: Any) -> None:
        super().on_delete(value)
        self.changed.set()


class World(NamedTuple):
    """A server without a network."""

    service: ServerContext
    authorizer: SignallingAuthorizer
    follower: AuthorizerInformer
    router: Router

    async def ask(
        self, method: str, path: str, who: str = "", body: Any = None, **headers: str
    ) -> tuple[int, Any]:
        """Return the status and the body of a response; the authorizer has seen all writes."""
        sent = {name.replace("_", "-"): value for name, value in headers.items()}
        if who:
            sent["authorization"] = f"Bearer {who}"
        path, _, query = path.partition("?")
        fields = dict(part.split("=", 1) for part in query.split("&")) if query else {}
        data = _bytes_of(body)
        sent.setdefault("content-type", "application/json")
        answer = await self.router.handle(Request(method, path, fields, sent, data))
        assert isinstance(answer, Response)
        await self.follower.load()
        is_json = answer.content_type.startswith("application/json")
        return answer.status, msgspec.json.decode(answer.body) if is_json else answer.body


@asynccontextmanager
async def open_world(folder: Path) -> AsyncIterator[World]:
    async with open_sqlite(folder) as store:
        bare = make_server_context(store, now=lambda: NOW)
        authorizer = SignallingAuthorizer(bare.gates)
        issuer = Issuer("https://x", (KEY.public,), ("https://x",))
        service = replace(bare, authorizer=authorizer, signing=TokenSigner(KEY, issuer))
        await create_system_namespaces(service)
        await reconcile_bootstrap_policy(service)
        follower = AuthorizerInformer(service, authorizer)
        await follower.load()
        authenticator = Authenticator(issuer, core_object_reader(service), service.now, TOKENS)
        fixed = ServerDocuments(
            service.resources, REVIEWS, version_document(python_version="3", platform="p")
        )
        router = Router(service, RBACAccessControl(authorizer, authenticator), fixed)
        yield World(service, authorizer, follower, router)


def within(folder: Path, scenario: Callable[[World], Awaitable[None]]) -> None:
    async def run() -> None:
        async with open_world(folder) as world:
            await scenario(world)

    asyncio.run(run())


def _bytes_of(body: Any) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else msgspec.json.encode(body)
