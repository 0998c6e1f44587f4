"""-o: every command that prints data has the same formats, and prints the same facts in them."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.cli.main import moor
from moorage.cli.output import FORMATS
from reference.command_tree import options_of, walk

ROOT = Path(__file__).parents[2]
BUSY = str(ROOT / "examples/busy-node")
TRAINING = str(ROOT / "examples/training")
GPU_NODE = str(ROOT / "examples/gpu-node")
INVALID = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: no-class}
spec: {devices: {requests: [{name: gpu, exactly: {count: 2}}]}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: never}
spec:
  devices:
    requests:
    - name: gpu
      exactly:
        deviceClassName: gpu.nvidia.com
        selectors: [{cel: {expression: 'device.driver == "gpu.nvidja.com"'}}]
"""
ON_TRAINING = ("-f", TRAINING, "--profile", "dgx-h100")

# What each command is given, and the beginning of each of its names.
CASES: dict[str, tuple[tuple[str, ...], str]] = {
    "plan": (ON_TRAINING, "pod/"),
    "explain": (ON_TRAINING, "pod/"),
    "fit": (("deployment/training", *ON_TRAINING), "node/"),
    "whatif": ((*ON_TRAINING, "--drain", "dgx-h100-0"), "pod/"),
    "simulate": (
        (*ON_TRAINING, "--arrivals", "deployment/training=2/h:1h", "--until", "2h"),
        "pod/",
    ),
    "validate": (("-f", "-"), "resourceclaim.resource.k8s.io/"),
    "lint": (("-f", "-", "--profile", "dgx-h100"), "resourceclaim.resource.k8s.io/"),
    "lint --rules": ((), "rule/"),
    "cel": (("device.driver == 'gpu.example.com'", "-f", GPU_NODE), "device/gpu.example.com/"),
    "devices": (("--on", BUSY), "device/"),
    "devices --summary": (("--on", BUSY), "node/"),
    "claims": (("--on", BUSY, "-A"), "resourceclaim.resource.k8s.io/"),
    "metrics": (("--on", BUSY, "--now", "2026-10-01T12:00:00Z"), "metric/"),
    "profiles": ((), "profile/"),
    "profiles dgx-h100": ((), "node/"),
    "schema": ((), ""),
    "schema resourceclaim": ((), "resourceclaims.v1.resource.k8s.io"),
    "examples": ((), "example/"),
    "driver check --list": ((), "check/"),
    "driver classes": (("nvidia", "net"), "deviceclass.resource.k8s.io/"),
    "driver devices": (("sim", "--profile", "dgx-h100"), "device/"),
}


def run(name: str, output: str, *more: str) -> Result:
    arguments, _ = CASES[name]
    line = [*name.split(), *arguments, "-o", output, *more]
    result = CliRunner().invoke(moor, line, input=INVALID)
    assert result.exit_code in (0, 1), result.output
    return result


def test_every_command_with_formats_has_all_of_them_and_a_case() -> None:
    tried = {" ".join(word for word in name.split() if word.isalpha()) for name in CASES}
    for context in walk(moor, "moor"):
        for option in options_of(context):
            if option.name == "output" and isinstance(option.type, click.Choice):
                name = context.command_path.removeprefix("moor ")
                assert set(FORMATS) <= set(option.type.choices), name
                assert any(each.startswith(name) for each in (*tried, "status")), name


@pytest.mark.parametrize("name", CASES)
def test_json_and_yaml_are_the_same_document(name: str) -> None:
    document = json.loads(run(name, "json").stdout)
    text = run(name, "yaml").stdout
    read = yaml.load(text, Loader=yaml.CSafeLoader)
    assert json.loads(json.dumps(read, default=str)) == document
    assert document


@pytest.mark.parametrize("name", CASES)
def test_csv_has_a_header_and_plain_values(name: str) -> None:
    text = run(name, "csv").stdout
    header, *rows = list(csv.reader(io.StringIO(text)))
    assert rows, text
    assert len(set(header)) == len(header)
    assert {len(row) for row in rows} == {len(header)}
    numbers = [cell for row in rows for cell in row if re.fullmatch(r"[\d,.]*\d,\d{3}", cell)]
    assert numbers == []  # 1234 and not 1,234
    assert "\x1b" not in text


@pytest.mark.parametrize("name", CASES)
def test_names_are_a_kind_and_a_name_each(name: str) -> None:
    _, beginning = CASES[name]
    lines = run(name, "name").stdout.splitlines()
    assert lines
    shape = r"[a-z0-9.]+(/\S+)+" if beginning.endswith("/") else r"[a-z0-9.-]+"
    assert [line for line in lines if not re.fullmatch(shape, line)] == []
    assert all(line.startswith(beginning) for line in lines)


@pytest.mark.parametrize("name", CASES)
def test_tables_have_columns_and_wide_has_no_fewer(name: str) -> None:
    table, wide = (run(name, output).stdout for output in ("table", "wide"))
    assert len(table.splitlines()) > 1
    assert len(wide.splitlines()[0].split()) >= len(table.splitlines()[0].split())


@pytest.mark.parametrize("output", FORMATS)
def test_a_cluster_that_does_not_run_has_a_status_in_all_formats(
    output: str, tmp_path: Path
) -> None:
    result = CliRunner().invoke(moor, ["status", "--data-dir", str(tmp_path), "-o", output])
    assert result.exit_code == 1
    match output:
        case "json" | "yaml":
            assert yaml.safe_load(result.stdout) == {"running": False}
        case "csv":
            assert result.stdout == "process,is_working,pid,restarts,metrics,trouble\n"
        case "name":
            assert result.stdout == ""
        case _:
            assert result.stdout == f"no cluster runs in {tmp_path}\n"


# --- what the formats say -----------------------------------------------------------------


def rows_of(name: str, *more: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(run(name, "csv", *more).stdout)))


def test_rows_of_a_plan_are_devices() -> None:
    rows = rows_of("plan")
    pods = {pod["pod"]: pod for pod in json.loads(run("plan", "json").stdout)["pods"]}
    granted = [d for pod in pods.values() for r in pod.get("requests", ()) for d in r["devices"]]
    assert [row["device"] for row in rows if row["device"]] == [each["device"] for each in granted]
    assert {row["pod"] for row in rows} == set(pods)
    assert all(row["message"] for row in rows if not row["node"])


def test_rows_of_devices_have_attributes_and_amounts_as_numbers() -> None:
    rows = rows_of("devices")
    tree = json.loads(run("devices", "json").stdout)["devices"]
    assert [row["device"] for row in rows] == [each["device"] for each in tree]
    memories = {row["capacity memory"] for row in rows} - {""}
    assert all(memory.isdigit() for memory in memories)
    assert "attribute model" in rows[0]


def test_an_answer_without_rows_still_has_the_header() -> None:
    result = CliRunner().invoke(moor, ["claims", "--on", BUSY, "-n", "nobody", "-o", "csv"])
    assert result.exit_code == 0
    assert result.stdout.startswith("namespace,name,state,node,devices,")
    assert result.stdout.count("\n") == 1


def test_rules_are_json() -> None:
    rules = json.loads(run("lint --rules", "json").stdout)["rules"]
    assert {"id", "severity", "summary", "needs", "kinds"} == set(rules[0])
    refused = CliRunner().invoke(moor, ["lint", "--rules", "-o", "sarif"])
    assert refused.exit_code == 2
    assert "--rules has the formats table, wide, json, yaml, name, csv, text" in refused.stderr


def test_manifests_of_a_fix_are_not_a_table() -> None:
    line = ["explain", *ON_TRAINING, "--write-fix", "1", "-o", "csv"]
    refused = CliRunner().invoke(moor, line)
    assert refused.exit_code == 2
    assert "--write-fix prints manifests, with -o yaml or json, not csv" in refused.stderr


def test_names_are_arguments_of_other_commands() -> None:
    (pod, *_) = run("explain", "name").stdout.splitlines()
    explained = CliRunner().invoke(moor, ["explain", pod, *ON_TRAINING])
    assert explained.exit_code == 1, explained.output
    (claim, *_) = run("claims", "name").stdout.splitlines()
    line = ["explain", claim, "--on", BUSY, "-n", "team-a"]
    assert CliRunner().invoke(moor, line).exit_code == 0
    device = run("devices", "name").stdout.splitlines()[-1]
    taint = ["whatif", "--on", BUSY, "--taint-device", f"{device}=sick:NoExecute"]
    assert CliRunner().invoke(moor, taint).exit_code in (0, 1)


def test_every_kind_in_the_list_of_schemas_is_an_argument() -> None:
    for name in run("schema", "name").stdout.split()[::7]:
        result = CliRunner().invoke(moor, ["schema", name, "-o", "name"])
        assert result.stdout == f"{name}\n"
