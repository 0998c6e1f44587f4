"""Recorded scenes about custom resources, policies, services and workloads."""

from __future__ import annotations

import json
import tempfile
from contextlib import closing
from pathlib import Path

import pytest

from conformance.http import open_suite
from conformance.record_scenes import RECORDINGS, SCENES, scene_steps
from conformance.runner import UNREADABLE, Mismatch, main

NAMES = [path.stem for path in sorted(SCENES.glob("*.yaml"))]


@pytest.mark.parametrize("name", NAMES)
def test_a_scene_is_answered_as_it_was_recorded(name: str) -> None:
    with closing(open_suite()) as suite:
        found = suite.cases(SCENES)
        assert found is not None
        cases = [case for case in found if case.fields["scene"] == name]
        assert len(cases) > 10
        outcomes = [(case.fields["name"], suite.compare(case)) for case in cases]
    wrong = {step: each.differences for step, each in outcomes if isinstance(each, Mismatch)}
    assert wrong == {}


def test_a_folder_without_exchanges_leaves_no_server_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    temporary, empty = tmp_path / "temporary", tmp_path / "empty"
    temporary.mkdir()
    empty.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(temporary))
    assert main(["http", str(empty)]) == UNREADABLE
    assert capsys.readouterr().err == f"conformance: {empty}: holds no cases\n"
    assert list(temporary.iterdir()) == []


@pytest.mark.parametrize("name", NAMES)
def test_a_recording_is_of_its_scene(name: str) -> None:
    recorded = json.loads((RECORDINGS / f"{name}.json").read_text())
    steps = scene_steps(Path(SCENES / f"{name}.yaml"))
    asked = [(step["name"], step["request"], step.get("body")) for step in steps]
    assert asked == [
        (each["name"], f"{each['method']} {each['uri']}", each["requestBody"]) for each in recorded
    ]
