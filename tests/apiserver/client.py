"""A server without a network, and a client that speaks ASGI to it."""

from __future__ import annotations

import asyncio
import json
from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from datetime import timedelta
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import urlsplit

from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.apiserver.audit import NO_AUDIT, Audit
from moorage.apiserver.auth.authorizer import AccessControl, AdminToken, AlwaysAllow
from moorage.apiserver.custom_resources.collector import CustomResourceCollector
from moorage.apiserver.custom_resources.manager import CustomResourceManager
from moorage.apiserver.http.app import Application
from moorage.apiserver.http.flow_control import Seats
from moorage.apiserver.namespace_controller import NamespaceController, create_system_namespaces
from moorage.apiserver.resources import Resources
from moorage.apiserver.runtime_config import RuntimeConfig
from moorage.apiserver.server import make_application, make_server_context, with_admission
from moorage.apiserver.settings import Limits
from moorage.store.sqlite import open_sqlite
from moorage.validation.pod_security import PodSecurityConfiguration

START = Timestamp.parse("2026-11-15T12:00:00Z")
WAIT_S = 10.0
TOKEN = "secret"

CLASSES = "/apis/resource.k8s.io/v1/deviceclasses"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"
SLICES = "/apis/resource.k8s.io/v1/resourceslices"
PODS = "/api/v1/namespaces/default/pods"
NAMESPACES = "/api/v1/namespaces"
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"

T = TypeVar("T")


class Reply(NamedTuple):
    """An answer."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def type(self) -> str:
        return dict(self.headers)["content-type"]

    @property
    def warnings(self) -> list[str]:
        return [value for name, value in self.headers if name == "warning"]

    @property
    def reason(self) -> str:
        return str(self.json["reason"])

    @property
    def message(self) -> str:
        return str(self.json["message"])


class Watch:
    """An open watch: its head, and its events one by one."""

    def __init__(self, client: Client, messages: asyncio.Queue[Any], task: Any) -> None:
        self._client = client
        self._messages = messages
        self._task = task
        self._lines: deque[bytes] = deque()
        start = self._message()
        self.status: int = start["status"]
        self.headers = {k.decode(): v.decode() for k, v in start["headers"]}

    def chunk(self) -> bytes | None:
        """Return the next bytes; None if the server has ended the watch."""
        while True:
            message = self._message()
            if message["body"]:
                return bytes(message["body"])
            if not message.get("more_body", False):
                return None

    def event(self) -> Any:
        if not self._lines:
            chunk = self.chunk()
            if chunk is None:
                return None
            self._lines.extend(chunk.splitlines())
        return json.loads(self._lines.popleft())

    def seen(self, count: int) -> list[tuple[str, str]]:
        """Return type and name of the next events."""
        events = [self.event() for _ in range(count)]
        return [(event["type"], event["object"]["metadata"].get("name", "")) for event in events]

    def close(self) -> None:
        self._task.cancel()
        self._client.run(asyncio.wait({self._task}))

    def _message(self) -> Any:
        return self._client.run(asyncio.wait_for(self._messages.get(), WAIT_S))


class Client:
    """A server on a folder, and everything that a client does with it."""

    def __init__(
        self,
        folder: Path,
        *,
        limits: Limits | None = None,
        seats: Seats | None = None,
        audit: Audit = NO_AUDIT,
        runtime: RuntimeConfig = RuntimeConfig(),  # noqa: B008
        gates: Gates | None = None,
        guarded: bool = False,
        pod_security: PodSecurityConfiguration = PodSecurityConfiguration(),  # noqa: B008
    ) -> None:
        self._runner = asyncio.Runner()
        self._stack = AsyncExitStack()
        self.now = START
        self._watches: list[Watch] = []
        security: AccessControl = AdminToken(TOKEN) if guarded else AlwaysAllow()
        self._runtime = runtime
        self._gates = gates or Gates.parse()
        self._pod_security = pod_security
        self.app: Application = self.run(self._open(folder, security, limits, seats, audit))

    async def _open(
        self,
        folder: Path,
        security: AccessControl,
        limits: Limits | None,
        seats: Seats | None,
        audit: Audit,
    ) -> Application:
        self.store = await self._stack.enter_async_context(open_sqlite(folder))
        gates = self._gates
        resources = Resources(serves=lambda kind: self._runtime.serves(kind, gates))
        service = make_server_context(
            self.store, now=lambda: self.now, gates=gates, resources=resources
        )
        self.service = with_admission(service, self._pod_security)
        await create_system_namespaces(self.service)
        assert self.service.admission is not None
        await self.service.admission.prepare()
        assert self.service.dynamic is not None
        await self.service.dynamic.prepare()
        customs = CustomResourceManager(self.service)
        await customs.load()
        self.collector = CustomResourceCollector(self.service)
        controllers = (
            NamespaceController(self.service),
            self.service.admission,
            self.service.dynamic,
            customs,
            self.collector,
        )
        going_on = [each.run() for each in controllers]
        self._tasks = {asyncio.create_task(each) for each in going_on}
        return make_application(
            self.service,
            security,
            limits=limits,
            seats=seats,
            audit=audit,
            reviews=self._runtime.reviews(gates),
        )

    def close(self) -> None:
        for watch in self._watches:
            watch.close()
        for task in self._tasks:
            task.cancel()
        self.run(asyncio.wait(self._tasks))
        self.run(self._stack.aclose())
        self._runner.close()

    def run(self, awaitable: Any) -> Any:
        async def awaited() -> Any:
            return await awaitable

        return self._runner.run(awaited())

    def later(self, seconds: int) -> None:
        self.now = Timestamp(self.now.instant + timedelta(seconds=seconds))

    # --- requests -----------------------------------------------------------------------------

    def ask(self, method: str, url: str, body: Any = None, **headers: str) -> Reply:
        """Return the answer to a request; names of headers have _ for -."""
        messages: list[Any] = []

        async def send(message: Any) -> None:
            messages.append(message)

        self.run(self.app(scope_of(method, url, headers), _receiving(_bytes_of(body)), send))
        start, *rest = messages
        head = tuple((k.decode(), v.decode()) for k, v in start["headers"])
        return Reply(start["status"], head, b"".join(part["body"] for part in rest))

    def get(self, url: str, **headers: str) -> Reply:
        return self.ask("GET", url, **headers)

    def post(self, url: str, body: Any, **headers: str) -> Reply:
        return self.ask("POST", url, body, **headers)

    def put(self, url: str, body: Any, **headers: str) -> Reply:
        return self.ask("PUT", url, body, **headers)

    def patch(self, url: str, body: Any, content_type: str, **headers: str) -> Reply:
        return self.ask("PATCH", url, body, content_type=content_type, **headers)

    def delete(self, url: str, body: Any = None, **headers: str) -> Reply:
        return self.ask("DELETE", url, body, **headers)

    def watch(self, url: str, **headers: str) -> Watch:
        """Open a watch."""
        messages: asyncio.Queue[Any] = asyncio.Queue()
        gone = asyncio.Event()
        sent = False

        async def receive() -> Any:
            nonlocal sent
            if sent:
                await gone.wait()
                return {"type": "http.disconnect"}
            sent = True
            return {"type": "http.request", "body": b""}

        async def opened() -> Any:
            return asyncio.create_task(
                self.app(scope_of("GET", url, headers), receive, messages.put)
            )

        watch = Watch(self, messages, self.run(opened()))
        self._watches.append(watch)
        return watch

    def until(self, check: Callable[[], T | None]) -> T:
        """Return what a check gives, once it gives something; the server works meanwhile."""
        for _ in range(1000):
            found = check()
            if found:
                return found
            self.run(asyncio.sleep(0.005))
        raise AssertionError("it did not come about")


def scope_of(method: str, url: str, headers: dict[str, str]) -> dict[str, Any]:
    parts = urlsplit(url)
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return {
        "type": "http",
        "method": method,
        "path": parts.path,
        "query_string": parts.query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in names.items()],
    }


def _receiving(body: bytes) -> Any:
    async def receive() -> Any:
        return {"type": "http.request", "body": body}

    return receive


def _bytes_of(body: Any) -> bytes:
    if body is None:
        return b""
    return body if isinstance(body, bytes) else json.dumps(body).encode()


# --- objects --------------------------------------------------------------------------------------


def device_class(name: str = "gpu", **metadata: Any) -> dict[str, Any]:
    expression = 'device.driver == "gpu.example.com"'
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": name, **metadata},
        "spec": {"selectors": [{"cel": {"expression": expression}}]},
    }


def claim(name: str = "one", **metadata: Any) -> dict[str, Any]:
    requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": name, **metadata},
        "spec": {"devices": {"requests": requests}},
    }


def pod(name: str = "p", *, node: str = "", **metadata: Any) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": "c", "image": "i"}]}
    if node:
        spec["nodeName"] = node
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": spec,
    }


def config_map(name: str = "m", **metadata: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": name, **metadata},
        "data": {"a": "b"},
    }


def resource_slice(name: str, *, driver: str = "gpu.example.com", node: str = "n") -> Any:
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": driver, "nodeName": node, "pool": pool, "devices": []}
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceSlice",
        "metadata": {"name": name},
        "spec": spec,
    }
