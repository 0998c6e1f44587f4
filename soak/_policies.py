"""Random admission policies on custom resources, with their bindings."""

from __future__ import annotations

from random import Random
from typing import Final

from soak._definitions import GROUP, Tree

CONDITIONS: Final = (
    "object.metadata.name != 'q'", "has(object.spec)", "object.spec.a == 'a'", "true", "1 / 0 == 0",
    "object == oldObject", "request.operation in ['CREATE', 'UPDATE']", "variables.x == 'a'",
    "params.data.a == 'b'", "namespaceObject.metadata.name == 'fuzz'",
    "object.spec.all(k, k != 'z')",
    "authorizer.group('').resource('pods').check('get').allowed()",
    "request.userInfo.groups.size() > 0",
    "authorizer.serviceAccount('a', 'b').requestResource.check('x').reason() == ''",
    "string(object.spec) != ''", "oldObject == null || has(oldObject.spec)",
    "object.spec.b[0] == 1",
)  # fmt: skip
MUTATIONS: Final[tuple[Tree, ...]] = (
    {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {
            "expression": "Object{metadata: Object.metadata{labels: {'m': 'x'}}}"
        },
    },
    {
        "patchType": "ApplyConfiguration",
        "applyConfiguration": {"expression": "Object{spec: Object.spec{a: object.metadata.name}}"},
    },
    {
        "patchType": "JSONPatch",
        "jsonPatch": {
            "expression": "[JSONPatch{op: 'add', path: '/metadata/labels/j', value: 'x'}]"
        },
    },
    {
        "patchType": "JSONPatch",
        "jsonPatch": {
            "expression": "has(object.spec.a) ? [JSONPatch{op: 'replace', path: '/spec/a', "
            "value: 1}] : [JSONPatch{op: 'test', path: '/spec/none', value: null}]"
        },
    },
)


def policies(random: Random) -> tuple[Tree, Tree]:
    """Return a policy on the custom kinds, and its binding."""
    is_mutating = random.random() < 0.4
    word = "Mutating" if is_mutating else "Validating"
    name = f"{word.lower()}-{random.randint(0, 1)}"
    rule = {
        "apiGroups": [GROUP],
        "apiVersions": random.choice((["*"], ["v1"])),
        "operations": random.choice((["CREATE", "UPDATE"], ["*"], ["DELETE"])),
        "resources": random.choice(
            (["*"], ["widgets"], ["*/*"], ["widgets/status", "racks/scale"])
        ),
    }
    spec: Tree = {
        "failurePolicy": random.choice(("Ignore", "Ignore", "Fail")),
        "matchConstraints": {"resourceRules": [rule]},
        "variables": [{"name": "x", "expression": random.choice(("object.spec.a", "'a'", "1"))}],
    }
    if random.random() < 0.3:
        spec["matchConditions"] = [{"name": "m", "expression": random.choice(CONDITIONS)}]
    if is_mutating:
        spec |= {"mutations": [random.choice(MUTATIONS)], "reinvocationPolicy": "IfNeeded"}
    else:
        validation: Tree = {"expression": random.choice(CONDITIONS)}
        if random.random() < 0.4:
            validation["messageExpression"] = random.choice(("'no'", "object.metadata.name", "1"))
        spec["validations"] = [validation]
        spec["auditAnnotations"] = [{"key": "k", "valueExpression": "string(object.metadata.name)"}]
    bound: Tree = {"policyName": name}
    if random.random() < 0.3:
        spec["paramKind"] = {"apiVersion": "v1", "kind": "ConfigMap"}
        bound["paramRef"] = {
            "selector": {},
            "parameterNotFoundAction": random.choice(("Allow", "Deny")),
        }
    if not is_mutating:
        bound["validationActions"] = random.choice((["Warn", "Audit"], ["Deny"], ["Audit"]))
    version = {"apiVersion": "admissionregistration.k8s.io/v1"}
    policy = {**version, "kind": f"{word}AdmissionPolicy", "metadata": {"name": name}, "spec": spec}
    binding = {
        **version,
        "kind": f"{word}AdmissionPolicyBinding",
        "metadata": {"name": name},
        "spec": bound,
    }
    return policy, binding
