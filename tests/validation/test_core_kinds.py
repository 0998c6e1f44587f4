"""Rules for quotas, priorities, data, roles, leases, namespaces and events."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.catalogue import CATALOGUE
from moorage.api.codec import decode_tree
from moorage.api.object_reader import read_parts
from moorage.api.schema import find_kind
from moorage.validation.registry import (
    before_create,
    before_status_update,
    before_update,
    with_resource_version,
)
from tests.strategies import trees
from tests.validation.objects import (
    CONTEXT,
    RBAC,
    RULE,
    USER,
    VALID,
    Tree,
    causes,
    create,
    update,
    update_status,
)

IMMUTABLE = "field is immutable"
SEALED = "Forbidden: field is immutable when `immutable` is set"
KEY = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
    "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
LABEL_VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', "
    "and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or "
    "'12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
OTHER_NAMESPACE = "does not match event.namespace"
EXISTS = (
    "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, "
    "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
    "ResourceQuotaScopeNotBestEffort or ResourceQuotaScopeCrossNamespacePodAffinity"
)
RESERVED = (
    "Forbidden metadata.name: Forbidden: priority class names with 'system-' prefix are reserved "
    "for system use only. error: "
)


def quota(hard: Tree | None = None, **spec: Any) -> Tree:
    """Return the change of a quota to these amounts only."""
    amounts: Tree = dict.fromkeys(VALID["ResourceQuota"]["spec"]["hard"])
    return {"spec": {"hard": {**amounts, **(hard or {})}, **spec}}


def scoped(scope: str, operator: str, *values: str) -> Tree:
    expression = {"scopeName": scope, "operator": operator, "values": list(values)}
    return {"scopeSelector": {"matchExpressions": [expression]}}


# --- laws -----------------------------------------------------------------------------------------

_CHECKED = [
    kind for kind in CATALOGUE if kind.name in VALID or kind.api_version == "events.k8s.io/v1"
]


@pytest.mark.parametrize("kind", sorted(VALID))
def test_a_valid_object_is_accepted_and_may_stay(kind: str) -> None:
    assert causes(create(kind)) == []
    if kind != "Job":  # whose selector comes with its uid
        assert causes(update(kind, {}, {})) == []


def _readable(kind: Any) -> st.SearchStrategy[Any]:
    """Return a strategy of objects whose JSON parts have the types of their fields."""
    message = find_kind(kind.api_version, kind.name)
    assert message is not None
    return trees(message).map(lambda tree: _read(tree, kind))


def _read(tree: Tree, kind: Any) -> Any:
    value = decode_tree(tree, kind.struct).value
    return read_parts(value, kind.api_version, kind.name)[0]


@pytest.mark.parametrize("kind", _CHECKED, ids=lambda kind: f"{kind.group}-{kind.name}")
@settings(max_examples=15)
@given(data=st.data())
def test_rules_never_raise(kind: Any, data: st.DataObject) -> None:
    value, old = data.draw(_readable(kind)), data.draw(_readable(kind))
    before_create(value, kind, CONTEXT)
    stored = before_create(old, kind, CONTEXT).stored
    if stored is not None:
        before_update(value, stored, kind, CONTEXT)
        if kind.has_status:
            before_status_update(value, stored, kind, CONTEXT)


# --- new objects ----------------------------------------------------------------------------------

REFUSALS: list[tuple[str, Tree, list[str]]] = [
    (
        "ResourceQuota",
        quota({"gpus": "1"}),
        [
            (
                'Invalid spec.hard[gpus]: Invalid value: "gpus": '
                "must be a standard resource type or fully qualified"
            ),
            'Invalid spec.hard[gpus]: Invalid value: "gpus": must be a standard resource for quota',
        ],
    ),
    (
        "ResourceQuota",
        quota({"storage": "1"}),
        [
            (
                'Invalid spec.hard[storage]: Invalid value: "storage": '
                "must be a standard resource for quota"
            )
        ],
    ),
    (
        "ResourceQuota",
        quota({"pods": "1500m", "requests.cpu": "-1"}),
        [
            'Invalid spec.hard[pods]: Invalid value: "1500m": must be an integer',
            (
                'Invalid spec.hard[requests.cpu]: Invalid value: "-1": '
                "must be greater than or equal to 0"
            ),
        ],
    ),
    (
        "ResourceQuota",
        quota({"pods": "1"}, scopes=["Sometimes"]),
        ['Invalid spec.scopes: Invalid value: ["Sometimes"]: unsupported scope'],
    ),
    (
        "ResourceQuota",
        quota({"secrets": "1"}, scopes=["BestEffort", "NotBestEffort"]),
        [
            (
                'Invalid spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: '
                "unsupported scope applied to resource"
            ),
            (
                'Invalid spec.scopes: Invalid value: ["BestEffort","NotBestEffort"]: '
                "conflicting scopes"
            ),
        ],
    ),
    (
        "ResourceQuota",
        quota({"pods": "1"}, **scoped("Terminating", "In", "a")),
        ['Invalid spec.scopeSelector.matchExpressions.operator: Invalid value: "In": ' + EXISTS],
    ),
    (
        "ResourceQuota",
        quota({"pods": "1"}, **scoped("PriorityClass", "In")),
        [
            (
                "Required spec.scopeSelector.matchExpressions.values: Required value: must be at "
                "least one value when `operator` is 'In' or 'NotIn' for scope selector"
            )
        ],
    ),
    (
        "PriorityClass",
        {"value": 1_000_000_001},
        [
            (
                "Forbidden value: Forbidden: "
                "maximum allowed value of a user defined priority is 1000000000"
            )
        ],
    ),
    (
        "PriorityClass",
        {"metadata": {"name": "system-mine"}},
        [RESERVED + "system-mine is not a known system priority class"],
    ),
    (
        "PriorityClass",
        {"metadata": {"name": "system-node-critical"}},
        [RESERVED + "value of system-node-critical PriorityClass must be 2000001000"],
    ),
    (
        "PriorityClass",
        {"preemptionPolicy": "Always"},
        [
            (
                'NotSupported preemptionPolicy: Unsupported value: "Always": '
                'supported values: "PreemptLowerPriority", "Never"'
            )
        ],
    ),
    ("ConfigMap", {"data": {"a b": ""}}, [f'Invalid data[a b]: Invalid value: "a b": {KEY}']),
    (
        "ConfigMap",
        {"data": {"b": "", "..c": ""}},
        [
            'Invalid data[b]: Invalid value: "b": duplicate of key present in binaryData',
            "Invalid data[..c]: Invalid value: \"..c\": must not start with '..'",
        ],
    ),
    (
        "ConfigMap",
        {"data": {"a": "x" * (1024 * 1024)}},
        ["TooLong : Too long: may not be more than 1048576 bytes"],
    ),
    (
        "Secret",
        {"data": {"..": ""}},
        ["Invalid data[..]: Invalid value: \"..\": must not be '..'"],
    ),
    (
        "Secret",
        {"stringData": {"a": "x" * (1024 * 1024 + 1)}},
        ["TooLong data: Too long: may not be more than 1048576 bytes"],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/tls"},
        ["Required data[tls.crt]: Required value", "Required data[tls.key]: Required value"],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/basic-auth"},
        ["Required data[username]: Required value", "Required data[password]: Required value"],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/ssh-auth", "data": {"ssh-privatekey": ""}},
        ["Required data[ssh-privatekey]: Required value"],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/service-account-token"},
        [
            "Required metadata.annotations[kubernetes.io/service-account.name]: Required value",
        ],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "{"}},
        [
            (
                "Invalid data[.dockerconfigjson]: Invalid value: "
                '"<secret contents redacted>": must be a JSON object'
            )
        ],
    ),
    (
        "Secret",
        {"type": "kubernetes.io/dockercfg"},
        ["Required data[.dockercfg]: Required value"],
    ),
    ("Role", {"rules": [{**RULE, "verbs": []}]}, ["Required rules[0].verbs: Required value"]),
    (
        "Role",
        {"rules": [{"verbs": ["get"]}]},
        [
            (
                "Required rules[0].apiGroups: Required value: "
                "resource rules must supply at least one api group"
            ),
            (
                "Required rules[0].resources: Required value: "
                "resource rules must supply at least one resource"
            ),
        ],
    ),
    (
        "Role",
        {"rules": [{**RULE, "nonResourceURLs": ["/metrics"]}]},
        [
            (
                'Invalid rules[0].nonResourceURLs: Invalid value: ["/metrics"]: '
                "namespaced rules cannot apply to non-resource URLs"
            ),
            (
                'Invalid rules[0].nonResourceURLs: Invalid value: ["/metrics"]: '
                "rules cannot apply to both regular resources and non-resource URLs"
            ),
        ],
    ),
    (
        "ClusterRole",
        {"rules": [{**RULE, "nonResourceURLs": ["/metrics"]}]},
        [
            (
                'Invalid rules[0].nonResourceURLs: Invalid value: ["/metrics"]: '
                "rules cannot apply to both regular resources and non-resource URLs"
            )
        ],
    ),
    (
        "ClusterRole",
        {"aggregationRule": {"clusterRoleSelectors": []}},
        [
            (
                "Required aggregationRule.clusterRoleSelectors: Required value: "
                "at least one clusterRoleSelector required if aggregationRule is non-nil"
            )
        ],
    ),
    (
        "ClusterRole",
        {"metadata": {"name": "a/b"}},
        ["Invalid metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    ),
    (
        "RoleBinding",
        {"roleRef": {"apiGroup": "a", "kind": "Group", "name": ""}},
        [
            f'NotSupported roleRef.apiGroup: Unsupported value: "a": supported values: "{RBAC}"',
            (
                'NotSupported roleRef.kind: Unsupported value: "Group": '
                'supported values: "Role", "ClusterRole"'
            ),
            "Required roleRef.name: Required value",
        ],
    ),
    (
        "RoleBinding",
        {"subjects": [{**USER, "apiGroup": "a"}, {"kind": "Robot", "name": "r"}]},
        [
            (
                f'NotSupported subjects[0].apiGroup: Unsupported value: "a": '
                f'supported values: "{RBAC}"'
            ),
            (
                'NotSupported subjects[1].kind: Unsupported value: "Robot": '
                'supported values: "ServiceAccount", "User", "Group"'
            ),
        ],
    ),
    (
        "RoleBinding",
        {"subjects": [{**USER, "name": ""}]},
        ["Required subjects[0].name: Required value"],
    ),
    (
        "ClusterRoleBinding",
        {"roleRef": {"kind": "Role"}},
        ['NotSupported roleRef.kind: Unsupported value: "Role": supported values: "ClusterRole"'],
    ),
    (
        "ClusterRoleBinding",
        {"subjects": [{"kind": "ServiceAccount", "name": "bot"}]},
        ["Required subjects[0].namespace: Required value"],
    ),
    (
        "ClusterRoleBinding",
        {"subjects": [{"kind": "ServiceAccount", "name": "b", "namespace": "c", "apiGroup": "x"}]},
        ['NotSupported subjects[0].apiGroup: Unsupported value: "x": supported values: ""'],
    ),
    (
        "Lease",
        {"spec": {"leaseDurationSeconds": 0}},
        ["Invalid spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0"],
    ),
    (
        "Lease",
        {"spec": {"leaseTransitions": -1}},
        ["Invalid spec.leaseTransitions: Invalid value: -1: must be greater than or equal to 0"],
    ),
    (
        "Namespace",
        {"metadata": {"name": "a.b"}},
        ['Invalid metadata.name: Invalid value: "a.b": must not contain dots'],
    ),
    (
        "Namespace",
        {"metadata": {"namespace": "b", "labels": {"a": "-"}}},
        [
            'Invalid metadata.labels: Invalid value: "-": ' + LABEL_VALUE,
        ],
    ),
    (
        "Namespace",
        {"spec": {"finalizers": ["mine"]}},
        [
            (
                'Invalid spec.finalizers: Invalid value: "mine": '
                "name is neither a standard finalizer name nor is it fully qualified"
            )
        ],
    ),
    (
        "Event",
        {"involvedObject": {"namespace": "other"}},
        [f'Invalid involvedObject.namespace: Invalid value: "other": {OTHER_NAMESPACE}'],
    ),
    (
        "Event",
        {"metadata": {"name": "a/b"}},
        ["Invalid metadata.name: Invalid value: \"a/b\": may not contain '/'"],
    ),
    (
        "Event",
        {"eventTime": "2026-01-02T03:04:05.000000Z", "reportingComponent": "c", "action": "Run"},
        ["Required reportingInstance: Required value", "Required reason: Required value"],
    ),
    (
        "NewEvent",
        {"eventTime": None, "type": "Odd"},
        [
            "Required eventTime: Required value",
            ('Invalid type: Invalid value: "": has invalid value: Odd'),
        ],
    ),
    (
        "NewEvent",
        {"deprecatedCount": 1, "deprecatedSource": {"component": "c"}},
        [
            'Invalid count: Invalid value: "": needs to be unset',
            'Invalid source: Invalid value: "": needs to be unset',
        ],
    ),
    (
        "NewEvent",
        {"note": "x" * 1025, "reportingController": "a b/c", "series": {"count": 1}},
        [
            "Invalid reportingController",
            'Invalid message: Invalid value: "": can have at most 1024 characters',
            'Invalid series.count: Invalid value: "": should be at least 2',
            "Required series.lastObservedTime: Required value",
        ],
    ),
]


@pytest.mark.parametrize(("kind", "change", "expected"), REFUSALS)
def test_what_is_wrong_is_told(kind: str, change: Tree, expected: list[str]) -> None:
    found = causes(create(kind, change))
    assert len(found) == len(expected), found
    for cause, text in zip(found, expected, strict=True):
        assert cause == text or (":" not in text and cause.startswith(f"{text}:"))


def test_names_of_accounts_are_checked() -> None:
    for name in ("A", "a_b", "a" * 254):
        (cause,) = causes(create("ServiceAccount", {"metadata": {"name": name}}))[:1]
        assert cause.startswith("Invalid metadata.name: Invalid value: ")


def test_of_the_secrets_of_an_account_only_names_are_kept() -> None:
    made = create("ServiceAccount", {"secrets": [{"name": "s", "kind": "Secret", "uid": "u"}]})
    (secret,) = made.stored.secrets
    assert (secret.name, secret.kind, secret.uid) == ("s", "", "")


ACCEPTED: list[tuple[str, Tree]] = [
    ("ClusterRole", {"rules": [{"nonResourceURLs": ["/healthz"], "verbs": ["get"]}]}),
    ("ClusterRole", {"rules": None, "metadata": {"name": "system:mine"}}),
    ("ConfigMap", {"data": {"a.txt": "x" * (1024 * 1024 - 3)}}),
    ("Event", {"metadata": {"name": "a.17F_!"}}),
    ("Event", {"involvedObject": {"kind": "Node", "namespace": None}}),
    ("Lease", {"spec": {"strategy": "example.com/Mine", "preferredHolder": "you"}}),
    ("PriorityClass", {"metadata": {"name": "system-node-critical"}, "value": 2_000_001_000}),
    ("PriorityClass", {"value": -5}),
    ("ResourceQuota", quota({"pods": "1"}, **scoped("PriorityClass", "In", "high"))),
    ("RoleBinding", {"subjects": [{"kind": "ServiceAccount", "name": "bot"}]}),
    ("Secret", {"type": "example.com/own", "data": {"a": ""}}),
    ("Secret", {"type": "kubernetes.io/basic-auth", "stringData": {"username": ""}}),
    (
        "Secret",
        {"type": "kubernetes.io/dockerconfigjson", "stringData": {".dockerconfigjson": "{}"}},
    ),
]


@pytest.mark.parametrize(("kind", "change"), ACCEPTED)
def test_what_is_right_is_stored(kind: str, change: Tree) -> None:
    assert causes(create(kind, change)) == []


@pytest.mark.parametrize("kind", ["RoleBinding", "ClusterRoleBinding"])
def test_a_binding_may_leave_out_the_groups(kind: str) -> None:
    subjects = [{"kind": "User", "name": "u"}, {"kind": "Group", "name": "g"}]
    made = create(kind, {"roleRef": {"apiGroup": None}, "subjects": subjects})
    assert causes(made) == []
    assert made.stored.role_ref.api_group == RBAC
    assert [subject.api_group for subject in made.stored.subjects] == [RBAC, RBAC]


def test_texts_of_a_secret_become_bytes() -> None:
    stored = create("Secret", {"stringData": {"a": "2", "b": "3"}}).stored
    assert {key: base64.b64decode(data) for key, data in stored.data.items()} == {
        "a": b"2",
        "b": b"3",
    }
    assert (stored.string_data, stored.type) == ({}, "Opaque")


# --- changes --------------------------------------------------------------------------------------

CHANGES: list[tuple[str, Tree, Tree, list[str]]] = [
    (
        "PriorityClass",
        {},
        {"value": 7},
        ["Forbidden value: Forbidden: may not be changed in an update."],
    ),
    (
        "PriorityClass",
        {},
        {"preemptionPolicy": "Never"},
        [f'Invalid preemptionPolicy: Invalid value: "Never": {IMMUTABLE}'],
    ),
    ("ConfigMap", {"immutable": True}, {"data": {"c": "d"}}, [f"Forbidden data: {SEALED}"]),
    (
        "ConfigMap",
        {"immutable": True},
        {"immutable": None, "binaryData": {"b": None}},
        [f"Forbidden immutable: {SEALED}", f"Forbidden binaryData: {SEALED}"],
    ),
    ("ConfigMap", {"immutable": True}, {"metadata": {"labels": {"a": "b"}}}, []),
    ("ConfigMap", {}, {"immutable": True, "data": {"c": "d"}}, []),
    ("Secret", {"immutable": True}, {"stringData": {"a": "2"}}, [f"Forbidden data: {SEALED}"]),
    ("Secret", {"immutable": True}, {"immutable": False}, [f"Forbidden immutable: {SEALED}"]),
    ("Secret", {}, {"type": "mine"}, [f'Invalid type: Invalid value: "mine": {IMMUTABLE}']),
    (
        "RoleBinding",
        {},
        {"roleRef": {"kind": "ClusterRole"}},
        [
            (
                'Invalid roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io",'
                f'"Kind":"ClusterRole","Name":"r"}}: {IMMUTABLE}'
            )
        ],
    ),
    (
        "ClusterRoleBinding",
        {},
        {"roleRef": {"name": "edit"}},
        [
            (
                'Invalid roleRef: Invalid value: {"APIGroup":"rbac.authorization.k8s.io",'
                f'"Kind":"ClusterRole","Name":"edit"}}: {IMMUTABLE}'
            )
        ],
    ),
    ("Role", {}, {"rules": [{**RULE, "verbs": []}]}, ["Required rules[0].verbs: Required value"]),
    (
        "Role",
        {},
        {"metadata": {"uid": "v"}},
        [f'Invalid metadata.uid: Invalid value: "v": {IMMUTABLE}'],
    ),
    (
        "ResourceQuota",
        quota({"pods": "1"}, scopes=["BestEffort"]),
        {"spec": {"scopes": ["NotBestEffort"]}},
        [f'Invalid spec.scopes: Invalid value: ["NotBestEffort"]: {IMMUTABLE}'],
    ),
    ("ResourceQuota", {}, {"spec": {"hard": {"pods": "9"}}}, []),
    (
        "Lease",
        {},
        {"spec": {"leaseDurationSeconds": -1}},
        ["Invalid spec.leaseDurationSeconds: Invalid value: -1: must be greater than 0"],
    ),
    ("Lease", {}, {"spec": {"holderIdentity": "you"}}, []),
    ("Event", {}, {"count": 2, "message": "again"}, []),
    ("Namespace", {}, {"spec": {"finalizers": ["mine"]}}, []),
]


@pytest.mark.parametrize(("kind", "before", "change", "expected"), CHANGES)
def test_what_may_not_change_is_told(
    kind: str, before: Tree, change: Tree, expected: list[str]
) -> None:
    assert causes(update(kind, before, change)) == expected


def test_a_new_event_stays_but_for_its_series() -> None:
    series = {"count": 2, "lastObservedTime": "2026-01-02T03:05:05.000000Z"}
    kind = CATALOGUE.find("events.k8s.io/v1", "Event")
    first, again, other = (
        decode_tree({**VALID["NewEvent"], "metadata": {"name": "a"}, **change}, kind.struct).value
        for change in ({}, {"series": series}, {"note": "more", "type": "Warning"})
    )
    old = with_resource_version(before_create(first, kind, CONTEXT).stored, "1")
    assert causes(before_update(again, old, kind, CONTEXT)) == []
    assert causes(before_update(other, old, kind, CONTEXT)) == [
        f'Invalid message: Invalid value: "more": {IMMUTABLE}',
        f'Invalid type: Invalid value: "Warning": {IMMUTABLE}',
    ]


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        (
            "Namespace",
            {"phase": "Terminating"},
            [
                (
                    'Invalid status.Phase: Invalid value: "Terminating": '
                    "may only be 'Active' if `deletionTimestamp` is empty"
                )
            ],
        ),
        ("Namespace", {"phase": "Active"}, []),
        ("Namespace", {"conditions": []}, []),
        (
            "ResourceQuota",
            {"used": {"pods": "-1"}},
            ['Invalid status.used[pods]: Invalid value: "-1": must be greater than or equal to 0'],
        ),
    ],
)
def test_statuses_are_checked(kind: str, status: Tree, expected: list[str]) -> None:
    assert causes(update_status(kind, status)) == expected
