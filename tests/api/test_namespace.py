"""The conditions of a terminating namespace report what remains in it."""

from __future__ import annotations

from moorage.api.core.namespace import RemainingContent, deletion_conditions
from moorage.api.timestamp import Timestamp

NOW = Timestamp.parse("2026-01-01T00:00:00Z")
LATER = Timestamp.parse("2026-01-01T01:00:00Z")


def test_what_is_left_is_counted_by_resource_and_by_finalizer() -> None:
    remains = RemainingContent({"pods.": 2, "jobs.batch": 1}, {"example.com/held": 3})
    found = {each.type: each for each in deletion_conditions(remains, (), NOW)}
    content = found["NamespaceContentRemaining"]
    assert (content.status, content.reason) == ("True", "SomeResourcesRemain")
    assert content.message == (
        "Some resources are remaining: jobs.batch has 1 resource instances, "
        "pods. has 2 resource instances"
    )
    assert found["NamespaceFinalizersRemaining"].message == (
        "Some content in the namespace has finalizers remaining: "
        "example.com/held in 3 resource instances"
    )
    assert found["NamespaceDeletionContentFailure"].status == "False"


def test_what_could_not_be_deleted_is_told() -> None:
    found = deletion_conditions(RemainingContent(failures=("no", "never")), (), NOW)
    failure = next(each for each in found if each.type == "NamespaceDeletionContentFailure")
    assert failure.message == "Failed to delete all resource types, 2 remaining: never, no"


def test_times_change_only_with_the_status() -> None:
    first = deletion_conditions(RemainingContent({"pods.": 2}), (), NOW)
    second = deletion_conditions(RemainingContent({"pods.": 1}), first, LATER)
    assert all(each.last_transition_time == NOW for each in second)
    third = deletion_conditions(RemainingContent(), second, LATER)
    times = {each.type: each.last_transition_time for each in third}
    assert times["NamespaceContentRemaining"] == LATER
    assert times["NamespaceFinalizersRemaining"] == NOW
