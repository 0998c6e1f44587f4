"""JSON of drivers comes back as it was given: opaque parameters, data of devices."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from moorage.api import protobuf
from tests.apiserver.client import (
    APPLY_PATCH,
    CLAIMS,
    CLASSES,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Client,
    claim,
    device_class,
)

PROTOBUF = protobuf.CONTENT_TYPE
GIVEN = b'{"kind": "foo",  "apiVersion" : "dra.example.com/v1", "n": [1.0, 1e3], "t":"<a>"}'
IN_JSON = b'{"kind":"foo","apiVersion":"dra.example.com/v1","n":[1.0,1e3],"t":"\\u003ca\\u003e"}'
ANEW = b'{"apiVersion":"dra.example.com/v1","kind":"foo","n":[1,1000],"t":"\\u003ca\\u003e"}'
OLDER = CLASSES.replace("/v1/", "/v1beta1/")


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    client = Client(tmp_path)
    yield client
    client.close()


def with_parameters(body: dict[str, Any], text: bytes = GIVEN, **metadata: Any) -> dict[str, Any]:
    opaque = {"driver": "gpu.example.com", "parameters": msgspec.Raw(text)}
    spec = {**body["spec"], "config": [{"opaque": opaque}]}
    return {**body, "metadata": {**body["metadata"], **metadata}, "spec": spec}


def in_json(tree: Any) -> bytes:
    return msgspec.json.encode(tree)


def posted(client: Client, media: str, body: dict[str, Any], url: str = CLASSES) -> None:
    text = protobuf.encode(body) if media == PROTOBUF else in_json(body)
    assert client.post(url, text, content_type=media).status == 201


def parameters(tree: Any) -> bytes:
    return bytes(tree["spec"]["config"][0]["opaque"]["parameters"])


def seen(client: Client, url: str = f"{CLASSES}/gpu") -> bytes:
    """Return the parameters that a reader of protobuf gets."""
    return parameters(protobuf.decode(client.get(url, accept=PROTOBUF).body).tree)


@pytest.mark.parametrize("media", ["application/json", PROTOBUF])
def test_readers_of_protobuf_get_the_bytes_that_were_given(client: Client, media: str) -> None:
    posted(client, media, with_parameters(device_class()))
    assert seen(client) == GIVEN
    assert seen(client, f"{OLDER}/gpu") == GIVEN
    listed = protobuf.decode(client.get(CLASSES, accept=PROTOBUF).body).tree
    assert parameters(listed["items"][0]) == GIVEN
    watch = client.watch(f"{CLASSES}?watch=1", accept=f"{PROTOBUF};stream=watch")
    assert GIVEN in (watch.chunk() or b"")


@pytest.mark.parametrize("media", ["application/json", PROTOBUF])
def test_what_is_stored_are_the_bytes_that_were_given(tmp_path: Path, media: str) -> None:
    client = Client(tmp_path)
    posted(client, media, with_parameters(device_class()))
    client.close()
    client = Client(tmp_path)
    assert seen(client) == GIVEN
    client.close()


@pytest.mark.parametrize("media", ["application/json", PROTOBUF])
def test_readers_of_json_get_the_same_json(client: Client, media: str) -> None:
    posted(client, media, with_parameters(device_class()))
    found = client.get(f"{CLASSES}/gpu").json["spec"]["config"][0]["opaque"]["parameters"]
    assert found == json.loads(GIVEN)


def test_line_breaks_do_not_break_the_lines_of_a_watch(client: Client) -> None:
    given = b'{\n  "a": "b c",\r\n  "d": 1}'
    posted(client, PROTOBUF, with_parameters(device_class(), given))
    assert seen(client) == given
    watch = client.watch(f"{CLASSES}?watch=1")
    line = watch.chunk() or b""
    assert b'"parameters":{"a":"b c","d":1}' in line
    assert line.count(b"\n") == 1
    assert client.get(CLASSES).body.count(b"\n") == 1


@pytest.mark.parametrize("media", ["application/json", PROTOBUF])
def test_an_update_of_something_else_leaves_it_alone(client: Client, media: str) -> None:
    posted(client, media, with_parameters(device_class()))
    answer = client.get(f"{CLASSES}/gpu", accept=media).body
    tree: Any = protobuf.decode(answer).tree if media == PROTOBUF else msgspec.json.decode(answer)
    tree = with_parameters(tree, GIVEN, labels={"a": "b"})
    text = protobuf.encode(tree) if media == PROTOBUF else in_json(tree)
    assert client.put(f"{CLASSES}/gpu", text, content_type=media).status == 200
    assert seen(client) == GIVEN


def test_other_bytes_are_another_object(client: Client) -> None:
    posted(client, PROTOBUF, with_parameters(device_class()))
    before = client.get(f"{CLASSES}/gpu").json["metadata"]["resourceVersion"]
    body = with_parameters(device_class(), IN_JSON)
    assert client.put(f"{CLASSES}/gpu", in_json(body)).status == 200
    assert seen(client) == IN_JSON
    assert client.get(f"{CLASSES}/gpu").json["metadata"]["resourceVersion"] != before


LABEL = {"metadata": {"labels": {"a": "b"}}}


@pytest.mark.parametrize(
    ("media", "patch", "expected"),
    [
        (MERGE_PATCH, LABEL, IN_JSON),
        (JSON_PATCH, [{"op": "add", "path": "/metadata/labels", "value": {"a": "b"}}], IN_JSON),
        (STRATEGIC_PATCH, LABEL, ANEW),
        (APPLY_PATCH, {**device_class(), "metadata": {"name": "gpu", "labels": {"a": "b"}}},
         ANEW),
    ],
)  # fmt: skip
def test_a_patch_of_something_else_changes_its_form_as_in_kubernetes(
    client: Client, media: str, patch: Any, expected: bytes
) -> None:
    posted(client, PROTOBUF, with_parameters(device_class()))
    force = "&force=true" if media == APPLY_PATCH else ""
    reply = client.patch(f"{CLASSES}/gpu?fieldManager=me{force}", patch, media)
    assert (reply.status, reply.json["metadata"]["labels"]) == (200, {"a": "b"})
    assert seen(client) == expected


def test_yaml_and_apply_write_it_as_go_writes_what_it_has_parsed(client: Client) -> None:
    body = with_parameters(device_class())
    client.post(CLASSES, in_json(body), content_type="application/yaml")
    assert seen(client) == ANEW
    applied = with_parameters(device_class("other"))
    client.patch(f"{CLASSES}/other?fieldManager=me", in_json(applied), APPLY_PATCH)
    assert seen(client, f"{CLASSES}/other") == ANEW


def test_parameters_that_a_patch_sets_are_stored(client: Client) -> None:
    posted(client, PROTOBUF, with_parameters(device_class()))
    config = with_parameters(device_class(), b'{"b": 2, "a": {}}')["spec"]["config"]
    patch = in_json({"spec": {"config": config}})
    assert client.patch(f"{CLASSES}/gpu", patch, MERGE_PATCH).status == 200
    assert json.loads(seen(client)) == {"b": 2, "a": {}}


# --- claims ---------------------------------------------------------------------------------------


def claim_with_parameters() -> dict[str, Any]:
    body = claim()
    opaque = {"driver": "gpu.example.com", "parameters": msgspec.Raw(GIVEN)}
    body["spec"]["devices"]["config"] = [{"opaque": opaque}]
    return body


@pytest.mark.parametrize("media", [MERGE_PATCH, STRATEGIC_PATCH])
def test_a_label_may_be_put_on_a_claim_whose_spec_never_changes(client: Client, media: str) -> None:
    posted(client, PROTOBUF, claim_with_parameters(), CLAIMS)
    assert client.patch(f"{CLAIMS}/one", LABEL, media).status == 200


def test_data_of_a_device_comes_back_as_it_was_given(client: Client) -> None:
    posted(client, PROTOBUF, claim(), CLAIMS)
    device = {"driver": "gpu.example.com", "pool": "n", "device": "gpu-0"}
    status: dict[str, Any] = {
        "allocation": {"devices": {"results": [{"request": "gpu", **device}]}},
        "devices": [{**device, "data": msgspec.Raw(GIVEN)}],
    }
    url = f"{CLAIMS}/one/status"
    reply = client.put(url, protobuf.encode({**claim(), "status": status}), content_type=PROTOBUF)
    assert reply.status == 200

    def data() -> bytes:
        tree = protobuf.decode(client.get(f"{CLAIMS}/one", accept=PROTOBUF).body).tree
        return bytes(tree["status"]["devices"][0]["data"])

    assert data() == GIVEN
    # Somebody who reads and writes JSON reserves the claim, and leaves the data alone.
    read = msgspec.json.decode(client.get(f"{CLAIMS}/one").body, type=dict[str, msgspec.Raw])
    changed = msgspec.json.decode(read["status"], type=dict[str, msgspec.Raw])
    changed["reservedFor"] = msgspec.Raw(b'[{"resource":"pods","name":"p","uid":"u"}]')
    read["status"] = msgspec.Raw(in_json(changed))
    assert client.put(url, in_json(read)).status == 200
    assert data() == GIVEN
    # A seed's form is stored as shipped, and what is in it stays, too.
    other = claim("two")
    config = [{"opaque": {"driver": "gpu.example.com", "parameters": msgspec.Raw(GIVEN)}}]
    other["spec"] = {**other["spec"]["devices"], "config": config}
    assert client.post(CLAIMS, in_json(other)).status == 201
    tree = protobuf.decode(client.get(f"{CLAIMS}/two", accept=PROTOBUF).body).tree
    stored = tree["spec"]["devices"]["config"][0]["opaque"]["parameters"]
    assert bytes(stored) == GIVEN
