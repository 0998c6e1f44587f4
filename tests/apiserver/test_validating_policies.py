"""ValidatingAdmissionPolicy decides about requests as Kubernetes documents it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from tests.apiserver.client import (
    CLAIMS,
    CONFIG_MAPS,
    MERGE_PATCH,
    NAMESPACES,
    PODS,
    Client,
    claim,
    config_map,
    pod,
)
from tests.apiserver.policies import GROUP, binding, enforce, policy, rule

POLICIES = f"{GROUP}/validatingadmissionpolicies"


def test_a_failed_validation_is_refused_with_the_policy_and_the_binding(client: Client) -> None:
    enforce(client, policy("object.data.a == 'c'"), binding())
    answer = client.post(CONFIG_MAPS, config_map())
    text = "ValidatingAdmissionPolicy 'p' with binding 'b' denied request: failed expression: "
    text += "object.data.a == 'c'"
    assert answer.status == 422
    assert answer.json["reason"] == "Invalid"
    assert answer.message == f'configmaps "m" is forbidden: {text}'
    assert answer.json["details"] == {
        "name": "m",
        "kind": "configmaps",
        "causes": [{"message": text}],
    }
    assert client.get(f"{CONFIG_MAPS}/m").status == 404


def test_a_policy_without_a_binding_does_nothing(client: Client) -> None:
    enforce(client, policy("false"), binding(of="other"))
    assert client.post(CONFIG_MAPS, config_map()).status == 201


@pytest.mark.parametrize(
    ("validation", "message"),
    [
        ({"message": " said "}, "said"),
        ({"message": "plain", "messageExpression": "'has ' + object.data.a"}, "has b"),
        ({"message": "plain", "messageExpression": "string(object.data.x)"}, "plain"),
        ({"message": "plain", "messageExpression": "'two\\nlines'"}, "plain"),
        ({"message": "plain", "messageExpression": "'  '"}, "plain"),
        ({}, "failed expression: 1 == 2"),
    ],
)
def test_messages(client: Client, validation: dict[str, Any], message: str) -> None:
    enforce(client, policy({"expression": "1 == 2", **validation}), binding())
    assert client.post(CONFIG_MAPS, config_map()).message.endswith(f"denied request: {message}")


@pytest.mark.parametrize(
    ("reason", "code"), [("Forbidden", 403), ("Invalid", 422), ("RequestEntityTooLarge", 413)]
)
def test_reasons_are_codes(client: Client, reason: str, code: int) -> None:
    enforce(client, policy({"expression": "false", "reason": reason}), binding())
    answer = client.post(CONFIG_MAPS, config_map())
    assert (answer.status, answer.json["reason"]) == (code, reason)


def test_the_first_of_several_denials_is_told(client: Client) -> None:
    enforce(client, policy("true", "1 == 2", "1 == 3"), binding())
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.message.endswith("failed expression: 1 == 2")


# --- which requests -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "is_meant"),
    [
        ({}, True),
        ({"operations": ["CREATE"]}, True),
        ({"operations": ["UPDATE", "DELETE"]}, False),
        ({"apiGroups": [""]}, True),
        ({"apiGroups": ["apps"]}, False),
        ({"apiVersions": ["v1"]}, True),
        ({"apiVersions": ["v2"]}, False),
        ({"resources": ["*"]}, True),
        ({"resources": ["*/*"]}, True),
        ({"resources": ["configmaps/*"]}, True),
        ({"resources": ["configmaps/status"]}, False),
        ({"resources": ["pods"]}, False),
        ({"scope": "Namespaced"}, True),
        ({"scope": "Cluster"}, False),
        ({"resourceNames": ["m", "n"]}, True),
        ({"resourceNames": ["n"]}, False),
    ],
)
def test_rules(client: Client, changes: dict[str, Any], is_meant: bool) -> None:
    enforce(client, policy("false", rules=[{**rule(), **changes}]), binding())
    assert client.post(CONFIG_MAPS, config_map()).status == (422 if is_meant else 201)


@pytest.mark.parametrize(
    ("match", "is_meant"),
    [
        ({"excludeResourceRules": [rule("configmaps")]}, False),
        ({"excludeResourceRules": [rule("configmaps", resourceNames=["n"])]}, True),
        ({"objectSelector": {"matchLabels": {"app": "x"}}}, True),
        ({"objectSelector": {"matchLabels": {"app": "y"}}}, False),
        ({"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "default"}}}, True),
        ({"namespaceSelector": {"matchExpressions": [{"key": "no", "operator": "Exists"}]}}, False),
    ],
)
def test_selectors_and_exclusions(client: Client, match: dict[str, Any], is_meant: bool) -> None:
    enforce(client, policy("false", match=match), binding())
    answer = client.post(CONFIG_MAPS, config_map(labels={"app": "x"}))
    assert answer.status == (422 if is_meant else 201)


def test_a_binding_may_mean_fewer_requests(client: Client) -> None:
    mine = {"resourceRules": [rule("configmaps", resourceNames=["n"])]}
    enforce(client, policy("false"), binding(matchResources=mine))
    assert client.post(CONFIG_MAPS, config_map("m")).status == 201
    assert client.post(CONFIG_MAPS, config_map("n")).status == 422


def test_a_rule_means_other_versions_too_unless_it_is_exact(client: Client) -> None:
    old = [rule("resourceclaims", apiVersions=["v1beta1"], apiGroups=["resource.k8s.io"])]
    told = "object.apiVersion + ' ' + request.kind.version + ' ' + request.requestKind.version"
    shown = {"expression": "false", "messageExpression": told}
    enforce(client, policy(shown, rules=old), binding())
    answer = client.post(CLAIMS, claim())
    assert answer.message.endswith("resource.k8s.io/v1beta1 v1beta1 v1")
    client.delete(f"{POLICIES}/p")
    exact = policy(shown, rules=old, match={"matchPolicy": "Exact"}, name="q")
    enforce(client, exact, binding("c", of="q"))
    assert client.post(CLAIMS, claim()).status == 201


def test_updates_status_and_deletions_are_seen(client: Client) -> None:
    client.post(CONFIG_MAPS, config_map())
    client.post(PODS, pod())
    rules = [rule("configmaps", operations=("UPDATE", "DELETE")), rule("pods/status")]
    told = "request.operation + ' ' + string(object == null) + ' ' + oldObject.metadata.name"
    enforce(
        client, policy({"expression": "false", "messageExpression": told}, rules=rules), binding()
    )
    answer = client.patch(f"{CONFIG_MAPS}/m", {"data": {"a": "c"}}, MERGE_PATCH)
    assert answer.message.endswith("UPDATE false m")
    assert client.delete(f"{CONFIG_MAPS}/m").message.endswith("DELETE true m")
    assert client.delete(CONFIG_MAPS).message.endswith("DELETE true m")
    status = {"status": {"phase": "Running"}}
    answer = client.patch(f"{PODS}/p/status", status, MERGE_PATCH)
    assert answer.message.endswith("UPDATE false p")


def test_a_namespace_is_matched_by_its_own_labels(client: Client) -> None:
    match = {"namespaceSelector": {"matchLabels": {"team": "a"}}}
    enforce(client, policy("false", rules=[rule("namespaces")], match=match), binding())
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "n"}}
    labelled = {**body, "metadata": {"name": "m", "labels": {"team": "a"}}}
    assert client.post(NAMESPACES, body).status == 201
    assert client.post(NAMESPACES, labelled).status == 422


def test_policies_never_see_their_own_kinds(client: Client) -> None:
    enforce(client, policy("false", rules=[rule("*/*")]), binding())
    assert client.post(CONFIG_MAPS, config_map()).status == 422
    enforce(client, policy("true", name="q"))
    assert client.delete(f"{POLICIES}/p").status == 200


# --- variables, conditions, parameters ------------------------------------------------------------


def test_variables_use_each_other_and_are_lazy(client: Client) -> None:
    variables = [
        {"name": "data", "expression": "object.data"},
        {"name": "value", "expression": "variables.data.a"},
        {"name": "broken", "expression": "object.data.missing"},
    ]
    told = {"expression": "variables.value == 'x'", "messageExpression": "'got ' + variables.text"}
    variables.insert(2, {"name": "text", "expression": "string(variables.value)"})
    enforce(client, policy(told, variables=variables), binding())
    assert client.post(CONFIG_MAPS, config_map()).message.endswith("denied request: got b")


def test_a_broken_variable_is_named(client: Client) -> None:
    variables = [{"name": "broken", "expression": "object.data.missing"}]
    enforce(client, policy("variables.broken == 1", variables=variables), binding())
    assert client.post(CONFIG_MAPS, config_map()).message.endswith(
        "denied request: expression 'variables.broken == 1' resulted in error: composited variable "
        '"broken" fails to evaluate: no such key: missing'
    )


@pytest.mark.parametrize(
    ("expressions", "failure", "message"),
    [
        (["object.metadata.name == 'other'"], "Fail", None),
        (["object.metadata.name == 'm'", "true"], "Fail", "failed expression: false"),
        (["object.data.x == '1'", "false"], "Fail", None),
        (["object.data.x == '1'"], "Fail", "expression 'object.data.x == '1'' resulted in error: "),
        (["object.data.x == '1'"], "Ignore", None),
        (["namespaceObject == null"], "Fail", "failed expression: false"),
    ],
)
def test_match_conditions(
    client: Client, expressions: list[str], failure: str, message: str | None
) -> None:
    conditions = [{"name": f"c{i}", "expression": e} for i, e in enumerate(expressions)]
    enforce(client, policy("false", matchConditions=conditions, failurePolicy=failure), binding())
    answer = client.post(CONFIG_MAPS, config_map())
    if message is None:
        assert answer.status == 201
    else:
        assert message in answer.message


def parameter(name: str, limit: str, **metadata: Any) -> dict[str, Any]:
    return {**config_map(name, **metadata), "data": {"limit": limit}}


CONFIG_MAP_KIND = {"apiVersion": "v1", "kind": "ConfigMap"}
LIMITED = {
    "expression": "size(object.metadata.name) <= int(params.data.limit)",
    "messageExpression": "'longer than ' + params.data.limit",
}


@pytest.mark.parametrize(
    ("ref", "message"),
    [
        ({"name": "small"}, "longer than 2"),
        ({"name": "large"}, None),
        ({"name": "small", "namespace": "default"}, "longer than 2"),
        ({"selector": {"matchLabels": {"use": "yes"}}}, "longer than 2"),
        ({"selector": {}}, "longer than 2"),
        (
            {"name": "missing"},
            (
                "failed to configure binding: no params found for policy binding with `Deny` "
                "parameterNotFoundAction"
            ),
        ),
        ({"name": "missing", "parameterNotFoundAction": "Allow"}, None),
        ({"name": "small", "namespace": "kube-system", "parameterNotFoundAction": "Allow"}, None),
    ],
)
def test_parameters(client: Client, ref: dict[str, Any], message: str | None) -> None:
    client.post(CONFIG_MAPS, parameter("large", "9", labels={"use": "yes"}))
    client.post(CONFIG_MAPS, parameter("small", "2", labels={"use": "yes"}))
    given = {"parameterNotFoundAction": "Deny", **ref}
    secrets = [rule("secrets")]
    enforce(
        client, policy(LIMITED, paramKind=CONFIG_MAP_KIND, rules=secrets), binding(paramRef=given)
    )
    body = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "abc"}}
    answer = client.post("/api/v1/namespaces/default/secrets", body)
    if message is None:
        assert answer.status == 201
    else:
        assert answer.message.endswith(f"denied request: {message}")


def test_parameters_are_null_without_a_reference(client: Client) -> None:
    enforce(client, policy("params == null", paramKind=CONFIG_MAP_KIND), binding())
    assert client.post(CONFIG_MAPS, config_map()).status == 201


def test_an_unknown_kind_of_parameters_is_a_fault_of_the_policy(client: Client) -> None:
    kind = {"apiVersion": "rules.example.com/v1", "kind": "Limit"}
    enforce(client, policy("true", paramKind=kind), binding())
    assert client.post(CONFIG_MAPS, config_map()).message.endswith(
        "failed to find resource referenced by paramKind: 'rules.example.com/v1, Kind=Limit'"
    )


# --- failures and actions -------------------------------------------------------------------------


def test_a_failure_policy_ignores_errors_but_not_denials(client: Client) -> None:
    broken = policy("object.data.x == '1'", failurePolicy="Ignore")
    enforce(client, broken, binding())
    assert client.post(CONFIG_MAPS, config_map()).status == 201
    enforce(client, policy("false", name="q", failurePolicy="Ignore"), binding("c", of="q"))
    assert client.post(CONFIG_MAPS, config_map("n")).status == 422


def test_a_warning_does_not_refuse(client: Client) -> None:
    enforce(
        client,
        policy({"expression": "false", "message": "careful"}),
        binding(validationActions=["Warn", "Audit"]),
    )
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.status == 201
    assert answer.warnings == [
        "299 - \"Validation failed for ValidatingAdmissionPolicy 'p' with binding 'b': careful\""
    ]


CHECK = "authorizer.path('/healthz').check('get').allowed()"  # costs 350,000


def test_a_validation_that_costs_too_much_fails(client: Client) -> None:
    enforce(client, policy(f"{CHECK} && {CHECK} && {CHECK}"), binding())
    assert client.post(CONFIG_MAPS, config_map()).message.endswith(
        "resulted in error: operation cancelled: actual cost limit exceeded"
    )


@pytest.mark.parametrize(("count", "is_enough"), [(28, True), (29, False)])
def test_expressions_together_have_a_budget(client: Client, count: int, is_enough: bool) -> None:
    enforce(client, policy(*[CHECK] * count), binding())
    answer = client.post(CONFIG_MAPS, config_map())
    assert (answer.status == 201) == is_enough
    assert is_enough or answer.message.endswith(
        "denied request: validation failed due to running out of cost budget, no further "
        "validation rules will be run"
    )


def test_match_conditions_have_a_budget_of_their_own(client: Client) -> None:
    conditions = [{"name": f"c{number}", "expression": CHECK} for number in range(8)]
    enforce(client, policy("true", matchConditions=conditions), binding())
    assert "running out of cost budget" in client.post(CONFIG_MAPS, config_map()).message


def test_long_evaluations_run_beside_the_event_loop(client: Client) -> None:
    enforce(client, policy(CHECK), binding())
    assert client.post(CONFIG_MAPS, config_map()).status == 201
    threads = {each.name for each in threading.enumerate()}
    assert any(name.startswith("expressions") for name in threads)


def test_the_authorizer_answers_for_the_user(client: Client) -> None:
    asked = "authorizer.group('').resource('configmaps').namespace('default').check('get')"
    enforce(
        client,
        policy(f"{asked}.allowed()", "authorizer.requestResource.check('create').allowed()"),
        binding(),
    )
    assert client.post(CONFIG_MAPS, config_map()).status == 201


def test_the_namespace_and_the_user_are_known(client: Client) -> None:
    told = "namespaceObject.metadata.name + ' ' + request.userInfo.username + ' ' + request.name"
    enforce(client, policy({"expression": "false", "messageExpression": told}), binding())
    answer = client.post(CONFIG_MAPS, config_map())
    assert answer.message.endswith("denied request: default kubernetes-admin m")
