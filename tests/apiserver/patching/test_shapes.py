"""Shapes have the list and map types of the schema."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from moorage.api.catalogue import SERVED
from moorage.api.kinds import Kind
from moorage.apiserver.patching import shapes
from moorage.apiserver.patching.shapes import (
    JSON,
    STRING,
    MapForm,
    Relation,
    Shape,
    ShapeField,
    find_shape,
    shape_of,
)


@pytest.mark.parametrize("kind", SERVED, ids=lambda k: f"{k.api_version}-{k.name}")
def test_every_served_kind_has_a_shape(kind: Kind) -> None:
    assert find_shape(kind.api_version, kind.name) is not None


def test_a_struct_may_contain_itself() -> None:
    template = shape_of("scheduling/v1beta1.CompositePodGroupTemplate")
    assert template.map is not None
    inner = template.map.fields["compositePodGroupTemplates"].shape.list
    assert inner is not None
    assert inner.element is template


def test_unknown_kinds_and_versions_have_no_shape() -> None:
    assert find_shape("v9", "Pod") is None
    assert find_shape("v1", "Elephant") is None


def test_a_kind_whose_fields_have_no_managers_has_no_shape() -> None:
    assert find_shape("authorization.k8s.io/v1", "SelfSubjectRulesReview") is None


@pytest.mark.parametrize(
    ("version", "struct", "field", "relation", "keys", "strategy", "merge_key"),
    [
        ("core/v1", "PodSpec", "containers", "map", ("name",), ("merge",), "name"),
        ("core/v1", "Container", "ports", "map", ("containerPort", "protocol"), ("merge",),
         "containerPort"),
        ("core/v1", "PodSpec", "tolerations", "atomic", (), (), ""),
        ("core/v1", "PodSpec", "volumes", "map", ("name",), ("merge", "retainKeys"), "name"),
        ("core/v1", "PodSpec", "resourceClaims", "map", ("name",), ("merge", "retainKeys"), "name"),
        ("meta/v1", "ObjectMeta", "ownerReferences", "map", ("uid",), ("merge",), "uid"),
        ("meta/v1", "ObjectMeta", "finalizers", "set", (), ("merge",), ""),
        ("core/v1", "PodStatus", "conditions", "map", ("type",), ("merge",), "type"),
        ("resource/v1", "DeviceClaim", "requests", "atomic", (), (), ""),
        ("resource/v1", "ResourceClaimStatus", "reservedFor", "map", ("uid",),
         ("merge",), "uid"),
        ("resource/v1", "ResourceClaimStatus", "devices", "map",
         ("driver", "device", "pool", "shareID"), (), ""),
        ("resource/v1", "ResourceSliceSpec", "devices", "atomic", (), (), ""),
    ],
)  # fmt: skip
def test_lists_mean_what_kubernetes_says(
    version: str,
    struct: str,
    field: str,
    relation: str,
    keys: tuple[str, ...],
    strategy: tuple[str, ...],
    merge_key: str,
) -> None:
    form = shape_of(f"{version}.{struct}").map
    assert form is not None
    declared = form.fields[field]
    assert declared.shape.list is not None
    assert declared.shape.list.relation is Relation(relation)
    assert declared.shape.list.keys == keys
    assert (sorted(declared.strategy), declared.merge_key) == (sorted(strategy), merge_key)


# --- whether equal values are the same ------------------------------------------------------------


def struct(name: str) -> Shape:
    return Shape(name, map_form=MapForm({}, None, is_atomic=False))


def test_a_shape_within_one_that_is_being_looked_at_is_not_taken_for_plain() -> None:
    outer, inner = struct("Outer"), struct("Inner")
    assert outer.map is not None
    assert inner.map is not None
    inner.map.fields["outer"] = ShapeField(outer)
    outer.map.fields["inner"] = ShapeField(inner)
    outer.map.fields["json"] = ShapeField(JSON)
    assert not outer.is_plain
    assert not inner.is_plain


def test_a_struct_that_contains_itself_is_plain() -> None:
    node = struct("Node")
    assert node.map is not None
    node.map.fields["next"] = ShapeField(node)
    node.map.fields["name"] = ShapeField(STRING)
    assert node.is_plain


def test_no_thread_sees_a_shape_that_is_not_finished(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "core/v1.PodSpec"
    seen: list[bool] = []
    monkeypatch.setattr(shapes, "_shapes", {})
    made, field = threading.Event(), shapes._field

    def slowly(declared: Any, unfinished: Any) -> ShapeField:
        """Let another thread ask for the same shape once a part of it is there."""
        if not made.is_set():
            made.set()
            asking.start()
            asking.join(10)
        return field(declared, unfinished)

    asking = threading.Thread(target=lambda: seen.append(shape_of(name).map is not None))
    monkeypatch.setattr(shapes, "_field", slowly)
    found = shape_of(name)
    asking.join(10)
    assert seen == [True]
    assert shape_of(name) is found


def test_a_field_may_have_an_atomic_type_and_be_granular() -> None:
    volume = shape_of("core/v1.PersistentVolumeSpec").map
    reference = shape_of("core/v1.ObjectReference").map
    assert volume is not None
    assert reference is not None
    claim = volume.fields["claimRef"].shape.map
    assert claim is not None
    assert (claim.is_atomic, reference.is_atomic) == (False, True)
    assert claim.fields is reference.fields
