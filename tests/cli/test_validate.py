from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from mooring.cli.main import moor

CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: gpu
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.example.com
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def validate(*arguments: str, text: str | bytes | None = None) -> Result:
    return CliRunner().invoke(moor, ["validate", *arguments], input=text)


def check(text: str | bytes, *arguments: str) -> Result:
    return validate("-f", "-", *arguments, text=text)


# --- answers ------------------------------------------------------------------------------


def test_an_object_without_fault_is_accepted() -> None:
    result = check(CLAIM)
    assert result.exit_code == 0
    assert result.output == (
        "\n  ResourceClaim  1 accepted\n1 object in 1 file: 1 accepted, 0 refused, 0 warnings\n"
    )


def test_an_error_comes_with_file_line_and_kubernetes_text(folder: Path) -> None:
    (folder / "claim.yaml").write_text(CLAIM.replace("name: gpu\n      ex", "name: GPU\n      ex"))
    result = validate("-f", "claim.yaml")
    assert result.exit_code == 1
    assert result.output.startswith(
        "claim.yaml:8:7: error: ResourceClaim default/gpu: spec.devices.requests[0].name: "
        'Invalid value: "GPU": a lowercase RFC 1123 label must consist of'
    )
    assert "1 object in 1 file: 0 accepted, 1 refused, 0 warnings" in result.output


def test_an_unknown_field_is_a_warning_and_strictly_an_error() -> None:
    text = CLAIM + "        colour: red\n"
    relaxed, strict = check(text), check(text, "--strict")
    fact = ': ResourceClaim default/gpu: unknown field "spec.devices.requests[0].exactly.colour"'
    assert f"<stdin>:11:9: warning{fact}" in relaxed.output
    assert f"<stdin>:11:9: error{fact}" in strict.output
    assert (relaxed.exit_code, strict.exit_code) == (0, 1)


def test_a_duplicate_field_is_a_warning_and_strictly_an_error() -> None:
    text = CLAIM.replace("  name: gpu\n", "  name: gpu\n  name: other\n", 1)
    relaxed, strict = check(text), check(text, "--strict")
    assert '<stdin>:5:3: warning: ResourceClaim default/other: duplicate field "metadata.name"' in (
        relaxed.output
    )
    assert (relaxed.exit_code, strict.exit_code) == (0, 1)


def test_items_of_a_list_are_checked_one_by_one() -> None:
    items = "".join(f"- {line}" if i == 0 else f"  {line}" for i, line in enumerate(_lines()))
    text = f"apiVersion: v1\nkind: List\nitems:\n{items}{items.replace('name: gpu', 'name: G')}"
    result = check(text)
    assert "2 objects in 1 file: 1 accepted, 1 refused" in result.output
    assert "<stdin>:17:5: error: ResourceClaim default/G: metadata.name" in result.output


def _lines() -> list[str]:
    return CLAIM.splitlines(keepends=True)


def test_a_feature_that_is_off_loses_its_field() -> None:
    text = CLAIM.replace(
        "      exactly:\n        deviceClassName: gpu.example.com\n",
        "      firstAvailable: [{name: a, deviceClassName: b}]\n",
    )
    assert check(text).exit_code == 0
    off = check(text, "--feature-gates", "DRAPrioritizedList=false", "--emulated-version", "1.34")
    assert "exactly one of `exactly` or `firstAvailable` is required" in off.output


def test_the_namespace_decides_on_admin_access_when_it_is_known() -> None:
    claim = CLAIM + "        adminAccess: true\n"
    namespace = "apiVersion: v1\nkind: Namespace\nmetadata: {name: default%s}\n---\n"
    label = ", labels: {resource.kubernetes.io/admin-access: 'true'}"
    unknown = check(claim)
    assert (unknown.exit_code, "1 warning" in unknown.output) == (0, True)
    assert check(namespace % "" + claim).exit_code == 1
    labelled = check(namespace % label + claim)
    assert (labelled.exit_code, "0 warnings" in labelled.output) == (0, True)


def test_json_output_has_every_finding_with_its_place() -> None:
    result = check(CLAIM.replace("name: gpu\n      ex", "name: GPU\n      ex"), "-o", "json")
    report = json.loads(result.output)
    (found,) = report["objects"]
    (error,) = found["errors"]
    assert found["accepted"] is False
    assert (found["kind"], found["namespace"], found["name"]) == ("ResourceClaim", "default", "gpu")
    assert (error["line"], error["column"]) == (8, 7)
    assert (error["field"], error["type"]) == (
        "spec.devices.requests[0].name",
        "FieldValueInvalid",
    )
    assert report["summary"] == {"files": 1, "accepted": 0, "refused": 1, "warnings": 0}
    assert result.exit_code == 1


def test_quiet_prints_findings_only() -> None:
    assert check(CLAIM, "-q").output == ""


# --- files --------------------------------------------------------------------------------


def test_a_directory_gives_its_manifests_and_with_recursion_those_below(folder: Path) -> None:
    (folder / "a.yaml").write_text(CLAIM)
    (folder / "notes.txt").write_text("not a manifest")
    (folder / "below").mkdir()
    (folder / "below" / "b.json").write_text('{"apiVersion": "v1", "kind": "Namespace"}')
    assert "1 object in 1 file" in validate("-f", ".").output
    assert "2 objects in 2 files" in validate("-R", "-f", ".").output


@pytest.mark.parametrize(
    ("prepare", "message"),
    [
        (lambda folder: None, "x: no such file or directory"),
        (lambda folder: (folder / "x").mkdir(), "x: no .json, .yaml, .yml files in it"),
        (lambda folder: (folder / "x").write_bytes(b"\x7fELF\x00\x01"), "x:1:1: "),
        (lambda folder: (folder / "x").write_bytes(b"a: [1, 2"), "x:1:9: "),
        (lambda folder: (folder / "x").write_bytes(b"a: \xff"), "x:1:4: "),
        (lambda folder: (folder / "x").write_bytes(b'{"a": '), "x:1:7: "),
        (lambda folder: (folder / "x").write_bytes(b"[" * 100_000), "x:1:101: "),
        (
            lambda folder: (folder / "x").write_bytes(
                b"a: &a [x,x,x,x,x,x,x,x]\n"
                + b"".join(
                    b"%c: &%c [%s]\n" % (c, c, b",".join([b"*%c" % (c - 1)] * 8))
                    for c in range(98, 120)
                )
            ),
            "x:",
        ),
    ],
)
def test_what_cannot_be_read_gives_place_and_fact(
    folder: Path, prepare: object, message: str
) -> None:
    prepare(folder)  # type: ignore[operator]
    result = validate("-f", "x")
    assert result.exit_code == 3
    assert f"error: {message}" in result.stderr
    assert "Traceback" not in result.output
    assert "could not be read" in result.output


def test_a_huge_file_is_refused_without_reading_it(folder: Path) -> None:
    with (folder / "x.yaml").open("wb") as file:
        os.truncate(file.fileno(), 100 * 1024 * 1024)
    result = validate("-f", "x.yaml")
    assert result.exit_code == 3
    assert "x.yaml: larger than 64 MiB, which is all that is read" in result.stderr


def test_a_fault_in_a_file_does_not_keep_others_from_being_checked(folder: Path) -> None:
    (folder / "a.yaml").write_text(CLAIM + "---\n{")
    (folder / "b.yaml").write_text(CLAIM)
    result = validate("-f", ".")
    assert result.exit_code == 3
    assert "2 objects in 2 files: 2 accepted, 0 refused, 0 warnings, 1 source could not" in (
        result.output
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1", "1:1: error: not a Kubernetes object: apiVersion is not set"),
        ("- 1", "1:1: error: not a Kubernetes object: expected a map with apiVersion and kind"),
        (
            "apiVersion: v1\nkind: [Pod]",
            "2:1: error: not a Kubernetes object: kind is not a string",
        ),
        (
            "apiVersion: resource.k8s.io/v2\nkind: ResourceClaim",
            (
                'error: ResourceClaim: no matches for kind "ResourceClaim" in version '
                '"resource.k8s.io/v2"; ResourceClaim exists in resource.k8s.io/v1, '
            ),
        ),
        (
            "apiVersion: resource.k8s.io/v1\nkind: ResourceClam",
            (
                'error: ResourceClam: no matches for kind "ResourceClam" in version '
                '"resource.k8s.io/v1"; did you mean ResourceClaim?'
            ),
        ),
        (
            CLAIM.replace("deviceClassName: gpu.example.com", "deviceClassName: [1]"),
            (
                "10:9: error: ResourceClaim gpu: "
                "spec.devices.requests[0].exactly.deviceClassName: expected a string, got a list"
            ),
        ),
    ],
)
def test_what_is_no_object_of_a_known_kind_is_refused(text: str, message: str) -> None:
    result = check(text)
    assert result.exit_code == 1
    assert message in result.output


# --- usage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "Missing option '-f'"),
        (["-f", "-", "-o", "xml"], "'xml' is not one of 'text', 'json'"),
        (["-f", "-", "--feature-gates", "X=1"], "unrecognized feature gate: X"),
        (["-f", "-", "--feature-gates", "DRAAdminAcces=1"], "did you mean DRAAdminAccess?"),
        (["-f", "-", "--feature-gates", "DRAAdminAccess=0"], "feature is locked to true"),
        (["-f", "-", "--emulated-version", "1.20"], "is not between"),
        (["-f", "-", "--gates-preset", "x"], "'x' is not one of 'mooring', 'kubernetes-1.37'"),
    ],
)
def test_wrong_usage_says_what_is_wrong(arguments: list[str], message: str) -> None:
    result = validate(*arguments, text="")
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_gate_of_kubernetes_without_effect_is_accepted_with_a_note() -> None:
    result = validate(
        "-f", "-", "--feature-gates", "PodLevelResources=true,WatchList=false", text=""
    )
    assert "note: feature gate PodLevelResources has no effect in Mooring\n" in result.stderr
    assert "note: feature gate WatchList has no effect in Mooring\n" in result.stderr
    assert "unrecognized" not in result.stderr


# --- several objects ----------------------------------------------------------------------


@pytest.mark.parametrize("claim_first", [True, False])
@pytest.mark.parametrize(("label", "outcome"), [("true", 0), ("false", 1)])
def test_admin_access_goes_by_the_namespace_in_any_order(
    label: str, outcome: int, claim_first: bool
) -> None:
    admin = CLAIM.replace("      exactly:", "      exactly:\n        adminAccess: true")
    namespace = (
        "apiVersion: v1\nkind: Namespace\n"
        f'metadata: {{name: default, labels: {{resource.kubernetes.io/admin-access: "{label}"}}}}\n'
    )
    texts = (admin, namespace) if claim_first else (namespace, admin)
    result = check("---\n".join(texts))
    assert result.exit_code == outcome
    assert "0 warnings" in result.output


def test_a_dumped_object_with_a_status_and_no_creation_timestamp_is_accepted() -> None:
    dumped = CLAIM.replace("name: gpu\nspec", "name: gpu\n  uid: u1\n  resourceVersion: '7'\nspec")
    result = check(
        f"{dumped}status:\n  reservedFor:\n  - {{resource: pods, name: a, uid: u2}}\n"
        "  allocation:\n    devices:\n      results:\n"
        "      - {request: gpu, driver: gpu.example.com, pool: a, device: gpu-0}\n"
    )
    assert (result.exit_code, "immutable" in result.output) == (0, False)
