"""`moorage.validate`, `lint` and `profiles` say what the commands do."""

from __future__ import annotations

import json
import pickle
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import moorage
from moorage.cli.main import moor

TRAINING = Path(__file__).parents[2] / "examples" / "training"
CLAIM: dict[str, Any] = {
    "apiVersion": "resource.k8s.io/v1",
    "kind": "ResourceClaim",
    "metadata": {"name": "claim"},
    "spec": {
        "devices": {
            "requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu.nvidai.com"}}],
            "constraints": [{"requests": ["gpus"], "matchAttribute": "example.com/numa"}],
        }
    },
}


def printed(*arguments: str) -> Any:
    return json.loads(CliRunner().invoke(moor, [*arguments, "-o", "json"]).stdout)


@pytest.fixture
def claim(tmp_path: Path) -> Path:
    path = tmp_path / "claim.json"
    path.write_text(json.dumps(CLAIM), encoding="utf-8")
    return path


def test_a_validation_is_that_of_the_command(claim: Path) -> None:
    found = moorage.validate(claim, TRAINING)
    assert found.to_dict() == printed("validate", "-f", str(claim), "-f", str(TRAINING))
    assert (found.is_valid, found.accepted, found.refused, found.not_checked) == (False, 5, 1, 0)
    (error,) = found.errors
    assert error.startswith(f"{claim}:1:")
    assert "must be the name of a request in the claim" in error
    assert str(found).startswith("6 objects in 2 files: 5 accepted, 1 refused")
    assert "must be the name" in found._repr_html_()
    assert pickle.loads(pickle.dumps(found)) == found


def test_mappings_are_validated_as_files_are(claim: Path) -> None:
    def messages(found: moorage.Validation) -> list[str]:
        return [each["message"] for each in found.to_dict()["objects"][0]["errors"]]

    assert messages(moorage.validate(CLAIM)) == messages(moorage.validate(claim))
    assert moorage.validate({**CLAIM, "kind": "Unheard", "apiVersion": "a.b/v1"}).not_checked == 1


def test_an_admin_claim_needs_the_label_of_its_namespace_wherever_that_comes() -> None:
    exactly = {"deviceClassName": "gpu.nvidia.com", "adminAccess": True}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    metadata = {"name": "admin", "namespace": "ops"}
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "ops"}}
    claim = {**CLAIM, "metadata": metadata, "spec": spec}
    assert not moorage.validate(claim, namespace).is_valid


def test_what_cannot_be_validated_is_raised(tmp_path: Path) -> None:
    with pytest.raises(moorage.UnreadableError, match=r"no\.yaml"):
        moorage.validate(tmp_path / "no.yaml")
    with pytest.raises(moorage.MoorageError, match="no object"):
        moorage.validate()
    with pytest.raises(moorage.UnreadableError, match="mapping 1"):
        moorage.validate({"kind": object()})
    with pytest.raises(TypeError, match="source 1"):
        moorage.validate(7)  # type: ignore[arg-type]


def test_findings_are_those_of_the_command(claim: Path) -> None:
    found = moorage.lint(claim, profile="dgx-h100")
    assert found.to_dict() == printed("lint", "-f", str(claim), "--profile", "dgx-h100")
    rules = [each.rule for each in found]
    assert "unknown-class" in rules
    assert not found.is_clean
    first = found[rules.index("unknown-class")]
    assert first.subject == "ResourceClaim default/claim"
    assert "gpu.nvidia.com" in first.remedy
    assert first["rule"] == first.rule
    assert f"{first.severity}: {first.subject}: " in str(first)
    assert len(moorage.lint(claim, profile="dgx-h100", disable=["unknown-class"])) < len(found)
    assert found[:1] == (found[0],)
    assert pickle.loads(pickle.dumps(found)) == found
    assert repr(found).startswith("<Findings: 1 finding about 1 object")
    assert first.message in found._repr_html_() or "&quot;" in found._repr_html_()


def test_clean_manifests_are_clean() -> None:
    found = moorage.lint(TRAINING, profile="dgx-h100")
    assert (found.is_clean, list(found)) == (True, [])


def test_lint_refuses_rules_and_inputs_that_do_not_exist(tmp_path: Path) -> None:
    with pytest.raises(moorage.MoorageError, match="'no-rule': must be one of"):
        moorage.lint(CLAIM, disable=["no-rule"])
    with pytest.raises(TypeError, match="disable"):
        moorage.lint(CLAIM, disable="unknown-class")
    with pytest.raises(moorage.UnreadableError):
        moorage.lint(tmp_path / "no.yaml")
    with pytest.raises(moorage.MoorageError, match="nothing to load"):
        moorage.lint()


def test_profiles_are_those_of_the_command() -> None:
    found = moorage.profiles()
    assert [each.to_dict() for each in found] == printed("profiles")
    first = found[0]
    assert moorage.load(profile=first.name).nodes
    assert str(first) == f"{first.name}: {first.title}, {first.summary}"
    assert first.name in first._repr_html_()
