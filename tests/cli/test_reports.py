"""Reports for CI systems: SARIF, JUnit XML, and annotations of GitHub."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor
from moorage.insight.lint import RULES
from moorage.insight.reports import (
    CheckedObject,
    FindingLevel,
    FindingReport,
    ReportFinding,
    ReportPlace,
    github_commands,
    junit_document,
    sarif_document,
)
from moorage.insight.reports.rules import PLAN_RULES, VALIDATION_RULES, validation_rule
from moorage.insight.reports.sarif import relative_uri
from moorage.validation.errors import ErrorType

EXAMPLES = Path(__file__).parents[2] / "examples"

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: no-class
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        count: 2
"""
JOB = """\
# two pods that want more GPUs than a machine has
apiVersion: resource.k8s.io/v1
kind: ResourceClaimTemplate
metadata: {name: gpus}
spec:
  spec:
    devices:
      requests:
      - name: gpu
        exactly: {deviceClassName: gpu.nvidia.com, count: 9}
---
apiVersion: batch/v1
kind: Job
metadata: {name: train}
spec:
  parallelism: 2
  completions: 2
  template:
    spec:
      restartPolicy: Never
      containers: [{name: main, image: x, resources: {claims: [{name: gpus}]}}]
      resourceClaims: [{name: gpus, resourceClaimTemplateName: gpus}]
"""
HOSTILE = "evil\r\n::add-mask::x,y:z%\x1b[31m\u202e<&\"'>é\x00"


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkout"
    (folder / "manifests").mkdir(parents=True)
    (folder / "manifests" / "claim.yaml").write_text(CLAIM)
    monkeypatch.chdir(folder)
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)
    return folder


def run(*arguments: str, given: str | None = None) -> Result:
    return CliRunner().invoke(moor, arguments, input=given)


def sarif(*arguments: str, status: int = 1, given: str | None = None) -> dict[str, Any]:
    done = run(*arguments, "-o", "sarif", given=given)
    assert done.exit_code == status, done.output
    log: dict[str, Any] = json.loads(done.stdout)
    check_sarif(log)
    (only,) = log["runs"]
    assert isinstance(only, dict)
    return only


def junit(*arguments: str, status: int = 1) -> ElementTree.Element:
    done = run(*arguments, "-o", "junit")
    assert done.exit_code == status, done.output
    root = ElementTree.fromstring(done.stdout)
    check_junit(root)
    return root


def github(*arguments: str, status: int = 1) -> list[str]:
    quiet = () if arguments[0] == "plan" else ("-q",)
    done = run(*arguments, *quiet, "-o", "github")
    assert done.exit_code == status, done.output
    return done.stdout.splitlines()


# --- what the formats require ------------------------------------------------------------------

LEVELS = {"none", "note", "warning", "error"}
RESULT_KEYS = {"ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"}


def check_sarif(log: dict[str, Any]) -> None:
    """Check what SARIF 2.1.0 and GitHub's code scanning require of a log."""
    assert log.keys() == {"$schema", "version", "runs"}
    assert log["version"] == "2.1.0"
    for each in log["runs"]:
        driver = each["tool"]["driver"]
        assert driver["name"]
        ids = [rule["id"] for rule in driver["rules"]]
        assert len(ids) == len(set(ids))
        for rule in driver["rules"]:
            assert rule["shortDescription"]["text"].endswith(".")
            assert len(rule["shortDescription"]["text"]) <= 1024
            assert rule["help"]["text"]
            assert re.fullmatch(r"https://[!-~]+", rule["helpUri"])
            assert rule["defaultConfiguration"]["level"] in LEVELS
        assert each["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
        assert all(type(i["executionSuccessful"]) is bool for i in each["invocations"])
        fingerprints = [check_result(result, ids, each) for result in each["results"]]
        assert len(fingerprints) == len(set(fingerprints))


def check_result(result: dict[str, Any], ids: list[str], log: dict[str, Any]) -> str:
    assert result.keys() == RESULT_KEYS
    assert ids[result["ruleIndex"]] == result["ruleId"]
    assert result["level"] in LEVELS
    assert result["message"]["text"]
    for location in result["locations"]:
        if physical := location.get("physicalLocation"):
            artifact = physical["artifactLocation"]
            assert artifact["uriBaseId"] in log["originalUriBaseIds"]
            assert re.fullmatch(r"(?:[A-Za-z0-9\-._~/]|%[0-9A-F]{2})+", artifact["uri"])
            assert not artifact["uri"].startswith("/")
            assert ".." not in artifact["uri"].split("/")
            region = physical.get("region", {"startLine": 1, "startColumn": 1})
            assert region["startLine"] >= 1
            assert region["startColumn"] >= 1
    (fingerprint,) = result["partialFingerprints"].values()
    assert re.fullmatch("[0-9a-f]{64}", fingerprint)
    return str(fingerprint)


def check_junit(root: ElementTree.Element) -> None:
    """Check that the figures of JUnit XML are those of its elements."""
    assert root.tag == "testsuites"
    for element in (root, *root.iter("testsuite")):
        cases = list(element.iter("testcase"))
        for name, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
            assert int(element.attrib[name]) == sum(c.find(tag) is not None for c in cases)
        assert int(element.attrib["tests"]) == len(cases)
        assert all(case.attrib["name"] and case.attrib["classname"] for case in cases)


def a_report(*findings: ReportFinding, name: str = "ResourceClaim default/x") -> FindingReport:
    place = findings[0].place if findings else ReportPlace("a.yaml", 1, 1)
    checked = CheckedObject(name, place, findings)
    failing = frozenset((FindingLevel.ERROR,))
    return FindingReport("validate", "1.0", VALIDATION_RULES, (checked,), failing)


def a_finding(message: str = "wrong", place: ReportPlace | None = None) -> ReportFinding:
    where = place or ReportPlace("a.yaml", 3, 5)
    return ReportFinding("FieldValueInvalid", FindingLevel.ERROR, where, message)


# --- validate ----------------------------------------------------------------------------------


def test_validate_reports_rule_place_and_field_as_sarif(workspace: Path) -> None:
    (result,) = sarif("validate", "-f", "manifests")["results"]
    field = "spec.devices.requests[0].exactly.deviceClassName"
    assert (result["ruleId"], result["level"]) == ("FieldValueRequired", "error")
    text = f"ResourceClaim default/no-class: {field}: Required value"
    assert result["message"] == {"text": text}
    (location,) = result["locations"]
    assert location["physicalLocation"] == {
        "artifactLocation": {"uri": "manifests/claim.yaml", "uriBaseId": "%SRCROOT%"},
        "region": {"startLine": 9, "startColumn": 7},
    }
    (logical,) = location["logicalLocations"]
    assert logical["fullyQualifiedName"] == f"ResourceClaim default/no-class: {field}"


def test_a_fingerprint_does_not_depend_on_lines(workspace: Path) -> None:
    (before,) = sarif("validate", "-f", "manifests")["results"]
    (workspace / "manifests" / "claim.yaml").write_text(f"# a line more\n{CLAIM}")
    (after,) = sarif("validate", "-f", "manifests")["results"]
    assert before["partialFingerprints"] == after["partialFingerprints"]
    assert before["locations"] != after["locations"]


def test_validate_writes_a_suite_per_file_and_a_case_per_object(workspace: Path) -> None:
    (workspace / "manifests" / "good.yaml").write_text(
        "apiVersion: v1\nkind: Namespace\n"
        "metadata: {name: team}\n---\n"
        "apiVersion: example.com/v1\nkind: Foreign\n"
        "metadata: {name: other}\n"
    )
    root = junit("validate", "-f", "manifests")
    assert [suite.attrib["name"] for suite in root] == [
        "manifests/claim.yaml",
        "manifests/good.yaml",
    ]
    cases = {case.attrib["name"]: case for case in root.iter("testcase")}
    assert cases.keys() == {"ResourceClaim default/no-class", "Namespace team", "Foreign other"}
    failure = cases["ResourceClaim default/no-class"].find("failure")
    assert failure is not None
    assert failure.attrib["type"] == "FieldValueRequired"
    assert (failure.text or "").startswith("manifests/claim.yaml:9:7: error: spec.devices")
    assert len(cases["Namespace team"]) == 0
    skipped = cases["Foreign other"].find("skipped")
    assert skipped is not None
    assert skipped.attrib["message"] == "example.com/v1 is not checked"


def test_validate_annotates_the_line_and_column(workspace: Path) -> None:
    (line,) = github("validate", "-f", "manifests")
    assert line == (
        "::error file=manifests/claim.yaml,line=9,col=7,title=FieldValueRequired::"
        "ResourceClaim default/no-class: "
        "spec.devices.requests[0].exactly.deviceClassName: Required value"
    )


def test_annotations_end_with_the_summary_unless_quiet(workspace: Path) -> None:
    done = run("validate", "-f", "manifests", "-o", "github")
    assert done.stdout.splitlines()[1:] == ["1 object in 1 file: 0 accepted, 1 refused, 0 warnings"]


def test_a_warning_is_a_warning_and_no_failure(workspace: Path) -> None:
    text = CLAIM.replace("count: 2", "deviceClassName: x\n        colour: red")
    (workspace / "manifests" / "claim.yaml").write_text(text)
    (line,) = github("validate", "-f", "manifests", status=0)
    assert line.startswith("::warning file=manifests/claim.yaml,line=11,col=9,title=Warning::")
    (case,) = junit("validate", "-f", "manifests", status=0).iter("testcase")
    assert [child.tag for child in case] == ["system-out"]


def test_what_cannot_be_read_is_reported_at_its_place(workspace: Path) -> None:
    (workspace / "broken.yaml").write_text("a: [\nb: }\n")
    arguments = ("validate", "-f", "broken.yaml", "-f", "missing.yaml")
    log = sarif(*arguments, status=3)
    assert log["invocations"] == [{"executionSuccessful": False}]
    assert {result["ruleId"] for result in log["results"]} == {"Unreadable"}
    first, second = github(*arguments, status=3)
    assert re.match(r"::error file=broken\.yaml,line=2,col=\d+,title=Unreadable::", first)
    assert second == "::error title=Unreadable::input: missing.yaml: no such file or directory"
    root = junit(*arguments, status=3)
    assert root.attrib["errors"] == "2"


@pytest.mark.parametrize("name", ["x" * 300, "x" * 300 + ".yaml:1:2: ", "profile", "a:9:9: b"])
def test_names_of_what_cannot_be_read_may_be_odd(workspace: Path, name: str) -> None:
    (line,) = github("validate", "-f", name, status=3)
    assert line.startswith("::error title=Unreadable::")


# --- paths -------------------------------------------------------------------------------------


def test_paths_are_relative_to_githubs_workspace(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(workspace))
    monkeypatch.chdir(workspace / "manifests")
    (line,) = github("validate", "-f", "claim.yaml")
    assert line.startswith("::error file=manifests/claim.yaml,line=9,")
    (line,) = github("validate", "-f", "../manifests/../manifests/claim.yaml")
    assert line.startswith("::error file=manifests/claim.yaml,line=9,")


@pytest.mark.parametrize("is_absolute", [False, True], ids=["relative", "absolute"])
def test_a_file_outside_of_the_workspace_is_named_in_the_message_only(
    workspace: Path, *, is_absolute: bool
) -> None:
    outside = workspace.parent / "secret" / "claim.yaml"
    outside.parent.mkdir()
    outside.write_text(CLAIM)
    name = str(outside) if is_absolute else "../secret/claim.yaml"
    (line,) = github("validate", "-f", name)
    assert line.startswith(
        "::error title=FieldValueRequired::ResourceClaim default/no-class: claim.yaml:9:7: spec"
    )
    (result,) = sarif("validate", "-f", name)["results"]
    assert "physicalLocation" not in result["locations"][0]
    for output in ("sarif", "junit", "github"):
        assert "secret" not in run("validate", "-f", name, "-o", output).output


def test_a_workspace_that_the_command_does_not_run_in_is_ignored(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_WORKSPACE", str(workspace.parent / "elsewhere"))
    (line,) = github("validate", "-f", "manifests")
    assert line.startswith("::error file=manifests/claim.yaml,line=9,")


def test_standard_input_has_no_file(workspace: Path) -> None:
    (result,) = sarif("validate", "-f", "-", given=CLAIM)["results"]
    assert "physicalLocation" not in result["locations"][0]
    assert "<stdin>:9:7: spec" in result["message"]["text"]


def test_a_member_of_an_archive_is_reported_at_the_archive(workspace: Path) -> None:
    import zipfile

    with zipfile.ZipFile(workspace / "all.zip", "w") as archive:
        archive.writestr("inner/claim.yaml", CLAIM)
    (line,) = github("validate", "-f", "all.zip")
    assert line.startswith(
        "::error file=all.zip,title=FieldValueRequired::ResourceClaim default/no-class: "
        "all.zip!inner/claim.yaml:9:7: spec"
    )


@pytest.mark.parametrize(
    ("path", "uri"),
    [
        ("manifests/a b.yaml", "manifests/a%20b.yaml"),
        ("é#?%:.yaml", "%C3%A9%23%3F%25%3A.yaml"),
        ("\udcff.yaml", "%FF.yaml"),
    ],
)
def test_paths_become_uris(path: str, uri: str) -> None:
    assert relative_uri(path) == uri


# --- lint --------------------------------------------------------------------------------------


def lint_subject() -> tuple[str, ...]:
    return ("lint", "-f", "manifests", "--on", str(EXAMPLES / "gpu-node"))


def test_lint_reports_its_rules_and_remedies(workspace: Path) -> None:
    text = CLAIM.replace(
        "count: 2",
        "deviceClassName: gpu.example.com\n        selectors:\n        - cel:\n            "
        """expression: device.attributes["gpu.example.com"].model == "H20\"""",
    )
    (workspace / "manifests" / "claim.yaml").write_text(text)
    log = sarif(*lint_subject())
    assert [rule["id"] for rule in log["tool"]["driver"]["rules"]] == [
        *(rule.id for rule in RULES),
        "Unreadable",
    ]
    (result,) = log["results"]
    assert (result["ruleId"], result["level"]) == ("never-true", "warning")
    assert result["message"]["text"].endswith(
        '\nask for model "H200", which 4 devices have, instead of "H20"'
    )
    (line,) = github(*lint_subject())
    assert line.startswith("::warning file=manifests/claim.yaml,line=13,col=13,title=never-true::")
    assert '"H20"%0Aask for' not in line  # the question is part of the message
    (case,) = junit(*lint_subject()).iter("testcase")
    assert [child.tag for child in case] == ["failure"]


def test_lint_reports_objects_without_fault(workspace: Path) -> None:
    root = junit("lint", "-f", str(EXAMPLES / "gpu-node"), status=0)
    assert root.attrib["tests"] == "9"
    assert root.attrib["failures"] == "0"


def test_a_disabled_rule_is_not_listed(workspace: Path) -> None:
    log = sarif(*lint_subject(), "--disable", "never-true", status=0)
    assert "never-true" not in {rule["id"] for rule in log["tool"]["driver"]["rules"]}


# --- plan --------------------------------------------------------------------------------------


def test_plan_reports_pods_at_their_workload_with_cause_and_fix(workspace: Path) -> None:
    (workspace / "job.yaml").write_text(JOB)
    arguments = ("plan", "-f", "job.yaml", "--profile", "dgx-h100")
    (result,) = sarif(*arguments)["results"]
    assert result["ruleId"] == "NoNode"
    region = result["locations"][0]["physicalLocation"]["region"]
    assert JOB.splitlines()[region["startLine"] - 1] == "apiVersion: batch/v1"
    text = result["message"]["text"]
    assert "is one of 2 pods of job train without a node: " in text
    assert "\nfix: " in text
    cause = run("explain", "-f", "job.yaml", "--profile", "dgx-h100", "-o", "json").stdout
    assert json.loads(cause)["pending"][0]["cause"] in text
    cases = list(junit(*arguments).iter("testcase"))
    assert len(cases) == 2
    assert all(case.find("failure") is not None for case in cases)


def test_plan_reports_a_claim_without_a_pod_at_its_own_line(workspace: Path) -> None:
    text = CLAIM.replace("count: 2", "{deviceClassName: gpu.nvidia.com, count: 9}")
    text = text.replace("exactly:\n        ", "exactly: ")
    (workspace / "manifests" / "claim.yaml").write_text(f"# a claim\n---\n{text}")
    (line,) = github("plan", "-f", "manifests", "--profile", "dgx-h100")[:-1]
    assert line.startswith("::error file=manifests/claim.yaml,line=3,col=1,title=NoNode::claim/")


def test_plan_reports_objects_that_are_refused(workspace: Path) -> None:
    lines = github("plan", "-f", "manifests", "--profile", "dgx-h100")
    assert lines[0] == (
        "::error file=manifests/claim.yaml,line=1,col=1,title=Invalid::"
        "ResourceClaim default/no-class: "
        "spec.devices.requests[0].exactly.deviceClassName: Required value"
    )


def test_plan_where_all_pods_fit_has_no_findings(workspace: Path) -> None:
    arguments = ("-f", str(EXAMPLES / "training"), "--profile", "dgx-h100x2")
    assert sarif("plan", *arguments, status=0)["results"] == []
    root = junit("plan", *arguments, status=0)
    assert (root.attrib["tests"], root.attrib["failures"]) == ("4", "0")


# --- whatever is in the files ------------------------------------------------------------------


def test_no_text_can_begin_a_workflow_command_of_its_own() -> None:
    report = a_report(a_finding(HOSTILE, ReportPlace(f"{HOSTILE}.yaml", 1, 1)), name=HOSTILE)
    (line,) = github_commands(report)
    assert "\n" not in line
    assert "\r" not in line
    assert "\x1b" not in line
    head, _, message = line.removeprefix("::error ").partition("::")
    properties = dict(each.split("=", 1) for each in head.split(","))
    assert properties.keys() == {"file", "line", "col", "title"}
    assert "::" not in head
    assert "%25" in message


def test_control_characters_are_escaped_in_xml() -> None:
    text = junit_document(a_report(a_finding(HOSTILE), name=HOSTILE))
    assert text.isascii()
    root = ElementTree.fromstring(text)
    failure = next(root.iter("failure"))
    assert r"\x1b[31m\u202e<&" in (failure.text or "")
    assert r"\x00" in failure.attrib["message"] or r"\x00" in (failure.text or "")


def test_hostile_manifests_are_reported_whole(workspace: Path) -> None:
    text = CLAIM.replace("name: no-class", f"name: {json.dumps(HOSTILE)}")
    (workspace / "manifests" / "claim.yaml").write_text(text)
    junit("validate", "-f", "manifests")
    sarif("validate", "-f", "manifests")
    lines = github("validate", "-f", "manifests")
    assert all(line.startswith("::error file=manifests/claim.yaml,") for line in lines)


def test_findings_that_are_alike_have_fingerprints_of_their_own() -> None:
    report = a_report(a_finding("one"), a_finding("two"))
    check_sarif(json.loads(json.dumps(sarif_document(report))))


def test_every_type_of_error_has_a_rule() -> None:
    ids = {rule.id for rule in VALIDATION_RULES}
    assert {str(each) for each in ErrorType} <= ids
    assert {validation_rule("", is_error=False), validation_rule("", is_error=True)} <= ids


def rules() -> Iterator[str]:
    yield from (rule.id for rule in (*VALIDATION_RULES, *PLAN_RULES))


@pytest.mark.parametrize("rule", sorted(set(rules())))
def test_every_rule_is_documented(rule: str) -> None:
    page = EXAMPLES.parent / "docs" / "how-to" / "check-in-ci.md"
    errors = EXAMPLES.parent / "docs" / "reference" / "errors.md"
    assert any(f"`{rule}`" in each.read_text(encoding="utf-8") for each in (page, errors))
