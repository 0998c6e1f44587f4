"""Rules for the status of jobs: conditions, times, counts and indexes, and how they may change."""

from __future__ import annotations

import pytest

from tests.validation.objects import Tree, causes, create, update_status

START, END = "2026-01-02T03:04:05Z", "2026-01-02T03:05:05Z"


def true(*types: str) -> list[Tree]:
    return [{"type": each, "status": "True"} for each in types]


COMPLETE: Tree = {
    "conditions": true("SuccessCriteriaMet", "Complete"),
    "startTime": START,
    "completionTime": END,
    "succeeded": 1,
}
FAILED: Tree = {"conditions": true("FailureTarget", "Failed"), "startTime": START, "failed": 1}

CONDITIONS = "Invalid status.conditions: Invalid value: "
NOT_INDEXED = "cannot set non-empty completedIndexes when non-indexed completion mode"

WRONG: list[tuple[Tree, list[str]]] = [
    (
        {"conditions": true("Complete")},
        [
            (
                f"{CONDITIONS}cannot set Complete=True condition without the "
                "SuccessCriteriaMet=true condition"
            ),
            (
                "Required status.completionTime: Required value: "
                "completionTime is required for Complete jobs"
            ),
            "Required status.startTime: Required value: startTime is required for finished job",
        ],
    ),
    (
        {**FAILED, "conditions": true("Failed")},
        [
            (
                f"{CONDITIONS}cannot set Failed=True condition without the FailureTarget=true "
                "condition"
            )
        ],
    ),
    (
        {"conditions": true("SuccessCriteriaMet", "FailureTarget")},
        [f"{CONDITIONS}cannot set SuccessCriteriaMet=True and FailureTarget=true conditions"],
    ),
    (
        {"completionTime": END},
        [
            (
                f'Invalid status.completionTime: Invalid value: "{END}": '
                "cannot set completionTime when there is no Complete=True condition"
            )
        ],
    ),
    (
        {**COMPLETE, "startTime": END, "completionTime": START},
        [
            (
                f'Invalid status.completionTime: Invalid value: "{START}": '
                "must be equal to or after `startTime`"
            )
        ],
    ),
    (
        {**COMPLETE, "active": 1, "terminating": 2},
        [
            "Invalid status.active: Invalid value: 1: active>0 is invalid for finished job",
            (
                "Invalid status.terminating: Invalid value: 2: "
                "terminating>0 is invalid for finished job"
            ),
        ],
    ),
    (
        {**FAILED, "uncountedTerminatedPods": {"failed": ["u"]}},
        [
            (
                'Invalid status.uncountedTerminatedPods: Invalid value: {"Succeeded":null,'
                '"Failed":["u"]}: must be empty for finished job'
            )
        ],
    ),
    (
        {"uncountedTerminatedPods": {"succeeded": ["u", ""], "failed": ["u"]}},
        [
            (
                "Invalid status.uncountedTerminatedPods.succeeded[1]: "
                'Invalid value: "": must not be empty'
            ),
            'Duplicate status.uncountedTerminatedPods.failed[0]: Duplicate value: "u"',
        ],
    ),
    (
        {"ready": 2, "active": 1},
        ["Invalid status.ready: Invalid value: 2: cannot set more ready pods than active"],
    ),
    (
        {"completedIndexes": "0"},
        [f'Invalid status.completedIndexes: Invalid value: "0": {NOT_INDEXED}'],
    ),
    (
        {"failedIndexes": "0"},
        [
            (
                'Invalid status.failedIndexes: Invalid value: "0": '
                "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            )
        ],
    ),
    ({"failed": -1}, ["must be greater than or equal to 0"]),
]


@pytest.mark.parametrize(("status", "expected"), WRONG)
def test_a_contradictory_status_is_refused(status: Tree, expected: list[str]) -> None:
    found = causes(update_status("Job", status))
    assert len(found) >= len(expected)
    assert all(any(each in cause for cause in found) for each in expected), found


@pytest.mark.parametrize("status", [COMPLETE, FAILED, {"active": 3, "ready": 2}])
def test_the_status_of_a_controller_is_accepted(status: Tree) -> None:
    assert causes(update_status("Job", status)) == []


BACK: list[tuple[Tree, Tree, list[str]]] = [
    (
        COMPLETE,
        {"conditions": []},
        [
            (
                f'Invalid status.completionTime: Invalid value: "{END}": '
                "cannot set completionTime when there is no Complete=True condition"
            ),
            f"{CONDITIONS}cannot disable the terminal Complete=True condition",
            f"{CONDITIONS}cannot disable the SuccessCriteriaMet=True condition",
        ],
    ),
    (
        {"failed": 2, "succeeded": 2},
        {"failed": 1, "succeeded": 1},
        [
            "Invalid status.failed: Invalid value: 1: cannot decrease the failed counter",
            "Invalid status.succeeded: Invalid value: 1: cannot decrease the succeeded counter",
        ],
    ),
    (
        {"startTime": START},
        {"startTime": END},
        [
            (
                f'Invalid status.startTime: Invalid value: "{END}": '
                "field is immutable for unsuspended job once set"
            )
        ],
    ),
    (
        COMPLETE,
        {"completionTime": "2026-01-02T04:00:00Z"},
        [
            (
                'Invalid status.completionTime: Invalid value: "2026-01-02T04:00:00Z": '
                "field is immutable"
            )
        ],
    ),
]


@pytest.mark.parametrize(("before", "change", "expected"), BACK)
def test_what_was_reported_is_not_taken_back(
    before: Tree, change: Tree, expected: list[str]
) -> None:
    assert causes(update_status("Job", change, before)) == expected


def test_a_status_that_breaks_a_rule_already_may_be_updated_elsewhere() -> None:
    broken = {"conditions": true("Complete", "Failed")}
    assert causes(update_status("Job", {"failed": 1}, broken)) == []


INDEXED = {"completionMode": "Indexed", "completions": 6, "backoffLimitPerIndex": 1}
INDEXES = [
    ("0,2-3", None, ""),
    ("6", None, 'error parsing completedIndexes: too large index: "6"'),
    ("2-2", None, "error parsing completedIndexes: non-increasing order, previous: 2, current: 2"),
    ("3,1", None, "error parsing completedIndexes: non-increasing order, previous: 3, current: 1"),
    (
        "a",
        None,
        'error parsing completedIndexes: cannot convert string to integer for index: "a"',
    ),
    (
        "1-2-3",
        None,
        (
            'error parsing completedIndexes: the fragment "1-2-3" violates the requirement that an '
            "index interval can have at most two parts separated by '-'"
        ),
    ),
    ("0-2,4", "3,5", ""),
    ("0-2,4", "3-4", "failedIndexes and completedIndexes overlap at index: 4"),
]


@pytest.mark.parametrize(("completed", "failed", "expected"), INDEXES)
def test_indexes_are_sorted_intervals_below_completions(
    completed: str, failed: str | None, expected: str
) -> None:
    assert causes(create("Job", {"spec": INDEXED})) == []
    status = {"completedIndexes": completed, "failedIndexes": failed}
    found = causes(update_status("Job", status, spec_before=INDEXED))
    assert [cause.split(": ", 3)[-1] for cause in found] == ([expected] if expected else [])
