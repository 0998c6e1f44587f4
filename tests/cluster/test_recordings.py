"""A whole cluster of ours lives as a recorded one did."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conformance import golden_live, lifecycle
from conformance.runner import EQUAL, Mismatch, Outcome, Suite, main
from tests.corpus import corpus

# docs/differences.md has the reasons.
BETTER = {
    "dry-run step 4",  # a dry run that the query asks for is one, also with a body
    "dry-run step 5",
    "generated-claim-deleted step 2",  # made anew at once
}


def outcomes(suite: Suite, target: Path) -> dict[str, Outcome]:
    cases = suite.cases(target)
    assert cases is not None
    return {case.id: suite.compare(case) for case in cases}


@pytest.mark.sweep
def test_lives_go_as_recorded() -> None:
    found = outcomes(lifecycle.open_suite(), corpus("lifecycle"))
    assert len(found) >= 380
    assert {name: o for name, o in found.items() if o != EQUAL and name not in BETTER} == {}
    assert {name for name in BETTER if found[name] == EQUAL} == set(), "a reason that is none"


@pytest.mark.sweep
def test_scenarios_end_as_recorded_with_all_programs_at_work() -> None:
    found = outcomes(golden_live.open_suite(), corpus("golden"))
    assert len(found) >= 41
    assert {name: outcome for name, outcome in found.items() if outcome != EQUAL} == {}


# --- the suite itself -----------------------------------------------------------------------------


def written(folder: Path, *steps: dict[str, Any]) -> Path:
    path = folder / "scenario.json"
    scenario = {"name": "s", "gates": "all", "namespace": "n", "steps": steps}
    path.write_text(json.dumps(scenario))
    return path


def claim_step(device_class: str, expected: str, error: Any = None) -> dict[str, Any]:
    requests = [{"name": "d", "exactly": {"deviceClassName": device_class}}]
    tree = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaim",
        "metadata": {"name": "c"},
        "spec": {"devices": {"requests": requests}},
    }
    exactly = {"deviceClassName": expected, "allocationMode": "ExactCount", "count": 1}
    spec = {"devices": {"requests": [{"name": "d", "exactly": exactly}]}}
    claims = {"c": {"metadata": {}, "spec": spec, "status": {}}}
    return {
        "do": {"verb": "create", "object": tree},
        "expectError": error,
        "settle_s": 3600.0,
        "state": {"resourceclaims": claims, "events": []},
    }


def test_a_step_that_differs_says_where(tmp_path: Path) -> None:
    steps = (claim_step("a", "a"), {**claim_step("b", "b"), "expectError": None})
    (first, second) = outcomes(lifecycle.open_suite(), written(tmp_path, *steps)).values()
    assert first == EQUAL
    assert isinstance(second, Mismatch)
    text = "\n".join(second.differences)
    assert text.startswith("answer: Kubernetes null, Moorage {")
    assert "resourceclaims/c/spec/devices/requests[0]/exactly/deviceClassName" in text


def test_what_differed_between_recordings_is_not_compared(tmp_path: Path) -> None:
    step = claim_step("a", "b") | {"varied": [{"path": "resourceclaims/c/spec", "seen": []}]}
    (outcome,) = outcomes(lifecycle.open_suite(), written(tmp_path, step)).values()
    assert outcome == EQUAL


def test_files_that_are_no_scenarios_are_refused(tmp_path: Path) -> None:
    (tmp_path / "scenario.json").write_text("[]")
    assert main(["lifecycle", str(tmp_path / "scenario.json")]) == 3
    assert main(["lifecycle", str(tmp_path / "absent.json")]) == 2
    unknown = {"do": {"verb": "dance"}, "expectError": None, "settle_s": 1, "state": {}}
    assert main(["lifecycle", str(written(tmp_path, unknown))]) == 1
