"""Rules for workload objects: rejections with Kubernetes' messages, and accepted objects."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from moorage.api.errors import DecodeError
from tests.validation.objects import Tree, causes, create, update, update_status

NEGATIVE = "Invalid value: -1: must be greater than or equal to 0"
CLAIM = {
    "metadata": {"name": "v"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
}
IMMUTABLE = "field is immutable"
UID = "00000000-0000-0000-0000-000000000000"
PERCENT = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
UNSELECTED = (
    'Invalid spec.template.metadata.labels: Invalid value: {"app":"a"}: '
    "`selector` does not match template `labels`"
)
KINDS = ("Deployment", "ReplicaSet", "DaemonSet", "StatefulSet")


def rolling(**limits: Any) -> Tree:
    return {"rollingUpdate": limits}


# --- what all have --------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_templates_are_checked_as_pods_are(kind: str) -> None:
    container = {"name": "A_", "image": "i", "resources": {"claims": [{"name": "gpu"}]}}
    template = {"spec": {"containers": [container], "dnsPolicy": "Mine"}}
    name, claim, policy = causes(create(kind, {"spec": {"template": template}}))
    assert name.startswith("Invalid spec.template.spec.containers[0].name: Invalid value: ")
    assert claim == (
        "NotFound spec.template.spec.containers[0].resources.claims[0]: Not found: "
        '"gpu": must be one of the names in pod.spec.resourceClaims which is empty'
    )
    assert policy.startswith("NotSupported spec.template.spec.dnsPolicy: Unsupported value: ")


@pytest.mark.parametrize(
    ("kind", "named"),
    [
        ("Deployment", "ReplicaSet"),
        ("ReplicaSet", "ReplicaSet"),
        ("DaemonSet", "DaemonSet"),
        ("StatefulSet", "StatefulSet"),
    ],
)
def test_pods_of_a_controller_run_until_it_ends_them(kind: str, named: str) -> None:
    pods = {"restartPolicy": "Never", "activeDeadlineSeconds": 9}
    assert causes(create(kind, {"spec": {"template": {"spec": pods}}})) == [
        (
            "NotSupported spec.template.spec.restartPolicy: Unsupported value: "
            '"Never": supported values: "Always"'
        ),
        (
            "Forbidden spec.template.spec.activeDeadlineSeconds: Forbidden: "
            f"activeDeadlineSeconds in {named} is not Supported"
        ),
    ]


@pytest.mark.parametrize("kind", [*KINDS, "Job"])
def test_templates_have_no_ephemeral_containers(kind: str) -> None:
    added = {"ephemeralContainers": [{"name": "e", "image": "i"}]}
    assert causes(create(kind, {"spec": {"template": {"spec": added}}})) == [
        (
            "Forbidden spec.template.spec.ephemeralContainers: Forbidden: "
            "ephemeral containers not allowed in pod template"
        )
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_selector_stays(kind: str) -> None:
    both = {"app": "a", "b": "c"}
    before = {"spec": {"template": {"metadata": {"labels": both}}}}
    changed = update(kind, before, {"spec": {"selector": {"matchLabels": both}}})
    assert causes(changed) == [
        'Invalid spec.selector: Invalid value: {"matchLabels":{"app":"a","b":"c"}}: ' + IMMUTABLE
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_a_changed_spec_is_a_new_generation(kind: str) -> None:
    seen = {"status": {"observedGeneration": 1}}
    claimed = {"status": {"observedGeneration": 9}}
    same = update(kind, {}, {"metadata": {"annotations": {"a": "b"}}, **claimed}, **seen)
    changed = update(kind, {}, {"spec": {"minReadySeconds": 2}, **claimed}, **seen)
    # Kubernetes counts changed annotations of a deployment, and of no other kind.
    expected = [2 if kind == "Deployment" else 1, 2]
    assert [a.stored.metadata.generation for a in (same, changed)] == expected
    assert [a.stored.status.observed_generation for a in (same, changed)] == [1, 1]


_WORDS = st.sampled_from(
    [
        "rules",
        "action",
        "Ignore",
        "onExitCodes",
        "operator",
        "In",
        "values",
        "onPodConditions",
        "succeededIndexes",
        "0-1,3",
        "succeededCount",
        "maxSurge",
        "maxUnavailable",
        "partition",
        "rollingUpdate",
        "whenScaled",
        "start",
        "schedulingPolicy",
        "gang",
        "minCount",
        "7%",
    ]
)
_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2**40) | st.floats(allow_nan=False) | _WORDS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_WORDS, inner, max_size=4),
    max_leaves=12,
)
_LOOSE = [  # fields that our structs keep as JSON
    ("Deployment", "strategy.rollingUpdate"),
    ("DaemonSet", "updateStrategy.rollingUpdate"),
    ("StatefulSet", "updateStrategy.rollingUpdate"),
    ("StatefulSet", "persistentVolumeClaimRetentionPolicy"),
    ("StatefulSet", "ordinals"),
    ("Job", "podFailurePolicy"),
    ("Job", "podFailurePolicy.rules"),
    ("Job", "successPolicy"),
    ("Job", "successPolicy.rules"),
    ("Job", "scheduling"),
]


@pytest.mark.parametrize(("kind", "place"), _LOOSE)
@settings(max_examples=60)
@given(value=_VALUES)
def test_any_json_is_read_or_refused(kind: str, place: str, value: Any) -> None:
    spec: Any = value
    for name in reversed(place.split(".")):
        spec = {name: spec}
    if kind == "Job":
        spec |= {"completionMode": "Indexed", "completions": 3}
    with suppress(DecodeError):
        causes(create(kind, {"spec": spec}))


# --- each kind ------------------------------------------------------------------------------------

REFUSALS: list[tuple[str, Tree, list[str]]] = [
    ("Deployment", {"selector": None}, ["Required spec.selector: Required value", UNSELECTED]),
    ("Deployment", {"selector": {"matchLabels": {"app": "b"}}}, [UNSELECTED]),
    (
        "Deployment",
        {"selector": {"matchLabels": None}},
        ["Invalid spec.selector: Invalid value: {}: empty selector is invalid for deployment"],
    ),
    (
        "Deployment",
        {"selector": {"matchLabels": None, "matchExpressions": [{"key": "a", "operator": "Is"}]}},
        [
            (
                'Invalid spec.selector.matchExpressions[0].operator: Invalid value: "Is": '
                "not a valid selector operator"
            ),
            (
                'Invalid spec.selector: Invalid value: {"matchExpressions":[{"key":"a",'
                '"operator":"Is"}]}: invalid label selector'
            ),
        ],
    ),
    (
        "Deployment",
        {"selector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}},
        [
            (
                "Forbidden spec.selector.matchExpressions[0].values: Forbidden: may not be "
                "specified when `operator` is 'Exists' or 'DoesNotExist'"
            ),
            (
                'Invalid spec.selector: Invalid value: {"matchLabels":{"app":"a"},'
                '"matchExpressions":[{"key":"a","operator":"Exists","values":["b"]}]}: '
                "invalid label selector"
            ),
        ],
    ),
    (
        "Deployment",
        {"replicas": -1, "minReadySeconds": -1, "revisionHistoryLimit": -1},
        [
            f"Invalid spec.replicas: {NEGATIVE}",
            f"Invalid spec.minReadySeconds: {NEGATIVE}",
            f"Invalid spec.revisionHistoryLimit: {NEGATIVE}",
        ],
    ),
    (
        "Deployment",
        {"progressDeadlineSeconds": 5, "minReadySeconds": 5},
        [
            (
                "Invalid spec.progressDeadlineSeconds: Invalid value: 5: "
                "must be greater than minReadySeconds"
            )
        ],
    ),
    (
        "Deployment",
        {"strategy": {"type": "Recreate", **rolling(maxSurge=1)}},
        [
            (
                "Forbidden spec.strategy.rollingUpdate: Forbidden: "
                "may not be specified when strategy `type` is 'Recreate'"
            )
        ],
    ),
    (
        "Deployment",
        {"strategy": {"type": "Slowly"}},
        [
            (
                'NotSupported spec.strategy: Unsupported value: {"Type":"Slowly",'
                '"RollingUpdate":null}: supported values: "Recreate", "RollingUpdate"'
            )
        ],
    ),
    (
        "Deployment",
        {"strategy": rolling(maxSurge=0, maxUnavailable="0%")},
        [
            (
                "Invalid spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "
                '"0%": may not be 0 when `maxSurge` is 0'
            )
        ],
    ),
    (
        "Deployment",
        {"strategy": rolling(maxSurge="much", maxUnavailable="101%")},
        [
            f'Invalid spec.strategy.rollingUpdate.maxSurge: Invalid value: "much": {PERCENT}',
            (
                'Invalid spec.strategy.rollingUpdate.maxUnavailable: Invalid value: "101%": '
                "must not be greater than 100%"
            ),
        ],
    ),
    ("ReplicaSet", {"selector": None}, ["Required spec.selector: Required value", UNSELECTED]),
    ("ReplicaSet", {"replicas": -1}, [f"Invalid spec.replicas: {NEGATIVE}"]),
    (
        "ReplicaSet",
        {"template": {"spec": {"containers": []}}},
        ["Required spec.template.spec.containers: Required value"],
    ),
    ("DaemonSet", {"selector": None}, [UNSELECTED]),
    (
        "DaemonSet",
        {"selector": {"matchLabels": None}},
        ["Invalid spec.selector: Invalid value: {}: empty selector is invalid for daemonset"],
    ),
    (
        "DaemonSet",
        {"updateStrategy": rolling(maxSurge=1)},
        [
            (
                "Invalid spec.updateStrategy.rollingUpdate.maxSurge: Invalid value: 1: "
                "may not be set when maxUnavailable is non-zero"
            )
        ],
    ),
    (
        "DaemonSet",
        {"updateStrategy": rolling(maxUnavailable=0)},
        [
            (
                "Required spec.updateStrategy.rollingUpdate.maxUnavailable: Required value: "
                "cannot be 0 when maxSurge is 0"
            )
        ],
    ),
    (
        "StatefulSet",
        {"podManagementPolicy": "Random", "replicas": -1, "ordinals": {"start": -1}},
        [
            (
                'Invalid spec.podManagementPolicy: Invalid value: "Random": '
                "must be 'OrderedReady' or 'Parallel'"
            ),
            f"Invalid spec.replicas: {NEGATIVE}",
            f"Invalid spec.ordinals.start: {NEGATIVE}",
        ],
    ),
    (
        "StatefulSet",
        {"updateStrategy": {"type": "OnDelete", **rolling(partition=1)}},
        [
            (
                "Invalid spec.updateStrategy.rollingUpdate: Invalid value: "
                '{"Partition":1,"MaxUnavailable":null}: '
                "only allowed for updateStrategy 'RollingUpdate'"
            )
        ],
    ),
    (
        "StatefulSet",
        {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Burn"}},
        [
            (
                "NotSupported spec.persistentVolumeClaimRetentionPolicy.whenScaled: "
                'Unsupported value: "Burn": supported values: "Retain", "Delete"'
            )
        ],
    ),
    (
        "StatefulSet",
        {"serviceName": "a.b"},
        ['Invalid spec.serviceName: Invalid value: "a.b": must not contain dots'],
    ),
    (
        "Job",
        {"template": {"spec": {"restartPolicy": None}}},
        [
            (
                "Required spec.template.spec.restartPolicy: Required value: "
                'valid values: "OnFailure", "Never"'
            )
        ],
    ),
    (
        "Job",
        {"parallelism": -1, "completions": -1, "backoffLimit": -1, "ttlSecondsAfterFinished": -1},
        [
            f"Invalid spec.parallelism: {NEGATIVE}",
            f"Invalid spec.completions: {NEGATIVE}",
            f"Invalid spec.backoffLimit: {NEGATIVE}",
            f"Invalid spec.ttlSecondsAfterFinished: {NEGATIVE}",
        ],
    ),
    (
        "Job",
        {"manualSelector": True},
        [
            "Required spec.selector: Required value",
            (
                "Invalid spec.template.metadata.labels: Invalid value: null: "
                "`selector` does not match template `labels`"
            ),
        ],
    ),
    (
        "Job",
        {"template": {"metadata": {"labels": {"job-name": "b"}}}},
        [
            (
                "Invalid spec.template.metadata.labels[job-name]: Invalid value: "
                f'{{"batch.kubernetes.io/controller-uid":"{UID}","batch.kubernetes.io/job-name":"a",'
                f'"controller-uid":"{UID}","job-name":"b"}}: must be \'a\''
            )
        ],
    ),
    (
        "Job",
        {"completionMode": "Indexed", "parallelism": 100_001},
        [
            "Required spec.completions: Required value: when completion mode is Indexed",
            (
                "Invalid spec.parallelism: Invalid value: 100001: "
                "must be less than or equal to 100000 when completion mode is Indexed"
            ),
        ],
    ),
    (
        "Job",
        {"completionMode": "Counted"},
        [
            (
                'NotSupported spec.completionMode: Unsupported value: "Counted": '
                'supported values: "NonIndexed", "Indexed"'
            )
        ],
    ),
    (
        "Job",
        {"backoffLimitPerIndex": 1},
        ["Invalid spec.backoffLimitPerIndex: Invalid value: 1: requires indexed completion mode"],
    ),
    (
        "Job",
        {"completionMode": "Indexed", "completions": 1, "maxFailedIndexes": 2},
        [
            (
                "Required spec.backoffLimitPerIndex: Required value: "
                "when maxFailedIndexes is specified"
            ),
            (
                "Invalid spec.maxFailedIndexes: Invalid value: 2: "
                "must be less than or equal to completions"
            ),
        ],
    ),
    (
        "Job",
        {"completionMode": "Indexed", "completions": 200_000, "backoffLimitPerIndex": 1},
        [
            (
                "Required spec.maxFailedIndexes: Required value: "
                "must be specified when completions is above 100000"
            )
        ],
    ),
    (
        "Job",
        {"managedBy": "me"},
        [
            (
                'Invalid spec.managedBy: Invalid value: "me": '
                'must be a domain-prefixed path (such as "acme.io/foo")'
            )
        ],
    ),
    (
        "Job",
        {"parallelism": 2, "scheduling": {"schedulingPolicy": {"gang": {"minCount": 3}}}},
        [
            (
                "Invalid spec.scheduling.schedulingPolicy.gang.minCount: Invalid value: 3: "
                "must not be greater than parallelism (2)"
            )
        ],
    ),
]


@pytest.mark.parametrize(("kind", "spec", "expected"), REFUSALS)
def test_what_is_wrong_is_told(kind: str, spec: Tree, expected: list[str]) -> None:
    assert causes(create(kind, {"spec": spec})) == expected


ACCEPTED: list[tuple[str, Tree]] = [
    ("Deployment", {"strategy": rolling(maxSurge="150%", maxUnavailable=0)}),
    (
        "Deployment",
        {
            "selector": {
                "matchLabels": None,
                "matchExpressions": [{"key": "app", "operator": "In", "values": ["a", "b"]}],
            }
        },
    ),
    ("DaemonSet", {"updateStrategy": rolling(maxSurge="10%", maxUnavailable=0)}),
    ("DaemonSet", {"updateStrategy": {"type": "OnDelete"}}),
    ("StatefulSet", {"updateStrategy": {"type": "OnDelete"}, "replicas": 0}),
    ("Job", {"completionMode": "Indexed", "completions": 5, "backoffLimitPerIndex": 1}),
    ("Job", {"suspend": True, "completions": 0, "parallelism": 0}),
]


@pytest.mark.parametrize(("kind", "spec"), ACCEPTED)
def test_what_is_right_is_stored(kind: str, spec: Tree) -> None:
    assert causes(create(kind, {"spec": spec})) == []


# --- jobs -----------------------------------------------------------------------------------------


def test_what_pods_that_fail_mean_is_checked() -> None:
    rules = [
        {"action": "Panic"},
        {"action": "FailIndex", "onExitCodes": {"operator": "In", "values": [0, 2, 1, 1]}},
        {"onPodConditions": [{"type": "Ready", "status": "?"}]},
        {"action": "Ignore", "onExitCodes": {"operator": "In", "containerName": "z"}},
    ]
    place = "spec.podFailurePolicy.rules"
    assert causes(create("Job", {"spec": {"podFailurePolicy": {"rules": rules}}})) == [
        (
            f'NotSupported {place}[0].action: Unsupported value: "Panic": supported values: '
            '"Count", "FailIndex", "FailJob", "Ignore"'
        ),
        (
            f"Invalid {place}[0]: Invalid value: "
            "specifying one of OnExitCodes and OnPodConditions is required"
        ),
        (
            f'Invalid {place}[1].action: Invalid value: "FailIndex": '
            "requires the backoffLimitPerIndex to be set"
        ),
        (
            f"Invalid {place}[1].onExitCodes.values[0]: Invalid value: 0: "
            "must not be 0 for the In operator"
        ),
        f"Duplicate {place}[1].onExitCodes.values[3]: Duplicate value: 1",
        f"Invalid {place}[1].onExitCodes.values: Invalid value: [0,2,1,1]: must be ordered",
        (
            f"Required {place}[2].action: Required value: "
            'valid values: ["Count" "FailIndex" "FailJob" "Ignore"]'
        ),
        (
            f'NotSupported {place}[2].onPodConditions[0].status: Unsupported value: "?": '
            'supported values: "False", "True", "Unknown"'
        ),
        (
            f'Invalid {place}[3].onExitCodes.containerName: Invalid value: "z": '
            "must be one of the container or initContainer names in the pod template"
        ),
        (
            f"Invalid {place}[3].onExitCodes.values: Invalid value: null: "
            "at least one value is required"
        ),
    ]


def test_a_condition_of_a_failed_pod_holds_unless_it_is_said() -> None:
    rule = {"action": "Ignore", "onPodConditions": [{"type": "DisruptionTarget"}]}
    made = create("Job", {"spec": {"podFailurePolicy": {"rules": [rule]}}})
    assert causes(made) == []
    (kept,) = made.stored.spec.pod_failure_policy["rules"]
    assert kept["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]


def test_a_job_whose_failures_are_judged_does_not_restart_containers() -> None:
    rule = {"action": "Ignore", "onExitCodes": {"operator": "In", "values": [1]}}
    spec = {
        "podFailurePolicy": {"rules": [rule]},
        "podReplacementPolicy": "TerminatingOrFailed",
        "template": {"spec": {"restartPolicy": "OnFailure"}},
    }
    assert causes(create("Job", {"spec": spec})) == [
        (
            'NotSupported spec.podReplacementPolicy: Unsupported value: "TerminatingOrFailed": '
            'supported values: "Failed"'
        ),
        (
            'Invalid spec.template.spec.restartPolicy: Invalid value: "OnFailure": '
            'only "Never" is supported when podFailurePolicy is specified'
        ),
    ]


def test_which_pods_must_succeed_is_checked() -> None:
    rules = [{}, {"succeededIndexes": "0,5"}, {"succeededIndexes": "0-1", "succeededCount": 4}]
    spec = {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": rules}}
    place = "spec.successPolicy.rules"
    assert causes(create("Job", {"spec": spec})) == [
        (
            f"Required {place}[0]: Required value: "
            "at least one of succeededCount or succeededIndexes must be specified"
        ),
        (
            f'Invalid {place}[1].succeededIndexes: Invalid value: "0,5": '
            'error parsing succeededIndexes: too large index: "5"'
        ),
        (
            f"Invalid {place}[2].succeededCount: Invalid value: 4: "
            "must be less than or equal to 3 (the number of specified completions)"
        ),
        (
            f"Invalid {place}[2].succeededCount: Invalid value: 4: must be less than or equal to 2 "
            "(the number of indexes in the specified succeededIndexes field)"
        ),
    ]


@pytest.mark.parametrize(
    ("indexes", "fault"),
    [
        ("1-0", "non-increasing order, previous: 1, current: 0"),
        ("1,1", "non-increasing order, previous: 1, current: 1"),
        ("a", 'cannot convert string to integer for index: "a"'),
        (
            "0-1-2",
            (
                'the fragment "0-1-2" violates the requirement that an index interval can have at '
                "most two parts separated by '-'"
            ),
        ),
    ],
)
def test_indexes_are_read(indexes: str, fault: str) -> None:
    rules = [{"succeededIndexes": indexes}]
    spec = {"completionMode": "Indexed", "completions": 3, "successPolicy": {"rules": rules}}
    (cause,) = causes(create("Job", {"spec": spec}))
    assert cause.endswith(f": error parsing succeededIndexes: {fault}")


def test_the_name_of_an_indexed_job_must_leave_room_for_the_index() -> None:
    change = {
        "metadata": {"name": "a" * 62},
        "spec": {"completionMode": "Indexed", "completions": 11},
    }
    (cause,) = causes(create("Job", change))
    assert cause.startswith('Invalid metadata.name: Invalid value: "aaa')
    assert cause.endswith(f"will not able to create pod with invalid DNS label: {'a' * 62}-10")


OWN = {"spec": {"manualSelector": True, "selector": {"matchLabels": {"a": "b"}},
                "template": {"metadata": {"labels": {"a": "b", "c": "d"}}}}}  # fmt: skip


def changed_job(change: Tree, **server: Any) -> list[str]:
    suspend = {"suspend": True} if server.pop("suspended", False) else {}
    before = {"spec": {**OWN["spec"], **suspend}}
    return causes(update("Job", before, {"spec": change}, **server))


@pytest.mark.parametrize(
    ("change", "places"),
    [
        ({"selector": {"matchLabels": {"c": "d"}}}, ["selector"]),
        ({"completions": 5}, ["completions"]),
        ({"template": {"spec": {"restartPolicy": "OnFailure"}}}, ["template"]),
        ({"template": {"spec": {"nodeSelector": {"a": "b"}}}}, ["template"]),
        ({"managedBy": "example.com/me"}, ["managedBy"]),
        (
            {"completionMode": "Indexed", "completions": 1, "backoffLimitPerIndex": 1},
            ["completionMode", "backoffLimitPerIndex"],
        ),
    ],
)
def test_a_job_stays_what_it_is(change: Tree, places: list[str]) -> None:
    found = changed_job(change)
    assert [cause.split(":")[0] for cause in found] == [f"Invalid spec.{p}" for p in places]
    assert all(cause.endswith(IMMUTABLE) for cause in found)


def test_a_job_can_be_sped_up_and_suspended() -> None:
    assert changed_job({"parallelism": 9, "suspend": True, "activeDeadlineSeconds": 9}) == []


def test_a_suspended_job_may_go_elsewhere_and_ask_for_less() -> None:
    resources = {"requests": {"cpu": "1"}}
    container = {"name": "c", "image": "i", "imagePullPolicy": "Always", "resources": resources}
    container |= {
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
    }
    pods = {"nodeSelector": {"a": "b"}, "containers": [container]}
    change = {"template": {"metadata": {"annotations": {"a": "b"}}, "spec": pods}}
    assert changed_job(change, suspended=True) == []
    assert changed_job(change) != []
    begun = {"status": {"startTime": "2026-01-02T03:04:05Z"}}
    assert changed_job(change, suspended=True, **begun) != []
    image = {"template": {"spec": {"containers": [{**container, "image": "j"}]}}}
    (cause,) = changed_job(image, suspended=True)
    assert cause.startswith("Invalid spec.template.spec: Invalid value: ")


def test_completions_of_an_indexed_job_change_with_its_parallelism() -> None:
    indexed = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    before = {"spec": {**OWN["spec"], **indexed}}
    apart = update("Job", before, {"spec": {"completions": 4}})
    assert causes(apart) == [
        (
            "Invalid spec.completions: Invalid value: 4: "
            "can only be modified in tandem with spec.parallelism"
        )
    ]
    together = update("Job", before, {"spec": {"completions": 4, "parallelism": 4}})
    assert causes(together) == []


# --- other changes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("serviceName", "t"),
        ("podManagementPolicy", "Parallel"),
        ("volumeClaimTemplates", [CLAIM]),
    ],
)
def test_a_stateful_set_stays_what_it_is(field: str, value: Any) -> None:
    (cause,) = causes(update("StatefulSet", {}, {"spec": {field: value}}))
    assert cause.startswith(f"Invalid spec.{field}: Invalid value: ")
    assert cause.endswith(IMMUTABLE)


@pytest.mark.parametrize(
    ("kind", "status", "expected"),
    [
        (
            "Deployment",
            {"replicas": 1, "readyReplicas": 2, "availableReplicas": -1},
            [
                f"Invalid status.availableReplicas: {NEGATIVE}",
                (
                    "Invalid status.readyReplicas: Invalid value: 2: "
                    "cannot be greater than status.replicas"
                ),
            ],
        ),
        (
            "ReplicaSet",
            {"replicas": 1, "availableReplicas": 1},
            [
                (
                    "Invalid status.availableReplicas: Invalid value: 1: "
                    "cannot be greater than readyReplicas"
                )
            ],
        ),
        ("DaemonSet", {"numberReady": -1}, [f"Invalid status.numberReady: {NEGATIVE}"]),
        (
            "StatefulSet",
            {"replicas": 1, "availableReplicas": 1},
            [
                (
                    "Invalid status.availableReplicas: Invalid value: 1: "
                    "cannot be greater than status.readyReplicas"
                )
            ],
        ),
        ("Job", {"active": -1}, [f"Invalid status.active: {NEGATIVE}"]),
    ],
)
def test_counts_of_pods_are_checked(kind: str, status: Tree, expected: list[str]) -> None:
    assert causes(update_status(kind, status)) == expected


def test_collisions_are_not_forgotten() -> None:
    for kind in ("Deployment", "DaemonSet", "StatefulSet"):
        assert causes(update_status(kind, {"collisionCount": 1}, {"collisionCount": 2})) == [
            "Invalid status.collisionCount: Invalid value: 1: cannot be decremented"
        ]


def test_what_is_immutable_is_shown_as_kubernetes_shows_it() -> None:
    labels = {"app": "a"}
    before: Tree = {"manualSelector": True, "selector": {"matchLabels": labels}}
    before["template"] = {"metadata": {"labels": labels}}
    image = {"template": {"spec": {"containers": [{"name": "c", "image": "j"}]}}}
    (cause,) = causes(update("Job", {"spec": before}, {"spec": image}))
    start = 'Invalid spec.template: Invalid value: {"labels":{"app":"a"},"Spec":{"Volumes":null,'
    assert cause.startswith(start)
    claims = [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    (cause,) = causes(update("StatefulSet", {}, {"spec": {"volumeClaimTemplates": claims}}))[-1:]
    start = 'Invalid spec.volumeClaimTemplates: Invalid value: [{"name":"d","Spec":{"AccessModes":'
    assert cause.startswith(start)


def test_a_policy_is_shown_as_kubernetes_shows_it() -> None:
    policy = {"successPolicy": {"rules": [{"succeededCount": 1}]}}
    (cause,) = causes(create("Job", {"spec": policy}))
    assert cause == (
        'Invalid spec.successPolicy: Invalid value: {"Rules":[{"SucceededIndexes":null,'
        '"SucceededCount":1}]}: requires indexed completion mode'
    )


# --- the scheduling of jobs -----------------------------------------------------------------------

GANG: Tree = {"gang": {"minCount": 2}}


@pytest.mark.parametrize(
    ("scheduling", "expected"),
    [
        ({}, []),
        ({"schedulingPolicy": GANG, "disruptionMode": {"all": {}}}, []),
        ({"schedulingPolicy": {"gang": {}}}, []),
        ({"schedulingPolicy": {}}, ["Invalid spec.scheduling.schedulingPolicy"]),
        ({"schedulingPolicy": {"basic": {}, **GANG}}, ["Invalid spec.scheduling.schedulingPolicy"]),
        (
            {"schedulingPolicy": {"gang": {"minCount": 0}}},
            ["Invalid spec.scheduling.schedulingPolicy.gang.minCount"],
        ),
        (
            {"schedulingPolicy": {"gang": {"minCount": 9}}},
            ["Invalid spec.scheduling.schedulingPolicy.gang.minCount"],
        ),
        ({"disruptionMode": {"single": {}, "all": {}}}, ["Invalid spec.scheduling.disruptionMode"]),
        ({"disruptionMode": {"all": {}}}, ["Invalid spec.scheduling.disruptionMode"]),
        (
            {"schedulingConstraints": {"topology": [{"key": ""}]}},
            ["Required spec.scheduling.schedulingConstraints.topology[0].key"],
        ),
        ({"resourceClaims": [{"name": "a"}]}, ["Invalid spec.scheduling.resourceClaims[0]"]),
    ],
)
def test_the_scheduling_of_a_job_is_that_of_a_group(scheduling: Tree, expected: list[str]) -> None:
    spec = {"parallelism": 3, "scheduling": scheduling}
    assert [c.split(":")[0] for c in causes(create("Job", {"spec": spec}))] == expected


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (None, {}, ["Invalid spec.scheduling: Invalid value: null: field cannot be set once"]),
        ({}, None, ["Invalid spec.scheduling: Invalid value: null: field cannot be cleared"]),
        ({"schedulingPolicy": GANG}, {"schedulingPolicy": {"gang": {"minCount": 1}}}, []),
        (
            {"schedulingPolicy": GANG},
            {"schedulingPolicy": {"gang": None, "basic": {}}},
            ["Invalid spec.scheduling.schedulingPolicy: Invalid value: null: the basic/gang"],
        ),
        (
            {"schedulingPolicy": GANG},
            {"disruptionMode": {"single": {}}},
            ["Invalid spec.scheduling.disruptionMode: Invalid value: null: field is immutable"],
        ),
    ],
)
def test_only_the_size_of_a_gang_changes(
    before: Tree | None, after: Tree | None, expected: list[str]
) -> None:
    labels = {"app": "a"}
    spec: Tree = {"manualSelector": True, "selector": {"matchLabels": labels}, "parallelism": 2}
    spec |= {"template": {"metadata": {"labels": labels}}, "scheduling": before}
    found = causes(update("Job", {"spec": spec}, {"spec": {"scheduling": after}}))
    assert len(found) == len(expected), found
    for cause, text in zip(found, expected, strict=True):
        assert cause.startswith(text)
