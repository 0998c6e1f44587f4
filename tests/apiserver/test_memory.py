"""What a request leaves in memory: nothing that waits for the garbage collector, and no long text.

The collector runs rarely in a server. What it alone can free stays for thousands of requests, and
each of them may have had megabytes.
"""

from __future__ import annotations

import ast
import asyncio
import gc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.apiserver.auth.access import ResourceAccess
from moorage.apiserver.auth.authorizer import AlwaysAllow
from moorage.apiserver.auth.rbac import RBACPolicy
from moorage.apiserver.auth.users import ANONYMOUS
from moorage.apiserver.http.app import _header
from moorage.apiserver.http.negotiation import negotiate
from moorage.apiserver.patching import field_set
from moorage.apiserver.patching.managed_fields import fields_of_text, seconds
from moorage.apiserver.server import make_application, make_server_context
from moorage.store.memory import MemoryStore
from moorage.validation.field_rules import is_good_qualified_name
from soak._http import Address, Connection
from tests.apiserver.client import (
    APPLY_PATCH,
    CLAIMS,
    CONFIG_MAPS,
    JSON_PATCH,
    MERGE_PATCH,
    PODS,
    STRATEGIC_PATCH,
    claim,
    config_map,
    pod,
)
from tests.apiserver.test_connections import serving

PACKAGE = Path(__file__).parents[2] / "src" / "moorage"
SIZE = 50_000  # of a text that must not stay
LONG = "x" * SIZE


# --- garbage --------------------------------------------------------------------------------------


def _bad_claim() -> dict[str, Any]:
    made = claim("bad")
    made["spec"]["devices"]["constraints"] = [{"matchAttribute": f"a/{LONG}"}]
    return made


REQUESTS: tuple[tuple[str, str, Any, str], ...] = (
    ("GET", f"/api/v1/namespaces/{LONG}/pods", None, ""),
    ("GET", f"/nowhere/{LONG}", None, ""),
    ("GET", f"{PODS}?labelSelector=a!={LONG}", None, ""),
    ("POST", CLAIMS, _bad_claim(), ""),
    ("POST", CONFIG_MAPS, config_map("a") | {"data": {"k": LONG}}, ""),
    ("POST", CONFIG_MAPS, config_map(LONG), ""),
    ("POST", CONFIG_MAPS, f"data: [{LONG}".encode(), "application/yaml"),
    ("POST", PODS, pod("p", labels={"k": LONG}), ""),
    ("PUT", f"{CONFIG_MAPS}/a", config_map("a", resourceVersion="1") | {"data": {"k": LONG}}, ""),
    ("PATCH", f"{CONFIG_MAPS}/a", [{"op": "test", "path": "/data/k", "value": LONG}], JSON_PATCH),
    ("PATCH", f"{CONFIG_MAPS}/a", [{"op": "add", "path": f"/{LONG}/a", "value": 1}], JSON_PATCH),
    ("PATCH", f"{CONFIG_MAPS}/a", {"data": {"l": LONG}}, MERGE_PATCH),
    ("PATCH", f"{CONFIG_MAPS}/a", {"data": {"l": [LONG]}}, STRATEGIC_PATCH),
    ("PATCH", f"{CONFIG_MAPS}/a?fieldManager=m", config_map("a", labels={"k": LONG}), APPLY_PATCH),
    ("GET", f"{CONFIG_MAPS}/a", None, ""),
    ("DELETE", f"{CONFIG_MAPS}/a", None, ""),
)


@pytest.fixture
def collector() -> Iterator[list[Any]]:
    """All garbage that only the collector could free."""
    gc.collect()
    gc.set_debug(gc.DEBUG_SAVEALL)
    yield gc.garbage
    gc.set_debug(0)
    gc.garbage.clear()


def test_no_request_leaves_its_text_to_the_garbage_collector(collector: list[Any]) -> None:
    left: list[str] = []

    async def send_all() -> None:
        context = make_server_context(MemoryStore(lambda: 0.0))
        async with serving(make_application(context, AlwaysAllow())) as server:
            connection = await Connection.open(Address(server.network.port))
            for method, path, body, media in REQUESTS:
                reply = await connection.ask(method, path, body, media=media or "application/json")
                assert reply.status < 500, (method, path[:40], reply.body[:200])
                gc.collect()
                if any(map(_is_long, _referents(collector))):
                    left.append(f"{method} {path[:60]} {media}")
                collector.clear()
            connection.cut()

    asyncio.run(send_all())
    assert left == []


def _referents(garbage: list[Any]) -> Iterator[Any]:
    for each in garbage:
        yield from gc.get_referents(each)


def _is_long(value: Any) -> bool:
    return isinstance(value, str | bytes | bytearray) and len(value) >= SIZE


# --- caches ---------------------------------------------------------------------------------------


def _authorize(number: int) -> None:
    access = ResourceAccess(ANONYMOUS, "get", "", "pods", namespace=f"{number}{LONG}")
    POLICY.authorize(access)


POLICY = RBACPolicy()
LOOKS: dict[str, Callable[[int], object]] = {
    "rights": _authorize,
    "names of headers": lambda n: _header((b"%d" % n + LONG.encode(), b"")),
    "Accept": lambda n: negotiate(f"application/json,{n}{LONG}"),
    "elements": lambda n: field_set.canonical(f"f:{n}{LONG}"),
    "keyed elements": lambda n: field_set.canonical(f'k:{{"{n}{LONG}":"{LONG}"}}'),
    "order": lambda n: field_set.order(f"f:{n}{LONG}"),
    "keys of items": lambda n: field_set.by_keys(("name",), (f"{n}{LONG}",)),
    "values of sets": lambda n: field_set.by_value(f"{n}{LONG}"),
    "fieldsV1": lambda n: fields_of_text(b'{"f:%d%b":{}}' % (n, LONG.encode())),
    "times": lambda n: seconds(f"{n}{LONG}"),
    "names of attributes": lambda n: is_good_qualified_name(f"{n}{LONG}"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_no_long_text_stays_in_a_cache(look: str) -> None:
    import tracemalloc

    LOOKS[look](0)
    tracemalloc.start()
    try:
        for number in range(20):
            LOOKS[look](number)
        kept_bytes, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept_bytes < 10 * SIZE


# Functions that cache the results for any text, and why nobody can send them long ones.
GUARDED = {
    "api.go_types.message_named": "names of our types",
    "api.object_reader._parts_of": "names of our types",
    "api.protobuf.reader.reader_of": "names of our types",
    "api.protobuf.writer._payload": "names of our types",
    "api.protobuf.writer.writer_of": "names of our types",
    "api.schema._find_kind": "`find_kind` looks at the length",
    "api.schema._markers": "notes of our tables",
    "api.schema._table": "groups of our tables",
    "api.schema.api_type": "names of our types",
    "api.timestamp._remembered": "`Timestamp.parse` looks at the length",
    "apiserver.auth.authenticator._authenticated": "certificates that TLS has verified",
    "apiserver.auth.authenticator._read": "certificates that TLS has verified",
    "apiserver.auth.authenticator._validity": "certificates that TLS has verified",
    "apiserver.auth.service_account_tokens._signed_claims": "tokens that the server signed",
    "apiserver.custom_resources.fields.read_path": "written by administrators",
    "apiserver.direct_client._fields": "requests of our own programs",
    "apiserver.dynamic_admission.matching._endpoints": "subresources of resources",
    "apiserver.dynamic_admission.webhook_client._tls_context": "written by administrators",
    "apiserver.http.direct_access._labels": "requests of our own programs",
    "apiserver.http.metrics.direct_labels": "requests of our own programs",
    "apiserver.http.negotiation._negotiated": "its caller cuts it",
    "apiserver.patching.shapes._managed_shape": "names of our types",
    "apiserver.patching.usual_writes._remembered": "its caller looks at the length",
    "apiserver.verbs.managed_fields.field_manager_of": "subresources of resources",
    "apiserver.verbs.managed_fields.usual_writes_of": "subresources of resources",
    "apiserver.verbs.usual_apply.usual_applies_of": "subresources of resources",
    "client.api_client._apply_query": "requests of our own programs",
    "drivers.net.pci_names": "numbers of this machine's devices",
    "insight.topology.model._location_names": "names of drivers",
    "kit.cron_schedule.parse_schedule": "it raises an error for a long one",
    "scheduler.plugins.node_filters._volume_query": "written by administrators",
    "store.sqlite.write_group._text": "our own statements",
    "validation.admission_rules.compile_alone": "at most 10 KiB, and written by administrators",
    "validation.field_rules._is_label": "its caller looks at the length",
    "validation.field_rules._is_label_name": "its caller looks at the length",
    "validation.field_rules._is_subdomain": "its caller looks at the length",
    "validation.go_layout._layout": "names of our types",
    "validation.pod.defaults._fields_with_defaults": "names of our types",
    "validation.pod.defaults._filler": "names of our types",
    "validation.pod.defaults._has_defaults": "names of our types",
}


def _caches_of_texts() -> Iterator[str]:
    """Give the functions that cache results for texts, whatever their length."""
    for path in sorted(PACKAGE.rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        module = ".".join(path.relative_to(PACKAGE).with_suffix("").parts)
        for each in ast.walk(tree):
            if isinstance(each, ast.FunctionDef) and any(map(_caches, each.decorator_list)):
                texts = [a for a in each.args.args if _is_text(a.annotation)]
                if texts:
                    yield f"{module}.{each.name}"


def _caches(decorator: ast.expr) -> bool:
    return isinstance(decorator, ast.Call) and getattr(decorator.func, "id", "") == "lru_cache"


def _is_text(annotation: ast.expr | None) -> bool:
    return isinstance(annotation, ast.Name) and annotation.id in ("str", "bytes", "Element")


def test_caches_of_texts_are_bounded_in_length_or_guarded() -> None:
    assert sorted(_caches_of_texts()) == sorted(GUARDED)
