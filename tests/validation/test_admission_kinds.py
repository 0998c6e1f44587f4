"""Policies, bindings and webhooks are validated with Kubernetes' rules and messages."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.catalogue import CATALOGUE
from moorage.api.gates import Gates
from moorage.api.object_reader import read_tree
from moorage.api.timestamp import Timestamp
from moorage.validation.registry import RegistryResult, before_create, before_update
from moorage.validation.strategy import Context
from tests.apiserver.policies import applied, binding, mutating_policy, patched, policy, rule

CONTEXT = Context(gates=Gates.parse(), now=Timestamp.parse("2026-11-15T12:00:00Z"))


def created(tree: dict[str, Any]) -> RegistryResult:
    kind = CATALOGUE.find(tree["apiVersion"], tree["kind"])
    value = read_tree(tree, gates=CONTEXT.gates).value
    return before_create(value, kind, CONTEXT)


def updated(new: dict[str, Any], old: dict[str, Any]) -> RegistryResult:
    stored = created(old).stored
    kind = CATALOGUE.find(new["apiVersion"], new["kind"])
    value = read_tree(
        {**new, "metadata": {**new["metadata"], "resourceVersion": "1"}}, gates=CONTEXT.gates
    ).value
    from moorage.validation.registry import with_resource_version

    return before_update(value, with_resource_version(stored, "1"), kind, CONTEXT)


def told(result: RegistryResult) -> list[str]:
    return [str(error) for error in result.errors]


def webhook(**changes: Any) -> dict[str, Any]:
    given = {
        "name": "a.example.com",
        "clientConfig": {"url": "https://x/y"},
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
        **changes,
    }
    return {
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "MutatingWebhookConfiguration",
        "metadata": {"name": "c"},
        "webhooks": [{key: value for key, value in given.items() if value is not None}],
    }


def test_defaults() -> None:
    stored = created(policy("true")).stored
    assert stored.metadata.generation == 1
    assert stored.spec.failure_policy == "Fail"
    match = stored.spec.match_constraints
    assert match.match_policy == "Equivalent"
    assert match.resource_rules[0].scope == "*"
    assert match.namespace_selector is not None
    hook = created(webhook(clientConfig={"service": {"name": "n", "namespace": "s"}})).stored
    (only,) = hook.webhooks
    assert (only.failure_policy, only.match_policy, only.timeout_seconds) == (
        "Fail",
        "Equivalent",
        10,
    )
    assert (only.reinvocation_policy, only.client_config.service.port) == ("Never", 443)


@pytest.mark.parametrize(
    ("changes", "errors"),
    [
        ({"operations": []}, ["operations: Required value"]),
        (
            {"operations": ["*", "CREATE"]},
            [
                (
                    'operations: Invalid value: ["*","CREATE"]: if \'*\' is present, must not '
                    "specify "
                    "other operations"
                )
            ],
        ),
        (
            {"operations": ["READ"]},
            [
                (
                    'operations[0]: Unsupported value: "READ": supported values: "*", "CONNECT", '
                    '"CREATE", "DELETE", "UPDATE"'
                )
            ],
        ),
        ({"apiGroups": []}, ["apiGroups: Required value"]),
        ({"apiVersions": [""]}, ["apiVersions[0]: Required value"]),
        ({"resources": []}, ["resources: Required value"]),
        ({"resources": [""]}, ["resources[0]: Required value"]),
        (
            {"resources": ["pods/*", "pods/log"]},
            [
                (
                    "resources[1]: Invalid value: \"pods/log\": if 'pods/*' is present, must not "
                    "specify pods/log"
                )
            ],
        ),
        (
            {"resources": ["*/status", "pods/status"]},
            [
                (
                    "resources[1]: Invalid value: \"pods/status\": if '*/status' is present, "
                    "must not "
                    "specify pods/status"
                )
            ],
        ),
        (
            {"resources": ["*", "pods"]},
            [
                (
                    'resources: Invalid value: ["*","pods"]: if \'*\' is present, must not specify '
                    "other resources without subresources"
                )
            ],
        ),
        (
            {"scope": "Galaxy"},
            [
                (
                    'scope: Unsupported value: "Galaxy": supported values: "*", "Cluster", '
                    '"Namespaced"'
                )
            ],
        ),
        ({"resourceNames": ["a", "a"]}, ['resourceNames[1]: Duplicate value: "a"']),
        (
            {"resourceNames": ["a/b"]},
            ["resourceNames[0]: Invalid value: \"a/b\": may not contain '/'"],
        ),
    ],
)
def test_rules(changes: dict[str, Any], errors: list[str]) -> None:
    given = policy("true", rules=[{**rule(), **changes}])
    assert told(created(given)) == [
        f"spec.matchConstraints.resourceRules[0].{error}" for error in errors
    ]


@pytest.mark.parametrize(
    ("validation", "error"),
    [
        ({"expression": " "}, "expression: Required value: expression is not specified"),
        (
            {"expression": "true", "message": " "},
            'message: Invalid value: " ": must be non-empty if specified',
        ),
        (
            {"expression": "true", "message": "a\nb"},
            'message: Invalid value: "a\\nb": must not contain line breaks',
        ),
        (
            {"expression": "true", "messageExpression": " "},
            'messageExpression: Invalid value: " ": must be non-empty if specified',
        ),
        (
            {"expression": "true", "messageExpression": "1"},
            'messageExpression: Invalid value: "1": must evaluate to string but got int',
        ),
        (
            {
                "expression": "true",
                "messageExpression": "authorizer.path('/').check('get').reason()",
            },
            (
                "messageExpression: Invalid value: \"authorizer.path('/').check('get').reason()\": "
                "compilation failed: ERROR: <input>:1:1: undeclared reference to 'authorizer' (in "
                "container '')\n | authorizer.path('/').check('get').reason()\n | ^"
            ),
        ),
        (
            {"expression": "true", "reason": "Unauthorized"},
            (
                'reason: Unsupported value: "Unauthorized": supported values: "Forbidden", '
                '"Invalid", '
                '"RequestEntityTooLarge"'
            ),
        ),
    ],
)
def test_validations(validation: dict[str, Any], error: str) -> None:
    assert told(created(policy(validation))) == [f"spec.validations[0].{error}"]


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ({}, ["apiVersion: Required value", "kind: Required value"]),
        (
            {"apiVersion": "a/b/c", "kind": "K"},
            ['apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c'],
        ),
        (
            {"apiVersion": "a/", "kind": "K"},
            ['apiVersion: Invalid value: "a/": version must be specified'],
        ),
    ],
)
def test_kinds_of_parameters(kind: dict[str, str], error: list[str]) -> None:
    assert told(created(policy("true", paramKind=kind))) == [f"spec.paramKind.{e}" for e in error]


def test_parameters_need_a_kind_to_be_declared() -> None:
    (error,) = told(created(policy("params.data.x == '1'")))
    assert "undeclared reference to 'params'" in error


@pytest.mark.parametrize(
    ("ref", "errors"),
    [
        (
            {"name": "a", "selector": {}, "parameterNotFoundAction": "Deny"},
            [
                "paramRef.name: Forbidden: name and selector are mutually exclusive",
                "paramRef.selector: Forbidden: name and selector are mutually exclusive",
            ],
        ),
        (
            {},
            [
                "paramRef: Required value: one of name or selector must be specified",
                "paramRef.parameterNotFoundAction: Required value",
            ],
        ),
        (
            {"name": "a", "parameterNotFoundAction": "Cry"},
            [
                (
                    'paramRef.parameterNotFoundAction: Unsupported value: "Cry": supported values: '
                    '"Deny", "Allow"'
                )
            ],
        ),
    ],
)
def test_references_to_parameters(ref: dict[str, Any], errors: list[str]) -> None:
    assert told(created(binding(paramRef=ref))) == [f"spec.{error}" for error in errors]


@pytest.mark.parametrize(
    ("mutation", "error"),
    [
        ({"patchType": ""}, "patchType: Required value"),
        (
            {"patchType": "Merge"},
            (
                'patchType: Unsupported value: "Merge": supported values: "ApplyConfiguration", '
                '"JSONPatch"'
            ),
        ),
        (
            {**applied("Object{}"), "jsonPatch": {"expression": "[]"}},
            (
                'jsonPatch: Invalid value: "{jsonPatch}": must not be specified when patchType is '
                "ApplyConfiguration"
            ),
        ),
        (
            patched("Object{}"),
            (
                'jsonPatch.expression: Invalid value: "Object{}": must evaluate to '
                "list(JSONPatch) but "
                "got Object"
            ),
        ),
        (
            applied('{"a": 1}'),
            (
                'applyConfiguration.expression: Invalid value: "{\\"a\\": 1}": must evaluate to '
                "Object "
                "but got map(string, int)"
            ),
        ),
        (
            patched('[JSONPatch{op: 1, path: ""}]'),
            (
                'jsonPatch.expression: Invalid value: "[JSONPatch{op: 1, path: \\"\\"}]": '
                "compilation "
                "failed: ERROR: <input>:1:14: expected type of field 'op' is 'string' but provided "
                "type is 'int'\n | [JSONPatch{op: 1, path: \"\"}]\n | .............^"
            ),
        ),
    ],
)
def test_mutations(mutation: dict[str, Any], error: str) -> None:
    assert told(created(mutating_policy(mutation))) == [f"spec.mutations[0].{error}"]


def test_there_is_nothing_to_change_in_a_deletion() -> None:
    given = mutating_policy(applied("Object{}"), rules=[rule(operations=("DELETE",))])
    assert told(created(given)) == [
        (
            'spec.matchConstraints.resourceRules.operations: Unsupported value: "DELETE": '
            "supported "
            'values: "*", "CONNECT", "CREATE", "UPDATE"'
        )
    ]


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"name": ""}, "name: Required value"),
        (
            {"sideEffects": None},
            "sideEffects: Required value: must specify one of None, NoneOnDryRun",
        ),
        (
            {"timeoutSeconds": 31},
            "timeoutSeconds: Invalid value: 31: the timeout value must be between 1 and 30 seconds",
        ),
        (
            {"clientConfig": {}},
            "clientConfig: Required value: exactly one of url or service is required",
        ),
        (
            {"clientConfig": {"url": "https://user@x/"}},
            'clientConfig.url: Invalid value: "user": user information is not permitted in the URL',
        ),
        (
            {"clientConfig": {"service": {"name": "", "namespace": "n"}}},
            "clientConfig.service.namespace: Required value",
        ),
        (
            {"clientConfig": {"service": {"name": "n", "namespace": "n", "path": "x"}}},
            "clientConfig.service.path: Invalid value: \"x\": must start with a '/'",
        ),
        (
            {"clientConfig": {"service": {"name": "n", "namespace": "n", "port": 0}}},
            (
                "clientConfig.service.port: Invalid value: 0: port is not valid: must be between "
                "1 and "
                "65535, inclusive"
            ),
        ),
        (
            {"admissionReviewVersions": ["v1", "v1"]},
            'admissionReviewVersions[1]: Invalid value: "v1": duplicate version',
        ),
        (
            {"reinvocationPolicy": "Always"},
            (
                'reinvocationPolicy: Unsupported value: "Always": supported values: "IfNeeded", '
                '"Never"'
            ),
        ),
        (
            {"matchConditions": [{"name": "a", "expression": "variables.x"}]},
            (
                'matchConditions[0].expression: Invalid value: "variables.x": compilation failed: '
                "ERROR: <input>:1:1: undeclared reference to 'variables' (in container '')\n"
                " | variables.x\n | ^"
            ),
        ),
    ],
)
def test_webhooks(changes: dict[str, Any], error: str) -> None:
    assert error in [
        text.removeprefix("webhooks[0].") for text in told(created(webhook(**changes)))
    ]


def test_names_of_static_manifests_are_reserved() -> None:
    given = policy("true", name="a.static.k8s.io")
    assert told(created(given)) == [
        (
            'metadata.name: Invalid value: "a.static.k8s.io": names ending with ".static.k8s.io" '
            "are "
            "reserved for static manifest-based configurations and cannot be managed via the API"
        )
    ]


def test_rules_for_reviews_have_no_effect() -> None:
    named = rule("tokenreviews", apiGroups=["authentication.k8s.io"])
    assert created(webhook(rules=[named])).warnings == (
        (
            "webhooks[0].rules[0]: tokenreviews.authentication.k8s.io is excluded from admission "
            "webhooks; this rule will have no effect"
        ),
    )


def test_a_changed_spec_is_a_new_generation() -> None:
    assert updated(policy("1 == 1"), policy("true")).stored.metadata.generation == 2
    assert updated(policy("true"), policy("true")).stored.metadata.generation == 1
    changed = updated(webhook(timeoutSeconds=3), webhook())
    assert changed.stored.metadata.generation == 2


def test_newer_functions_stay_in_stored_expressions() -> None:
    newer = "[1, 2].includes(1)"
    (error,) = told(created(policy(newer)))
    assert "undeclared reference to 'includes'" in error
