"""In which form clients get objects."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mooring.api.codec import encode_json
from mooring.api.core import ConfigMap
from mooring.api.meta import ListMeta, ObjectMeta
from mooring.apiserver.accept import CLAUSES_MAX, read_accept
from mooring.apiserver.discovery.accept import preferred_form
from mooring.apiserver.tables import (
    Asked,
    Form,
    Include,
    asked_form,
    metadata_list,
    metadata_of,
    read_include,
)

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
        ("", Asked(Form.WHOLE, JSON)),
        ("*/*", Asked(Form.WHOLE, JSON)),
        ("application/yaml", Asked(Form.WHOLE, YAML)),
        (f"{PROTOBUF},application/json", Asked(Form.WHOLE, PROTOBUF)),
        (f"{PROTOBUF};q=0.5,application/json", Asked(Form.WHOLE, JSON)),
        (KUBECTL, Asked(Form.TABLE, JSON)),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", Asked(Form.TABLE, JSON, V1BETA1)),
        ("application/json;as=Table;v=v2;g=meta.k8s.io,application/yaml", Asked(Form.WHOLE, YAML)),
        (f"{PROTOBUF};as=Table;v=v1;g=meta.k8s.io,application/json", Asked(Form.WHOLE, JSON)),
        (
            f"{PROTOBUF};as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
            Asked(Form.METADATA_LIST, PROTOBUF, V1),
        ),
        ("application/json;as=PartialObjectMetadata;g=other;v=v1", None),
        ("application/json;as=Poem;g=meta.k8s.io;v=v1", None),
        ("text/html", None),
        (";;;,,=,", None),
    ],
)
def test_the_first_form_that_there_is_is_given(accept: str, asked: Asked | None) -> None:
    assert asked_form(accept) == asked


@given(st.text() | st.from_regex(r"([a*]/[b*](;(q|as|g|v)=[0-9a-zA-Z.]*)*,?)*"))
def test_any_header_is_read(accept: str) -> None:
    asked_form(accept)
    preferred_form(accept)
    assert all(clause.quality > 0 for clause in read_accept(accept))


def test_endless_headers_are_cut() -> None:
    assert len(read_accept("a/b," * 10_000)) == CLAUSES_MAX


def test_what_is_not_liked_at_all_is_not_accepted() -> None:
    assert read_accept("application/json;q=0, text/plain;q=x") == []


def test_include_is_metadata_unless_said_otherwise() -> None:
    assert read_include("") is Include.METADATA
    assert read_include("Object") is Include.OBJECT
    assert read_include("All") == (
        'Unable to convert to Table as requested: includeObject: Invalid value: "All": '
        "must be 'Metadata', 'Object', 'None', or empty"
    )


def test_metadata_alone() -> None:
    value = ConfigMap(metadata=ObjectMeta(name="x", uid="u"), data={"a": "b"})
    one = json.loads(encode_json(metadata_of(value, V1)))
    assert one == {
        "kind": "PartialObjectMetadata",
        "apiVersion": V1,
        "metadata": {"name": "x", "uid": "u"},
    }
    several = json.loads(encode_json(metadata_list([value], ListMeta(resource_version="4"), V1)))
    assert several == {
        "kind": "PartialObjectMetadataList",
        "apiVersion": V1,
        "metadata": {"resourceVersion": "4"},
        "items": [one],
    }
