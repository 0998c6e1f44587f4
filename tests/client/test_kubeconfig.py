"""Kubeconfig files, pods, commands: how a client finds its server and shows who it is."""

from __future__ import annotations

import asyncio
import base64
import os
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec.structs import replace

from moorage.api.authentication import SelfSubjectReview
from moorage.api.timestamp import Timestamp
from moorage.apiserver.auth.users import read_tokens
from moorage.apiserver.settings import Settings
from moorage.client import client_factory
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.errors import AccessError, ForbiddenError, UnauthorizedError, UnavailableError
from moorage.client.http.credentials import ExpiringAuth, RenewedCredentials
from moorage.client.http.exec_plugin import exec_source
from moorage.client.http.kubeconfig import Kubeconfig
from moorage.client.http.rest_config import (
    ExecConfig,
    ImpersonationConfig,
    RestConfig,
    in_cluster_config,
    transport_for,
)
from moorage.client.writes import Create
from moorage.kit.clock import ManualClock
from tests.client.servers import serving

V1 = "client.authentication.k8s.io/v1"


def write(path: Path, *, server: str = "https://one:6443", name: str = "one", **parts: Any) -> Path:
    """Write a kubeconfig with one cluster, user and context."""
    tree = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": {"server": server, **parts.get("cluster", {})}}],
        "users": [{"name": name, "user": parts.get("user", {})}],
        "contexts": [
            {"name": name, "context": {"cluster": name, "user": name, **parts.get("context", {})}}
        ],
        "current-context": name,
    }
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(tree))
    return path


def access_of(path: Path, context: str = "") -> RestConfig:
    return Kubeconfig([path]).rest_config(context)


def test_data_and_files_beside_the_kubeconfig(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_bytes(b"authority")
    path = write(
        tmp_path / "config",
        cluster={"certificate-authority": "ca.crt", "tls-server-name": "kubernetes"},
        user={"client-certificate-data": base64.b64encode(b"mine").decode(), "client-key": "key"},
        context={"namespace": "team"},
    )
    (tmp_path / "key").write_bytes(b"secret")
    access = access_of(path)
    assert (access.server, access.server_name) == ("https://one:6443", "kubernetes")
    assert (access.authority, access.certificate, access.key) == (b"authority", b"mine", b"secret")
    assert access.namespace == "team"


def test_several_files_are_read_as_one(tmp_path: Path) -> None:
    first = write(tmp_path / "a" / "config", user={"token": "first"})
    second = write(tmp_path / "b" / "config", name="two", server="https://two", user={"token": "x"})
    again = write(tmp_path / "c" / "config", server="https://other", user={"token": "last"})
    paths = os.pathsep.join(map(str, [first, tmp_path / "missing", second, again]))
    environment = {"KUBECONFIG": paths}
    assert load_rest_config(environment=environment).token == "first"
    assert load_rest_config(context="two", environment=environment).server == "https://two"


def test_the_usual_place_is_below_home(tmp_path: Path) -> None:
    write(tmp_path / ".kube" / "config", user={"token": "t"})
    assert load_rest_config(environment={"HOME": str(tmp_path)}).token == "t"


def test_what_is_written_of_a_user(tmp_path: Path) -> None:
    user = {
        "tokenFile": "token",
        "as": "ann",
        "as-groups": ["dev"],
        "as-user-extra": {"scopes": ["view"]},
        "exec": {
            "apiVersion": V1,
            "command": "./bin/login",
            "args": ["-v"],
            "env": [{"name": "A", "value": "b"}],
            "provideClusterInfo": True,
            "interactiveMode": "IfAvailable",
            "installHint": "install it",
        },
    }
    access = access_of(write(tmp_path / "config", user=user))
    assert access.token_file == str(tmp_path / "token")
    assert access.act_as == ImpersonationConfig("ann", "", ("dev",), (("scopes", "view"),))
    program = str(tmp_path / "bin" / "login")
    wanted = ExecConfig(program, ("-v",), (("A", "b"),), V1, True, "install it")
    assert access.command == wanted


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        ({"cluster": {"proxy-url": "http://proxy"}}, "proxy-url is not supported"),
        ({"server": ""}, "no server is given"),
        ({"user": {"auth-provider": {"name": "gcp"}}}, "use exec instead"),
        ({"user": {"exec": {"command": "x", "apiVersion": "v9"}}}, "exec.apiVersion must be"),
        ({"user": {"exec": {"apiVersion": V1}}}, "exec has no command"),
        ({"user": {"client-key-data": "%"}}, "client key data is not base64"),
        ({"user": {"client-key": "missing"}}, "No such file"),
        ({"user": {"token": 5}}, "Expected `str | null`, got `int`"),
        ({"context": {"cluster": "x"}}, "there is no cluster 'x'"),
        ({"context": {"user": "x"}}, "there is no user 'x'"),
        (
            {"cluster": {"insecure-skip-tls-verify": True, "certificate-authority": "x"}},
            "exclude each other",
        ),
    ],
)
def test_what_cannot_be_is_said(tmp_path: Path, parts: dict[str, Any], words: str) -> None:
    with pytest.raises(AccessError, match=words.replace("|", r"\|")):
        access_of(write(tmp_path / "config", **parts))


def test_missing_and_broken_files(tmp_path: Path) -> None:
    with pytest.raises(AccessError, match="no such file"):
        load_rest_config(str(tmp_path / "config"))
    with pytest.raises(AccessError, match="set KUBECONFIG"):
        load_rest_config(environment={"HOME": str(tmp_path)})
    path = tmp_path / "config"
    path.write_text("a: [")
    with pytest.raises(AccessError, match="config"):
        access_of(path)
    write(path)
    with pytest.raises(AccessError, match="no context 'x'; there are: one"):
        access_of(path, "x")


@pytest.mark.parametrize("server", ["one:6443", "ftp://one", "https://", "https://a:x", "a\r\nb"])
def test_a_server_must_be_a_url(server: str) -> None:
    with pytest.raises(AccessError):
        transport_for(RestConfig(server))


def test_credentials_that_are_none() -> None:
    with pytest.raises(AccessError, match="certificate needs its key"):
        transport_for(RestConfig("https://one", certificate=b"x"))
    with pytest.raises(AccessError, match="do not work"):
        transport_for(RestConfig("https://one", certificate=b"x", key=b"y"))
    with pytest.raises(AccessError, match="certificate-authority"):
        transport_for(RestConfig("https://one", authority=b"x"))
    with pytest.raises(AccessError, match="token"):
        transport_for(RestConfig("https://one", token="a\r\nb"))
    with pytest.raises(AccessError, match="Impersonate-User"):
        transport_for(RestConfig("https://one", act_as=ImpersonationConfig("a\r\nb")))


def test_a_pod_finds_its_server(tmp_path: Path) -> None:
    assert in_cluster_config({}, tmp_path) is None
    for name in ("token", "ca.crt", "namespace"):
        (tmp_path / name).write_text(f"{name}\n")
    environment = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    access = in_cluster_config(environment, tmp_path)
    assert access is not None
    assert access.server == "https://[fd00::1]:443"
    assert (access.namespace, access.token_file) == ("namespace", str(tmp_path / "token"))


def test_a_pod_is_its_service_account_although_it_sees_a_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("token", "ca.crt"):
        (tmp_path / name).write_text(name)
    monkeypatch.setattr(client_factory, "in_cluster_config", partial(in_cluster, tmp_path))
    named = write(tmp_path / ".kube" / "config", user={"token": "t"})
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    environment = {"HOME": str(tmp_path), **pod}
    assert load_rest_config(environment=environment).server == "https://10.0.0.1:443"
    assert load_rest_config(environment={**environment, "KUBECONFIG": str(named)}).token == "t"
    assert load_rest_config(str(named), environment=environment).token == "t"
    nowhere = {**environment, "KUBECONFIG": str(tmp_path / "none")}
    assert load_rest_config(environment=nowhere).server == "https://10.0.0.1:443"


def in_cluster(folder: Path, environment: Mapping[str, str] | None) -> RestConfig | None:
    return in_cluster_config(environment, folder)


# --- commands -----------------------------------------------------------------------------------


def command(folder: Path, code: str) -> RestConfig:
    script = folder / "login.py"
    script.write_text("import json, os, sys\n" + code)
    program = ExecConfig(sys.executable, (str(script),), (("WHO", "me"),), provides_cluster=True)
    return RestConfig("https://one", command=program)


def run_source(source: Callable[[], Awaitable[ExpiringAuth]]) -> None:
    async def run() -> None:
        await source()

    asyncio.run(run())


GIVE = """
count = int(open(__file__ + ".n").read()) if os.path.exists(__file__ + ".n") else 0
open(__file__ + ".n", "w").write(str(count + 1))
asked = json.loads(os.environ["KUBERNETES_EXEC_INFO"])
assert asked["spec"] == {"interactive": False, "cluster": {"server": "https://one"}}, asked
status = {"token": os.environ["WHO"] + str(count), "expirationTimestamp": "UNTIL"}
print(json.dumps({"apiVersion": asked["apiVersion"], "kind": "ExecCredential", "status": status}))
"""


def test_a_command_gives_a_token_until_its_time_is_over(tmp_path: Path) -> None:
    async def run() -> None:
        clock = ManualClock()
        until = Timestamp(clock.now() + timedelta(minutes=10))
        access = command(tmp_path, GIVE.replace("UNTIL", str(until)))
        identity = RenewedCredentials(exec_source(access, "", None), clock)
        shown = await asyncio.gather(identity.fetch(), identity.fetch())
        assert {each.headers for each in shown} == {"Authorization: Bearer me0\r\n"}
        await clock.advance(9 * 60)
        assert identity.current == shown[0]
        await clock.advance(60)
        assert (await identity.fetch()).headers == "Authorization: Bearer me1\r\n"

    asyncio.run(run())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ("sys.exit('not today')", "ended with 1: not today"),
        ("print('x')", "printed no ExecCredential"),
        ("print('{}')", "not ExecCredential of"),
        (
            f"print(json.dumps({{'apiVersion': '{V1}', 'kind': 'ExecCredential'}}))",
            "neither a token nor a certificate",
        ),
        ("print('x' * 2000000)", "more than 1048576 bytes"),
    ],
)
def test_commands_that_fail(tmp_path: Path, code: str, words: str) -> None:
    source = exec_source(command(tmp_path, code), "", None)
    with pytest.raises(AccessError, match=words):
        run_source(source)


def test_a_command_that_is_not_there(tmp_path: Path) -> None:
    missing = ExecConfig(str(tmp_path / "x"), install_hint="install x")
    with pytest.raises(AccessError, match=r"cannot be run.*; install x"):
        run_source(exec_source(RestConfig("https://one", command=missing), "", None))


# --- who the server takes us for ------------------------------------------------------------------


async def user_of(access: RestConfig) -> str:
    async with http_client(access) as client:
        review = await client.write(Create(SelfSubjectReview()))
        return str(review.status.user_info.username)


def test_a_real_server_knows_who_asks(tmp_path: Path) -> None:
    data = tmp_path / "data"

    async def run() -> None:
        tokens = read_tokens("good,ann,1,dev")
        async with serving(Settings(data, port=0, has_rbac=True, tokens=tokens)):
            admin = load_rest_config(str(data / "kubeconfig"))
            assert await user_of(admin) == "kubernetes-admin"
            bare = RestConfig(admin.server, authority=admin.authority)
            assert await user_of(_with(bare, token="good")) == "ann"
            (tmp_path / "token").write_text("good\n")
            assert await user_of(_with(bare, token_file=str(tmp_path / "token"))) == "ann"
            acting = _with(admin, act_as=ImpersonationConfig("bob", groups=("system:masters",)))
            assert await user_of(acting) == "bob"
            with pytest.raises(UnauthorizedError):
                await user_of(_with(bare, token="bad"))
            with pytest.raises(ForbiddenError):
                await user_of(bare)
            untrusted = _with(bare, authority=b"", token="good")
            with pytest.raises(UnavailableError, match="not trusted"):
                await user_of(untrusted)
            assert await user_of(_with(untrusted, skips_verification=True)) == "ann"
            with pytest.raises(UnavailableError, match="not trusted"):
                await user_of(_with(bare, token="good", server_name="another"))

    asyncio.run(run())


def test_a_refused_token_is_asked_for_again(tmp_path: Path) -> None:
    data = tmp_path / "data"
    told = GIVE.replace('"UNTIL"', "None")
    give = told.replace('{"server": "https://one"}', 'asked["spec"]["cluster"]')

    async def run() -> None:
        tokens = read_tokens("me1,ann,1,dev")  # the second that the command gives
        async with serving(Settings(data, port=0, has_rbac=True, tokens=tokens)):
            admin = load_rest_config(str(data / "kubeconfig"))
            access = command(tmp_path, give)
            mine = _with(access, server=admin.server, authority=admin.authority)
            assert await user_of(mine) == "ann"

    asyncio.run(run())


def _with(access: RestConfig, **changes: Any) -> RestConfig:
    return replace(access, **changes)
