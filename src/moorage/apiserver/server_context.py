"""ServerContext: what handlers need besides the request."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import Struct, field

from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.apiserver.admission.chain import AdmissionPlugins
from moorage.apiserver.auth.authorizer import ClusterAuthorizer
from moorage.apiserver.auth.token_requests import TokenSigner
from moorage.apiserver.dynamic_admission.plugin import DynamicAdmission
from moorage.apiserver.http.response_encoder import EncodedEvents, new_encoded_events
from moorage.apiserver.node_proxy.connection import NodeIdentity
from moorage.apiserver.resources import Resources
from moorage.apiserver.settings import WATCH_S
from moorage.apiserver.storage.registry import Registry
from moorage.apiserver.worker_threads import WorkerThreads

NAMESPACES = ("", "namespaces")


class ServerContext(Struct, frozen=True):
    """A server without its network."""

    registry: Registry
    resources: Resources
    gates: Gates
    now: Callable[[], Timestamp]
    new_uid: Callable[[], str]
    new_suffix: Callable[[], str]
    extensions: bool = True
    authorizer: ClusterAuthorizer | None = None  # None: no NodeRestriction and no escalation checks
    signing: TokenSigner | None = None  # None: no service account tokens
    admission: AdmissionPlugins | None = None  # None: no quotas, and only default classes
    dynamic: DynamicAdmission | None = None  # None: no policies and webhooks
    nodes: NodeIdentity | None = None  # None: nodes cannot be reached
    watch_s: Callable[[], int] = lambda: WATCH_S  # the duration of watches that name none
    workers: WorkerThreads = field(default_factory=WorkerThreads)
    encoded_events: EncodedEvents = field(default_factory=new_encoded_events)  # shared by watches

    async def namespace(self, name: str) -> Any | None:
        """Return a namespace, if it exists."""
        if not name:
            return None
        return await self.registry.find(self.resources.of(*NAMESPACES), "", name)
