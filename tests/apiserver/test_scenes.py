"""Recorded scenes about custom resources, policies, services and workloads."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conformance.http import open_suite
from conformance.record_scenes import RECORDINGS, SCENES, scene_steps
from conformance.runner import Mismatch

NAMES = [path.stem for path in sorted(SCENES.glob("*.yaml"))]


@pytest.mark.parametrize("name", NAMES)
def test_a_scene_is_answered_as_it_was_recorded(name: str) -> None:
    suite = open_suite()
    found = suite.cases(SCENES)
    assert found is not None
    cases = [case for case in found if case.fields["scene"] == name]
    assert len(cases) > 10
    try:
        outcomes = [(case.fields["name"], suite.compare(case)) for case in cases]
    finally:
        suite.figures()
    wrong = {step: each.differences for step, each in outcomes if isinstance(each, Mismatch)}
    assert wrong == {}


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_of_its_scene(name: str) -> None:
    recorded = json.loads((RECORDINGS / f"{name}.json").read_text())
    steps = scene_steps(Path(SCENES / f"{name}.yaml"))
    asked = [(step["name"], step["request"], step.get("body")) for step in steps]
    assert asked == [
        (each["name"], f"{each['method']} {each['uri']}", each["requestBody"]) for each in recorded
    ]
