from __future__ import annotations

import gzip
import io
import json
import os
import tarfile
import zipfile
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor

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
    assert report["summary"] == {
        "files": 1,
        "accepted": 0,
        "refused": 1,
        "notChecked": 0,
        "warnings": 0,
    }
    assert result.exit_code == 1


def test_json_escapes_what_is_not_utf_8_in_the_names_of_files(folder: Path) -> None:
    (folder / os.fsdecode(b"\xff.yaml")).write_text("a: [")
    report = json.loads(validate("-f", str(folder), "-o", "json").stdout)
    (unreadable,) = report["unreadable"]
    assert r"\udcff.yaml" in json.dumps(unreadable, ensure_ascii=False)


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
        (lambda folder: (folder / "x").symlink_to("x"), "x: "),
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


def test_a_name_that_is_too_long_for_a_file_is_one_line() -> None:
    result = validate("-f", "x" * 5000, "-q")
    assert result.exit_code == 3
    assert result.stderr == f"error: {'x' * 255}: File name too long\n"


def test_a_huge_file_is_refused_without_reading_it(folder: Path) -> None:
    with (folder / "x.yaml").open("wb") as file:
        os.truncate(file.fileno(), 400 * 1024 * 1024)
    result = validate("-f", "x.yaml")
    assert result.exit_code == 3
    assert "x.yaml: larger than 384 MiB, which is all that is read" in result.stderr


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


# --- kinds that are not checked -----------------------------------------------------------

EVERYDAY = """\
apiVersion: monitoring.coreos.com/v1
kind: ServiceMonitor
metadata: {name: web}
---
apiVersion: argoproj.io/v1alpha1
kind: CronWorkflow
metadata: {name: nightly}
---
apiVersion: snapshot.storage.k8s.io/v1
kind: VolumeSnapshot
metadata: {name: data}
---
apiVersion: cilium.io/v2
kind: CiliumNetworkPolicy
metadata: {name: closed}
---
apiVersion: cert-manager.io/v1
kind: Certificate
metadata: {name: again}
---
apiVersion: example.com/v1alpha1
kind: Widget
metadata: {name: one}
---
apiVersion: gateway.networking.k8s.io/v1
kind: HTTPRoute
metadata: {name: route}
---
apiVersion: scheduling.x-k8s.io/v1alpha1
kind: PodGroup
metadata: {name: not-ours}
"""


def test_objects_of_kinds_that_cannot_be_checked_are_counted_in_one_note() -> None:
    result = check(f"{EVERYDAY}---\n{CLAIM}")
    assert result.exit_code == 0
    assert result.stdout == (
        "\n  ResourceClaim  1 accepted\n"
        "9 objects in 1 file: 1 accepted, 0 refused, 0 warnings, 8 not checked\n"
    )
    (note,) = result.stderr.splitlines()
    assert note.startswith(
        "note: 8 objects of kinds that are not checked: Certificate (cert-manager.io/v1), "
    )
    assert "Widget (example.com/v1alpha1)" in note


def test_quiet_still_notes_what_is_not_checked() -> None:
    result = check(EVERYDAY, "-q")
    assert (result.exit_code, result.stdout) == (0, "")
    assert len(result.stderr.splitlines()) == 1


def test_strict_kinds_refuses_what_cannot_be_checked() -> None:
    result = check(EVERYDAY, "--strict-kinds")
    assert result.exit_code == 1
    fact = 'kind "ServiceMonitor" in version "monitoring.coreos.com/v1" is not known here'
    assert f"1:1: error: ServiceMonitor web: {fact}" in result.stdout.replace("2:1", "1:1")
    assert "8 objects in 1 file: 0 accepted, 8 refused" in result.stdout
    assert not result.stderr


def test_json_counts_what_is_not_checked() -> None:
    report = json.loads(check(EVERYDAY, "-o", "json").output)
    assert report["notChecked"]["ServiceMonitor (monitoring.coreos.com/v1)"] == 1
    assert report["summary"]["notChecked"] == 8
    assert report["objects"] == []


@pytest.mark.parametrize(
    ("version", "kind", "hint"),
    [
        ("v1", "Services", "; did you mean Service?"),
        ("v1", "Widget", "\n"),
        ("v1", "pod", "; did you mean Pod?"),
        ("v1", "CronJob", "; CronJob exists in batch/v1"),
        ("batch/v1beta1", "CronJob", "; CronJob exists in batch/v1"),
        ("extensions/v1beta1", "Ingress", "; Ingress exists in networking.k8s.io/v1"),
        ("apps/v1", "Deploymnet", "; did you mean Deployment?"),
        ("resource.k8s.io", "ResourceClaim", "; ResourceClaim exists in resource.k8s.io/v1, "),
        ("resuorce.k8s.io/v1", "DeviceClass", "; DeviceClass exists in resource.k8s.io/v1, "),
        ("resource.kubernetes.io/v1", "ResourceSlice", "; ResourceSlice exists in resource.k8s.io"),
        ("Example.com/v1", "Widget", "\n"),
        ("example.com/v1", "Wid get", "\n"),
        ("example.com/", "Widget", "\n"),
    ],
)
def test_mistyped_kinds_are_refused_with_what_is_really_near(
    version: str, kind: str, hint: str
) -> None:
    result = check(f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: x}}\n")
    assert result.exit_code == 1
    assert f'no matches for kind "{kind}" in version "{version}"{hint}' in result.stdout


# --- files of tools -----------------------------------------------------------------------


TEMPLATE = """\
{{- if .Values.enabled }}
apiVersion: v1
kind: Service
metadata:
  name: {{ include "chart.name" . }}
{{- end }}
"""
TOOL_FILES = {
    "base/kustomization.yaml": "resources: [claim.yaml]\n",
    "overlay/kustomization.yml": (
        "apiVersion: kustomize.config.k8s.io/v1beta1\nkind: Kustomization\nresources: [../base]\n"
    ),
    "overlay/patch.yaml": "- {op: replace, path: /spec/count, value: 2}\n",
    "chart/Chart.yaml": "apiVersion: v2\nname: chart\nversion: 1.0.0\n",
    "chart/values.yaml": "image: {tag: v1}\n",
    "chart/values-production.yaml": "replicas: 3\n",
    "chart/templates/service.yaml": TEMPLATE,
    # YAML as it stands, but no object yet.
    "chart/templates/policy.yaml": 'kind: Policy-{{ include "chart.name" . }}\n',
}


def test_files_of_kustomize_and_helm_are_skipped_with_a_note_each(folder: Path) -> None:
    for name, text in {**TOOL_FILES, "base/claim.yaml": CLAIM}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    result = validate("-R", "-f", ".")
    assert result.exit_code == 0
    assert "1 object in 9 files: 1 accepted, 0 refused, 0 warnings\n" in result.stdout
    assert result.stderr.splitlines() == [
        (
            "note: 2 Kustomizations skipped (base/kustomization.yaml, overlay/kustomization.yml): "
            "give what `kubectl kustomize base` builds of it"
        ),
        (
            "note: 3 Helm chart files skipped (chart/Chart.yaml, chart/values-production.yaml, "
            "chart/values.yaml): give what `helm template chart` makes of it"
        ),
        (
            "note: 2 Helm templates skipped (chart/templates/policy.yaml, "
            "chart/templates/service.yaml): give what `helm template chart` makes of it"
        ),
        (
            "note: 1 JSON patch file skipped (overlay/patch.yaml): "
            "give what `kubectl kustomize overlay` builds of it"
        ),
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        # Braces in strings are not templates, and a fault beside them is a fault.
        ("rule.yaml", 'a: "{{ $labels.x }}"\nb: [1\n'),
        ("rule.yaml", "a: {{ x\n"),
        ("values.txt", "[" * 200),
    ],
)
def test_what_cannot_be_read_is_not_taken_for_a_template(
    folder: Path, name: str, text: str
) -> None:
    (folder / name).write_text(text)
    result = validate("-f", name)
    assert result.exit_code == 3


def test_an_object_that_only_has_the_name_of_a_tool_s_file_is_checked(folder: Path) -> None:
    (folder / "values.yaml").write_text(CLAIM)
    assert "1 accepted" in validate("-f", "values.yaml").output


# --- archives -----------------------------------------------------------------------------


def packed(form: str, files: dict[str, str]) -> bytes:
    buffer = io.BytesIO()
    if form == "zip":
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, text in files.items():
                archive.writestr(name, text)
        return buffer.getvalue()
    with tarfile.open(fileobj=buffer, mode="w:gz" if form == "tgz" else "w") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            tar.addfile(info, io.BytesIO(text.encode()))
    return buffer.getvalue()


@pytest.mark.parametrize("form", ["tar", "tgz", "zip"])
@pytest.mark.parametrize("name", ["dump.tgz", "dump"])
def test_archives_are_read_whatever_their_name(folder: Path, form: str, name: str) -> None:
    bad = CLAIM.replace("name: gpu\n      ex", "name: GPU\n      ex")
    files = {"d/a.yaml": CLAIM, "d/b/c.yaml": bad, "d/log.txt": "{", "d/._a.yaml": "\0"}
    (folder / name).write_bytes(packed(form, {**files, **TOOL_FILES}))
    result = validate("-f", name)
    assert result.exit_code == 1
    assert f"{name}!d/b/c.yaml:8:7: error: ResourceClaim default/gpu: " in result.stdout
    assert "2 objects in 10 files: 1 accepted, 1 refused" in result.stdout
    assert f"note: 2 Helm templates skipped ({name}!chart/templates/" in result.stderr


@pytest.mark.parametrize("form", ["tar", "tgz", "zip"])
def test_archives_are_read_from_standard_input(form: str) -> None:
    result = check(packed(form, {"../../a.yaml": CLAIM, "\x1b[2J/b.yaml": CLAIM}))
    assert result.exit_code == 0
    assert "2 objects in 2 files: 2 accepted" in result.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (packed("zip", {}), "x.bin: no .json, .yaml, .yml files in it"),
        (packed("tar", {"a.txt": "x"}), "x.bin: no .json, .yaml, .yml files in it"),
        (packed("tgz", {"a.yaml": CLAIM})[:-9], "x.bin: not a whole archive: "),
        (packed("zip", {"a.yaml": CLAIM})[:-9], "x.bin: cut off: the directory of the zip"),
        (packed("tar", {"a.yaml": CLAIM})[:600], "x.bin: cut off: the file ends before"),
        (b"BZh91AY", "x.bin: packed by bzip2, which is not read; use gzip or zip"),
        (b"\xfd7zXZ\0rest", "x.bin: packed by xz, which is not read; use gzip or zip"),
    ],
)
def test_archives_that_cannot_be_read_are_one_line(
    folder: Path, content: bytes, message: str
) -> None:
    (folder / "x.bin").write_bytes(content)
    result = validate("-f", "x.bin", "-q")
    assert result.exit_code == 3
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {message}")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "an empty file, not an archive"),
        (gzip.compress(b""), "an empty file, not an archive"),
        (packed("tgz", {}), "an archive without files"),
        (packed("tar", {}), "an archive without files"),
        (gzip.compress(b"\xaa\xff" * 999), "named like an archive, but its content is no tar, zip"),
        (b"\x7fELF\0\0", "named like an archive, but its content is no tar, zip or text"),
    ],
    ids=["empty", "packed empty", "tgz", "tar", "packed noise", "program"],
)
@pytest.mark.parametrize("name", ["x.tar.gz", "x.tgz", "x.zip"])
def test_what_is_only_named_like_an_archive_is_said_so(
    folder: Path, name: str, content: bytes, message: str
) -> None:
    (folder / name).write_bytes(content)
    result = validate("-f", name, "-q")
    assert result.exit_code == 3
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"error: {name}: {message}")


def test_text_that_is_named_like_an_archive_is_read(folder: Path) -> None:
    (folder / "x.tar.gz").write_text(CLAIM)
    assert validate("-f", "x.tar.gz").exit_code == 0


def test_an_archive_with_links_only_says_that_they_are_not_followed(folder: Path) -> None:
    with tarfile.open(folder / "x.tar.gz", "w:gz") as archive:
        link = tarfile.TarInfo("a.yaml")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        archive.addfile(link)
    result = validate("-f", "x.tar.gz", "-q")
    assert result.exit_code == 3
    assert "files in it; links in it are not followed" in result.stderr


def test_an_archive_in_a_folder_is_pointed_at(folder: Path) -> None:
    (folder / "d").mkdir()
    (folder / "d" / "dump.tgz").write_bytes(packed("tgz", {"a.yaml": CLAIM}))
    result = validate("-f", "d")
    assert result.exit_code == 3
    assert "files in it; d/dump.tgz is an archive: name it itself" in result.stderr


# --- usage --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "nothing to check: give -f"),
        (["-f", "-", "-o", "xml"], "'xml' is not one of 'text', 'table'"),
        (["-f", "-", "--feature-gates", "X=1"], "unrecognized feature gate: X"),
        (["-f", "-", "--feature-gates", "DRAAdminAcces=1"], "did you mean DRAAdminAccess?"),
        (["-f", "-", "--feature-gates", "DRAAdminAccess=0"], "feature is locked to true"),
        (["-f", "-", "--emulated-version", "1.20"], "is not between"),
        (["-f", "-", "--gates-preset", "x"], "'x' is not one of 'moorage', 'kubernetes-1.37'"),
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
    assert "note: feature gate PodLevelResources has no effect in Moorage\n" in result.stderr
    assert "note: feature gate WatchList has no effect in Moorage\n" in result.stderr
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


def test_files_of_archives_that_are_packed_again_are_bounded_in_all(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("moorage.sources.inputs.BYTES_MAX", 5_000_000)
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for number in range(6):
            archive.writestr(f"{number}.yaml.gz", gzip.compress(b"#" * 999_999 + b"\n"))
    (folder / "x.zip").write_bytes(buffer.getvalue())
    result = validate("-f", "x.zip", "-q")
    assert result.exit_code == 3
    message = "x.zip: has more than 4 MiB to read, which is all that is read"
    assert message in result.stderr


def test_a_file_in_which_nothing_is_is_told() -> None:
    result = check("# nothing yet\n", "--allow-empty")
    assert result.exit_code == 0
    assert "note: <stdin> has no objects" in result.stderr
    assert json.loads(check("", "-o", "json").stdout)["summary"]["files"] == 1
