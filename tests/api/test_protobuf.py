from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.catalogue import CATALOGUE, SERVED
from moorage.api.codec import decode_tree, to_tree
from moorage.api.errors import ProtobufError
from moorage.api.gates import Gates
from moorage.api.object_reader import read_json, read_tree
from moorage.api.protobuf import (
    decode,
    decode_event,
    encode,
    encode_event,
    encode_object,
    split_events,
)
from moorage.api.protobuf.envelope import MAGIC, seal
from moorage.api.resource import v1
from moorage.api.schema import api_type, find_kind, type_names
from tests.api.protobuf_trees import representable, trees
from tests.corpus import corpus
from tests.strategies import instances

# What `kubectl create namespace rec` sends.
NAMESPACE = (
    b'k8s\0\n\x0f\n\x02v1\x12\tNamespace\x12\x1b\n\x13\n\x03rec\x12\0\x1a\0"\0*\x002\x008\0B\0'
    b'\x12\0\x1a\x02\n\0\x1a\0"\0'
)

# Kinds without a struct of ours that requests or answers bring.
FURTHER_KINDS = [
    ("authentication.k8s.io/v1", "SelfSubjectReview"),
    ("authentication.k8s.io/v1", "TokenRequest"),
    ("authentication.k8s.io/v1", "TokenReview"),
    ("authorization.k8s.io/v1", "LocalSubjectAccessReview"),
    ("authorization.k8s.io/v1", "SelfSubjectAccessReview"),
    ("authorization.k8s.io/v1", "SelfSubjectRulesReview"),
    ("authorization.k8s.io/v1", "SubjectAccessReview"),
    ("autoscaling/v1", "Scale"),
    ("meta.k8s.io/v1", "PartialObjectMetadata"),
    ("meta.k8s.io/v1", "PartialObjectMetadataList"),
    ("policy/v1", "Eviction"),
    ("resource.k8s.io/v1", "DeleteOptions"),
    ("v1", "DeleteOptions"),
    ("v1", "Status"),
]


def message_of(api_version: str, kind: str) -> str:
    message = find_kind(api_version, kind)
    assert message is not None
    return message


def ids(kind: Any) -> str:
    return f"{kind.api_version}-{kind.name}"


# --- the table ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SERVED, ids=ids)
def test_every_served_kind_and_its_list_have_a_message(kind: Any) -> None:
    assert find_kind(kind.api_version, kind.name) is not None
    if kind.name != "Binding":
        assert find_kind(kind.api_version, f"{kind.name}List") is not None


@pytest.mark.parametrize(("api_version", "kind"), FURTHER_KINDS)
def test_kinds_of_requests_and_answers_have_a_message(api_version: str, kind: str) -> None:
    assert find_kind(api_version, kind) is not None


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        ("v1", "PodSpec"),
        ("v1", "ResourceClaim"),
        ("resource.k8s.io/v1", "Status"),
        ("resource.example.com/v1", "ResourceClaim"),
        ("resource/v1", "ResourceClaim"),
        ("core/v1", "Pod"),
        ("/v1", "Pod"),
        ("v9", "DeleteOptions"),
    ],
)
def test_what_is_no_kind_of_its_version_has_none(api_version: str, kind: str) -> None:
    assert find_kind(api_version, kind) is None


def test_numbers_are_used_once_in_a_message() -> None:
    for name in type_names():
        numbers = [field.number for field in api_type(name).fields if field.number]
        assert len(numbers) == len(set(numbers))


@settings(max_examples=120)
@given(data=st.data())
def test_what_is_written_reads_back_equal(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(type_names(kinds_only=True)))
    api_version, kind = _said(name)
    tree = {**data.draw(trees(name)), "apiVersion": api_version, "kind": kind}
    body = encode(tree)
    assert decode(body).tree == tree
    assert encode(decode(body).tree) == body


@pytest.mark.parametrize("kind", SERVED, ids=ids)
@settings(max_examples=10)
@given(data=st.data())
def test_objects_survive(kind: Any, data: st.DataObject) -> None:
    message = message_of(kind.api_version, kind.name)
    tree = to_tree(data.draw(instances(kind.struct)))
    said = {"apiVersion": kind.api_version, "kind": kind.name}
    tree = {**representable(tree, message), **said}
    read = decode_tree(decode(encode(tree)).tree, kind.struct)
    assert read.unknown == ()
    assert encode_object(read.value) == encode(tree)
    if kind.group == "resource.k8s.io":
        assert read.value == decode_tree(tree, kind.struct).value


@settings(max_examples=120)
@given(data=st.data())
def test_bad_bytes_give_the_one_error(data: st.DataObject) -> None:
    name = data.draw(st.sampled_from(type_names(kinds_only=True)))
    raw = data.draw(st.binary(max_size=60) | _damaged(name))
    for body in (raw, MAGIC + raw, seal(*_said(name), raw)):
        _decode_or_refuse(body)


def _said(name: str) -> tuple[str, str]:
    """Return an apiVersion and kind that the message with this name is for."""
    version, _, kind = name.rpartition(".")
    groups = sorted({each.group for each in CATALOGUE} | {"autoscaling", "meta.k8s.io", "policy"})
    for group in groups:
        api_version = f"{group}/{version.partition('/')[2]}".removeprefix("/")
        if find_kind(api_version, kind) == name:
            return api_version, kind
    raise LookupError(name)


def _damaged(name: str) -> st.SearchStrategy[bytes]:
    api_version, kind = _said(name)

    def damage(drawn: tuple[dict[str, Any], int, bytes]) -> bytes:
        tree, place, patch = drawn
        body = encode({**tree, "apiVersion": api_version, "kind": kind})[4:]
        at = place % len(body)
        return body[:at] + patch + body[at + 1 :]

    return st.tuples(trees(name), st.integers(0, 9999), st.binary(max_size=3)).map(damage)


def _decode_or_refuse(body: bytes) -> None:
    try:
        decoded = decode(body)
    except ProtobufError:
        return
    msgspec.json.decode(decoded.json)


# --- reading ------------------------------------------------------------------------------


def raw(*parts: bytes) -> bytes:
    return seal("v1", "ConfigMap", b"".join(parts))


def test_kubectl_s_namespace_is_read_and_written() -> None:
    body = decode(NAMESPACE)
    assert body.tree == {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": "rec"},
        "spec": {},
        "status": {},
    }
    assert encode(body.tree) == NAMESPACE
    assert json.loads(body.json) == body.tree


def test_the_request_says_what_the_body_does_not() -> None:
    body = seal("", "", b"\n\x03\n\x01a")
    assert decode(body, api_version="v1", kind="ConfigMap").tree["metadata"] == {"name": "a"}
    with pytest.raises(ProtobufError, match="apiVersion is not set"):
        decode(body)


def test_unknown_fields_are_passed_over() -> None:
    unknown = (
        b"\xa2\x06\x03abc"  # 100: bytes
        b"\xa0\x06\xff\x01"  # 100: a varint
        b"\xa1\x0612345678"  # 100: 64 bits
        b"\xa5\x061234"  # 100: 32 bits
        b"\xa3\x06\x08\x01\xa3\x06\xa4\x06\xa4\x06"  # 100: a group in a group
    )
    assert decode(raw(unknown, b"\n\x03\n\x01a")).tree["metadata"] == {"name": "a"}


def test_the_last_value_counts_and_messages_are_merged() -> None:
    body = raw(b"\n\x06\n\x01a\x1a\x01n", b"\n\x05\n\x01b\x12\x00")
    assert decode(body).tree["metadata"] == {"name": "b", "namespace": "n"}
    assert decode(raw(b"\n\x05\n\x01a\n\x00")).tree["metadata"] == {}


def test_what_may_be_absent_is_there_even_if_zero() -> None:
    assert decode(raw(b"\x20\x00")).tree == {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "immutable": False,
    }


def test_lists_of_numbers_may_be_packed() -> None:
    unpacked = encode(_slice_with({"ints": [1, 2], "bools": [True, False]}))
    packed = unpacked.replace(b"\x30\x01\x30\x02", b"\x32\x02\x01\x02")
    packed = packed.replace(b"\x38\x01\x38\x00", b"\x3a\x02\x01\x00")
    assert packed != unpacked
    assert decode(packed).tree == decode(unpacked).tree


def _slice_with(attribute: dict[str, Any]) -> dict[str, Any]:
    device = {"name": "d", "attributes": {"a": attribute}}
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "x", "pool": pool, "devices": [device]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "spec": spec}


def test_raw_json_keeps_its_text() -> None:
    text = b'{ "a": 1.50 }'
    opaque = {"driver": "x", "parameters": msgspec.Raw(text)}
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "spec": {"config": [{"opaque": opaque}]},
    }
    body = decode(encode(tree))
    assert text in body.json
    read = decode_tree(body.tree, v1.DeviceClass).value
    assert read.spec.config[0].opaque is not None
    assert bytes(read.spec.config[0].opaque.parameters) == text


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "does not begin with k8s"),
        (b'{"kind":"Pod"}', "does not begin with k8s"),
        (MAGIC, "the body is empty"),
        (MAGIC + b"\n\xff", "end too early"),
        (seal("v1", "Bad", b""), 'no protobuf form for kind "Bad" in version "v1"'),
        (seal("v1", "PodSpec", b""), "no protobuf form"),
        (raw(b"\n\x05\n\x01"), "metadata: the bytes end too early"),
        (raw(b"\n\x03\n\x02a"), "metadata.name: the bytes end too early"),
        (raw(b"\n\x03\n\x01\xff"), "metadata.name: the text is not valid UTF-8"),
        (raw(b"\n\x02\x08\x01"), "metadata: field 1 has the wrong wire type 0"),
        (raw(b"\n\x0c\x38" + b"\xff" * 11), "metadata.generation: a number has more than 64 bits"),
        (raw(b"\x00\x00"), "there is no field number 0"),
        (raw(b"\xa4\x06"), "a group ends that has not begun"),
        (raw(b"\xa3\x06" * 40), "groups in one another"),
        (raw(b"\xa6\x06"), "there is no wire type 6"),
        (raw(b"\xa1\x061"), "the bytes end too early"),
        (raw(b"\n\x0c\x5a\x0a\n\x01k\x12\x05abc\xff\xff"), r"metadata.labels[k]: the text"),
        (raw(b"\n\x04\x42\x02\x08\x80"), "metadata.creationTimestamp: the bytes end"),
        (raw(b"\n\x0a\x42\x08\x08\xff\xff\xff\xff\xff\xff\x7f"), "beyond the calendar"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(body: bytes, message: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        decode(body)
    assert message in str(caught.value)


def test_a_fault_knows_the_item_it_is_about() -> None:
    good = _slice_with({"string": "x"})
    good["spec"]["devices"].append({"name": "bad!"})
    with pytest.raises(ProtobufError) as caught:
        decode(encode(good).replace(b"bad!", b"\xff\xff\xff\xff"))
    assert caught.value.place == ("spec", "devices", 1, "name")


def test_bodies_are_bounded_in_size_and_messages() -> None:
    with pytest.raises(ProtobufError, match="more than 10 bytes"):
        decode(NAMESPACE, bytes_max=10)
    with pytest.raises(ProtobufError, match="too many messages"):
        decode(seal("v1", "ConfigMapList", b"\x12\x00" * 600_000))


def test_messages_in_one_another_are_bounded() -> None:
    template = api_type("scheduling/v1alpha3.CompositePodGroupTemplate")
    number = next(f.number for f in template.fields if f.type == template.name)
    inner = b""
    for _ in range(200):
        inner = bytes([number << 3 | 2]) + _delimited(inner)
    holder = api_type("scheduling/v1alpha3.WorkloadSpec")
    outer = next(f.number for f in holder.fields if f.type == template.name)
    spec = b"\x12" + _delimited(bytes([outer << 3 | 2]) + _delimited(inner))
    with pytest.raises(ProtobufError, match="nested too deeply"):
        decode(seal("scheduling.k8s.io/v1alpha3", "Workload", spec))


def _delimited(payload: bytes) -> bytes:
    size, head = len(payload), bytearray()
    while size >= 0x80:
        head.append(size & 0x7F | 0x80)
        size >>= 7
    return bytes((*head, size)) + payload


def test_a_body_is_read_on_as_json_is() -> None:
    opaque = {"driver": "x.example.com", "parameters": {"a": 1}}
    device = {"exactly": {"deviceClassName": "gpu", "capacity": {"requests": {"memory": "1Gi"}}}}
    devices = {"requests": [{"name": "r", **device}], "config": [{"opaque": opaque}]}
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c", "creationTimestamp": "2026-02-03T04:05:06Z"},
        "spec": {"devices": devices},
    }
    gates = Gates.parse("")
    assert read_tree(decode(encode(tree)).tree, gates=gates) == read_tree(tree, gates=gates)
    kind = CATALOGUE.find("resource.k8s.io/v1", "ResourceClaim")
    text = decode(encode(tree)).json
    assert read_json(text, kind, extensions=True).value == decode_tree(tree, kind.struct).value


# --- recorded bodies ----------------------------------------------------------------------


def test_recorded_bodies_are_read_and_written_again() -> None:
    bodies = list(_recorded_bodies())
    assert len(bodies) > 20
    for body in bodies:
        assert encode(decode(body).tree) == body


def test_recorded_objects_are_what_their_json_says() -> None:
    in_json = {_identity(tree): tree for tree in _recorded_objects()}
    compared = 0
    for body in map(decode, _recorded_bodies()):
        tree = json.loads(body.json)
        for item in tree.get("items", [tree]):
            known = in_json.get(_identity(item))
            if known is not None:
                compared += 1
                assert {**_without_null(item), **_TYPELESS} == {**_without_null(known), **_TYPELESS}
    assert compared > 10


_TYPELESS = {"apiVersion": None, "kind": None}  # which items of a list do not have


def _identity(tree: dict[str, Any]) -> tuple[str, str]:
    metadata = tree.get("metadata") or {}
    return metadata.get("uid", "no uid"), metadata.get("resourceVersion", "")


def _exchanges() -> Iterator[dict[str, Any]]:
    for file in sorted(corpus("http", "1.37").glob("*.json")):
        yield from json.loads(file.read_bytes())


def _recorded_bodies() -> Iterator[bytes]:
    for exchange in _exchanges():
        request, response = exchange.get("requestBody"), exchange.get("responseBody")
        if isinstance(request, str) and request.startswith("k8s\0"):
            yield request.encode()
        if isinstance(response, dict) and "base64" in response:
            yield base64.b64decode(response["base64"])


def _recorded_objects() -> Iterator[dict[str, Any]]:
    for exchange in _exchanges():
        response = exchange.get("responseBody")
        if isinstance(response, dict):
            found = response.get("items") or [response]
            yield from (tree for tree in found if "uid" in (tree.get("metadata") or {}))


def _without_null(value: Any) -> Any:
    match value:
        case dict():
            return {key: _without_null(item) for key, item in value.items() if item is not None}
        case list():
            return [_without_null(item) for item in value]
    return value


# --- writing ------------------------------------------------------------------------------


def test_what_has_no_field_is_left_out() -> None:
    tree = {**decode(NAMESPACE).tree, "someday": 1}
    assert encode(tree) == NAMESPACE


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        ({}, "apiVersion is not set"),
        ({"apiVersion": "v1"}, "kind is not set"),
        ({"apiVersion": "v1", "kind": "Nothing"}, "no protobuf form"),
        ({"apiVersion": "v1", "kind": "Pod", "spec": []}, "spec: expected a map, got list"),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": 1}},
            "data[a]: expected a string, got int",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "binaryData": {"a": "?"}},
            "binaryData[a]: not valid base64",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"finalizers": ["a", None, 3]}},
            "metadata.finalizers[2]: expected a string, got int",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generation": 2**63}},
            "does not fit in 64 bits",
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"creationTimestamp": "soon"}},
            'metadata.creationTimestamp: parsing time "soon"',
        ),
        (
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "\ud800"}},
            "metadata.name: the text has half a character",
        ),
    ],
)
def test_what_cannot_be_written_is_said_with_its_place(tree: Any, message: str) -> None:
    with pytest.raises(ProtobufError) as caught:
        encode(tree)
    assert message in str(caught.value)


def test_numbers_keep_their_text_in_raw_json() -> None:
    tree = decode(
        encode(
            {
                "apiVersion": "resource.k8s.io/v1",
                "kind": "DeviceClass",
                "spec": {"config": [{"opaque": {"driver": "x", "parameters": {"a": 1.5}}}]},
            }
        )
    ).tree
    assert bytes(tree["spec"]["config"][0]["opaque"]["parameters"]) == b'{"a":1.5}'


# --- watching -----------------------------------------------------------------------------


def test_events_come_back_from_a_stream() -> None:
    stream = encode_event("ADDED", NAMESPACE) + encode_event("DELETED", NAMESPACE)
    messages, rest = split_events(stream + b"\0\0\0\x05ab")
    events = [decode_event(message) for message in messages]
    assert [event.type for event in events] == ["ADDED", "DELETED"]
    assert events[0].object == decode(NAMESPACE)
    assert rest == b"\0\0\0\x05ab"


def test_an_event_is_framed_as_kubernetes_does() -> None:
    frame = encode_event("ADDED", b"k8s\0")
    assert frame == b"\0\0\0\x0f\n\x05ADDED\x12\x06\n\x04k8s\0"


@pytest.mark.parametrize("message", [b"\n\x05a", b"\n\x01\xff\x12\x00", b"\x08\x01", b""])
def test_bad_events_are_refused(message: bytes) -> None:
    with pytest.raises(ProtobufError):
        decode_event(message)


def test_a_frame_may_not_be_too_long() -> None:
    with pytest.raises(ProtobufError, match="more than 100"):
        split_events(b"\0\0\1\0", bytes_max=100)
