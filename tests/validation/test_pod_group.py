"""PodGroups and Workloads: Kubernetes' defaults, dropped fields and validation messages."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree, to_tree
from moorage.api.gates import Gate
from moorage.api.scheduling import (
    CompositePodGroup,
    PodGroup,
    PodGroupSchedulingPolicy,
    Workload,
    to_hub,
    v1alpha2,
)
from moorage.validation.errors import ErrorList
from moorage.validation.pod_group import CompositePodGroupStrategy, PodGroupStrategy
from moorage.validation.registry import before_create
from moorage.validation.workload import WorkloadStrategy
from tests.validation.pods import CONTEXT, LABEL, SUBDOMAIN, Tree, texts, under, without

OFF = without(Gate.DRA_WORKLOAD_RESOURCE_CLAIMS)
GROUPS, WORKLOADS = PodGroupStrategy(), WorkloadStrategy()
META = {"name": "g", "namespace": "default", "resourceVersion": "1"}
GANG = {"gang": {"minCount": 2}}

IMMUTABLE = "Invalid value: null: field is immutable"


def claim(name: str = "c", **fields: Any) -> Tree:
    return {"name": name, **(fields or {"resourceClaimName": "my-claim"})}


def group(spec: Tree | None = None, status: Tree | None = None) -> PodGroup:
    tree = {
        "metadata": META,
        "spec": {"schedulingPolicy": GANG, **(spec or {})},
        "status": status or {},
    }
    return GROUPS.default(decode_tree(tree, PodGroup).value, "", CONTEXT)


def created(spec: Tree) -> list[str]:
    return texts(GROUPS.validate(group(spec), CONTEXT))


def updated(new: Tree, old: Tree) -> list[str]:
    return texts(GROUPS.validate_update(group(new), group(old), CONTEXT))


# --- groups -------------------------------------------------------------------------------


def test_a_group_gets_what_kubernetes_sets() -> None:
    assert to_tree(group().spec) == {
        "schedulingPolicy": GANG,
        "disruptionMode": {"single": {}},
        "preemptionPolicy": "PreemptLowerPriority",
    }


@pytest.mark.parametrize(
    "spec",
    [
        {},
        {"schedulingPolicy": {"basic": {}}},
        {"resourceClaims": [claim("a"), claim("b", resourceClaimTemplateName="t")]},
        {"resourceClaims": [claim(str(number)) for number in range(4)]},
        {"workloadRef": {"workloadName": "w", "templateName": "t"}, "priority": 1_000_000_000},
        {"schedulingConstraints": {"topology": [{"key": "topology.kubernetes.io/rack"}]}},
        {"disruptionMode": {"all": {}}, "preemptionPolicy": "Never", "priorityClassName": "high"},
    ],
)
def test_groups_that_are_right_are_accepted(spec: Tree) -> None:
    assert created(spec) == []


CLAIMS = "spec.resourceClaims"


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        # claims
        ({"resourceClaims": [claim(str(number)) for number in range(5)]},
         [f"{CLAIMS}: Too many: 5: must have at most 4 items"]),
        ({"resourceClaims": [claim(), claim(resourceClaimTemplateName="t")]},
         [f'{CLAIMS}[1]: Duplicate value: {{"name":"c","resourceClaimTemplateName":"t"}}']),
        ({"resourceClaims": [claim("")]}, [f"{CLAIMS}[0].name: Required value"]),
        ({"resourceClaims": [claim("A")]},
         [f'{CLAIMS}[0].name: Invalid value: "A": {LABEL}']),
        ({"resourceClaims": [claim("a" * 64)]},
         [f'{CLAIMS}[0].name: Invalid value: "{"a" * 64}": must be no more than 63 bytes']),
        ({"resourceClaims": [{"name": "c"}]},
         [(f'{CLAIMS}[0]: Invalid value: "": must specify one of: `resourceClaimName`, '
           "`resourceClaimTemplateName`")]),
        ({"resourceClaims": [claim(resourceClaimName="a", resourceClaimTemplateName="b")]},
         [(f'{CLAIMS}[0]: Invalid value: "{{resourceClaimName, resourceClaimTemplateName}}": '
           "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`")]),
        ({"resourceClaims": [claim(resourceClaimName="")]},
         [f'{CLAIMS}[0].resourceClaimName: Invalid value: "": {SUBDOMAIN}']),
        ({"resourceClaims": [claim(resourceClaimTemplateName="_")]},
         [f'{CLAIMS}[0].resourceClaimTemplateName: Invalid value: "_": {SUBDOMAIN}']),
        # policies
        ({"schedulingPolicy": {}},
         ['spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`']),
        ({"schedulingPolicy": {"basic": {}, **GANG}},
         [('spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: '
           "`basic`, `gang`")]),
        ({"schedulingPolicy": {"gang": {}}},
         ["spec.schedulingPolicy.gang.minCount: Required value"]),
        ({"schedulingPolicy": {"gang": {"minCount": -1}}},
         [("spec.schedulingPolicy.gang.minCount: Invalid value: -1: must be greater than or equal "
           "to 1")]),
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}},
         ["spec.schedulingConstraints.topology: Too many: 2: must have at most 1 item"]),
        ({"schedulingConstraints": {"topology": [{}]}},
         ["spec.schedulingConstraints.topology[0].key: Required value"]),
        ({"disruptionMode": {}},
         ['spec.disruptionMode: Invalid value: "": must specify one of: `single`, `all`']),
        ({"priority": 1_000_000_001},
         [("spec.priority: Invalid value: 1000000001: must be less than or equal to "
           "1000000000")]),
        ({"preemptionPolicy": "Maybe"},
         [('spec.preemptionPolicy: Unsupported value: "Maybe": supported values: "Never", '
           '"PreemptLowerPriority"')]),
        ({"priorityClassName": "_"},
         [f'spec.priorityClassName: Invalid value: "_": {SUBDOMAIN}']),
        # where it came from
        ({"workloadRef": {}},
         ["spec.workloadRef.workloadName: Required value",
          "spec.workloadRef.templateName: Required value"]),
        ({"workloadRef": {"workloadName": "_", "templateName": "a.b"}},
         [f'spec.workloadRef.workloadName: Invalid value: "_": {SUBDOMAIN}',
          'spec.workloadRef.templateName: Invalid value: "a.b": must not contain dots']),
        ({"parentCompositePodGroupName": "p"},
         [("spec.workloadRef: Required value: must be set when parentCompositePodGroupName is "
           "set")]),
        ({"parentCompositePodGroupName": "",
          "workloadRef": {"workloadName": "w", "templateName": "t"}},
         [f'spec.parentCompositePodGroupName: Invalid value: "": {SUBDOMAIN}']),
    ],
)  # fmt: skip
def test_groups_that_are_wrong_are_refused(spec: Tree, expected: list[str]) -> None:
    assert created(spec) == expected


def test_a_group_must_have_a_disruption_mode() -> None:
    value = decode_tree({"metadata": META, "spec": {"schedulingPolicy": GANG}}, PodGroup).value
    found = texts(GROUPS.validate(value, CONTEXT))
    assert found == ["spec.disruptionMode: Required value"]


def test_a_mode_that_only_v1alpha2_could_spell_is_refused() -> None:
    spec = v1alpha2.PodGroupSpec(
        disruption_mode="Never", scheduling_policy=PodGroupSchedulingPolicy(basic=_basic())
    )
    value = to_hub(v1alpha2.PodGroup(metadata=group().metadata, spec=spec))
    assert texts(GROUPS.validate(value, CONTEXT)) == [
        'spec.disruptionMode: Invalid value: "": must specify one of: `single`, `all`'
    ]


def _basic() -> Any:
    return group({"schedulingPolicy": {"basic": {}}}).spec.scheduling_policy.basic


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ({"schedulingPolicy": GANG}, {"schedulingPolicy": {"gang": {"minCount": 5}}}, []),
        ({"schedulingPolicy": GANG}, {"schedulingPolicy": {"gang": {"minCount": 0}}},
         ["spec.schedulingPolicy.gang.minCount: Required value"]),
        ({"schedulingPolicy": GANG}, {"schedulingPolicy": {"basic": {}}},
         [f"spec.schedulingPolicy.basic: {IMMUTABLE}",
          ("spec.schedulingPolicy.gang: Invalid value: null: field cannot be cleared once set")]),
        ({"schedulingPolicy": {"basic": {}}}, {"schedulingPolicy": GANG},
         [f"spec.schedulingPolicy.basic: {IMMUTABLE}",
          "spec.schedulingPolicy.gang: Invalid value: null: field cannot be set once created"]),
        ({"schedulingPolicy": GANG}, {"schedulingPolicy": {"basic": {}, **GANG}},
         [('spec.schedulingPolicy: Invalid value: "{basic, gang}": must specify exactly one of: '
           "`basic`, `gang`"),
          f"spec.schedulingPolicy.basic: {IMMUTABLE}"]),
        ({"resourceClaims": [claim()]}, {}, [f"{CLAIMS}: {IMMUTABLE}"]),
        ({}, {"resourceClaims": [claim("A")]}, [f"{CLAIMS}: {IMMUTABLE}"]),
        ({}, {"resourceClaims": [claim(str(number)) for number in range(5)]},
         [f"{CLAIMS}: {IMMUTABLE}", f"{CLAIMS}: Too many: 5: must have at most 4 items"]),
        ({}, {"disruptionMode": {"all": {}}}, [f"spec.disruptionMode: {IMMUTABLE}"]),
        ({}, {"priority": 5}, [f"spec.priority: {IMMUTABLE}"]),
        ({"priority": 5}, {}, [f"spec.priority: {IMMUTABLE}"]),
        ({}, {"priorityClassName": "a"}, [f"spec.priorityClassName: {IMMUTABLE}"]),
        ({}, {"preemptionPolicy": "Never"}, [f"spec.preemptionPolicy: {IMMUTABLE}"]),
        ({}, {"schedulingConstraints": {}}, [f"spec.schedulingConstraints: {IMMUTABLE}"]),
        ({}, {"workloadRef": {}}, [f"spec.workloadRef: {IMMUTABLE}"]),
        ({}, {"parentCompositePodGroupName": "p"},
         [f"spec.parentCompositePodGroupName: {IMMUTABLE}"]),
        # What is wrong already, and stays as it is, is not refused again.
        ({"resourceClaims": [claim("A")], "schedulingPolicy": {}},
         {"resourceClaims": [claim("A")], "schedulingPolicy": {}}, []),
    ],
)  # fmt: skip
def test_only_the_count_of_a_gang_may_change(old: Tree, new: Tree, expected: list[str]) -> None:
    assert updated(new, old) == expected


CONDITION = {
    "type": "PodGroupInitiallyScheduled",
    "status": "True",
    "reason": "Scheduled",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
STATUSES = "status.resourceClaimStatuses"


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        ({"conditions": [CONDITION]}, []),
        ({"conditions": [CONDITION, CONDITION]},
         ['status.conditions[1]: Duplicate value: "PodGroupInitiallyScheduled"']),
        ({"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "g-c-abcde"}]}, []),
        ({"resourceClaimStatuses": [{"name": "c"}]}, []),
        ({"resourceClaimStatuses": [{"name": "z"}]},
         [(f'{STATUSES}[0].name: Invalid value: "z": must match the name of an entry in '
           "`spec.resourceClaims`")]),
        ({"resourceClaimStatuses": [{"name": "c"}, {"name": "c"}]},
         [f'{STATUSES}[1]: Duplicate value: {{"name":"c"}}']),
        ({"resourceClaimStatuses": [{"name": "c", "resourceClaimName": "_"}]},
         [f'{STATUSES}[0].resourceClaimName: Invalid value: "_": {SUBDOMAIN}']),
        ({"resourceClaimStatuses": [{"name": "c"}] * 5},
         [f"{STATUSES}: Too many: 5: must have at most 4 items"]),
    ],
)  # fmt: skip
def test_statuses_of_groups_name_their_claims(status: Tree, expected: list[str]) -> None:
    spec = {"resourceClaims": [claim()]}
    found = GROUPS.validate_status_update(group(spec, status), group(spec), CONTEXT)
    assert texts(found) == expected


def test_a_claim_status_that_was_wrong_already_is_let_be() -> None:
    spec = {"resourceClaims": [claim(), claim("d")]}
    wrong = {"name": "c", "resourceClaimName": "_"}
    old = group(spec, {"resourceClaimStatuses": [wrong]})
    new = group(spec, {"resourceClaimStatuses": [wrong, {"name": "d"}]})
    assert GROUPS.validate_status_update(new, old, CONTEXT) == []


def test_users_do_not_set_the_status() -> None:
    old = group(status={"conditions": [CONDITION]})
    assert GROUPS.prepare_for_create(old, CONTEXT).status == group().status
    assert GROUPS.prepare_for_update(group(), old, CONTEXT).status == old.status
    new = group({"priority": 1}, {"conditions": []})
    prepared = GROUPS.prepare_for_status_update(new, old, CONTEXT)
    assert (prepared.spec, prepared.status) == (old.spec, new.status)


def test_claims_are_dropped_while_their_feature_is_off_unless_they_are_in_use() -> None:
    plain, claiming = group(), group({"resourceClaims": [claim()]})
    assert GROUPS.prepare_for_create(claiming, under(OFF)) == plain
    assert GROUPS.prepare_for_create(claiming, CONTEXT) == claiming
    assert GROUPS.prepare_for_update(claiming, plain, under(OFF)) == plain
    assert GROUPS.prepare_for_update(claiming, claiming, under(OFF)) == claiming


def test_claim_statuses_are_dropped_while_their_feature_is_off_unless_there_are_claims() -> None:
    status = {"resourceClaimStatuses": [{"name": "c"}]}
    new = group({"resourceClaims": [claim()]}, status)
    dropped = GROUPS.prepare_for_status_update(new, group(), under(OFF))
    assert dropped.status == group().status
    kept = GROUPS.prepare_for_status_update(new, group({"resourceClaims": [claim()]}), under(OFF))
    assert kept.status == new.status


# --- composite groups ---------------------------------------------------------------------

COMPOSITE = CompositePodGroupStrategy()
REFERENCE = {"workloadName": "w", "templateName": "t"}


def composite(spec: Tree | None = None) -> CompositePodGroup:
    policy = {"gang": {"minGroupCount": 2}}
    tree = {"metadata": META, "spec": {"schedulingPolicy": policy, "workloadRef": REFERENCE,
                                       **(spec or {})}}  # fmt: skip
    value = decode_tree(tree, CompositePodGroup).value
    return COMPOSITE.default(value, "scheduling.k8s.io/v1alpha3", CONTEXT)


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({}, []),
        ({"workloadRef": None}, ["spec.workloadRef: Required value"]),
        ({"schedulingPolicy": {"gang": {}}},
         ["spec.schedulingPolicy.gang.minGroupCount: Required value"]),
        ({"schedulingPolicy": {}},
         ['spec.schedulingPolicy: Invalid value: "": must specify one of: `basic`, `gang`']),
    ],
)  # fmt: skip
def test_composite_groups_are_checked_like_groups(spec: Tree, expected: list[str]) -> None:
    assert texts(COMPOSITE.validate(composite(spec), CONTEXT)) == expected


def test_nothing_of_a_composite_group_may_change() -> None:
    new = composite({"schedulingPolicy": {"basic": {}}, "workloadRef": None, "priority": 1})
    assert texts(COMPOSITE.validate_update(new, composite(), CONTEXT)) == [
        f"spec.workloadRef: {IMMUTABLE}",
        "spec.workloadRef: Required value",
        f"spec.schedulingPolicy: {IMMUTABLE}",
        f"spec.priority: {IMMUTABLE}",
    ]


def test_users_do_not_set_the_status_of_a_composite_group() -> None:
    tree = {"metadata": META, "status": {"conditions": [CONDITION]}}
    value = decode_tree(tree, CompositePodGroup).value
    empty = decode_tree({"metadata": META}, CompositePodGroup).value
    assert COMPOSITE.prepare_for_create(value, CONTEXT) == empty
    assert COMPOSITE.prepare_for_update(empty, value, CONTEXT) == value
    assert COMPOSITE.prepare_for_status_update(value, empty, CONTEXT) == value
    assert COMPOSITE.validate_status_update(value, empty, CONTEXT) == []


# --- workloads ----------------------------------------------------------------------------


def template(name: str = "t", **fields: Any) -> Tree:
    return {"name": name, "schedulingPolicy": GANG, **fields}


def over(name: str, *children: Tree, **fields: Any) -> Tree:
    """Return a composite template over templates, composite ones where they have children."""
    composites = [child for child in children if _is_composite(child)]
    groups = [child for child in children if not _is_composite(child)]
    return {
        "name": name,
        "schedulingPolicy": {"basic": {}},
        "podGroupTemplates": groups,
        "compositePodGroupTemplates": composites,
        **fields,
    }


def _is_composite(tree: Tree) -> bool:
    return "podGroupTemplates" in tree


def workload(*templates: Tree, **spec: Any) -> Workload:
    groups = [tree for tree in templates if not _is_composite(tree)]
    composites = [tree for tree in templates if _is_composite(tree)]
    lists: Tree = {"podGroupTemplates": groups} if groups else {}
    lists |= {"compositePodGroupTemplates": composites} if composites else {}
    return decode_tree({"metadata": META, "spec": {**lists, **spec}}, Workload).value


def accepted(errors: ErrorList) -> bool:
    return errors == []


@pytest.mark.parametrize(
    "value",
    [
        workload(template("a"), template("b", resourceClaims=[claim()])),
        workload(template(), controllerRef={"apiGroup": "batch", "kind": "Job", "name": "j"}),
        workload(over("a", over("b", over("c", template("d"))))),
    ],
)
def test_workloads_that_are_right_are_accepted(value: Workload) -> None:
    assert accepted(WORKLOADS.validate(value, CONTEXT))


TEMPLATES = "spec.podGroupTemplates"
COMPOSITES = "spec.compositePodGroupTemplates"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (workload(),
         [('spec: Invalid value: "": must specify one of: `podGroupTemplates`, '
           "`compositePodGroupTemplates`")]),
        (workload(template("a"), over("b", template("c"))),
         [('spec: Invalid value: "{podGroupTemplates, compositePodGroupTemplates}": must specify '
           "exactly one of: `podGroupTemplates`, `compositePodGroupTemplates`")]),
        (workload(*(template(str(number)) for number in range(9))),
         [f"{TEMPLATES}: Too many: 9: must have at most 8 items"]),
        (workload(template("a", resourceClaims=[claim(str(n)) for n in range(5)])),
         [f"{TEMPLATES}[0].resourceClaims: Too many: 5: must have at most 4 items"]),
        (workload(template("a", resourceClaims=[{"name": "c"}])),
         [(f'{TEMPLATES}[0].resourceClaims[0]: Invalid value: "": must specify one of: '
           "`resourceClaimName`, `resourceClaimTemplateName`")]),
        (workload(template("A")), [f'{TEMPLATES}[0].name: Invalid value: "A": {LABEL}']),
        (workload(template("")), [f"{TEMPLATES}[0].name: Required value"]),
        (workload({"name": "a"}),
         [(f'{TEMPLATES}[0].schedulingPolicy: Invalid value: "": must specify one of: `basic`, '
           "`gang`")]),
        (workload(template("a", priority=1), template("b", priority=2)),
         ["spec: Invalid value: null: detected multiple priority configurations"]),
        (workload(over("a", template("b", priority=1))),
         [("spec: Invalid value: null: all priority and priorityClassName values must be "
           "identical, detected multiple values")]),
        (workload(over("a", over("b", over("c", over("d", template("e")))))),
         None),
        (workload(over("a")),
         [(f'{COMPOSITES}[0]: Invalid value: "a": must have at least one child PodGroupTemplate '
           "or CompositePodGroupTemplate")]),
        (workload(over("a", over("b"))),
         [(f'{COMPOSITES}[0].compositePodGroupTemplates[0]: Invalid value: "b": must have at '
           "least one child PodGroupTemplate or CompositePodGroupTemplate")]),
        (workload(over("a", template("a"))),
         [f'{COMPOSITES}[0].podGroupTemplates[0].name: Duplicate value: "a"']),
        (workload(over("a", over("a", template("b")))),
         [f'{COMPOSITES}[0].compositePodGroupTemplates[0].name: Duplicate value: "a"']),
        (workload(over("a", template("b", resourceClaims=[claim("")]))),
         [(f"{COMPOSITES}[0].podGroupTemplates[0].resourceClaims[0].name: Required value")]),
        (workload(template(), controllerRef={"apiGroup": "_", "kind": "a/b", "name": ".."}),
         [f'spec.controllerRef.apiGroup: Invalid value: "_": {SUBDOMAIN}',
          "spec.controllerRef.kind: Invalid value: \"a/b\": may not contain '/'",
          "spec.controllerRef.name: Invalid value: \"..\": may not be '..'"]),
        (workload(template(), controllerRef={}),
         ["spec.controllerRef.kind: Required value", "spec.controllerRef.name: Required value"]),
    ],
)  # fmt: skip
def test_workloads_that_are_wrong_are_refused(value: Workload, expected: list[str] | None) -> None:
    found = texts(WORKLOADS.validate(value, CONTEXT))
    if expected is None:
        assert found[0].startswith(f"{COMPOSITES}[0]: Invalid value: [{{")
        assert found[0].endswith(": maximum template hierarchy depth is 4")
    else:
        assert found == expected


def test_templates_of_one_list_have_different_names() -> None:
    found = texts(WORKLOADS.validate(workload(template(), template()), CONTEXT))
    assert found == [
        (
            f"{TEMPLATES}[1]: Duplicate value: "
            '{"name":"t","schedulingPolicy":{"gang":{"minCount":2}},"schedulingConstraints":null}'
        )
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (workload(template("a")),
         workload(template("a", schedulingPolicy={"gang": {"minCount": 9}})), []),
        (workload(template("a"), template("b")), workload(template("b"), template("a")), []),
        (workload(template("a")), workload(template("a"), template("b")),
         [f"{TEMPLATES}[1]: Forbidden: item may not be added"]),
        (workload(template("a"), template("b")), workload(template("a")),
         [f"{TEMPLATES}: Forbidden: item may not be removed"]),
        (workload(template("a")), workload(template("a", resourceClaims=[claim()])),
         [f"{TEMPLATES}[0].resourceClaims: {IMMUTABLE}"]),
        (workload(template("a", resourceClaims=[claim()])), workload(template("a")),
         [f"{TEMPLATES}[0].resourceClaims: {IMMUTABLE}"]),
        (workload(template("a")), workload(template("a", disruptionMode={"all": {}})),
         [f"{TEMPLATES}[0].disruptionMode: {IMMUTABLE}"]),
        (workload(template()), workload(template(), controllerRef={"kind": "Job", "name": "j"}),
         [f"spec.controllerRef: {IMMUTABLE}"]),
        (workload(over("a", template("b"))),
         workload(over("a", template("b", resourceClaims=[claim()]))),
         [f"{COMPOSITES}[0].podGroupTemplates[0].resourceClaims: {IMMUTABLE}"]),
        (workload(over("a", over("b", template("c")))),
         workload(over("a", over("b", template("c"), template("d")))),
         [(f"{COMPOSITES}[0].compositePodGroupTemplates[0].podGroupTemplates[1]: Forbidden: item "
           "may not be added")]),
    ],
)  # fmt: skip
def test_only_the_counts_of_a_workload_may_change(
    old: Workload, new: Workload, expected: list[str]
) -> None:
    assert texts(WORKLOADS.validate_update(new, old, CONTEXT)) == expected


def test_claims_of_templates_are_dropped_while_their_feature_is_off_unless_in_use() -> None:
    plain = workload(template("a"), template("b"))
    claiming = workload(template("a", resourceClaims=[claim()]), template("b"))
    both = workload(*(template(name, resourceClaims=[claim()]) for name in "ab"))
    assert WORKLOADS.prepare_for_create(both, CONTEXT) == both
    assert WORKLOADS.prepare_for_create(both, under(OFF)) == plain
    assert WORKLOADS.prepare_for_update(both, claiming, under(OFF)) == claiming


def test_claims_of_templates_below_composite_ones_are_dropped_too() -> None:
    def nested(*claims: Tree) -> Workload:
        inner = template("c", resourceClaims=list(claims))
        return workload(over("a", over("b", inner), template("d", resourceClaims=list(claims))))

    dropped = WORKLOADS.prepare_for_create(nested(claim()), under(OFF))
    assert [_claims(dropped), _claims(nested())] == [0, 0]
    assert _claims(WORKLOADS.prepare_for_update(nested(claim()), nested(claim()), under(OFF))) == 2


def _claims(value: Workload) -> int:
    return str(to_tree(value)).count("my-claim")


# --- features -----------------------------------------------------------------------------


FEATURES: dict[Gate, tuple[str, Any]] = {
    Gate.TOPOLOGY_AWARE_WORKLOAD_SCHEDULING: (
        "schedulingConstraints",
        {"topology": [{"key": "a"}]},
    ),
    Gate.DRA_WORKLOAD_RESOURCE_CLAIMS: ("resourceClaims", [claim()]),
    Gate.POD_GROUP_PREEMPTION_POLICY: ("preemptionPolicy", "Never"),
    Gate.COMPOSITE_POD_GROUP: ("parentCompositePodGroupName", "parent"),
}


@pytest.mark.parametrize("gate", FEATURES)
def test_a_field_of_a_group_is_dropped_while_its_feature_is_off_unless_in_use(gate: Gate) -> None:
    name, value = FEATURES[gate]
    using, off = group({name: value}), without(gate)
    dropped = to_tree(GROUPS.prepare_for_create(using, under(off)).spec)
    assert to_tree(using.spec)[name] == value
    assert name not in dropped
    assert GROUPS.prepare_for_create(using, CONTEXT) == using
    assert GROUPS.prepare_for_update(using, using, under(off)) == using


@pytest.mark.parametrize("gate", list(FEATURES)[:3])
def test_a_field_of_a_template_is_dropped_while_its_feature_is_off_unless_in_use(
    gate: Gate,
) -> None:
    name, value = FEATURES[gate]
    off = without(gate)
    for using in (
        workload(template("t", **{name: value})),
        workload(over("a", template("t", **{name: value}))),
        workload(over("a", over("b", template("t", **{name: value})))),
    ):
        shown = str(value)
        assert shown in str(to_tree(using))
        assert shown not in str(to_tree(WORKLOADS.prepare_for_create(using, under(off))))
        assert WORKLOADS.prepare_for_update(using, using, under(off)) == using


def test_composite_templates_are_dropped_while_their_feature_is_off_unless_in_use() -> None:
    off = without(Gate.COMPOSITE_POD_GROUP)
    nested = workload(over("a", over("b", template())))
    assert WORKLOADS.prepare_for_create(nested, under(off)).spec.composite_pod_group_templates == ()
    assert WORKLOADS.prepare_for_update(nested, nested, under(off)) == nested
    flat = workload(over("a", template()))
    (kept,) = WORKLOADS.prepare_for_update(
        nested, flat, under(off)
    ).spec.composite_pod_group_templates
    assert kept.composite_pod_group_templates == ()


def test_a_composite_group_has_no_preemption_policy_while_the_feature_is_off() -> None:
    off = CONTEXT._replace(gates=without(Gate.POD_GROUP_PREEMPTION_POLICY))
    using = composite({"preemptionPolicy": "Never"})
    assert COMPOSITE.prepare_for_create(using, off).spec.preemption_policy is None
    assert COMPOSITE.prepare_for_update(using, using, off).spec.preemption_policy == "Never"
    assert COMPOSITE.prepare_for_create(using, CONTEXT).spec.preemption_policy == "Never"


def test_a_policy_that_nobody_asked_for_is_neither_set_nor_missed_while_the_feature_is_off() -> (
    None
):
    for version in ("v1beta1", "v1alpha3"):
        off = without(Gate.POD_GROUP_PREEMPTION_POLICY)
        kind = CATALOGUE.find(f"scheduling.k8s.io/{version}", "PodGroup")
        value = decode_tree({"metadata": META, "spec": {"schedulingPolicy": GANG}}, PodGroup).value
        admission = before_create(value, kind, under(off))
        assert admission.warnings == ()
        assert admission.stored.spec.preemption_policy is None


# --- strategies ---------------------------------------------------------------------------


def test_the_strategies_run_the_same_steps() -> None:
    groups, workloads = PodGroupStrategy(), WorkloadStrategy()
    value = groups.default(group(), "scheduling.k8s.io/v1beta1", CONTEXT)
    assert accepted(groups.validate(groups.prepare_for_create(value, CONTEXT), CONTEXT))
    assert accepted(
        groups.validate_update(groups.prepare_for_update(value, value, CONTEXT), value, CONTEXT)
    )
    assert accepted(
        groups.validate_status_update(
            groups.prepare_for_status_update(value, value, CONTEXT), value, CONTEXT
        )
    )
    load = workload(template())
    assert accepted(workloads.validate(workloads.prepare_for_create(load, CONTEXT), CONTEXT))
    changed = workloads.prepare_for_update(load, load, CONTEXT)
    assert accepted(workloads.validate_update(changed, load, CONTEXT))
