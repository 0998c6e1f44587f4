"""JSON that our structs keep is read as the Go types of Kubernetes read it."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.codec import to_tree
from moorage.api.errors import DecodeError
from moorage.api.gates import Gates
from moorage.api.go_types import ITEMS_MAX, go_words
from moorage.api.object_reader import ReadObject, read_tree

Tree = dict[str, Any]


def read(**spec: Any) -> ReadObject:
    containers = [{"name": "c", "image": "i"}]
    tree = {"apiVersion": "v1", "kind": "Pod", "spec": {"containers": containers, **spec}}
    return read_tree(tree, gates=Gates.parse(), extensions=False)


def volume(**source: Any) -> ReadObject:
    return read(volumes=[{"name": "v", **source}])


NFS = {"server": "s", "path": "/"}
MAP = {"name": "m"}


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ({"emptyDir": None}, {}),
        ({"emptyDir": {"medium": "", "sizeLimit": "0.5Gi"}}, {"emptyDir": {"sizeLimit": "512Mi"}}),
        ({"nfs": {**NFS, "readOnly": False}}, {"nfs": NFS}),
        ({"configMap": {**MAP, "items": []}}, {"configMap": MAP}),
        ({"configMap": {**MAP, "optional": False}}, {"configMap": {**MAP, "optional": False}}),
        ({"secret": {"items": [None]}}, {"secret": {"items": [{"key": "", "path": ""}]}}),
    ],
)
def test_values_are_written_as_go_writes_them(given: Tree, written: Tree) -> None:
    tree = to_tree(volume(**given).value)
    assert tree["spec"]["volumes"] == [{"name": "v", **written}]


def test_fields_that_a_type_does_not_have_are_dropped_and_reported() -> None:
    reading = volume(configMap={"name": "m", "nmae": "x", "items": [{"key": "k", "to": 1}]})
    assert [remark.message for remark in reading.remarks] == [
        'unknown field "spec.volumes[0].configMap.nmae"',
        'unknown field "spec.volumes[0].configMap.items[0].to"',
    ]
    tree = to_tree(reading.value)["spec"]["volumes"][0]
    assert tree["configMap"] == {"name": "m", "items": [{"key": "k", "path": ""}]}


@pytest.mark.parametrize(
    ("spec", "place", "words"),
    [
        (
            {"volumes": [{"name": 5}]},
            "spec.volumes[0].name: expected string, got number",
            "number into Go struct field Volume.spec.volumes.name of type string",
        ),
        (
            {"volumes": [{"name": "v", "configMap": []}]},
            "spec.volumes[0].configMap: expected v1.ConfigMapVolumeSource, got array",
            (
                "array into Go struct field Volume.spec.volumes.VolumeSource.configMap of type "
                "v1.ConfigMapVolumeSource"
            ),
        ),
        (
            {"securityContext": {"runAsUser": 2**63}},
            "spec.securityContext.runAsUser: expected int64, got number 9223372036854775808",
            (
                "number 9223372036854775808 into Go struct field "
                "PodSecurityContext.spec.securityContext.runAsUser of type int64"
            ),
        ),
        (
            {"dnsConfig": {"searches": "a"}},
            "spec.dnsConfig.searches: expected []string, got string",
            "string into Go struct field PodDNSConfig.spec.dnsConfig.searches of type []string",
        ),
    ],
)
def test_a_value_of_a_wrong_type_is_refused(spec: Tree, place: str, words: str) -> None:
    with pytest.raises(DecodeError) as refused:
        read(**spec)
    assert str(refused.value) == place
    assert go_words({"spec": spec}, "v1", "Pod") == f"json: cannot unmarshal {words}"


def test_an_amount_that_is_none_is_refused() -> None:
    with pytest.raises(DecodeError, match="quantities must match the regular expression"):
        volume(emptyDir={"sizeLimit": "much"})


@pytest.mark.parametrize(
    "spec",
    [
        {"containers": [{}] * (ITEMS_MAX + 1)},
        {"volumes": [{}] * (ITEMS_MAX + 1)},
        {"tolerations": [{}] * (ITEMS_MAX + 1)},
        {"containers": [{"name": "c", "env": [{}] * (ITEMS_MAX // 2)}] * 3},
        {"volumes": [{"configMap": {"items": [{}] * (ITEMS_MAX // 2)}}] * 3},
    ],
    ids=lambda spec: next(iter(spec)),
)
def test_items_of_lists_are_bounded_in_all(spec: Tree) -> None:
    fact = f"the lists of the object have more than {ITEMS_MAX:,} items in all"
    with pytest.raises(DecodeError, match=fact):
        read(**spec)
    assert fact in (go_words({"spec": spec}, "v1", "Pod") or "")


def test_as_many_items_of_lists_as_allowed_are_read() -> None:
    read(volumes=[{"name": "v"}] * (ITEMS_MAX - 1), containers=[{"name": "c"}])
