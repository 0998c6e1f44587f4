"""Content negotiation: the representation that a client gets."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from moorage.api.codec import encode_json
from moorage.api.core import ConfigMap
from moorage.api.meta import ObjectMeta
from moorage.apiserver.discovery import preferred_form
from moorage.apiserver.http.negotiation import (
    CLAUSES_MAX,
    ObjectForm,
    Representation,
    negotiate,
    read_accept,
)
from moorage.apiserver.http.response_encoder import read_include
from moorage.apiserver.http.status import StatusError
from moorage.apiserver.tables import Include, metadata_of

JSON, YAML = "application/json", "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
V1, V1BETA1 = "meta.k8s.io/v1", "meta.k8s.io/v1beta1"
KUBECTL = (
    "application/json;as=Table;v=v1;g=meta.k8s.io,"
    "application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
)


@pytest.mark.parametrize(
    ("accept", "asked"),
    [
        ("", Representation(JSON)),
        ("*/*", Representation(JSON)),
        ("application/yaml", Representation(YAML)),
        (f"{PROTOBUF},application/json", Representation(PROTOBUF)),
        (f"{PROTOBUF};q=0.5,application/json", Representation(JSON)),
        (KUBECTL, Representation(JSON, ObjectForm.TABLE)),
        (
            "application/json;as=Table;v=v1beta1;g=meta.k8s.io",
            Representation(JSON, ObjectForm.TABLE, V1BETA1),
        ),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/yaml", Representation(YAML)),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/json", Representation(JSON)),
        (
            f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Representation(PROTOBUF, ObjectForm.METADATA_LIST, V1),
        ),
        ("application/json;as=PartialObjectMetadata;g=other;v=v1", None),
        ("application/json;as=Poem;g=meta.k8s.io;v=v1", None),
        ("text/html", None),
        (";;;,,=,", None),
    ],
)
def test_the_first_form_that_there_is_is_given(accept: str, asked: Representation | None) -> None:
    if asked is None:
        with pytest.raises(StatusError, match="Not Acceptable"):
            negotiate(accept)
    else:
        assert negotiate(accept) == asked


@given(st.text() | st.from_regex(r"([a*]/[b*](;(q|as|g|v)=[0-9a-zA-Z.]*)*,?)*"))
def test_any_header_is_read(accept: str) -> None:
    with suppress(StatusError):
        negotiate(accept)
    preferred_form(accept)
    assert all(clause.quality > 0 for clause in read_accept(accept))


def test_endless_headers_are_cut() -> None:
    assert len(read_accept("a/b," * 10_000)) == CLAUSES_MAX


def test_what_is_not_liked_at_all_is_not_accepted() -> None:
    assert read_accept("application/json;q=0, text/plain;q=x") == []


def test_include_is_metadata_unless_said_otherwise() -> None:
    assert read_include("") is Include.METADATA
    assert read_include("Object") is Include.OBJECT
    with pytest.raises(StatusError, match='unrecognized includeObject value: "All"'):
        read_include("All")


def test_metadata_alone() -> None:
    value = ConfigMap(metadata=ObjectMeta(name="x", uid="u"), data={"a": "b"})
    one = json.loads(encode_json(metadata_of(value, V1)))
    assert one == {
        "kind": "PartialObjectMetadata",
        "apiVersion": V1,
        "metadata": {"name": "x", "uid": "u"},
    }
