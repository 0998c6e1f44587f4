"""Paths that are no objects, methods that are not allowed, limits, and the outer form."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest

from moorage.apiserver.http.flow_control import Seats
from moorage.apiserver.settings import Limits
from tests.apiserver.client import CLASSES, CONFIG_MAPS, Client, config_map, device_class


@pytest.mark.parametrize("path", ["/healthz", "/livez", "/readyz", "/readyz/ping"])
def test_health(client: Client, path: str) -> None:
    reply = client.get(path)
    assert (reply.status, reply.body) == (200, b"ok")
    assert "[+]" in client.get(f"{path}?verbose").body.decode()


def test_version_metrics_and_all_paths(client: Client) -> None:
    version = client.get("/version").json
    assert version["minor"] == "37"
    # As Go has it, which knows no x86_64 and no aarch64.
    assert re.fullmatch(r"[a-z]+/(386|[a-z]+[0-9a-z]*)", version["platform"])
    assert "x86_64" not in version["platform"]
    assert "aarch64" not in version["platform"]
    client.get(CLASSES)
    asked = 'verb="LIST",dry_run="",group="resource.k8s.io",version="v1"'
    what = 'resource="deviceclasses",subresource="",scope="cluster",component="apiserver"'
    text = client.get("/metrics").body.decode()
    assert f'apiserver_request_total{{{asked},{what},code="200"}} 1\n' in text
    assert "/apis/resource.k8s.io/v1" in client.get("/").json["paths"]


def test_discovery_and_openapi(client: Client) -> None:
    assert client.get("/apis/resource.k8s.io/v1").json["kind"] == "APIResourceList"
    index = client.get("/openapi/v3")
    url = index.json["paths"]["apis/resource.k8s.io/v1"]["serverRelativeURL"]
    assert client.get(url).json["openapi"] == "3.0.0"
    tag = dict(index.headers)["etag"]
    assert client.get("/openapi/v3", if_none_match=tag).status == 304


@pytest.mark.parametrize(
    "path", ["/nope", "/apis/nope/v1", "/apis/nope/v1/things", "/api/v2", "/healthz/nope", "//"]
)
def test_unknown_paths(client: Client, path: str) -> None:
    reply = client.get(path)
    if path == "//":
        assert reply.status == 200
    else:
        assert (reply.status, reply.body) == (404, b"404 page not found\n")


@pytest.mark.parametrize(
    "path",
    [
        "/apis/resource.k8s.io/v1/nopes",
        "/apis/resource.k8s.io/v1/resourceclaims/one",
        "/apis/resource.k8s.io/v1/namespaces/default/deviceclasses",
    ],
)
def test_unknown_resources(client: Client, path: str) -> None:
    reply = client.get(path)
    assert (reply.status, reply.reason) == (404, "NotFound")
    assert reply.message == "the server could not find the requested resource"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("PUT", CLASSES),
        ("POST", f"{CLASSES}/gpu"),
        ("PATCH", CLASSES),
        ("DELETE", "/api/v1/namespaces"),
        ("OPTIONS", CLASSES),
        ("POST", "/version"),
        ("GET", "/api/v1/namespaces/default/bindings"),
        ("GET", "/apis/authentication.k8s.io/v1/tokenreviews"),
        ("POST", "/apis/resource.k8s.io/v1/resourceclaims"),
    ],
)
def test_methods_that_are_not_allowed(client: Client, method: str, path: str) -> None:
    reply = client.ask(method, path, {})
    assert (reply.status, reply.reason) == (405, "MethodNotAllowed")


def test_large_bodies_are_refused(tmp_path: Path) -> None:
    client = Client(tmp_path / "small", limits=Limits(body_bytes_max=1000))
    body = device_class(annotations={"a": "x" * 2000})
    assert client.post(CLASSES, body).status == 413
    assert client.post(CLASSES, b"", content_length="5000").status == 413
    packed = gzip.compress(b" " * 100_000)
    assert client.post(CLASSES, packed, content_encoding="gzip").status == 413
    client.close()


def test_packed_bodies_are_read(client: Client) -> None:
    text = b'{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"m"}}'
    reply = client.post(CONFIG_MAPS, gzip.compress(text), content_encoding="gzip")
    assert reply.status == 201
    assert client.post(CONFIG_MAPS, b"no", content_encoding="gzip").status == 400
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: part}\ndata: {a: b}\n"
    packed = gzip.compress(text)
    for odd in (packed[:-8], packed + b"more", packed + packed):
        reply = client.post(
            CONFIG_MAPS, odd, content_encoding="gzip", content_type="application/yaml"
        )
        assert (reply.status, "not valid gzip" in reply.message) == (400, True)


def test_large_answers_are_packed_for_who_can_unpack(client: Client) -> None:
    body = config_map()
    body["data"] = {"a": "x" * 200_000}
    client.post(CONFIG_MAPS, body)
    packed = client.get(CONFIG_MAPS, accept_encoding="gzip")
    assert dict(packed.headers)["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == client.get(CONFIG_MAPS).body


def test_there_are_only_so_many_requests(tmp_path: Path) -> None:
    client = Client(tmp_path / "none", seats=Seats(reading_max=0))
    reply = client.get(CLASSES)
    assert (reply.status, reply.reason) == (429, "TooManyRequests")
    client.close()


def test_head_has_no_body(client: Client) -> None:
    reply = client.ask("HEAD", CLASSES)
    assert (reply.status, reply.body) == (200, b"")
    assert int(dict(reply.headers)["content-length"]) > 0


@pytest.mark.parametrize(
    "path",
    [
        f"{CLASSES}/%00",
        f"{CLASSES}/a%2Fb",
        f"{CLASSES}?limit=-1",
        f"{CLASSES}?limit=1e9",
        f"{CLASSES}?limit=99999999999999999999",
        f"{CLASSES}?watch=true&timeoutSeconds=x",
        f"{CLASSES}?labelSelector={'a,' * 5000}a",
        f"/api/v1/namespaces/{'x' * 3000}/pods",
        f"/api/v1/namespaces/{'x' * 3000}/pods/p",
    ],
)
def test_odd_requests_are_never_faults_of_the_server(client: Client, path: str) -> None:
    assert client.get(path).status < 500
