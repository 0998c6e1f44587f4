"""The tables know every kind that is served, and every field of its structs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, get_args, get_type_hints

import pytest
from msgspec import Struct
from msgspec.structs import fields

from mooring.api.catalogue import SERVED
from mooring.api.kinds import Kind
from mooring.api.structs import EXTRA
from mooring.apiserver.patching.shapes import Relation, Shape
from mooring.apiserver.patching.tables import find_shape, table

# One struct stands for all conditions; not all kinds of them have the field.
SHARED = {"observedGeneration"}


def missing(struct: type[Struct], shape: Shape, place: str) -> Iterator[str]:
    """Yield the fields of a struct that its table does not have."""
    assert shape.map is not None, place
    hints = get_type_hints(struct)
    for info in fields(struct):
        name = info.encode_name
        if name == EXTRA or shape.map.element is not None or name in SHARED:
            continue
        declared = shape.map.fields.get(name)
        if declared is None:
            yield f"{place}.{name}"
            continue
        for below in structs_in(hints[info.name]):
            yield from missing(below, element_of(declared.shape), f"{place}.{name}")


def structs_in(annotation: Any) -> Iterator[type[Struct]]:
    if isinstance(annotation, type) and issubclass(annotation, Struct):
        yield annotation
    for argument in get_args(annotation):
        yield from structs_in(argument)


def element_of(shape: Shape) -> Shape:
    if shape.list is not None:
        return shape.list.element
    if shape.name == "map":
        assert shape.map is not None
        assert shape.map.element is not None
        return shape.map.element
    return shape


@pytest.mark.parametrize("kind", SERVED, ids=lambda k: f"{k.api_version}-{k.name}")
def test_every_field_of_a_kind_is_in_its_table(kind: Kind) -> None:
    shape = find_shape(kind.api_version, kind.name)
    assert shape is not None
    if "Template" in kind.name or kind.name == "Workload":
        return  # They contain themselves; PodGroup and ResourceClaim have the parts.
    assert list(missing(kind.struct, shape, kind.name)) == []


def test_a_struct_may_contain_itself() -> None:
    template = table("scheduling.k8s.io/v1beta1").shape("CompositePodGroupTemplate")
    assert template.map is not None
    inner = template.map.fields["compositePodGroupTemplates"].shape.list
    assert inner is not None
    assert inner.element is template


def test_unknown_kinds_and_versions_have_no_shape() -> None:
    assert find_shape("v9", "Pod") is None
    assert find_shape("v1", "Elephant") is None


@pytest.mark.parametrize(
    ("api_version", "struct", "field", "relation", "keys", "strategy", "merge_key"),
    [
        ("v1", "PodSpec", "containers", "keyed", ("name",), ("merge",), "name"),
        ("v1", "Container", "ports", "keyed", ("containerPort", "protocol"), ("merge",),
         "containerPort"),
        ("v1", "PodSpec", "tolerations", "atomic", (), (), ""),
        ("v1", "PodSpec", "volumes", "keyed", ("name",), ("merge", "retainKeys"), "name"),
        ("v1", "PodSpec", "resourceClaims", "keyed", ("name",), ("merge", "retainKeys"), "name"),
        ("v1", "ObjectMeta", "ownerReferences", "keyed", ("uid",), ("merge",), "uid"),
        ("v1", "ObjectMeta", "finalizers", "set", (), ("merge",), ""),
        ("v1", "PodStatus", "conditions", "keyed", ("type",), ("merge",), "type"),
        ("resource.k8s.io/v1", "DeviceClaim", "requests", "atomic", (), (), ""),
        ("resource.k8s.io/v1", "ResourceClaimStatus", "reservedFor", "keyed", ("uid",),
         ("merge",), "uid"),
        ("resource.k8s.io/v1", "ResourceClaimStatus", "devices", "keyed",
         ("driver", "device", "pool", "shareID"), (), ""),
        ("resource.k8s.io/v1", "ResourceSliceSpec", "devices", "atomic", (), (), ""),
    ],
)  # fmt: skip
def test_lists_mean_what_kubernetes_says(
    api_version: str,
    struct: str,
    field: str,
    relation: str,
    keys: tuple[str, ...],
    strategy: tuple[str, ...],
    merge_key: str,
) -> None:
    form = table(api_version).shape(struct).map
    assert form is not None
    declared = form.fields[field]
    assert declared.shape.list is not None
    assert declared.shape.list.relation is Relation(relation)
    assert declared.shape.list.keys == keys
    assert (sorted(declared.strategy), declared.merge_key) == (sorted(strategy), merge_key)
