"""Rules for definitions, row by row, with Kubernetes' messages."""

from __future__ import annotations

from copy import deepcopy
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from moorage.api.catalogue import CATALOGUE
from moorage.api.gates import Gates
from moorage.api.object_reader import read_tree
from moorage.api.timestamp import Timestamp
from moorage.validation.registry import RegistryResult, before_create, before_update
from moorage.validation.strategy import Context

CONTEXT = Context(Gates.parse(), Timestamp(datetime(2026, 1, 1, tzinfo=UTC)))
KIND = CATALOGUE.find("apiextensions.k8s.io/v1", "CustomResourceDefinition")
SCHEMA = "spec.validation.openAPIV3Schema"
RULES = "x-kubernetes-validations"


def definition(schema: dict[str, Any] | None = None, **spec: Any) -> dict[str, Any]:
    tree = {"type": "object"} if schema is None else schema
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": tree},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com",
            "names": {"plural": "widgets", "kind": "Widget"},
            "scope": "Namespaced",
            "versions": [version],
            **spec,
        },
    }


def created(tree: dict[str, Any]) -> RegistryResult:
    read = read_tree(deepcopy(tree), gates=Gates.parse())
    return before_create(read.value, KIND, CONTEXT)


def errors(tree: dict[str, Any]) -> list[str]:
    return [str(error) for error in created(tree).errors]


def prop(tree: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": {"a": tree}, **more}


def version(**fields: Any) -> dict[str, Any]:
    found: dict[str, Any] = definition()["spec"]["versions"][0]
    return {**found, **fields}


def shown(*, storage: bool = True) -> str:
    """Return a version as Kubernetes prints it, without what is the same in all versions."""
    return (
        f'{{"Name":"v1","Served":true,"Storage":{str(storage).lower()},"Deprecated":false,'
        '"DeprecationWarning":null,"Schema":null,"Subresources":null,'
        '"AdditionalPrinterColumns":null,"SelectableFields":null}'
    )


def test_a_plain_definition_is_valid() -> None:
    assert errors(definition()) == []


SPECS: list[tuple[dict[str, Any], list[str]]] = [
    ({"scope": "Galaxy"}, [
        'spec.scope: Unsupported value: "Galaxy": supported values: "Cluster", "Namespaced"'
    ]),
    ({"group": "example"}, [
        ('metadata.name: Invalid value: "widgets.example.com": '
        'must be spec.names.plural+"."+spec.group'),
        'spec.group: Invalid value: "example": should be a domain with at least one dot',
    ]),
    ({"versions": [version(storage=False)]}, [
        (f"spec.versions: Invalid value: [{shown(storage=False)}]: "
        "must have exactly one version marked as storage version"),
        "status.storedVersions: Invalid value: null: must have at least one stored version",
    ]),
    ({"versions": [version(), version(storage=False)]}, [
        (f"spec.versions: Invalid value: [{shown()},{shown(storage=False)}]: "
        "must contain unique version names"),
    ]),
    ({"versions": [version(schema={})]}, [
        "spec.versions[0].schema.openAPIV3Schema: Required value",
    ]),
    ({"versions": [version(deprecationWarning="x")]}, [
        ('spec.versions[0].deprecationWarning: Invalid value: "x": '
        "can only be set for deprecated versions"),
    ]),
    ({"preserveUnknownFields": True}, [
        ("spec.preserveUnknownFields: Invalid value: true: cannot set to true, set "
        "x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"),
    ]),
    ({"names": {"plural": "widgets", "kind": "Widget", "listKind": "Widget"}}, [
        'spec.names.listKind: Invalid value: "Widget": kind and listKind may not be the same',
    ]),
    ({"conversion": {"strategy": "Webhook"}}, [
        ("spec.conversion.webhookClientConfig: Required value: "
        "required when strategy is set to Webhook"),
        "spec.conversion.conversionReviewVersions: Required value",
    ]),
    ({"versions": [version(subresources={"scale": {
        "specReplicasPath": ".replicas", "statusReplicasPath": "status.x"}})]}, [
        ('spec.subresources.scale.specReplicasPath: Invalid value: ".replicas": '
        "should be a json path under .spec"),
        ('spec.subresources.scale.statusReplicasPath: Invalid value: "status.x": '
        "must be a simple json path starting with ."),
    ]),
    ({"versions": [version(additionalPrinterColumns=[{"name": "A", "type": "x"}])]}, [
        ('spec.additionalPrinterColumns[0].type: Invalid value: "x": '
        "must be one of boolean,date,integer,number,string"),
        "spec.additionalPrinterColumns[0].JSONPath: Required value",
    ]),
    ({"versions": [version(selectableFields=[{"jsonPath": ".spec.a"}])]}, [
        ('spec.selectableFields[0].jsonPath: Invalid value: ".spec.a": is an invalid path: '
        "does not refer to a valid field"),
    ]),
]  # fmt: skip


@pytest.mark.parametrize(("spec", "wanted"), SPECS)
def test_specs(spec: dict[str, Any], wanted: list[str]) -> None:
    assert errors(definition(**spec)) == wanted


A = f"{SCHEMA}.properties[a]"
SCHEMAS: list[tuple[dict[str, Any], list[str]]] = [
    ({}, [f"{SCHEMA}.type: Required value: must not be empty at the root"]),
    ({"type": "array", "items": {"type": "string"}}, [
        f'{SCHEMA}.type: Invalid value: "array": must be object at the root'
    ]),
    (prop({}), [f"{A}.type: Required value: must not be empty for specified object fields"]),
    (prop({"type": "array"}), [f"{A}.items: Required value: must be specified"]),
    (prop({"type": "text"}), [
        (f'{A}.type: Unsupported value: "text": supported values: '
        '"array", "boolean", "integer", "number", "object", "string"')
    ]),
    (prop({"type": "string", "anyOf": [{"type": "string"}]}), [
        f"{A}.anyOf[0].type: Forbidden: must be empty to be structural"
    ]),
    (prop({"type": "string"}, anyOf=[{"properties": {"b": {"minLength": 1}}}]), [
        (f"{SCHEMA}.properties[b]: Required value: because it is defined in "
        f"{SCHEMA}.anyOf[0].properties[b]")
    ]),
    (prop({"type": "string", "pattern": "("}), [
        (f'{A}.pattern: Invalid value: "(": must be a valid regular expression, but isn\'t: '
        "error parsing regexp: missing closing ): `(`")
    ]),
    (prop({"type": "string"}, additionalProperties=True), [
        f"{SCHEMA}.additionalProperties: Forbidden: must not be used at the root"
    ]),
    (prop({"type": "object", "properties": {"b": {"type": "string"}},
           "additionalProperties": {"type": "string"}}), [
        (f"{A}.additionalProperties: Forbidden: "
        "additionalProperties and properties are mutual exclusive")
    ]),
    (prop({"type": "array", "items": {"type": "string"}, "uniqueItems": True}), [
        (f"{A}.uniqueItems: Forbidden: uniqueItems cannot be set to true since the runtime "
        "complexity becomes quadratic")
    ]),
    (prop({"type": "array", "items": {"type": "object"}, "x-kubernetes-list-type": "set"}), [
        (f"{A}.items.x-kubernetes-map-type: Invalid value: null: "
        "must be atomic as item of a list with x-kubernetes-list-type=set")
    ]),
    (prop({"type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["k"],
           "items": {"type": "object", "properties": {"k": {"type": "string"}}}}), [
        (f"{A}.items.properties[k].default: Required value: this property is in "
        "x-kubernetes-list-map-keys, so it must have a default or be a required property")
    ]),
    (prop({"type": "string", "default": 1}), [
        f'{A}.default: Invalid value: "integer":  in body must be of type string: "integer"'
    ]),
    (prop({"type": "object", "default": {"x": 1}}), [
        f'{A}.default: Invalid value: {{"x":1}}: must not have unknown fields'
    ]),
    ({"type": "object", "properties": {"metadata": {"type": "object", "properties": {
        "labels": {"type": "object"}}}}}, [
        (f"{SCHEMA}.properties[metadata]: Forbidden: must not specify anything other than name and "
        "generateName, but metadata is implicitly specified")
    ]),
    ({"type": "object", "nullable": True}, [
        f"{SCHEMA}.nullable: Forbidden: nullable cannot be true at the root"
    ]),
    (prop({"type": "string", "$ref": "#/x"}), [f"{A}.$ref: Forbidden: $ref is not supported"]),
    (prop({"x-kubernetes-int-or-string": True,
           "anyOf": [{"type": "integer"}, {"type": "string"}]}), []),
    (prop({"type": "object", "x-kubernetes-embedded-resource": True,
           "x-kubernetes-preserve-unknown-fields": True}), []),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "wanted"), SCHEMAS)
def test_schemas(schema: dict[str, Any], wanted: list[str]) -> None:
    assert errors(definition(schema)) == wanted


def test_expressions_are_compiled_and_their_costs_are_bounded() -> None:
    def rule(text: str, tree: dict[str, Any] | None = None, **fields: Any) -> list[str]:
        rules = [{"rule": text, **fields}]
        return errors(definition(prop({**(tree or {"type": "string"}), RULES: rules})))

    assert rule("self.size() > 1") == []
    (fault,) = rule("self.sise() > 1")
    assert f"{A}.{RULES}[0].rule: Invalid value: " in fault
    assert "undeclared reference to 'sise'" in fault
    assert "cel expression must evaluate to a bool" in rule("self.size()")[0]
    assert "messageExpression must evaluate to a string" in rule("true", messageExpression="1")[0]
    listed = {"type": "array", "items": {"type": "string"}}
    (first, *_) = rule("self.all(x, self.all(y, x == y))", listed)
    assert first.startswith(
        f"{A}.{RULES}[0].rule: Forbidden: estimated rule cost exceeds budget by factor of more "
        "than 100x"
    )
    bounded = {"type": "array", "maxItems": 5, "items": {"type": "string", "maxLength": 5}}
    assert rule("self.all(x, self.all(y, x == y))", bounded) == []
    assert rule("self == oldSelf") == []
    item = {"type": "string", "maxLength": 9, RULES: [{"rule": "self == oldSelf"}]}
    inside = {"type": "array", "maxItems": 9, "items": item}
    assert errors(definition(prop(inside))) == [
        (
            f'{A}.items.{RULES}[0].rule: Invalid value: "self == oldSelf": oldSelf cannot be used '
            f"on the uncorrelatable portion of the schema within {A}"
        )
    ]
    assert rule("true", optionalOldSelf=True) == [
        (
            f"{A}.{RULES}[0].optionalOldSelf: Invalid value: true: "
            "may not be set if oldSelf is not used in rule"
        )
    ]
    assert rule("true", reason="Because") == [
        (
            f'{A}.{RULES}[0].reason: Unsupported value: "Because": supported values: '
            '"FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", '
            '"FieldValueRequired"'
        )
    ]
    assert rule("true", fieldPath=".b") == [
        f'{A}.{RULES}[0].fieldPath: Invalid value: ".b": must be a valid path'
    ]


def test_a_group_of_kubernetes_needs_an_approval() -> None:
    tree = definition(group="x.k8s.io")
    tree["metadata"]["name"] = "widgets.x.k8s.io"
    (fault,) = errors(tree)
    assert fault.startswith(
        "metadata.annotations[api-approved.kubernetes.io]: Required value: protected groups"
    )
    tree["metadata"]["annotations"] = {"api-approved.kubernetes.io": "unapproved, test-only"}
    assert errors(tree) == []


def test_what_decides_where_objects_are_does_not_change() -> None:
    old = created(definition()).stored
    old = replace(old, metadata=replace(old.metadata, resource_version="1", uid="u"))
    tree = definition(scope="Cluster")
    new = read_tree(tree, gates=Gates.parse()).value
    assert before_update(new, old, KIND, CONTEXT).refused is None
    version_two = version(name="v2")
    gone = read_tree(definition(versions=[version_two]), gates=Gates.parse()).value
    gone = replace(gone, metadata=replace(gone.metadata, resource_version="1"))
    found = [str(error) for error in before_update(gone, old, KIND, CONTEXT).errors]
    assert found == [
        (
            'status.storedVersions[0]: Invalid value: "v1": missing from spec.versions; v1 was '
            "previously a storage version, and must remain in spec.versions until a storage "
            "migration ensures no data remains persisted in v1 and removes v1 from "
            "status.storedVersions"
        )
    ]


def test_formats_that_say_nothing_are_warned_of() -> None:
    tree = definition(prop({"type": "string", "format": "colour"}))
    assert created(tree).warnings == ('unrecognized format "colour"',)
