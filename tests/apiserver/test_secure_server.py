"""The server over TLS on this machine's loopback: who is let in, and as whom."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import msgspec
import pytest
import yaml

from moorage.apiserver.auth import certificates
from moorage.apiserver.auth.certificates import Pair
from moorage.apiserver.auth.users import read_tokens
from moorage.apiserver.server import _now, serve
from moorage.apiserver.settings import Settings

WHOAMI = "/apis/authentication.k8s.io/v1/selfsubjectreviews"


class Running(NamedTuple):
    """A server that runs."""

    port: int
    folder: Path

    async def ask(
        self, path: str, client: Pair | None = None, *headers: str, body: Any = None
    ) -> tuple[int, Any]:
        """Return the status and the answer to a request over TLS."""
        context = ssl.create_default_context(cafile=str(self.folder / "pki" / "ca.crt"))
        if client is not None:
            file = self.folder / "client.pem"
            file.write_bytes(client.key + client.certificate)
            context.load_cert_chain(file)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=context)
        data = b"" if body is None else msgspec.json.encode(body)
        method = "GET" if body is None else "POST"
        lines = [
            f"{method} {path} HTTP/1.1",
            "Host: x",
            "Connection: close",
            "Content-Type: application/json",
            f"Content-Length: {len(data)}",
            *headers,
        ]
        writer.write("\r\n".join([*lines, "", ""]).encode() + data)
        try:
            async with asyncio.timeout(10):
                answer = await reader.read()
        finally:
            writer.close()
        head, _, rest = answer.partition(b"\r\n\r\n")
        is_json = b"application/json" in head
        return int(head.split()[1]), msgspec.json.decode(rest) if is_json else rest

    def pair(self, name: str) -> Pair:
        folder = self.folder / "pki"
        return Pair(*((folder / f"{name}.{end}").read_bytes() for end in ("crt", "key")))

    async def user(self, client: Pair | None = None, *headers: str) -> Any:
        """Return who the server takes a client for."""
        code, answer = await self.ask(WHOAMI, client, *headers, body={})
        assert code == 201, answer
        return answer["status"]["userInfo"]


def running(folder: Path, scenario: Callable[[Running], Awaitable[None]], **options: Any) -> None:
    async def run() -> None:
        started: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        tokens = read_tokens("good,ann,1,dev")
        settings = Settings(folder, port=0, has_rbac=True, tokens=tokens, **options)
        serving = asyncio.create_task(serve(settings, started.set_result))
        try:
            async with asyncio.timeout(30):
                url = await started
            port = urlsplit(url).port
            assert port is not None
            await scenario(Running(port, folder))
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)

    asyncio.run(run())


def test_certificates_and_tokens_say_who_asks(tmp_path: Path) -> None:
    async def scenario(server: Running) -> None:
        admin = await server.user(server.pair("admin"))
        assert admin["username"] == "kubernetes-admin"
        assert admin["groups"] == ["system:masters", "system:authenticated"]
        ann = await server.user(None, "Authorization: Bearer good")
        assert (ann["username"], ann["groups"]) == ("ann", ["dev", "system:authenticated"])
        acting = ("Impersonate-User: bob", "Impersonate-Group: one", "Impersonate-Group: two")
        bob = await server.user(server.pair("admin"), *acting)
        assert (bob["username"], bob["groups"]) == ("bob", ["one", "two", "system:authenticated"])
        assert (await server.ask("/version"))[0] == 200
        assert (await server.ask("/api/v1/nodes"))[0] == 403
        assert (await server.ask("/api/v1/nodes", server.pair("scheduler")))[0] == 200
        assert (await server.ask("/api/v1/secrets", server.pair("scheduler")))[0] == 403
        code, _ = await server.ask("/version", None, "Authorization: Bearer bad")
        assert code == 401

    running(tmp_path, scenario)


def test_a_certificate_of_somebody_else_is_not_let_in(tmp_path: Path) -> None:
    async def scenario(server: Running) -> None:
        foreign = certificates.authority_certificate(certificates.new_key(), _now())
        forged = certificates.client_certificate(foreign, "x", ("system:masters",), _now())
        with pytest.raises((ssl.SSLError, ConnectionError, IndexError)):
            await server.ask("/version", forged)
        assert (await server.ask("/version"))[0] == 200

    running(tmp_path, scenario)


def test_the_kubeconfig_is_for_its_owner_and_has_the_way_in(tmp_path: Path) -> None:
    async def scenario(server: Running) -> None:
        file = tmp_path / "kubeconfig"
        assert file.stat().st_mode & 0o777 == 0o600
        tree = yaml.safe_load(file.read_text())
        assert tree["clusters"][0]["cluster"]["server"] == f"https://127.0.0.1:{server.port}"
        assert "client-key-data" in tree["users"][0]["user"]

    running(tmp_path, scenario)


def test_the_certificate_is_for_all_that_the_server_is_called(tmp_path: Path) -> None:
    async def scenario(server: Running) -> None:
        names = certificates.names_of(server.pair("server").certificate)
        assert {"127.0.0.1", "10.1.2.3", "moor.example", "10.9.9.9"} <= names
        assert "0.0.0.0" not in names
        tree = yaml.safe_load((tmp_path / "kubeconfig").read_text())
        assert tree["clusters"][0]["cluster"]["server"] == f"https://10.1.2.3:{server.port}"

    names = ("moor.example", "10.9.9.9")
    running(tmp_path, scenario, address="0.0.0.0", advertised="10.1.2.3", names=names)
