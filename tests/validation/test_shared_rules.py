"""Rules that kinds share, where kinds differ: finalizers, metadata with a status, defaults."""

from __future__ import annotations

from typing import Any

import pytest

from moorage.api.core.namespace import NAME_LABEL
from tests.validation.objects import VALID, Tree, causes, create, update, update_status

UNQUALIFIED = "name is neither a standard finalizer name nor is it fully qualified"
LENIENT = {  # kinds that take any finalizer that is a name
    *("Event", "Lease", "PodDisruptionBudget", "RuntimeClass"),
    "ValidatingAdmissionPolicyBinding",
}


@pytest.mark.parametrize("kind", sorted(VALID))
def test_most_kinds_require_a_domain_of_finalizers(kind: str) -> None:
    expected = [f'Invalid metadata.finalizers[0]: Invalid value: "mine": {UNQUALIFIED}']
    change: Tree = {"metadata": {"finalizers": ["mine"]}}
    assert causes(create(kind, change)) == ([] if kind in LENIENT else expected)


@pytest.mark.parametrize(
    ("kind", "kept"),
    [
        ("DaemonSet", False),
        ("Deployment", True),
        ("Job", False),
        ("Namespace", False),
        ("Node", False),
        ("ReplicaSet", False),
        ("ResourceQuota", False),
        ("StatefulSet", False),
    ],
)
def test_labels_change_with_the_status_of_older_kinds(kind: str, kept: bool) -> None:
    changed = update_status(kind, {}, metadata={"labels": {"new": "label"}})
    assert causes(changed) == []
    assert ("new" in changed.stored.metadata.labels) is not kept


@pytest.mark.parametrize("kind", ["Lease", "RuntimeClass"])
def test_an_update_of_some_kinds_says_which_version_it_changes(kind: str) -> None:
    found = causes(update(kind, {}, {"metadata": {"resourceVersion": None}}))
    assert found == [
        "Invalid metadata.resourceVersion: Invalid value: 0: must be specified for an update"
    ]


def test_a_namespace_has_a_label_with_its_name_which_is_validated_too() -> None:
    made = create("Namespace", {"metadata": {"name": "team"}}).stored
    assert made.metadata.labels == {NAME_LABEL: "team"}
    wrong = create("Namespace", {"metadata": {"name": "a/b"}})
    assert {str(error.path) for error in wrong.errors} == {"metadata.name", "metadata.labels"}
    generated = create("Namespace", {"metadata": {"name": None, "generateName": "team-"}}).stored
    assert generated.metadata.labels == {}


def test_a_lease_drops_what_coordinated_leader_election_needs() -> None:
    spec = {"strategy": "Youngest", "preferredHolder": "you"}
    made = create("Lease", {"spec": spec})
    assert causes(made) == []
    assert (made.stored.spec.strategy, made.stored.spec.preferred_holder) == (None, None)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"handler": "Other_"}, {"handler"}),
        ({"overhead": {"podFixed": {"foo": "1"}}}, {"overhead.limits[foo]"}),
        (
            {"scheduling": {"tolerations": [{"operator": "Equal"}]}},
            {"scheduling.tolerations[0].operator"},
        ),
    ],
)
def test_an_updated_runtime_class_is_validated_as_a_new_one(
    change: Tree, expected: set[str]
) -> None:
    changed = update("RuntimeClass", {}, change)
    assert {str(error.path) for error in changed.errors} == expected


@pytest.mark.parametrize(
    ("kind", "change", "read"),
    [
        ("ResourceQuota", {"spec": {"hard": {"pods": "1n"}}}, ("spec", "hard")),
        ("Node", {"status": {"capacity": {"pods": "1n"}}}, ("status", "capacity")),
    ],
)
def test_amounts_are_rounded_up_to_thousandths(
    kind: str, change: Tree, read: tuple[str, str]
) -> None:
    found: Any = create(kind, change)
    assert [str(error.bad_value) for error in found.errors if error.path.segments[0] == read[0]]
    assert all(str(error.bad_value) == "1m" for error in found.errors)


def test_the_claims_of_a_stateful_set_are_validated_once() -> None:
    claims = [{"metadata": {"name": "d"}, "spec": {"accessModes": ["ReadWriteOnce"]}}]
    new = create("StatefulSet", {"spec": {"volumeClaimTemplates": claims}})
    assert [str(error.path) for error in new.errors] == [
        "spec.volumeClaimTemplates[0].spec.resources[storage]"
    ]
    changed = update("StatefulSet", {}, {"spec": {"volumeClaimTemplates": claims}})
    assert [str(error.path) for error in changed.errors] == ["spec.volumeClaimTemplates"]


def test_a_failure_policy_without_rules_is_not_the_same_as_none() -> None:
    changed = update(
        "Job", {"spec": {"podReplacementPolicy": "Failed"}}, {"spec": {"podFailurePolicy": {}}}
    )
    assert "spec.podFailurePolicy" in {str(error.path) for error in changed.errors}


@pytest.mark.parametrize(
    ("strategy", "shown"),
    [
        ({"type": "Recreate"}, '{"Type":"Recreate","RollingUpdate":null}'),
        (
            {"type": "Other", "rollingUpdate": {"partition": 1}},
            '{"Type":"Other","RollingUpdate":{"Partition":1,"MaxUnavailable":null}}',
        ),
    ],
)
def test_a_stateful_set_rolls_or_waits_for_deletions(strategy: Tree, shown: str) -> None:
    made = create("StatefulSet", {"spec": {"updateStrategy": strategy}})
    detail = "must be 'RollingUpdate' or 'OnDelete'"
    assert causes(made) == [f"Invalid spec.updateStrategy: Invalid value: {shown}: {detail}"]


def test_a_daemon_set_that_waits_for_deletions_shows_limits_of_zero() -> None:
    strategy = {"type": "OnDelete", "rollingUpdate": {}}
    made = create("DaemonSet", {"spec": {"updateStrategy": strategy}}).stored
    assert made.spec.update_strategy.rolling_update == {"maxUnavailable": 0, "maxSurge": 0}


def test_a_history_without_limit_is_warned_of() -> None:
    made = create("StatefulSet", {"spec": {"revisionHistoryLimit": -1}})
    assert [text.partition(":")[0] for text in made.warnings] == ["spec.revisionHistoryLimit"]


def test_a_long_manager_of_a_job_is_refused_whatever_else_is_wrong() -> None:
    made = create("Job", {"spec": {"managedBy": "a" * 64}})
    assert {error.type.value for error in made.errors} == {
        "FieldValueInvalid",
        "FieldValueTooLong",
    }


def test_amounts_of_claim_templates_are_in_thousandths() -> None:
    fine = {"storage": "1n"}
    resources = {"requests": {"storage": "1n"}, "limits": fine}
    status = {"capacity": fine, "allocatedResources": fine}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources}
    claim = {"metadata": {"name": "c"}, "spec": spec, "status": status}
    made = create("StatefulSet", {"spec": {"volumeClaimTemplates": [claim]}}).stored
    (stored,) = made.spec.volume_claim_templates
    rounded = {"storage": "1m"}
    assert stored["spec"]["resources"] == {"requests": rounded, "limits": rounded}
    assert stored["status"] == {
        "phase": "Pending",
        "capacity": rounded,
        "allocatedResources": rounded,
    }
