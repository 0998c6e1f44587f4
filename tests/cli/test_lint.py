from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.lint import command
from moorage.cli.snapshot import command as snapshot
from moorage.insight.lint import RULES

EXAMPLES = Path(__file__).parents[2] / "examples" / "gpu-node"

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
        selectors:
        - cel:
            expression: device.attributes["gpu.example.com"].model == "H20"
"""


def lint(*arguments: str, text: str | None = None) -> Result:
    given = ["-f", "-"] if text is not None else []
    return CliRunner().invoke(command, [*given, *arguments], input=text)


def test_objects_without_fault_are_status_0() -> None:
    result = lint("-f", str(EXAMPLES))
    assert result.exit_code == 0
    assert (
        result.output == "9 objects in 2 files against 6 devices: 0 errors, 0 warnings, 0 notes\n"
    )


def test_a_finding_has_place_rule_and_remedy() -> None:
    result = lint("-f", str(EXAMPLES), text=CLAIM)
    assert result.exit_code == 1
    assert result.output == (
        "<stdin>:12:13: warning: ResourceClaim default/gpu: "
        'no device has model "H20": devices have "H200" (4); did you mean "H200"? [never-true]\n'
        '    ask for model "H200", which 4 devices have, instead of "H20"\n'
        "10 objects in 3 files against 6 devices: 0 errors, 1 warning, 0 notes\n"
    )


def test_without_devices_the_summary_says_what_was_not_done() -> None:
    result = lint(text=CLAIM)
    assert result.exit_code == 0
    assert result.output == (
        "1 object in 1 file against 0 devices: 0 errors, 0 warnings, 0 notes\n"
        "no classes and no slices given: 12 rules not applied\n"
    )


def test_a_compile_error_is_shown_with_its_caret() -> None:
    result = lint(text=CLAIM.replace("device.attributes", "device.attribtes"))
    assert result.exit_code == 1
    assert (
        "<stdin>:12:13: error: ResourceClaim default/gpu: compilation failed: "
        "ERROR: <input>:1:7: undefined field 'attribtes' [does-not-compile]\n"
        '     | device.attribtes["gpu.example.com"].model == "H20"\n'
        "     | ......^\n"
    ) in result.output


def test_a_hyphen_in_a_name_is_explained() -> None:
    result = lint(text=CLAIM.replace(".model", ".supported-models"))
    assert "hint: .supported-models is .supported minus models to CEL" in result.output


def test_a_rule_can_be_disabled() -> None:
    result = lint("-f", str(EXAMPLES), "--disable", "never-true", text=CLAIM)
    assert result.exit_code == 0
    unknown = lint("--disable", "colour", text=CLAIM)
    assert unknown.exit_code == 2


def test_notes_are_no_failure() -> None:
    name = "a" * 64
    text = f"apiVersion: resource.k8s.io/v1\nkind: DeviceClass\nmetadata: {{name: {name}}}\n"
    result = lint(text=text)
    assert result.exit_code == 0
    assert "note: DeviceClass" in result.output


def test_rules_are_listed() -> None:
    result = lint("--rules")
    assert result.exit_code == 0
    lines = result.output.splitlines()
    assert [line.split()[0] for line in lines] == [rule.id for rule in RULES]
    assert "never-true" in result.output
    assert "(needs slices)" in result.output


def test_json_has_every_finding() -> None:
    result = lint("-f", str(EXAMPLES), "-o", "json", text=CLAIM)
    report = json.loads(result.output)
    (finding,) = report["findings"]
    assert (finding["file"], finding["line"], finding["column"]) == ("<stdin>", 12, 13)
    assert (finding["rule"], finding["severity"]) == ("never-true", "warning")
    assert (finding["kind"], finding["name"]) == ("ResourceClaim", "default/gpu")
    assert finding["field"] == "spec.devices.requests[0].exactly.selectors[0].cel.expression"
    assert finding["remedy"] == 'ask for model "H200", which 4 devices have, instead of "H20"'
    assert report["summary"] == {
        "files": 3,
        "objects": 10,
        "devices": 6,
        "classes": 2,
        "objectsIgnored": 0,
        "errors": 0,
        "warnings": 1,
        "notes": 0,
        "rulesNotApplied": [],
    }


def test_quiet_prints_findings_only() -> None:
    assert lint("-f", str(EXAMPLES), "-q").output == ""


def test_old_layouts_are_found_in_their_text() -> None:
    text = """\
apiVersion: resource.k8s.io/v1beta1
kind: ResourceClaim
metadata: {name: gpu}
spec:
  devices:
    requests:
    - name: gpu
      deviceClassName: gpu.example.com
      selectors:
      - cel:
          expression: device.drvier == "x"
"""
    assert lint("-q", text=text).output.startswith("<stdin>:11:11: error: ")


def test_strictly_extensions_do_not_compile() -> None:
    text = CLAIM.replace(
        'device.attributes["gpu.example.com"].model == "H20"', 'device.name == "a"'
    )
    assert "[deprecated-form]" in lint(text=text).output
    assert "undefined field 'name' [does-not-compile]" in lint("--strict", text=text).output


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2", "<stdin>:1:9: "),
        (CLAIM.replace("name: gpu\n", "name: [1]\n"), "<stdin>:7:7: spec.devices.requests[0].name"),
    ],
)
def test_what_cannot_be_read_is_status_3(text: str, message: str) -> None:
    result = lint(text=text)
    assert result.exit_code == 3
    assert result.stderr.startswith(f"error: {message}")


def test_a_file_is_required() -> None:
    assert lint().exit_code == 2


def test_a_snapshot_is_read_like_files(tmp_path: Path) -> None:
    target = str(tmp_path / "cluster.tar.gz")
    CliRunner().invoke(snapshot, ["-f", str(EXAMPLES), "-o", target])
    result = lint("-f", target)
    assert result.exit_code == 0
    assert result.output.startswith("9 objects in 1 file against 6 devices: 0 errors")


def test_a_file_that_is_not_there_does_not_hide_the_others(tmp_path: Path) -> None:
    result = lint("-f", str(tmp_path / "nothing.yaml"), "-f", str(EXAMPLES))
    assert result.exit_code == 3
    assert "9 objects in 2 files" in result.output


def test_what_is_not_looked_at_is_counted() -> None:
    result = lint(text="replicas: 3\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: s}\n")
    assert result.exit_code == 0
    assert "\nnot looked at: 2 objects of other kinds, or of none\n" in result.output


# --- where objects come from --------------------------------------------------------------

NVIDIA = CLAIM.replace("gpu.example.com", "gpu.nvidia.com").replace("model", "architecture")


def test_claims_are_linted_against_the_machines_of_a_profile() -> None:
    result = lint("--profile", "dgx-h100", text=NVIDIA)
    assert result.exit_code == 1
    assert "[never-true]" in result.output
    assert "\n1 object in 1 file against " in result.output
    assert lint("--profile", "dgx-h100", text=NVIDIA.replace("H20", "Hopper")).exit_code == 0


def test_only_what_is_given_with_f_is_looked_at(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text(NVIDIA)
    both = lint(
        "--on", str(tmp_path), "--profile", "dgx-h100", text=NVIDIA.replace("H20", "Hopper")
    )
    assert (both.exit_code, "never-true" in both.output) == (0, False)
    alone = lint("--on", str(tmp_path), "--profile", "dgx-h100")
    assert alone.exit_code == 1
    assert "[never-true]" in alone.output
    assert " of the cluster against " in alone.output


def test_what_is_given_with_f_stands_for_what_the_cluster_has(tmp_path: Path) -> None:
    # Not there twice, as two of the same name among the files would be.
    (tmp_path / "cluster.yaml").write_text(NVIDIA)
    result = lint("--on", str(tmp_path), text=NVIDIA)
    assert "given-twice" not in result.output
    assert "[given-twice]" in lint("-f", str(tmp_path), text=NVIDIA).output


def test_what_was_never_written_has_no_line() -> None:
    first, *_ = lint("--profile", "dgx-h100").stdout.splitlines()
    assert first.startswith("profile dgx-h100: note: ResourceSlice ")
    (finding, *_) = json.loads(lint("--profile", "dgx-h100", "-o", "json").stdout)["findings"]
    assert finding["file"] == "profile dgx-h100"
    assert not {"line", "column"} & finding.keys()


def test_objects_are_in_the_namespace_that_is_named() -> None:
    assert (
        "ResourceClaim team/gpu: "
        in lint("--profile", "dgx-h100", "-n", "team", text=NVIDIA).output
    )


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (("--profile", "dgx-h10"), 2, "did you mean dgx-h100?"),
        ((), 2, "nothing to look at: give -f, --on, --live or --profile"),
        (("--on", "nowhere"), 3, "error: nowhere: no such file or directory\n"),
    ],
)
def test_bad_sources_are_one_line(arguments: tuple[str, ...], status: int, message: str) -> None:
    result = lint(*arguments)
    assert result.exit_code == status
    assert message in result.stderr
