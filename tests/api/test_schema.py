"""The schema agrees with our structs, with the recorded protobuf of Kubernetes, and with itself."""

from __future__ import annotations

import json
import types
from collections.abc import Iterator
from functools import cache
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import pytest
from msgspec import Raw, Struct
from msgspec.structs import fields

from moorage.api.catalogue import SERVED
from moorage.api.gates import Gate
from moorage.api.kinds import Kind
from moorage.api.quantity import Quantity
from moorage.api.schema import (
    ApiType,
    Field,
    api_type,
    feature_gates,
    find_kind,
    group_version,
    type_names,
)
from moorage.api.structs import EXTRA, Open
from moorage.api.timestamp import MicroTimestamp, Timestamp
from tests.corpus import corpus

# Structs declare these, and the types of Kubernetes lack them.
NOT_IN_TABLE = {
    # One struct stands for all conditions; not all types of them have the field.
    ("NamespaceCondition", "observedGeneration"),
}
# Types of the table that a struct holds in another form.
OTHER_FORM = {
    # Templates of v1alpha2 are converted before they are decoded.
    ("scheduling/v1alpha2.PodGroupTemplate", "disruptionMode"),
}

SCALARS: dict[str, tuple[Any, ...]] = {
    "string": (str,),
    "bool": (bool,),
    "int32": (int,),
    "int64": (int,),
    "bytes": (str,),
    "quantity": (Quantity,),
    "time": (Timestamp,),
    "microtime": (MicroTimestamp,),
    "int-or-string": (int, str),
    "json": (Raw,),
    "json-schema": (dict,),
    "strings": (tuple,),
}
BOUNDS = {"int32": 2**31 - 1, "int64": 2**63 - 1}


def ids(kind: Kind) -> str:
    return f"{kind.api_version}-{kind.name}"


def type_of(kind: Kind) -> ApiType:
    name = find_kind(kind.api_version, kind.name)
    assert name is not None
    return api_type(name)


# --- structs --------------------------------------------------------------------------------------


def pairs(struct: type[Struct], declared: ApiType) -> Iterator[tuple[type[Struct], ApiType]]:
    """Yield every struct below a kind with the type that it stands for."""
    seen = set()
    left = [(struct, declared)]
    while left:
        struct, declared = left.pop()
        if (struct, declared.name) in seen:
            continue
        seen.add((struct, declared.name))
        yield struct, declared
        by_name = {field.name: field for field in declared.json_fields()}
        hints = get_type_hints(struct)
        for info in fields(struct):
            field = by_name.get(info.encode_name)
            if field is not None and field.is_struct:
                left += [(s, api_type(field.type)) for s in structs_in(hints[info.name])]


def structs_in(hint: Any) -> Iterator[type[Struct]]:
    if isinstance(hint, type) and issubclass(hint, Struct):
        yield hint
    for argument in get_args(hint):
        yield from structs_in(argument)


@pytest.mark.parametrize("kind", SERVED, ids=ids)
def test_every_field_of_a_struct_is_in_the_table(kind: Kind) -> None:
    for struct, declared in pairs(kind.struct, type_of(kind)):
        known = {field.name for field in declared.json_fields()}
        known |= {"apiVersion", "kind"} if declared.is_kind else set()
        mine = {info.encode_name for info in fields(struct)} - {EXTRA}
        unknown = {name for name in mine - known if (declared.short_name, name) not in NOT_IN_TABLE}
        assert unknown == set(), declared.name


@pytest.mark.parametrize("kind", SERVED, ids=ids)
def test_every_field_of_the_table_is_in_a_struct_that_keeps_no_others(kind: Kind) -> None:
    for struct, declared in pairs(kind.struct, type_of(kind)):
        if issubclass(struct, Open):
            continue
        mine = {info.encode_name for info in fields(struct)}
        names = {field.name for field in declared.json_fields()}
        assert names - mine == set(), declared.name


@pytest.mark.parametrize("kind", SERVED, ids=ids)
def test_fields_of_structs_have_the_types_of_the_table(kind: Kind) -> None:
    for struct, declared in pairs(kind.struct, type_of(kind)):
        hints = get_type_hints(struct, include_extras=True)
        by_name = {field.name: field for field in declared.json_fields()}
        for info in fields(struct):
            field = by_name.get(info.encode_name)
            if field is not None and (declared.name, field.name) not in OTHER_FORM:
                assert is_compatible(hints[info.name], field), f"{declared.name}.{field.name}"


def is_compatible(hint: Any, field: Field) -> bool:
    """Whether values of a Python type can be those of a field."""
    if get_origin(hint) in (Union, types.UnionType):
        return all(is_compatible(a, field) for a in get_args(hint) if a is not types.NoneType)
    if hint is Any:
        return True
    origin, arguments = get_origin(hint), get_args(hint)
    if field.is_list:
        return origin is tuple and is_one(arguments[0], field)
    if field.is_map:
        return origin is dict and arguments[0] is str and is_one(arguments[1], field)
    return is_one(hint, field)


def is_one(hint: Any, field: Field) -> bool:
    if get_origin(hint) in (Union, types.UnionType):
        return all(is_one(a, field) for a in get_args(hint) if a is not types.NoneType)
    if hint is Any:
        return True
    if field.is_struct:
        return isinstance(hint, type) and issubclass(hint, Struct)
    if get_origin(hint) is Annotated and hint.__metadata__[0].pattern is not None:
        return field.type == "bytes"
    if get_origin(hint) is Annotated:
        return bool(hint.__metadata__[0].le == BOUNDS.get(field.type))
    return (get_origin(hint) or hint) in SCALARS[field.type]


# --- recorded protobuf ----------------------------------------------------------------------------

BUILT_IN = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": "quantity",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Time": "time",
    "k8s.io.apimachinery.pkg.apis.meta.v1.MicroTime": "microtime",
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": "int-or-string",
    "k8s.io.apimachinery.pkg.runtime.RawExtension": "json",
    "k8s.io.apimachinery.pkg.apis.meta.v1.FieldsV1": "json",
    "k8s.io.apimachinery.pkg.apis.meta.v1.Verbs": "strings",
    "k8s.io.api.authorization.v1.ExtraValue": "strings",
    "k8s.io.api.authentication.v1.ExtraValue": "strings",
    "k8s.io.api.authentication.v1.AttestationValue": "strings",
}


@cache
def recorded() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(corpus("http", "protobuf-fields.json").read_text())
    return found


@pytest.mark.parametrize("name", type_names())
def test_numbers_types_and_order_are_those_of_the_recording(name: str) -> None:
    version, _, short_name = name.rpartition(".")
    packages = {entry["package"]: group for group, entry in recorded().items()}
    entry = recorded().get(version)
    if entry is None or short_name not in entry["messages"]:
        return  # of a version that was not recorded, or another version's in this one
    wanted = [
        (number, label, typed(kinds[-1], entry["package"], packages))
        for number, label, *kinds in entry["messages"][short_name].values()
    ]
    assert [(f.number, label_of(f), f.type) for f in api_type(name).fields if f.number] == wanted


def label_of(field: Field) -> str:
    return "repeated" if field.is_list else "map" if field.is_map else "optional"


def typed(text: str, package: str, packages: dict[str, str]) -> str:
    """Return the schema's name of a type in protobuf."""
    holder, _, name = text.lstrip(".").rpartition(".")
    if not holder and name in SCALARS:
        return name
    full = f"{holder or package}.{name}"
    return BUILT_IN.get(full) or f"{packages[holder or package]}.{name}"


# --- the table itself -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", type_names())
def test_every_type_that_a_field_has_is_known(name: str) -> None:
    for field in api_type(name).fields:
        if field.is_struct:
            assert api_type(field.type)
        else:
            assert field.type in SCALARS


@pytest.mark.parametrize("name", type_names())
def test_markers_fit_the_field(name: str) -> None:
    for field in api_type(name).json_fields():
        markers, place = field.markers, f"{name}.{field.name}"
        assert field.is_list or markers.list_type == "atomic", place
        assert (markers.list_type == "map") == bool(markers.list_map_keys), place
        # Of a struct, it says what Kubernetes' structType does.
        assert field.is_map or field.type in type_names() or not markers.map_type, place
        if markers.list_map_keys:
            inner = {below.name for below in api_type(field.type).json_fields()}
            assert set(markers.list_map_keys) <= inner, place
        for gate in markers.feature_gates:
            assert Gate(gate), place


def test_markers_have_no_other_names() -> None:
    allowed = {
        *("required", "enum", "default", "listType", "listMapKey", "mapType"),
        *("patchStrategy", "patchMergeKey", "featureGate", "go"),
    }
    for name in type_names():
        for field in api_type(name).fields:
            markers = f" {field.notes}".partition(" -- ")[0].split()
            assert {marker.partition("=")[0] for marker in markers} <= allowed, name


def test_gates_of_fields_can_be_asked_for() -> None:
    gates = feature_gates("resource/v1.Device")
    assert gates["allowMultipleAllocations"] == ("DRAConsumableCapacity",)
    assert "name" not in gates


def test_versions_share_types_unless_they_declare_their_own() -> None:
    assert api_type("resource/v1beta2.Device").fields == tuple(
        field._replace(type=field.type.replace("resource/v1.", "resource/v1beta2."))
        for field in api_type("resource/v1.Device").fields
    )
    assert [field.name for field in api_type("resource/v1beta1.Device").fields] == ["name", "basic"]


@pytest.mark.parametrize(
    ("api_version", "name"),
    [
        ("v1", "core/v1"),
        ("resource.k8s.io/v1", "resource/v1"),
        ("resource.k8s.io/v9", None),
        ("/v1", None),
        ("elephants/v1", None),
    ],
)
def test_versions_have_names_in_the_schema(api_version: str, name: str | None) -> None:
    assert group_version(api_version) == name
