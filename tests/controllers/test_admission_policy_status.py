"""The status of a policy says once for each generation what does not fit."""

from __future__ import annotations

from typing import Any

from moorage.api.admissionregistration import ValidatingAdmissionPolicy, Validation
from moorage.controllers.admission_policy_status import AdmissionPolicyStatusController
from tests.controllers.things import World, thing


def policy(expression: str) -> Any:
    rule = {"apiGroups": ["apps"], "apiVersions": ["v1"], "resources": ["deployments"]}
    spec = {
        "matchConstraints": {"resourceRules": [{**rule, "operations": ["CREATE"]}]},
        "validations": [{"expression": expression}],
    }
    return thing(
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        "p",
        spec=spec,
        metadata={"generation": 1},
    )


def status_of(world: World) -> tuple[int, list[str]]:
    (found,) = world.all(ValidatingAdmissionPolicy)
    assert found.status.type_checking is not None
    warnings = found.status.type_checking.expression_warnings
    return found.status.observed_generation, [each.field_ref for each in warnings]


def test_each_generation_is_checked_once() -> None:
    world = World(AdmissionPolicyStatusController())
    world.put(made := policy("object.replicas > 1"))
    wrong = (1, ["spec.validations[0].expression"])
    assert status_of(world) == wrong
    world.change_metadata(made, labels={"a": "b"})
    assert status_of(world) == wrong
    world.change(made, validations=(Validation(expression="object.spec.replicas > 1"),))
    assert status_of(world) == (2, [])
