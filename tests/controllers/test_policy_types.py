"""Warnings about expressions of policies that do not fit the types of what they match."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.admissionregistration import ValidatingAdmissionPolicy
from moorage.api.apiextensions import CustomResourceDefinition
from moorage.api.codec import decode_tree
from moorage.controllers.admission_policy_status import KINDS_MAX, type_warnings

DEPLOYMENTS = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
WIDGETS = {"apiGroups": ["example.com"], "apiVersions": ["v1"], "resources": ["widgets"]}


def policy(expression: str, *rules: dict[str, Any], **spec: Any) -> ValidatingAdmissionPolicy:
    tree = {
        "matchConstraints": {"resourceRules": [{**each, "operations": ["*"]} for each in rules]},
        "validations": [{"expression": expression}],
        **spec,
    }
    found: ValidatingAdmissionPolicy = decode_tree(
        {"metadata": {"name": "p"}, "spec": tree}, ValidatingAdmissionPolicy
    ).value
    return found


def definition(schema: dict[str, Any]) -> CustomResourceDefinition:
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    spec = {
        "group": "example.com",
        "names": {"plural": "widgets", "kind": "Widget"},
        "scope": "Namespaced",
        "versions": [version],
    }
    tree = {"metadata": {"name": "widgets.example.com"}, "spec": spec}
    found: CustomResourceDefinition = decode_tree(tree, CustomResourceDefinition).value
    return found


WIDGET = definition(
    {
        "type": "object",
        "properties": {
            "spec": {"type": "object", "properties": {"size": {"type": "integer"}}},
        },
    }
)


def warnings(expression: str, *rules: dict[str, Any], **spec: Any) -> list[str]:
    found = type_warnings(policy(expression, *rules or (DEPLOYMENTS,), **spec), (WIDGET,))
    return [each.warning for each in found]


def test_a_warning_has_its_field_and_kubernetes_words() -> None:
    (found,) = type_warnings(policy("object.replicas > 1", DEPLOYMENTS), ())
    assert found.field_ref == "spec.validations[0].expression"
    assert found.warning == (
        "apps/v1, Kind=Deployment: ERROR: <input>:1:7: undefined field 'replicas'\n"
        " | object.replicas > 1\n"
        " | ......^\n"
    )


@pytest.mark.parametrize(
    "expression",
    [
        "object.spec.replicas > 1",
        "object == null || object.spec.replicas != oldObject.spec.replicas",
        "object.metadata.creationTimestamp > timestamp('2026-01-01T00:00:00Z')",
        "object.metadata.labels['a'] == 'b'",
        "object.metadata.__namespace__ == object.metadata.namespace",
        "object.spec.template.spec.containers.all(c, 'cpu' in c.resources.limits)",
        "object.spec.strategy.rollingUpdate.maxSurge == 1",
        "namespaceObject.metadata.name == request.namespace",
        "authorizer.requestResource.check('x').allowed()",
        "variables.replicas < 10",
        "'%d replicas'.format([object.spec.replicas]).matches('[0-9]+')",
    ],
)
def test_what_fits_is_no_warning(expression: str) -> None:
    variable = {"name": "replicas", "expression": "object.spec.replicas"}
    assert warnings(expression, variables=[variable]) == []


@pytest.mark.parametrize(
    ("expression", "fact"),
    [
        (
            "object.spec.replicas == '1'",
            "no matching overload for '_==_' applied to '(int, string)'",
        ),
        ("object.spec.template.spec.containers.exists(c, c.img == '')", "undefined field 'img'"),
        ("variables.replicas == '1'", "'(int, string)'"),
        ("variables.other == 1", "undefined field 'other'"),
        ("params.data.a == 1", "'(string, int)'"),
        ("object.spec.", "Syntax error"),
    ],
)
def test_what_does_not_fit_is(expression: str, fact: str) -> None:
    variable = {"name": "replicas", "expression": "object.spec.replicas"}
    kind = {"apiVersion": "v1", "kind": "ConfigMap"}
    (found,) = warnings(expression, variables=[variable], paramKind=kind)
    assert fact in found


def test_each_kind_has_its_own_words() -> None:
    both = {**DEPLOYMENTS, "resources": ["replicasets", "deployments"]}
    (found,) = warnings("object.spec.strategy.type == 'Recreate'", both)
    assert found.startswith("apps/v1, Kind=ReplicaSet: ERROR: <input>:1:12: undefined field 'str")
    (found,) = warnings("object.x", both)
    assert [line[:25] for line in found.split("\n\n")] == [
        "apps/v1, Kind=Deployment:",
        "apps/v1, Kind=ReplicaSet:",
    ]


def test_the_message_expression_is_checked() -> None:
    validation = {"expression": "true", "messageExpression": "object.spec.replicas + 'x'"}
    (found,) = type_warnings(policy("", DEPLOYMENTS, validations=[validation]), ())
    assert found.field_ref == "spec.validations[0].messageExpression"


@pytest.mark.parametrize(
    "rule",
    [
        {**DEPLOYMENTS, "apiGroups": ["*"]},
        {**DEPLOYMENTS, "apiVersions": ["*"]},
        {**DEPLOYMENTS, "resources": ["*"]},
        {**DEPLOYMENTS, "resources": ["deployments/scale", "*/*"]},
        {**DEPLOYMENTS, "apiVersions": ["v1beta1"]},
        {**DEPLOYMENTS, "resources": ["things"]},
    ],
)
def test_what_names_no_kind_says_nothing(rule: dict[str, Any]) -> None:
    assert warnings("object.x", rule) == []


def test_a_definition_tells_the_types_of_its_kind() -> None:
    assert warnings("object.spec.size > 1 && object.metadata.labels.size() > 0", WIDGETS) == []
    (found,) = warnings("object.spec.sizes > 1", WIDGETS)
    assert found.startswith("example.com/v1, Kind=Widget: ERROR: <input>:1:12: undefined field")
    kind = {"apiVersion": "example.com/v1", "kind": "Widget"}
    (found,) = warnings("params.spec.size == 'x'", DEPLOYMENTS, paramKind=kind)
    assert "'(int, string)'" in found


def test_a_definition_that_says_nothing_is_no_error() -> None:
    anything = definition({"type": "object", "additionalProperties": {"type": "string"}})
    assert type_warnings(policy("object.x", WIDGETS), (anything,)) == ()


def test_as_many_kinds_are_checked_as_kubernetes_checks() -> None:
    plurals = ["pods", "services", "configmaps", "secrets", "nodes", "namespaces", "endpoints"]
    plurals += ["serviceaccounts", "replicationcontrollers", "persistentvolumes", "limitranges"]
    rule = {"apiGroups": [""], "apiVersions": ["v1"], "resources": plurals}
    (found,) = warnings("object.x", rule)
    assert found.count("undefined field") == KINDS_MAX
