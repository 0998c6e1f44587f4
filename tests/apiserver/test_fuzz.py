"""Whatever a client sends, the server answers, and it is never the server's fault."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from moorage.api import protobuf
from tests.apiserver.client import (
    APPLY_PATCH,
    CLAIMS,
    CLASSES,
    JSON_PATCH,
    MERGE_PATCH,
    PODS,
    STRATEGIC_PATCH,
    Client,
    claim,
    device_class,
    pod,
)

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "BREW")
WORDS = (
    *("api", "apis", "v1", "v1beta1", "resource.k8s.io", "namespaces", "default", "kube-system"),
    *("pods", "deviceclasses", "resourceclaims", "events", "bindings", "status", "binding"),
    *("finalize", "gpu", "one", "p", "", "..", "a b", "\u00e9", "x" * 300, "openapi", "v3"),
)
OPTIONS = (
    *("limit", "continue", "resourceVersion", "resourceVersionMatch", "labelSelector"),
    *("fieldSelector", "dryRun", "fieldManager", "fieldValidation", "force", "pretty"),
    *("propagationPolicy", "gracePeriodSeconds", "sendInitialEvents", "includeObject", "hash"),
)
TEXTS = st.sampled_from(("", "0", "1", "-1", "true", "All", "Exact", "a=b", "a in (b", "zzz"))
TYPES = (
    *("application/json", "application/yaml", protobuf.CONTENT_TYPE, "text/plain", ""),
    *(JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH, "*/*"),
    "application/json;as=Table;v=v1;g=meta.k8s.io",
)

trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(("metadata", "spec", "status", "name", "labels", "devices", "op"))
            | st.text(max_size=5),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@st.composite
def bodies(draw: st.DrawFn) -> bytes:
    shape = draw(st.integers(0, 3))
    if shape == 0:
        return draw(st.binary(max_size=64))
    if shape == 1:
        return json.dumps(draw(trees)).encode()
    tree: dict[str, Any] = draw(st.sampled_from((device_class(), claim(), pod())))
    key = draw(st.sampled_from(("metadata", "spec", "status", "kind", "apiVersion")))
    changed = {**tree, key: draw(trees)}
    return b"k8s\x00" + draw(st.binary()) if shape == 3 else json.dumps(changed).encode()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = Client(tmp_path_factory.mktemp("fuzz") / "store")
    client.post(CLASSES, device_class())
    client.post(CLAIMS, claim())
    client.post(PODS, pod())
    yield client
    client.close()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(METHODS),
    path=st.sampled_from((CLASSES, CLAIMS, PODS, f"{CLASSES}/gpu", f"{PODS}/p/status"))
    | st.lists(st.sampled_from(WORDS), max_size=8).map(lambda words: "/" + "/".join(words)),
    query=st.dictionaries(st.sampled_from(OPTIONS), TEXTS, max_size=3),
    content_type=st.sampled_from(TYPES),
    accept=st.sampled_from(TYPES),
    body=bodies(),
)
def test_every_request_is_answered(
    server: Client,
    method: str,
    path: str,
    query: dict[str, str],
    content_type: str,
    accept: str,
    body: bytes,
) -> None:
    url = f"{path}?{'&'.join(f'{name}={value}' for name, value in query.items())}"
    reply = server.ask(method, url, body, content_type=content_type, accept=accept)
    assert reply.status < 500 or reply.status == 504
    if reply.status >= 400 and reply.type == "application/json" and method != "HEAD":
        assert reply.json["kind"] == "Status"
        assert reply.json["code"] == reply.status
