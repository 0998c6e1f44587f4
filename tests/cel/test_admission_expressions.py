"""Expressions of policies compile and evaluate in Kubernetes' admission environment."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.cel.admission import (
    BUDGET,
    AdmissionCompiler,
    Answer,
    Declared,
    Evaluator,
    OutOfBudget,
    Returns,
)
from moorage.cel.device import Scope
from moorage.cel.lang.errors import EvalError
from moorage.cel.lang.metering import Meter
from moorage.cel.library.authz import Authorizer, Decision, ResourceCheck
from moorage.cel.mutation_types import as_json, mismatched_types

PATCHES = Declared(patches=True)


class Reviewer:
    """Allows one verb, and notes what it was asked."""

    def __init__(self, allowed: str, user: str = "") -> None:
        self.allowed, self.user = allowed, user
        self.asked: list[Any] = []

    def review_path(self, path: str, verb: str) -> Decision:
        self.asked.append((path, verb))
        return Decision(verb == self.allowed, "because")

    def review_resource(self, check: ResourceCheck, verb: str) -> Decision:
        self.asked.append((check.group, check.resource, check.subresource, check.namespace, verb))
        return Decision(verb == self.allowed, self.user)

    def of_service_account(self, namespace: str, name: str) -> Reviewer:
        return Reviewer(self.allowed, f"{namespace}/{name}")


def answer(
    text: str,
    values: dict[str, Any] | None = None,
    *,
    declared: Declared = PATCHES,
    variables: dict[str, str] | None = None,
) -> Answer:
    compiler = AdmissionCompiler()
    for name, expression in (variables or {}).items():
        compiler.add_variable(name, expression, declared)
    compiled = compiler.compile(text, Returns.ANYTHING, declared)
    assert compiled.error == ""
    given = Evaluator(values or {}, compiler.variables, budget=BUDGET, meter=Meter())
    return given.evaluate(compiled)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("Object{}", {}),
        ("Object{spec: Object.spec{replicas: 3}}", {"spec": {"replicas": 3}}),
        ("Object{a: 1, ?b: optional.none(), ?c: optional.of(2)}", {"a": 1, "c": 2}),
        ("Object{intList: [1, 2, 3]}.intList.sum()", 6),
        ("has(Object{a: 1}.a)", True),
        ("has(Object{a: 1}.b)", False),
        ("Object{a: 1} == Object{a: 0 + 1}", True),
        ("JSONPatch{op: 'add', path: '/a', value: 1}.path", "/a"),
        ("jsonpatch.escapeKey('a/b~c')", "a~1b~0c"),
    ],
)
def test_types_of_mutations(text: str, value: Any) -> None:
    assert answer(text).value == value


def test_a_patch_has_texts() -> None:
    told = answer("JSONPatch{op: dyn(1)}").error
    assert told.endswith("unexpected type int64 for JSONPatchType 'op' field")


def test_types_must_name_their_places() -> None:
    good = answer("Object{spec: Object.spec{list: [Object.spec.list{a: 1}]}}").value
    assert list(mismatched_types(good)) == []
    bad = answer("Object{spec: Object.status{}}").value
    (told,) = mismatched_types(bad)
    assert told.startswith('unexpected type name "Object.status", expected "Object.spec", which')


def test_values_without_json_are_refused() -> None:
    assert as_json(answer("{'a': [dyn(1), dyn(2.5), dyn(true)]}").value) == {"a": [1, 2.5, True]}
    with pytest.raises(EvalError, match="not string"):
        as_json(answer("{1: 2}").value)
    with pytest.raises(EvalError, match="to JSON"):
        as_json(answer("duration('1s')").value)


# --- variables ------------------------------------------------------------------------------------


def test_a_variable_is_evaluated_once_and_only_if_it_is_used() -> None:
    variables = {"a": "authorizer.path('/').check('get').allowed()", "b": "1 / 0"}
    reviewer = Reviewer("get")
    values = {"authorizer": Authorizer(reviewer)}
    assert answer("variables.a && variables.a", values, variables=variables).value is True
    assert len(reviewer.asked) == 1


def test_the_type_of_a_variable_is_known() -> None:
    compiler = AdmissionCompiler()
    compiler.add_variable("n", "1", Declared())
    compiled = compiler.compile("variables.n + 'x'", Returns.ANYTHING, Declared())
    assert "found no matching overload for '_+_' applied to '(int, string)'" in compiled.error


def test_a_failed_variable_may_not_matter() -> None:
    variables = {"bad": "object.missing == 1"}
    found = answer("variables.bad || true", {"object": {}}, variables=variables)
    assert found == Answer(True)
    found = answer("true || variables.bad", {"object": {}}, variables=variables)
    assert found == Answer(True)


def test_a_variable_cannot_use_later_ones() -> None:
    compiler = AdmissionCompiler()
    early = compiler.add_variable("early", "variables.late", Declared())
    assert "undefined field 'late'" in early.error


def test_costs_of_variables_count() -> None:
    compiler = AdmissionCompiler()
    check = "authorizer.path('/').check('get').allowed()"
    compiler.add_variable("a", check, Declared())
    compiled = compiler.compile("variables.a", Returns.BOOL, Declared())
    values = {"authorizer": Authorizer(Reviewer("get"))}
    evaluator = Evaluator(values, compiler.variables, budget=400_000, meter=Meter())
    assert evaluator.evaluate(compiled).value is True
    assert evaluator.budget < 50_000
    poor = Evaluator(values, compiler.variables, budget=300_000, meter=Meter())
    with pytest.raises(OutOfBudget):
        poor.evaluate(compiled)


# --- authorizer, environments ---------------------------------------------------------------------


def test_the_authorizer_is_asked() -> None:
    reviewer = Reviewer("get")
    values = {"authorizer": Authorizer(reviewer)}
    text = "authorizer.group('apps').resource('deployments').subresource('scale').namespace('n')"
    assert answer(f"{text}.check('get').allowed()", values).value is True
    assert answer(f"{text}.check('create').allowed()", values).value is False
    assert reviewer.asked[0] == ("apps", "deployments", "scale", "n", "get")
    account = "authorizer.serviceAccount('n', 'a').group('').resource('pods').check('get').reason()"
    assert answer(account, values).value == "n/a"


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("authorizer.path(' ')", "path must not be empty"),
        ("authorizer.group('').resource('')", "resource must not be empty"),
        ("authorizer.serviceAccount('n', 'A')", "Invalid service account name"),
        ("authorizer.serviceAccount('N', 'a')", "Invalid service account namespace"),
    ],
)
def test_faults_of_questions(text: str, error: str) -> None:
    values = {"authorizer": Authorizer(Reviewer("get"))}
    assert answer(text, values).error.endswith(f"resulted in error: {error}")


@pytest.mark.parametrize(
    ("text", "declared", "scope", "is_known"),
    [
        ("params.x", Declared(params=True), Scope.NEW, True),
        ("params.x", Declared(), Scope.NEW, False),
        ("authorizer", Declared(authorizer=False), Scope.NEW, False),
        ("Object{}", Declared(), Scope.NEW, False),
        ("cel.bind(x, 1, x)", Declared(), Scope.STORED, False),
        ("[1].includes(1)", Declared(), Scope.NEW, False),
        ("[1].includes(1)", Declared(), Scope.STORED, True),
        ("request.object", Declared(), Scope.NEW, False),
        ("request.userInfo.extra['a'][0]", Declared(), Scope.NEW, True),
        ("namespaceObject.metadata.labels['a']", Declared(), Scope.NEW, True),
    ],
)
def test_what_expressions_know(text: str, declared: Declared, scope: Scope, is_known: bool) -> None:
    compiled = AdmissionCompiler(composes=False).compile(text, Returns.ANYTHING, declared, scope)
    assert (compiled.error == "") == is_known
