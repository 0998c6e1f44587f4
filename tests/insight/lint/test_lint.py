from __future__ import annotations

import pytest

from moorage.api.documents import CORE, expand_lists, read
from moorage.api.gates import Gates
from moorage.api.timestamp import Timestamp
from moorage.insight.expressions.published_devices import PublishedDevices
from moorage.insight.lint import RULES, Finding, Needs, Severity, lint, rules_that_run
from moorage.insight.lint.context import LintContext
from moorage.insight.lint.subjects import LintObject, read_object
from moorage.validation.strategy import Context
from tests.insight.fleets import GPU, NIC, compiler, device, slice_of

CONTEXT = Context(gates=Gates.parse(""), now=Timestamp.parse("2026-01-01T00:00:00Z"))

MODEL = f'device.attributes["{GPU}"].model'

SLICES = (
    slice_of(
        device("gpu-0", model="H200", numa=0, capacity={"memory": "141Gi"}),
        device("gpu-1", model="H200", numa=1, capacity={"memory": "141Gi"}),
        device("gpu-2", model="A100", numa=1, fast=True, capacity={"memory": "80Gi"}),
    ),
    slice_of(device("nic-0", numa=0), device("nic-1", numa=1), driver=NIC),
)

CLASSES = f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {GPU}}}
spec: {{selectors: [{{cel: {{expression: device.driver == "{GPU}"}}}}]}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {NIC}}}
spec: {{selectors: [{{cel: {{expression: device.driver == "{NIC}"}}}}]}}
---
"""


def claim(*expressions: str, class_name: str = GPU, rest: str = "") -> str:
    selectors = "".join(f"\n        - cel: {{expression: '{text}'}}" for text in expressions)
    return f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {{name: wanted}}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: {class_name}
        selectors: {selectors or "[]"}
{rest}"""


def device_class(*expressions: str, name: str = "class") -> str:
    selectors = "".join(f"\n  - cel: {{expression: '{text}'}}" for text in expressions)
    return f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {{name: {name}}}
spec:
  selectors: {selectors}
"""


def objects(text: str) -> list[LintObject]:
    return [
        read_object(item, CONTEXT)
        for document in read(text.encode(), source="file.yaml", schema=CORE)
        for item in expand_lists(document)
    ]


def world_of(
    subjects: list[LintObject], *, devices: bool = True, lists: bool = True
) -> LintContext:
    classes = [found.value for found in subjects if found.kind.name == "DeviceClass"]
    return LintContext(PublishedDevices(SLICES if devices else ()), classes, compiler(lists=lists))


def findings(
    text: str, *, classes: bool = True, devices: bool = True, lists: bool = True
) -> list[Finding]:
    subjects = objects((CLASSES if classes else "") + text)
    return lint(subjects, world_of(subjects, devices=devices, lists=lists))


def found(text: str, *, classes: bool = True, devices: bool = True) -> list[tuple[str, str, str]]:
    return [
        (finding.rule, finding.message, finding.remedy)
        for finding in findings(text, classes=classes, devices=devices)
    ]


def rules(text: str, *, classes: bool = True, devices: bool = True) -> list[str]:
    return [finding.rule for finding in findings(text, classes=classes, devices=devices)]


# --- nothing odd --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        claim(),
        claim(f'{MODEL} == "H200"'),
        claim(f'{MODEL} == "H200" || {MODEL} == "A100"'),
        claim(f'!({MODEL} == "B200")'),
        claim(f'{MODEL} != "H200"'),
        claim(f'has(device.attributes["{GPU}"].fast) && device.attributes["{GPU}"].fast'),
        claim(f'device.attributes["{GPU}"].?fast.orValue(false)'),
        claim("true"),
        device_class(f'device.driver == "{GPU}" && {MODEL} == "H200"'),
        claim(class_name=NIC),
    ],
)
def test_what_works_gives_no_finding(text: str) -> None:
    assert found(text) == []


# --- expressions --------------------------------------------------------------------------


def test_an_expression_that_does_not_compile_is_shown_with_its_caret() -> None:
    (finding,) = findings(claim('device.drvier == "x"'))
    assert (finding.rule, finding.severity) == ("does-not-compile", Severity.ERROR)
    assert finding.message == (
        "compilation failed: ERROR: <input>:1:7: undefined field 'drvier'\n"
        ' | device.drvier == "x"\n'
        " | ......^"
    )
    assert (finding.source, finding.line, finding.column) == ("file.yaml", 21, 17)
    assert finding.field == "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert (finding.kind, finding.name) == ("ResourceClaim", "default/wanted")


def test_an_expression_of_the_wrong_type_does_not_compile() -> None:
    assert found(claim("1"))[0][:2] == (
        "does-not-compile",
        "must evaluate to bool or the unknown type, not int",
    )


def test_a_list_of_an_attribute_and_a_number_wants_dyn() -> None:
    listed = f'[device.attributes["{GPU}"].numa, 7]'
    ((rule, message, remedy),) = found(claim(f"{listed}.exists(x, x == 7)"))
    assert rule == "does-not-compile"
    assert "expected type 'dyn' but found 'int'" in message
    assert remedy == "write dyn(7) instead of 7"
    derived = f"        derivedAttributes: [{{name: a/b, expression: '{listed}'}}]\n"
    assert ("does-not-compile", remedy) in [
        (rule, remedy) for rule, _, remedy in found(claim(rest=derived))
    ]


def test_a_gate_that_would_make_it_compile_is_named() -> None:
    text = claim(f'device.attributes["{GPU}"].model.exists(m, m == "H200")')
    (finding,) = findings(text, lists=False, devices=False)
    assert finding.rule == "does-not-compile"
    assert "DRAListTypeAttributes" in finding.remedy


def loop(depth: int) -> str:
    text = "true"
    for _ in range(depth):
        text = f"{MODEL}.all(x, {text})"
    return claim(text)


def test_expressions_over_and_near_the_cost_limit_are_told_apart() -> None:
    assert rules(loop(2), devices=False) == []
    assert rules(loop(4), devices=False) == ["too-expensive"]


def test_derived_attributes_that_cost_too_much_together_are_found() -> None:
    expression = f"{MODEL}.filter(a, {MODEL}.all(b, {MODEL}.all(c, true))).size()"
    derived = "".join(
        f"\n        - {{name: example.com/a{i}, expression: '{expression}'}}" for i in range(4)
    )
    text = claim(rest=f"        derivedAttributes: {derived}\n")
    (told,) = [f for f in findings(text, devices=False) if f.rule == "too-expensive"]
    assert "together" in told.message
    assert told.field == "spec.devices"


# --- objects ------------------------------------------------------------------------------


def test_forms_of_the_seeds_and_extensions_are_named() -> None:
    (told,) = findings(claim('device.name == "gpu-0"'))
    assert (told.rule, told.severity) == ("deprecated-form", Severity.WARNING)
    assert "device.name is an extension of Moorage" in told.message


def test_unknown_fields_are_named() -> None:
    assert rules(claim(rest="        colour: red\n")) == ["unknown-field"]


def test_a_constraint_that_wants_both_loses_half() -> None:
    text = claim(
        rest="    constraints: [{matchAttribute: gpu.example.com/numa, "
        "distinctAttribute: gpu.example.com/model}]\n"
    )
    (told,) = findings(text)
    assert told.rule == "match-and-distinct"
    assert told.field == "spec.devices.constraints[0].distinctAttribute"


def test_a_class_with_a_long_name_is_noted() -> None:
    (told,) = findings(device_class(name="a" * 64))
    assert (told.rule, told.severity) == ("long-class-name", Severity.NOTE)
    assert findings(device_class(name="a" * 63)) == []


def test_a_class_whose_extended_resource_another_class_has_is_warned_about() -> None:
    def of(name: str, created: str) -> str:
        text = device_class(name=name).replace(
            "spec:\n", "spec:\n  extendedResourceName: example.com/gpu\n"
        )
        return text.replace("}", f", creationTimestamp: {created}}}", 1)

    old, new = '"2026-01-01T00:00:00Z"', '"2026-02-01T00:00:00Z"'
    (told,) = findings(f"{of('a', old)}---\n{of('b', new)}")
    assert (told.rule, told.severity, told.name) == (
        "shadowed-extended-resource",
        Severity.WARNING,
        "a",
    )
    assert told.field == "spec.extendedResourceName"
    assert told.message.startswith("DeviceClass b has example.com/gpu, too, and is newer: ")
    (told,) = findings(f"{of('a', old)}---\n{of('b', old)}")
    assert told.name == "b"
    assert "DeviceClass a has example.com/gpu, too, and is of the same age" in told.message
    assert findings(of("a", old)) == []


def test_a_class_that_is_not_there_is_found_if_any_is() -> None:
    text = claim(class_name="gpu.exmple.com")
    assert found(text) == [
        (
            "unknown-class",
            'there is no class "gpu.exmple.com" among those given',
            'did you mean "gpu.example.com"?',
        )
    ]
    assert found(text, classes=False) == []


def test_a_class_of_a_driver_is_told_with_a_profile_that_has_it() -> None:
    ((_, _, remedy),) = found(claim(class_name="gpu.nvidia.com"))
    assert remedy == "create the class, or give its file, too; --profile dgx-h100 has it"


# --- names --------------------------------------------------------------------------------


def test_a_misspelt_attribute_is_corrected() -> None:
    assert found(claim(f'device.attributes["{GPU}"].modle == "H200"')) == [
        (
            "unknown-attribute",
            "attribute modle does not exist: did you mean model? 3 of 5 devices have it",
            f"use {MODEL} instead of modle",
        )
    ]


def test_a_capacity_that_is_looked_for_among_attributes_is_found() -> None:
    ((rule, message, remedy),) = found(claim(f'device.attributes["{GPU}"].memory == "141Gi"'))
    memory = f'device.capacity["{GPU}"].memory'
    assert rule == "unknown-attribute"
    assert message == (
        f"attribute memory does not exist, it is a capacity: did you mean {memory}? "
        "3 of 5 devices have it"
    )
    assert remedy == (
        f'use {memory} instead of device.attributes["{GPU}"].memory, and '
        f'use {memory} == quantity("141Gi")'
    )


def test_a_misspelt_domain_is_corrected() -> None:
    assert found(claim('device.attributes["gpu.exmple.com"].model == "H200"')) == [
        (
            "unknown-domain",
            (
                'attribute model does not exist in domain "gpu.exmple.com": did you mean model in '
                f'domain "{GPU}"? 3 of 5 devices have it'
            ),
            f'use {MODEL} instead of model in domain "gpu.exmple.com"',
        )
    ]


def test_an_attribute_like_no_other_is_told_what_there_is() -> None:
    ((rule, message, _),) = found(claim(f'has(device.attributes["{GPU}"].colour)'))
    assert rule == "unknown-attribute"
    assert message == f"attribute colour does not exist: {GPU} has fast, model, numa"


# --- devices ------------------------------------------------------------------------------


def test_a_comparison_that_is_never_true_shows_the_values_there_are() -> None:
    assert found(claim(f'{MODEL} == "H20"')) == [
        (
            "never-true",
            'no device has model "H20": devices have "H200" (2), "A100" (1); did you mean "H200"?',
            'ask for model "H200", which 2 devices have, instead of "H20"',
        )
    ]


def test_a_capacity_that_no_device_reaches_is_never_true() -> None:
    memory = f'device.capacity["{GPU}"].memory'
    ((rule, message, remedy),) = found(claim(f'{memory}.compareTo(quantity("200Gi")) >= 0'))
    assert rule == "never-true"
    assert message == "memory 200Gi is asked for, but devices have at most 141Gi"
    assert remedy == "ask for memory 141Gi instead of 200Gi"


def test_only_devices_that_come_so_far_count() -> None:
    text = claim(f'{MODEL} == "A100"', f'device.attributes["{GPU}"].numa == 0')
    ((rule, message, _),) = found(text)
    assert rule == "matches-nothing"
    assert message == "no device that passes the rest has numa 0: devices have 1 (1)"


def test_selectors_that_exclude_each_other_match_nothing() -> None:
    text = claim(f'{MODEL} == "A100" && device.attributes["{GPU}"].numa == 0')
    ((rule, message, _),) = found(text)
    assert rule == "matches-nothing"
    assert message == "no device that passes the rest has numa 0: devices have 1 (1)"
    assert rules(claim("false")) == ["never-true"]


def test_a_class_that_reads_attributes_of_one_driver_breaks_on_all_others() -> None:
    ((rule, message, remedy),) = found(device_class(f'{MODEL} == "H200"'))
    assert rule == "missing-guard"
    assert message == (f"2 of 5 devices have no {GPU}/model, and reading it there ends the search")
    assert remedy == f"guard it: has({MODEL}) && …"


def test_an_attribute_that_some_devices_of_the_class_lack_needs_a_guard() -> None:
    ((rule, message, _),) = found(claim(f'device.attributes["{GPU}"].fast'))
    assert rule == "missing-guard"
    assert "2 of 3 devices have no" in message


def test_devices_of_other_drivers_do_not_count_for_a_class_that_is_not_given() -> None:
    assert found(claim(f'{MODEL} == "H200"'), classes=False) == []
    assert rules(claim(f'device.attributes["{GPU}"].fast'), classes=False) == ["missing-guard"]


def test_other_errors_on_devices_are_found() -> None:
    ((rule, message, _),) = found(claim(f"{MODEL} > 3"))
    assert rule == "run-time-error"
    assert message == "model is a string, not the int 3"
    ((rule, message, _),) = found(claim(f'1 / device.attributes["{GPU}"].numa > 0'))
    assert (rule, "division by zero" in message) == ("run-time-error", True)


def test_a_selector_that_is_no_bool_on_a_device_is_an_error() -> None:
    ((rule, message, _),) = found(claim(MODEL))
    assert rule == "run-time-error"
    assert message == 'model is a string, "H200", and no condition by itself'


def test_the_advice_for_a_derived_attribute_is_no_guard_but_a_value() -> None:
    rest = (
        "        derivedAttributes:\n"
        f"        - {{name: example.com/x, expression: 'device.attributes[\"{GPU}\"].fast'}}\n"
        "    constraints: [{matchAttribute: example.com/x}]\n"
    )
    ((rule, message, remedy),) = found(claim(rest=rest))
    assert rule == "missing-guard"
    assert message == f"2 of 3 devices have no {GPU}/fast, and reading it there ends the search"
    fast = f'device.attributes["{GPU}"].fast'
    value = f"has({fast}) ? {fast} : []"
    assert remedy == f"write `{value}`"
    assert found(claim(rest=rest.replace(fast, value))) == []
    assert found(claim(f'has(device.attributes["{GPU}"].fast)', rest=rest)) == []


def test_derived_attributes_are_put_to_the_selected_devices() -> None:
    rest = (
        "        derivedAttributes:\n"
        f"        - {{name: example.com/x, expression: 'device.attributes[\"{GPU}\"].fast'}}\n"
        "    constraints: [{matchAttribute: example.com/x}]\n"
    )
    fast = f'device.attributes["{GPU}"].fast'
    ((rule, _, remedy),) = found(claim(rest=rest))
    assert (rule, remedy) == ("missing-guard", f"write `has({fast}) ? {fast} : []`")
    assert rules(claim(f'{MODEL} == "A100"', rest=rest)) == []


def test_taint_rules_are_linted_for_the_devices_they_name() -> None:
    rule = f"""\
apiVersion: resource.k8s.io/v1
kind: DeviceTaintRule
metadata: {{name: rule}}
spec:
  deviceSelector:
    driver: {GPU}
    selectors:
    - cel: {{expression: '{MODEL} == "H20"'}}
  taint: {{key: example.com/a, effect: NoSchedule}}
"""
    told = [finding for finding in findings(rule) if finding.rule != "deprecated-form"]
    assert [finding.rule for finding in told] == ["never-true"]
    assert told[0].message.startswith('no device has model "H20": devices have "H200" (2), "A100"')


def test_templates_are_linted_like_claims() -> None:
    text = f"""\
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {{name: template}}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        firstAvailable:
        - name: large
          deviceClassName: {GPU}
          selectors:
          - cel:
              expression: {MODEL} == "B200"
        - name: any
          deviceClassName: {GPU}
"""
    (told,) = findings(text)
    assert (told.rule, told.line, told.column) == ("never-true", 24, 15)


# --- constraints --------------------------------------------------------------------------


def test_a_constraint_on_an_attribute_that_no_device_has_is_corrected() -> None:
    text = claim(rest=f"    constraints: [{{matchAttribute: {GPU}/numaNode}}]\n")
    assert found(text) == [
        (
            "unknown-constraint-attribute",
            f"no device has the attribute {GPU}/numaNode",
            f"did you mean {GPU}/numa? 3 of 5 devices have it",
        )
    ]


def test_a_constraint_over_devices_of_which_some_never_have_it_names_the_request() -> None:
    rest = (
        f"    - {{name: nic, exactly: {{deviceClassName: {NIC}}}}}\n"
        f"    constraints: [{{matchAttribute: {GPU}/numa}}]\n"
    )
    ((rule, message, _),) = found(claim(rest=rest))
    assert rule == "unknown-constraint-attribute"
    assert message == f"no device that request nic can get has the attribute {GPU}/numa"


# --- running ------------------------------------------------------------------------------


def test_without_devices_only_rules_that_need_none_run() -> None:
    assert rules(claim(f'device.attributes["{GPU}"].modle == "x"'), devices=False) == []
    ran = rules_that_run(world_of([], devices=False))
    assert {rule.needs for rule in ran} == {Needs.NOTHING}


def test_a_disabled_rule_finds_nothing() -> None:
    subjects = objects(claim(f'{MODEL} == "H20"'))
    world = world_of(subjects)
    assert [f.rule for f in lint(subjects, world)] == ["never-true"]
    assert lint(subjects, world, disabled=["never-true"]) == []


def test_rules_have_names_of_their_own_and_a_summary() -> None:
    assert len({rule.id for rule in RULES}) == len(RULES)
    assert all(rule.summary for rule in RULES)


def test_expressions_are_evaluated_once_for_devices_that_look_alike() -> None:
    many = [device(f"gpu-{i}", model="H200", uuid=str(i)) for i in range(1000)]
    subjects = objects(CLASSES + claim(f'{MODEL} == "H200"'))
    classes = [found.value for found in subjects if found.kind.name == "DeviceClass"]
    world = LintContext(PublishedDevices([slice_of(*many)]), classes, compiler())
    (stage,) = world.stages(subjects[-1])
    assert len(stage.results) == 1
    assert len(stage.passing) == 1000
