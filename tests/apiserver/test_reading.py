"""Get and list: forms, pages, selectors, revisions."""

from __future__ import annotations

import json
from urllib.parse import quote

import pytest
import yaml

from moorage.api import protobuf
from tests.apiserver.client import (
    CLAIMS,
    CLASSES,
    NAMESPACES,
    PODS,
    SLICES,
    Client,
    claim,
    device_class,
    pod,
    resource_slice,
)

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"


def names(tree: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [item["metadata"]["name"] for item in tree["items"]]


def test_an_object_comes_back_with_what_the_server_gave_it(client: Client) -> None:
    client.post(CLASSES, device_class())
    found = client.get(f"{CLASSES}/gpu").json
    assert found["kind"] == "DeviceClass"
    metadata = found["metadata"]
    assert metadata["creationTimestamp"] == "2026-11-15T12:00:00Z"
    assert metadata["generation"] == 1
    assert metadata["uid"]
    assert int(metadata["resourceVersion"]) > 0


def test_what_is_not_there_is_not_found(client: Client) -> None:
    reply = client.get(f"{CLASSES}/nope")
    assert (reply.status, reply.reason) == (404, "NotFound")
    assert reply.message == 'deviceclasses.resource.k8s.io "nope" not found'
    assert reply.json["details"]["kind"] == "deviceclasses"


def test_other_versions_show_the_same_object(client: Client) -> None:
    client.post(CLAIMS, claim())
    old = client.get(CLAIMS.replace("v1/", "v1beta1/") + "/one").json
    assert old["apiVersion"] == "resource.k8s.io/v1beta1"
    assert old["spec"]["devices"]["requests"][0]["deviceClassName"] == "gpu"


def test_yaml(client: Client) -> None:
    client.post(CLASSES, device_class())
    reply = client.get(f"{CLASSES}/gpu", accept="application/yaml")
    assert reply.type == "application/yaml"
    assert yaml.safe_load(reply.body) == client.get(f"{CLASSES}/gpu").json


def test_protobuf(client: Client) -> None:
    client.post(CLASSES, device_class())
    accept = "application/vnd.kubernetes.protobuf,application/json"
    one = client.get(f"{CLASSES}/gpu", accept=accept)
    assert one.type == "application/vnd.kubernetes.protobuf"
    assert json.loads(protobuf.decode(one.body).json) == client.get(f"{CLASSES}/gpu").json
    many = protobuf.decode(client.get(CLASSES, accept=accept).body)
    assert many.kind == "DeviceClassList"
    assert names(json.loads(many.json)) == ["gpu"]


def test_a_table_has_rows_and_metadata(client: Client) -> None:
    client.post(CLASSES, device_class())
    client.later(60)
    table = client.get(CLASSES, accept=f"{TABLE},application/json").json
    assert table["kind"] == "Table"
    assert table["rows"][0]["cells"] == ["gpu", "60s"]
    assert table["rows"][0]["object"]["kind"] == "PartialObjectMetadata"
    one = client.get(f"{CLASSES}/gpu?includeObject=None", accept=TABLE).json
    assert one["rows"][0]["object"] is None


def test_only_metadata(client: Client) -> None:
    client.post(CLASSES, device_class())
    one = client.get(f"{CLASSES}/gpu", accept=PARTIAL).json
    assert (one["kind"], one["metadata"]["name"]) == ("PartialObjectMetadata", "gpu")
    assert "spec" not in one
    accept = PARTIAL.replace("Metadata;", "MetadataList;")
    many = client.get(CLASSES, accept=accept).json
    assert many["kind"] == "PartialObjectMetadataList"
    assert many["items"][0]["kind"] == "PartialObjectMetadata"


def test_nothing_that_is_accepted(client: Client) -> None:
    reply = client.get(CLASSES, accept="application/xml")
    assert (reply.status, reply.reason) == (406, "NotAcceptable")


def test_items_of_a_list_do_not_repeat_the_kind(client: Client) -> None:
    client.post(CLASSES, device_class())
    found = client.get(CLASSES).json
    assert (found["kind"], found["apiVersion"]) == ("DeviceClassList", "resource.k8s.io/v1")
    assert "kind" not in found["items"][0]


def test_pages_are_of_one_revision(client: Client) -> None:
    for name in "abcd":
        client.post(CLASSES, device_class(name))
    first = client.get(f"{CLASSES}?limit=2").json
    assert names(first) == ["a", "b"]
    assert first["metadata"]["remainingItemCount"] == 2
    client.delete(f"{CLASSES}/c")
    token = first["metadata"]["continue"]
    second = client.get(f"{CLASSES}?limit=2&continue={token}").json
    assert names(second) == ["c", "d"]
    assert second["metadata"]["resourceVersion"] == first["metadata"]["resourceVersion"]
    assert "continue" not in second["metadata"]


def test_pages_of_selected_objects(client: Client) -> None:
    for name in "abcdef":
        client.post(CLASSES, device_class(name, labels={"odd": str("abcdef".index(name) % 2)}))
    first = client.get(f"{CLASSES}?limit=2&labelSelector=odd=1").json
    assert names(first) == ["b", "d"]
    token = first["metadata"]["continue"]
    second = client.get(f"{CLASSES}?limit=2&labelSelector=odd=1&continue={token}").json
    assert names(second) == ["f"]


@pytest.mark.parametrize("token", ["zzz", "e30", "bm90IGpzb24", "%F0", ""])
def test_a_bad_continue_token(client: Client, token: str) -> None:
    reply = client.get(f"{CLASSES}?limit=1&continue={token}")
    assert reply.status == (400 if token else 200)


def test_a_forgotten_page_is_gone(client: Client) -> None:
    for name in "abc":
        client.post(CLASSES, device_class(name))
    token = client.get(f"{CLASSES}?limit=1").json["metadata"]["continue"]
    client.post(CLASSES, device_class("d"))
    client.run(client.store.compact(client.run(client.store.revision())))
    reply = client.get(f"{CLASSES}?limit=1&continue={token}")
    assert (reply.status, reply.reason) == (410, "Expired")


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("a=1", ["x"]),
        ("a==1", ["x"]),
        ("a!=1", ["y", "z"]),
        ("a", ["x", "y"]),
        ("!a", ["z"]),
        ("a in (1,2)", ["x", "y"]),
        ("a notin (1), b", ["y"]),
        ("", ["x", "y", "z"]),
    ],
)
def test_labels(client: Client, selector: str, found: list[str]) -> None:
    client.post(CLASSES, device_class("x", labels={"a": "1"}))
    client.post(CLASSES, device_class("y", labels={"a": "2", "b": "3"}))
    client.post(CLASSES, device_class("z"))
    query = selector.replace(" ", "%20").replace("!", "%21")
    assert names(client.get(f"{CLASSES}?labelSelector={query}").json) == found


NAME_RULE = "name part must consist of alphanumeric characters"
VALUE_RULE = "a valid label must be an empty string or consist of alphanumeric characters"


@pytest.mark.parametrize(
    ("selector", "fault"),
    [
        ("=", "found '=', expected: !, identifier, or 'end of string'"),
        ("a,,b", "found ',', expected: identifier after ','"),
        ("a,", "found '', expected: identifier after ','"),
        ("a=b=c", "found '=', expected: ',' or 'end of string'"),
        ("!a=b", "found '=', expected: ',' or 'end of string'"),
        ("a in", "unable to parse requirement: found '' expected: '('"),
        ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
        ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
        ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
        ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
        ("a=(", "unable to parse requirement: found '(', expected: identifier"),
        ("!=", "found '!=', expected: !, identifier, or 'end of string'"),
        ("a_=b", f'unable to parse requirement: <nil>: Invalid value: "a_": {NAME_RULE}'),
        ("a=_", f'unable to parse requirement: values[0][a]: Invalid value: "_": {VALUE_RULE}'),
        (
            "a>b",
            (
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' "
                "operators, the value must be an integer"
            ),
        ),
    ],
)
def test_labels_that_cannot_be_read(client: Client, selector: str, fault: str) -> None:
    reply = client.get(f"{CLASSES}?labelSelector={quote(selector)}")
    assert (reply.status, reply.reason) == (400, "BadRequest")
    assert reply.message.startswith(fault)


@pytest.mark.parametrize(
    ("url", "query", "fault"),
    [
        (CLASSES, "spec=1", '"spec" is not a known field selector: only "metadata.name", '),
        (PODS, "spec=1", "field label not supported: spec"),
        (SLICES, "a=1", "field label not supported for resource.k8s.io/v1, Kind=ResourceSlice: a"),
        (SLICES, "metadata.namespace=1", "field label not supported for resource.k8s.io/v1, "),
        ("/apis/batch/v1/jobs", "a=1", 'field label "a" not supported for Job'),
        (PODS, "spec", "invalid selector: 'spec'; can't understand 'spec'"),
        (PODS, "status.phase=a=b", "invalid field selector: unescaped character in value: 61"),
        (PODS, "status.phase=a\\b", "invalid field selector: invalid escape sequence: \\b"),
        (PODS, "status.phase=a\\", "invalid field selector: invalid escape sequence: \\"),
    ],
)
def test_fields_that_cannot_be_selected(client: Client, url: str, query: str, fault: str) -> None:
    reply = client.get(f"{url}?fieldSelector={quote(query)}")
    assert (reply.status, reply.reason) == (400, "BadRequest")
    assert reply.message.startswith(fault)


@pytest.mark.parametrize(
    ("url", "query", "count"),
    [
        (NAMESPACES, "status.phase=Active", 4),
        (NAMESPACES, "status.phase!=Active", 0),
        (CLASSES, "metadata.namespace=x", 0),
        (PODS, "spec.host=,status.podIP=", 1),
        (PODS, "metadata.name=p\\,q", 0),
        ("/api/v1/secrets", "type=Opaque", 0),
        ("/apis/events.k8s.io/v1/events", "regarding.name=p,type=Warning", 0),
    ],
)
def test_fields_of_other_kinds(client: Client, url: str, query: str, count: int) -> None:
    client.post(PODS, pod())
    assert len(client.get(f"{url}?fieldSelector={quote(query)}").json["items"]) == count


def test_a_list_that_expired_can_go_on_with_what_is_there_now(client: Client) -> None:
    for name in "abc":
        client.post(CLASSES, device_class(name))
    token = client.get(f"{CLASSES}?limit=1").json["metadata"]["continue"]
    client.delete(f"{CLASSES}/b")
    client.run(client.store.compact(client.run(client.store.revision())))
    late = client.get(f"{CLASSES}?limit=1&continue={token}")
    assert (late.status, late.reason) == (410, "Expired")
    token = late.json["metadata"]["continue"]
    assert names(client.get(f"{CLASSES}?limit=1&continue={token}").json) == ["c"]


def test_fields_of_slices(client: Client) -> None:
    client.post(SLICES, resource_slice("a", node="n1"))
    client.post(SLICES, resource_slice("b", node="n2"))
    client.post(SLICES, resource_slice("c", node="n2", driver="nic.example.com"))
    query = "spec.nodeName=n2,spec.driver!=nic.example.com"
    assert names(client.get(f"{SLICES}?fieldSelector={query}").json) == ["b"]
    assert names(client.get(f"{SLICES}?fieldSelector=spec.pool.name=c").json) == ["c"]
    refused = client.get(f"{SLICES}?fieldSelector=spec.nope=1")
    assert refused.status == 400
    assert "field label not supported" in refused.message


def test_pods_of_all_namespaces(client: Client) -> None:
    client.post(PODS, pod())
    assert names(client.get("/api/v1/pods").json) == ["p"]
    assert names(client.get("/api/v1/pods?fieldSelector=status.phase=Running").json) == []


def test_revisions_of_lists(client: Client) -> None:
    client.post(CLASSES, device_class("a"))
    before = client.get(CLASSES).json["metadata"]["resourceVersion"]
    client.post(CLASSES, device_class("b"))
    exact = f"{CLASSES}?resourceVersion={before}&resourceVersionMatch=Exact"
    assert names(client.get(exact).json) == ["a"]
    assert names(client.get(f"{CLASSES}?resourceVersion=0").json) == ["a", "b"]
    late = client.get(f"{CLASSES}?resourceVersion=99999")
    assert (late.status, late.reason) == (504, "Timeout")
    assert dict(late.headers)["retry-after"] == "1"
    assert client.get(f"{CLASSES}?resourceVersionMatch=Exact").status == 422
    assert client.get(f"{CLASSES}?resourceVersion=abc").status == 400


def test_a_revision_that_is_no_revision_is_refused(client: Client) -> None:
    reply = client.get(f"{CLASSES}?resourceVersion=99999999999999999999")
    assert reply.status == 400
    assert "value out of range" in reply.message
