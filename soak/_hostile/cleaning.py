"""What an administrator does now and then: look at everything, and remove what has gathered."""

from __future__ import annotations

import asyncio
import json
from random import Random
from typing import Any
from urllib.parse import quote

from soak._hostile.answers import Findings
from soak._hostile.bodies import NAMES
from soak._hostile.objects import CLUSTER_SCOPED, NAMESPACED, good_objects
from soak._hostile.quiet import MERGE, Quiet
from soak._hostile.requests import Requests
from soak._hostile.site import DRIVER, HostileSite, python_text
from soak._hostile.users import (
    EVIL_NODE,
    QUIET,
    QUOTAS,
    TENANTS,
    Canaries,
    User,
    bootstrap_secret,
    rights,
    users_of,
)
from soak._http import Connection, LostError, Reply

TRIES = 40
SEEDS = ("a", "b")
KEPT = ("bindings", "events")
ACCOUNT = f"/api/v1/namespaces/{TENANTS[0]}/serviceaccounts/worker/token"


class Cleaner:
    """The administrator of a case."""

    def __init__(self, site: HostileSite, canaries: Canaries, findings: Findings) -> None:
        self.findings = findings
        self._site, self._canaries = site, canaries
        self._address = site.admin()
        self._connection: Connection | None = None
        self._bootstrap = ""
        self._kept: dict[str, set[str]] = {}  # names, by the path of their kind

    @property
    def admin(self) -> Connection:
        """The connection of the administrator."""
        assert self._connection is not None
        return self._connection

    async def prepare(self, random: Random) -> tuple[User, ...]:
        """Create users, their rights and the canaries; return the hostile users."""
        self._connection = await self._site.connect(self._address)
        self._bootstrap = f"{random.getrandbits(24):06x}.{random.getrandbits(64):016x}"
        secret = bootstrap_secret(self._bootstrap)
        await self._ask("POST", "/api/v1/namespaces/kube-system/secrets", secret)
        await self._put_rights()
        await self._canaries.put_all(self.admin)
        await self._seed()
        return await self._users()

    async def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.cut()
            self._connection = None
        await asyncio.sleep(0)

    async def reconnect(self) -> None:
        """Take a new connection: on the old one an answer may be under way."""
        await self.close()
        self._connection = await self._site.connect(self._address)

    async def _put_rights(self) -> None:
        for path, tree in rights():
            reply = await self._ask("POST", path, tree)
            assert reply.status in (201, 409), reply

    async def _users(self) -> tuple[User, ...]:
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
        reply = await self._ask("POST", ACCOUNT, request)
        token = reply.json["status"]["token"] if reply.status == 201 else "gone"
        return users_of(self._site.tokens, token, self._bootstrap)

    async def _ask(self, method: str, path: str, body: Any = None, **options: str) -> Reply:
        """Return an answer, whichever process of the server gives it."""
        for _ in range(TRIES):
            try:
                if self._connection is None:
                    self._connection = await self._site.connect(self._address)
                return await self._connection.ask(method, path, body, **options)
            except LostError:
                self._connection = None
                await asyncio.sleep(0.05)
        raise AssertionError(f"no answer to {method} {path}")

    # --- now and then -------------------------------------------------------------------------

    async def check(self, quiet: Quiet) -> None:
        """Check the laws of the state."""
        for fact in self._site.ended():
            self.findings.note("ended", fact)
        for fact in self._site.new_log_faults():
            self.findings.note("log", fact)
        reply = await self._ask("GET", "/livez")  # also: there is a connection now
        assert reply.status == 200, reply
        try:
            for fact in await self._canaries.check(self.admin):
                self.findings.note("isolation", fact)
            await quiet.verify(self.admin)
            await self._read_all()
        except LostError:
            self._connection = None  # a kill; the next look will see it all

    async def clean(self, requests: Requests) -> None:
        """Remove what has gathered, and give back what users have taken from themselves."""
        try:
            await self._clean()
            await self._put_rights()
            for namespace in TENANTS:
                await self._canaries.put(self.admin, namespace)
            await self._seed()
        except LostError:
            self._connection = None
        requests.renew(await self._users())

    async def _read_all(self) -> None:
        """Read everything: it can be read, and no program wrote Python's texts anywhere."""
        for kind in (*NAMESPACED, *CLUSTER_SCOPED):
            if kind.plural == "bindings":
                continue
            start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            reply = await self._ask("GET", f"{start}/{kind.plural}")
            if reply.status != 200:
                fact = f"{kind.api_version} {kind.plural}: {reply.status} {reply.body[:1000]!r}"
                self.findings.note("unreadable", fact)
            if found := python_text(reply.body):
                self.findings.note("Python", f"in {kind.plural}: {found.decode(errors='replace')}")

    async def _clean(self) -> None:
        for kind in NAMESPACED:
            if kind.api_version != kind.hub_version or kind.plural in KEPT:
                continue
            start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            for namespace in (*TENANTS, QUOTAS):
                path = f"{start}/namespaces/{namespace}/{kind.plural}"
                if kind.plural not in ("rolebindings", "serviceaccounts", "resourcequotas"):
                    await self._ask("DELETE", f"{path}?gracePeriodSeconds=0")
                await self._free(path)
        for path, kept in self._kept.items():
            for name in await self._names(path):
                if name not in kept and DRIVER not in name:  # a driver publishes under new names
                    await self._ask("DELETE", f"{path}/{quote(name, safe='')}")
            await self._free(path)

    async def remember(self) -> None:
        """Take what there is without a namespace as good."""
        for kind in CLUSTER_SCOPED:
            if kind.api_version == kind.hub_version:
                start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
                path = f"{start}/{kind.plural}"
                self._kept[path] = await self._names(path) - {*NAMES, EVIL_NODE}

    async def _names(self, path: str) -> set[str]:
        reply = await self._ask("GET", path)
        return {each["metadata"]["name"] for each in reply.json["items"]}

    async def _seed(self) -> None:
        """Create good objects, so that updates and patches have something to change."""
        for kind in (*NAMESPACED, *CLUSTER_SCOPED):
            if kind.api_version != kind.hub_version or kind.plural in (*KEPT, "resourcequotas"):
                continue
            start = f"/apis/{kind.api_version}" if kind.group else f"/api/{kind.version}"
            for namespace in TENANTS if kind.namespaced else ("",):
                within = f"/namespaces/{namespace}" if namespace else ""
                for name in SEEDS:
                    tree = json.loads(good_objects(kind)[0])
                    tree["metadata"]["name"] = name
                    reply = await self._ask("POST", f"{start}{within}/{kind.plural}", tree)
                    # A hostile quota or class may be in the way, but a good object is good.
                    assert reply.status in (201, 403, 409), f"{kind.name}: {reply}"

    async def _free(self, path: str) -> None:
        """Take the finalizers from what is being deleted."""
        reply = await self._ask("GET", path)
        if b"deletionTimestamp" not in reply.body:
            return
        for each in reply.json.get("items", ()):
            metadata = each["metadata"]
            is_ours = metadata.get("namespace") == QUIET
            if "deletionTimestamp" in metadata and metadata.get("finalizers") and not is_ours:
                change = {"metadata": {"finalizers": None}}
                await self._ask("PATCH", f"{path}/{metadata['name']}", change, media=MERGE)
