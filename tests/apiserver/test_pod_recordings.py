"""The recorded answers of Kubernetes about pods and workload objects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from itertools import islice
from pathlib import Path

import pytest

from conformance.pods import PodsSuite
from conformance.runner import Apart, Case, Equal, Tally, read_cases
from tests.corpus import corpus

EVERY = 4  # One case of so many is tried here; `dev.py conformance pods` tries all.
EQUAL_MIN = 0.98


@pytest.mark.sweep
def test_pods_are_answered_as_kubernetes_does() -> None:
    tally = Tally()
    with closing(PodsSuite()) as suite:
        for case in _sample(corpus("pods")):
            tally.add(case, suite.compare(case), show=20)
    figures = dict(line.split(": ", 1) for line in suite.figures())
    assert tally.equal / tally.total >= EQUAL_MIN, tally.mismatches
    assert _share(figures["objects"]) >= 0.97, figures
    assert _share(figures["messages"]) >= 0.92, figures


def test_an_answer_that_differs_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "one.jsonl"
    case = (
        '{"id": "x", "tags": ["minimal", "good"], "op": "create", "kind": "ConfigMap", '
        '"path": "/api/v1/namespaces/default/configmaps", "fieldValidation": "Strict", '
        '"object": {"metadata": {"name": "m"}, "data": {"a": "CODE"}}, '
        '"expect": {"code": CODE, "object": {"kind": "ConfigMap", "apiVersion": "v1", '
        '"metadata": {"name": "m", "namespace": "default"}, "data": {"a": "CODE"}}}}\n'
    )
    path.write_text(case.replace("CODE", "201") + case.replace("CODE", "200"))
    with closing(PodsSuite()) as suite:
        equal, differing = (suite.compare(case) for case in read_cases(path))
    assert equal == Equal()
    assert not isinstance(differing, Equal | Apart)
    assert differing.differences[1:] == ("code: Kubernetes 200, Moorage 201",)
    assert list(suite.figures()) == [
        "family minimal: 1/2 equal",
        "messages: 0/0 refusals equal",
        "warnings: 0/0 answers with warnings equal",
        "objects: 2/2 returned objects equal",
    ]


def _sample(folder: Path) -> Iterator[Case]:
    for path in sorted(folder.glob("*.jsonl.gz")):
        cases = list(read_cases(path))
        fixtures = [case for case in cases if case.fields["op"] == "fixture"]
        yield from fixtures
        yield from islice(cases, len(fixtures), None, EVERY)


def _share(figure: str) -> float:
    equal, total = map(int, figure.split(" ")[0].split("/"))
    return equal / total
