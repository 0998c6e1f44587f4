"""A good user: it measures how long its requests take, and nothing that was answered may be lost.

It writes ConfigMaps and pods of its own all the time, and watches them. Now and then it runs a pod
with a claim, which must be scheduled, run, end and be gone with its claim in bounded time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from random import Random
from typing import Any

from soak._hostile.answers import Findings
from soak._hostile.requests import Attack
from soak._hostile.site import DRIVER, NODE, HostileSite
from soak._hostile.users import QUIET
from soak._http import Connection, LostError, Reply

NAMES = 20
PAUSE_S = 0.1
LATENCY_S_MAX = 1.0
BUSY_SHARE = 0.6  # of a slow answer, that the server itself was at work
POD_S_MAX = 60.0
LOOK_EVERY_S = 0.1
MAPS = f"/api/v1/namespaces/{QUIET}/configmaps"
PODS = f"/api/v1/namespaces/{QUIET}/pods"
CLAIMS = f"/apis/resource.k8s.io/v1/namespaces/{QUIET}/resourceclaims"
LABEL = "node-restriction.kubernetes.io/soak"  # which no node can give itself
MERGE = "application/merge-patch+json"

Tree = dict[str, Any]


class Quiet:
    """The good user of a case."""

    def __init__(
        self,
        site: HostileSite,
        findings: Findings,
        random: Random,
        in_flight: Callable[[], list[Attack]],
    ) -> None:
        self.latencies_s: list[float] = []
        self.pods_s: list[float] = []
        self.lost_machine = 0  # slow answers during which the server had no processor
        self._site, self._findings, self._random = site, findings, random
        self._in_flight = in_flight
        self._more = f"Authorization: Bearer {site.tokens[QUIET]}\r\n"
        self._address = site.address()
        self._known: dict[str, set[str | None]] = {f"k{n}": {None} for n in range(NAMES)}
        self._number = 0

    async def prepare(self, admin: Connection) -> None:
        """Create what its pods need."""
        spec = {"selectors": [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]}
        made = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceClass"}
        tree = {**made, "metadata": {"name": DRIVER}, "spec": spec}
        reply = await admin.ask("POST", "/apis/resource.k8s.io/v1/deviceclasses", tree)
        assert reply.status == 201, reply
        # Taints of devices are for others; a toleration of all effects does not keep from eviction.
        tolerations = [
            {"operator": "Exists", "effect": effect} for effect in ("NoSchedule", "NoExecute")
        ]
        exactly = {"deviceClassName": DRIVER, "tolerations": tolerations}
        request = {"name": "r", "exactly": exactly}
        made = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaimTemplate"}
        tree = {
            **made,
            "metadata": {"name": "lamp"},
            "spec": {"spec": {"devices": {"requests": [request]}}},
        }
        path = f"/apis/resource.k8s.io/v1/namespaces/{QUIET}/resourceclaimtemplates"
        reply = await admin.ask("POST", path, tree)
        assert reply.status == 201, reply
        labels = {"metadata": {"labels": {LABEL: "good"}}}
        reply = await admin.ask("PATCH", f"/api/v1/nodes/{NODE}", labels, media=MERGE)
        assert reply.status == 200, reply

    # --- requests -----------------------------------------------------------------------------

    async def work(self) -> None:
        """Write and read until cancelled."""
        while True:
            connection = await self._site.connect(self._address)
            try:
                while True:
                    await self._write_map(connection)
                    await self._timed(connection, "GET", f"{MAPS}?limit=500")
                    await self._use_pod(connection)
                    await asyncio.sleep(PAUSE_S)
            except LostError:
                await asyncio.sleep(PAUSE_S)
            finally:
                connection.cut()

    async def _timed(
        self, connection: Connection, method: str, path: str, body: Any = None
    ) -> Reply:
        began, used_s = time.monotonic(), self._site.processor_s()
        reply = await connection.ask(method, path, body, more=self._more)
        took_s = time.monotonic() - began
        self.latencies_s.append(took_s)
        if reply.status >= 500 or reply.status in (401, 403):
            self._findings.note(
                "good requests", f"{method} {path}: {reply.status} {reply.body[:500]!r}"
            )
        if took_s > LATENCY_S_MAX:
            worked_s = self._site.processor_s() - used_s
            if worked_s > BUSY_SHARE * took_s:
                slow = self._in_flight()[:1]
                fact = (
                    f"{method} {path}: {took_s:.2f} s, of which the server worked {worked_s:.2f} s"
                )
                self._findings.note("latency", fact, slow[0] if slow else None)
            else:
                self.lost_machine += 1
        return reply

    async def _write_map(self, connection: Connection) -> None:
        """Change one ConfigMap; what it may be then is known, whatever happens."""
        name = f"k{self._random.randrange(NAMES)}"
        states = self._known[name]
        self._number += 1
        value = str(self._number)
        after: str | None = None
        body = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name},
            "data": {"n": value},
        }
        match self._random.randrange(3):
            case 0:
                states.add(value)
                reply = await self._timed(connection, "POST", MAPS, body)
                after, is_done = value, reply.status == 201
            case 1:
                states.add(value)
                reply = await self._timed(connection, "PUT", f"{MAPS}/{name}", body)
                after, is_done = value, reply.status == 200
            case _:
                states.add(None)
                reply = await self._timed(connection, "DELETE", f"{MAPS}/{name}")
                is_done = reply.status == 200
        if is_done:
            self._known[name] = {after}
        elif reply.status in (404, 409):  # it is not there; or it is, and as it was
            possible = states & {None} if reply.status == 404 else states - {None, value}
            self._known[name] = possible
            if not possible:
                self._findings.note("lost writes", f"{name}: {reply.status}, but it was {states}")

    async def _use_pod(self, connection: Connection) -> None:
        """Create a pod that nothing runs, look at it by a watch too, and delete it."""
        name = f"p{self._number}"
        spec = {
            "containers": [{"name": "c", "image": "i"}],
            "schedulingGates": [{"name": "x.io/y"}],
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        reply = await self._timed(connection, "POST", PODS, body)
        if reply.status != 201:
            self._findings.note("good requests", f"a pod: {reply.status} {reply.body[:500]!r}")
            return
        revision = int(reply.json["metadata"]["resourceVersion"])
        selected = f"fieldSelector=metadata.name={name}"
        query = f"watch=1&timeoutSeconds=5&{selected}&resourceVersion={revision - 1}"
        watching = asyncio.create_task(self._first_event(query))
        reply = await self._timed(connection, "GET", f"{PODS}/{name}")
        assert reply.status == 200, reply
        await watching
        await self._timed(connection, "DELETE", f"{PODS}/{name}?gracePeriodSeconds=0")

    async def _first_event(self, query: str) -> None:
        if self._number % 10:
            return
        connection = await self._site.connect(self._address)
        began = time.monotonic()
        try:
            connection.send(
                f"GET {PODS}?{query} HTTP/1.1\r\nHost: localhost\r\n{self._more}\r\n".encode()
            )
            async for part in connection.rest():
                if b'"type":' in part:
                    self.latencies_s.append(time.monotonic() - began)
                    return
            self._findings.note("good requests", "a watch ended without the event")
        except LostError:
            return
        finally:
            connection.cut()

    async def verify(self, admin: Connection) -> None:
        """See that everything is as it was answered."""
        reply = await admin.ask("GET", MAPS)
        assert reply.status == 200, reply
        found = {
            each["metadata"]["name"]: each["data"].get("n")
            for each in reply.json["items"]
            if "data" in each
        }
        for name, states in self._known.items():
            if found.get(name) not in states:
                self._findings.note("lost writes", f"{name} is {found.get(name)}, and not {states}")

    # --- pods with claims ---------------------------------------------------------------------

    async def run_pods(self, every_s: float) -> None:
        """Run one pod with a claim after the other until cancelled."""
        number = 0
        while True:
            await self.run_pod(number)
            number += 1
            await asyncio.sleep(every_s)

    async def run_pod(self, number: int) -> None:
        """Run a pod that uses a device, to its end."""
        name = f"good-{number}"
        container = {
            "name": "main",
            "image": "none",
            "command": ["sh", "-c", "exit 0"],
            "resources": {"claims": [{"name": "lamp"}]},
        }
        spec: Tree = {
            "containers": [container],
            "restartPolicy": "Never",
            "priorityClassName": "system-node-critical",
            "nodeSelector": {LABEL: "good"},
            "tolerations": [{"operator": "Exists"}],
            "resourceClaims": [{"name": "lamp", "resourceClaimTemplateName": "lamp"}],
            "terminationGracePeriodSeconds": 0,
        }
        body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}
        began = time.monotonic()
        if not await self._until("POST", PODS, body, lambda reply: reply.status in (201, 409)):
            return
        is_done = await self._until(
            "GET", f"{PODS}/{name}", None, lambda reply: b'"phase":"Succeeded"' in reply.body
        )
        await self._until(
            "DELETE", f"{PODS}/{name}", None, lambda reply: reply.status in (200, 404)
        )
        is_gone = await self._until(
            "GET", f"{PODS}/{name}", None, lambda reply: reply.status == 404
        )
        await self._until("GET", CLAIMS, None, lambda reply: f'"{name}'.encode() not in reply.body)
        if is_done and is_gone:
            self.pods_s.append(time.monotonic() - began)

    async def _until(
        self, method: str, path: str, body: Any, is_so: Callable[[Reply], bool]
    ) -> bool:
        """Ask until an answer is as it should be; return whether it ever was."""
        end_s = time.monotonic() + POD_S_MAX
        reply: Reply | None = None
        while time.monotonic() < end_s:
            connection = await self._site.connect(self._address)
            try:
                while time.monotonic() < end_s:
                    reply = await connection.ask(method, path, body, more=self._more)
                    if is_so(reply):
                        return True
                    await asyncio.sleep(LOOK_EVERY_S)
            except LostError:
                await asyncio.sleep(LOOK_EVERY_S)
            finally:
                connection.cut()
        shown = (
            "" if reply is None else f"{reply.status} {reply.body[:4000].decode(errors='replace')}"
        )
        self._findings.note(
            "progress", f"{method} {path.rpartition('/')[0]} after {POD_S_MAX:g} s: {shown}"
        )
        return False
