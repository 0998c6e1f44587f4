"""The page of a cluster: its users sign in as themselves, and see what they may list."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest

from moorage.api.core import Namespace
from moorage.api.meta import ObjectMeta
from moorage.api.rbac import (
    ClusterRole,
    ClusterRoleBinding,
    PolicyRule,
    RoleBinding,
    RoleRef,
    Subject,
)
from moorage.api.resource.v1 import DeviceClass
from moorage.apiserver.audit import DEFAULT_POLICY, Rotation
from moorage.apiserver.auth.credentials import ADMIN
from moorage.apiserver.auth.users import User, read_tokens
from moorage.apiserver.http.app import PEER
from moorage.apiserver.http.messages import Request, Response
from moorage.apiserver.server import Assembled, assembled
from moorage.apiserver.settings import Auditing, Settings
from moorage.cli.ui import fetch_link
from moorage.client.client_factory import RestConfig, in_process_client
from moorage.client.errors import UnauthorizedError
from moorage.client.writes import Create
from moorage.cluster.page import page_beside
from moorage.web.fleet import read_fleet
from moorage.web.page import Page
from tests.web.fleets import machine, told, waiting

TOKENS = read_tokens("root,root,1,system:masters\nann,ann,2\nbob,bob,3\n")
Scenario = Callable[["Cluster"], Awaitable[None]]


class Cluster:
    """A server with its page, without schedulers."""

    def __init__(self, made: Assembled, page: Page[User]) -> None:
        self.made, self.page = made, page

    async def ask(
        self, path: str, *, token: str = "", method: str = "GET", **headers: str
    ) -> tuple[int, dict[str, str], Any]:
        url = urlsplit(path)
        fields = dict(part.split("=", 1) for part in url.query.split("&")) if url.query else {}
        sent = {"host": "127.0.0.1:6443", "content-type": "application/json", **headers}
        if token:
            sent["authorization"] = f"Bearer {token}"
        request = Request(method, url.path, fields, sent, b"{}", uri=path)
        answer = await self.made.application.router.handle(request)
        assert isinstance(answer, Response)
        is_json = answer.content_type == "application/json"
        body = msgspec.json.decode(answer.body) if is_json and answer.body else answer.body
        return answer.status, dict(answer.headers), body

    async def fleet(self, token: str) -> dict[str, Any]:
        status, _, tree = await self.ask("/ui/fleet", token=token)
        assert status == 200, tree
        return told(read_fleet(tree))

    async def until(self, is_true: Callable[[dict[str, Any]], bool], token: str = "root") -> None:
        """Wait until the fleet that somebody sees is as it should be."""
        while not is_true(await self.fleet(token)):
            await asyncio.sleep(0.02)


def at_cluster(folder: Path, scenario: Scenario, *, auditing: Auditing | None = None) -> None:
    settings = Settings(folder, port=0, has_rbac=True, tokens=TOKENS, auditing=auditing)

    async def run() -> None:
        async with asyncio.timeout(60), assembled(settings) as made:
            assert made.credentials is not None
            client = in_process_client(
                made.application, scope={PEER: made.credentials.client_certificate(ADMIN)}
            )
            async with page_beside(made, settings) as page, client:
                for value in (*_roles(), *OBJECTS):
                    await client.write(Create(value))
                await scenario(Cluster(made, page))

    asyncio.run(run())


def meta(name: str, namespace: str = "") -> ObjectMeta:
    return ObjectMeta(name=name, namespace=namespace)


def _roles() -> list[Any]:
    """Return what lets ann see devices everywhere, and claims and pods of her namespace."""
    ann = (Subject(kind="User", name="ann", api_group="rbac.authorization.k8s.io"),)

    def role(name: str) -> RoleRef:
        return RoleRef(api_group="rbac.authorization.k8s.io", kind="ClusterRole", name=name)

    devices = PolicyRule(
        verbs=("list",),
        api_groups=("resource.k8s.io",),
        resources=("resourceslices", "deviceclasses"),
    )
    claims = PolicyRule(
        verbs=("list",), api_groups=("", "resource.k8s.io"), resources=("pods", "resourceclaims")
    )
    return [
        ClusterRole(metadata=meta("devices"), rules=(devices,)),
        ClusterRole(metadata=meta("claims"), rules=(claims,)),
        ClusterRoleBinding(metadata=meta("devices"), subjects=ann, role_ref=role("devices")),
        RoleBinding(metadata=meta("claims", "default"), subjects=ann, role_ref=role("claims")),
    ]


def _as_new(value: Any) -> Any:
    metadata = msgspec.structs.replace(value.metadata, uid="")
    return msgspec.structs.replace(value, metadata=metadata)


OBJECTS: list[Any] = [
    Namespace(metadata=meta("secret")),
    DeviceClass(metadata=meta("gpu")),
    *machine("n1"),
    *(_as_new(waiting(f"{space}-pod", namespace=space)[0]) for space in ("default", "secret")),
]


def test_users_see_what_they_may_list(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.until(lambda fleet: len(fleet["claims"]) == 2)
        everything = await cluster.fleet("root")
        assert everything["nodes"]["n1"][1] != 3
        hers = await cluster.fleet("ann")
        assert hers["claims"].keys() == {"default/default-pod-gpus"}
        assert hers["devices"].keys() == everything["devices"].keys()
        assert hers["nodes"]["n1"][1] == 3  # known from its slice only
        nothing = await cluster.fleet("bob")
        assert [nothing[name] for name in ("devices", "claims", "nodes")] == [{}, {}, {}]
        _, _, session = await cluster.ask("/ui/session", token="ann")
        assert session["user"] == "ann"
        assert "resourceclaims" in session["forbidden"]
        assert "resourceslices" not in session["forbidden"]
        path = "/ui/object?kind=ResourceClaim&namespace=secret&name=secret-pod-gpus"
        assert (await cluster.ask(path, token="ann"))[0] == 404
        assert (await cluster.ask(path, token="root"))[0] == 200

    at_cluster(tmp_path, scenario)


def test_nobody_is_let_in_without_credentials(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        for headers in ({}, {"authorization": "Bearer wrong"}, {"cookie": "moor-ui-6443=x"}):
            status, _, answer = await cluster.ask("/ui/fleet", **headers)
            assert (status, answer["code"]) == (401, "not-signed-in")
        assert (await cluster.ask("/ui/"))[0] == 200  # the page itself says what to do
        assert (await cluster.ask("/uixyz", token="root"))[0] == 404  # no path of the page

    at_cluster(tmp_path, scenario)


def test_a_link_signs_in_who_asked_for_it(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        status, _, answer = await cluster.ask("/ui/link", token="ann", method="POST")
        assert status == 200
        assert answer["url"].startswith(cluster.page.public_url)
        status, headers, _ = await cluster.ask("/ui/login?" + urlsplit(answer["url"]).query)
        assert status == 303
        assert "; Secure" in headers["Set-Cookie"]  # over TLS
        cookie = headers["Set-Cookie"].partition(";")[0]
        _, _, session = await cluster.ask("/ui/session", cookie=cookie)
        assert session["user"] == "ann"
        # A cookie makes no links: whoever has stolen one cannot keep it.
        status, _, _ = await cluster.ask("/ui/link", method="POST", cookie=cookie)
        assert status == 401

    at_cluster(tmp_path, scenario)


def test_changes_of_the_cluster_reach_the_page(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        await cluster.until(lambda fleet: "n2" not in fleet["nodes"])
        assert cluster.made.credentials is not None
        client = in_process_client(
            cluster.made.application,
            scope={PEER: cluster.made.credentials.client_certificate(ADMIN)},
        )
        async with client:
            for value in machine("n2"):
                await client.write(Create(value))
        await cluster.until(lambda fleet: "n2" in fleet["nodes"])
        _, _, history = await cluster.ask("/ui/history", token="root")
        assert history["first"] <= history["last"]

    at_cluster(tmp_path, scenario)


def test_the_audit_log_has_no_token(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"

    async def scenario(cluster: Cluster) -> None:
        _, _, answer = await cluster.ask("/ui/link", token="ann", method="POST")
        await cluster.ask("/ui/login?" + urlsplit(answer["url"]).query)

    at_cluster(tmp_path, scenario, auditing=Auditing(str(log), DEFAULT_POLICY, Rotation()))
    text = log.read_text()
    assert "/ui/login" in text
    assert "token=" not in text


def test_the_port_of_the_page_gives_no_links(tmp_path: Path) -> None:
    async def scenario(cluster: Cluster) -> None:
        config = RestConfig(server=cluster.page.public_url)
        with pytest.raises(UnauthorizedError, match="credentials"):
            await fetch_link(config)  # At the page's own port only links sign in.

    at_cluster(tmp_path, scenario)
