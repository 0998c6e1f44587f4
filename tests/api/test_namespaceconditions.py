"""A namespace on its way out says what keeps it."""

from __future__ import annotations

from mooring.api.namespaceconditions import Remains, conditions_of
from mooring.api.timestamp import Timestamp

NOW = Timestamp.parse("2026-01-01T00:00:00Z")
LATER = Timestamp.parse("2026-01-01T01:00:00Z")


def test_what_is_left_is_counted_by_resource_and_by_finalizer() -> None:
    remains = Remains({"pods.": 2, "jobs.batch": 1}, {"example.com/held": 3})
    found = {each.type: each for each in conditions_of(remains, (), NOW)}
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
    found = conditions_of(Remains(failures=("no", "never")), (), NOW)
    failure = next(each for each in found if each.type == "NamespaceDeletionContentFailure")
    assert failure.message == "Failed to delete all resource types, 2 remaining: never, no"


def test_times_change_only_with_the_status() -> None:
    first = conditions_of(Remains({"pods.": 2}), (), NOW)
    second = conditions_of(Remains({"pods.": 1}), first, LATER)
    assert all(each.last_transition_time == NOW for each in second)
    third = conditions_of(Remains(), second, LATER)
    times = {each.type: each.last_transition_time for each in third}
    assert times["NamespaceContentRemaining"] == LATER
    assert times["NamespaceFinalizersRemaining"] == NOW
