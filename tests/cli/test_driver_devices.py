"""`moor driver devices` and what `moor driver run` says without a cluster."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.cli.main import moor
from moorage.hardware.sysfs_tree import write_entries
from tests.drivers.machines import board_entries


def run(*arguments: str) -> Result:
    return CliRunner().invoke(moor, ["driver", *arguments])


@pytest.fixture
def sysfs(tmp_path: Path) -> str:
    write_entries(tmp_path, board_entries("r760xa"))
    return str(tmp_path)


def test_devices_of_another_machine_are_shown(sysfs: str) -> None:
    result = run("devices", "cpu", "--sysfs", sysfs)
    assert result.exit_code == 0
    assert "cpudevnuma001" in result.output
    wide = run("devices", "net", "--sysfs", sysfs, "-o", "wide")
    assert "dra.net/virtual=false" in wide.output


def test_lists_are_shown_when_they_are_wanted(sysfs: str) -> None:
    arguments = ("devices", "net", "--sysfs", sysfs, "-o", "yaml", "--numa-node")
    for form, key in (("scalar", "int"), ("list", "ints")):
        result = run(*arguments, form)
        items = yaml.safe_load(result.output)["items"]
        device = items[0]["spec"]["devices"][0]
        assert key in device["attributes"]["resource.kubernetes.io/numaNode"]


def test_a_dry_run_prints_slices_without_a_cluster(sysfs: str) -> None:
    result = run("run", "memory", "--dry-run", "--sysfs", sysfs, "--node-name", "node-7")
    (item,) = yaml.safe_load(result.output)["items"]
    assert item["spec"]["nodeName"] == "node-7"


def test_names_alone_are_for_scripts() -> None:
    result = run("devices", "sim", "--profile", "dgx-h100", "-o", "name")
    lines = result.output.splitlines()
    assert all(line.startswith("device/") for line in lines)
    assert any(re.fullmatch(r"device/gpu\.nvidia\.com/[^/]+/gpu-0", line) for line in lines)


def test_nothing_found_is_no(tmp_path: Path) -> None:
    result = run("devices", "nvme", "--sysfs", str(tmp_path))
    assert result.exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("devices", "gpu"), "'gpu' is not one of 'cpu'"),
        (("devices", "sim"), "--profile: sim needs the name of a board"),
        (("devices", "sim", "--profile", "dgx"), "there is no profile 'dgx'"),
        (("devices", "cpu", "--reserved-cpus", "1-x"), "--reserved-cpus: '1-x' is not a range"),
        (("devices", "nvidia", "--ignored-xids", "1,x"), "'1,x' is not a list of numbers"),
        (("devices", "cpu", "--sysfs", "/no/such"), "does not exist"),
        (("run", "sim"), "--profile: sim needs the name of a board"),
        (("nothing",), "No such command 'nothing'"),
    ],
)
def test_wrong_words_are_usage(arguments: tuple[str, ...], message: str) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert message in result.output
