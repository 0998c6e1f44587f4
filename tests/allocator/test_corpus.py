"""The recorded answers of Kubernetes to thousands of problems."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from conformance import _plain as plain
from conformance._allocation import (
    Answer,
    Problem,
    essence,
    read_expected,
    read_problem,
    recorded_essence,
)
from conformance.allocator import AllocatorSuite, answer, lazy_answer
from conformance.runner import Case, Equal, read_cases
from tests.corpus import corpus

FILES = ("perf", "public", "rules", "search-public", "upstream-table")
KNOWN_MISMATCHES: frozenset[str] = frozenset()
PLAIN_STEPS_MAX = 2_000


@pytest.mark.sweep
@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("answering", [answer, lazy_answer])
def test_the_allocator_answers_as_kubernetes_does(
    name: str, answering: Callable[[Problem], Answer]
) -> None:
    suite = AllocatorSuite(answering)
    mismatched = {case.id for case in _cases(name) if not isinstance(suite.compare(case), Equal)}
    assert mismatched <= KNOWN_MISMATCHES, "\n".join(suite.figures())


@pytest.mark.sweep
@pytest.mark.parametrize("name", ["perf", "rules", "search-public", "upstream-table"])
def test_the_plain_allocator_answers_in_as_many_steps_as_kubernetes(name: str) -> None:
    """It is what the allocator is measured with, so it must be right itself."""
    for case in _cases(name):
        expected = read_expected(case.fields)
        if expected["steps"] <= PLAIN_STEPS_MAX:
            found = plain.allocate(read_problem(case.fields))
            assert essence(found) == recorded_essence(expected), case.id
            assert found.error == expected.get("error", ""), case.id
            if expected["channel"] == "experimental":
                assert found.steps == expected["steps"], case.id


def _cases(name: str) -> Iterator[Case]:
    path: Path = corpus("allocator", f"{name}.jsonl")
    return read_cases(path)
