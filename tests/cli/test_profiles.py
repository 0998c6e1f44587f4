from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor
from moorage.hardware.catalogue import Catalogue
from moorage.hardware.sysfs_tree import folder_tree


def profiles(*arguments: str) -> Result:
    return CliRunner().invoke(moor, ["profiles", *arguments])


def test_all_profiles_are_listed() -> None:
    names = Catalogue().names
    assert profiles("-o", "name").output.split() == [f"profile/{name}" for name in names]
    table = profiles().output.splitlines()
    assert table[0].split() == ["NAME", "MACHINES", "SOCKETS", "NUMA", "PCI", "DEVICES", "BOARD"]
    assert [line.split()[0] for line in table[1:]] == names
    assert "mi300x" in profiles("-o", "wide").output
    assert [each["name"] for each in json.loads(profiles("-o", "json").output)] == names


def test_one_profile_is_shown_with_sources_and_what_is_assumed() -> None:
    result = profiles("r7725", "--numa-node", "list")
    assert result.exit_code == 0
    for text in (
        "1 machine; each 2 × AMD EPYC 9825 144-Core Processor",
        "6     1       216-251,504-539  95Gi    32 32 32 32 12 12 10 12",
        "pci0001:3e  6     0001:3f:00.0 MT2892",
        "0001-3f-00-2      pci0001:3e  6,4,5,7",
        "source: System summary of a Dell PowerEdge R7725",
        "assumed: everything\n    0001:01:00.0, 0001:02:00.0",
    ):
        assert text in result.output


def test_many_devices_are_cut_short_unless_wide() -> None:
    assert "… and 160 more: -o wide shows all" in profiles("dgx-h100-mig").output
    wide = profiles("dgx-h100-mig", "-o", "wide").output
    assert "gpu-7-mig-7g80gb-0-0" in wide
    assert "profile=7g.80gb" in wide


def test_json_has_board_facts_and_objects() -> None:
    report = json.loads(profiles("tpu-v6ex2", "-o", "json").output)
    assert report["board"]["numa"]["distances"] == [[10, 21], [21, 10]]
    assert {fact["part"] for fact in report["facts"]} >= {"cpu", "numa", "pcie"}
    kinds = [each["kind"] for each in report["objects"]]
    assert kinds.count("Node") == 2
    assert profiles("tpu-v6ex2", "-o", "name").output.split() == [
        "node/tpu-v6e-0",
        "node/tpu-v6e-1",
    ]


def test_files_are_written_and_are_valid(tmp_path: Path) -> None:
    objects, sysfs = tmp_path / "objects", tmp_path / "sys"
    result = profiles("xe8640x2", "--write", str(objects), "--sysfs", str(sysfs))
    assert result.exit_code == 0
    assert result.output.splitlines()[1] == f"{objects}/nodes.yaml: 2 objects"
    checked = CliRunner().invoke(moor, ["validate", "--strict", "-f", str(objects)])
    assert checked.exit_code == 0
    assert "0 refused, 0 warnings" in checked.output
    assert folder_tree(sysfs).read("bus/pci/devices/0000:cb:00.0/numa_node") == "1\n"
    again = profiles("xe8640x2", "--write", str(objects), "--sysfs", str(sysfs))
    assert again.output == result.output


def test_a_folder_that_cannot_be_written_is_status_3(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for option in ("--write", "--sysfs"):
        result = profiles("xe8640", option, str(tmp_path / "file"))
        assert result.exit_code == 3
        assert "error: " in result.output
        assert "Traceback" not in result.output


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("dgx-h10",), "there is no profile 'dgx-h10'; did you mean dgx-h100?"),
        (("gb200x0",), "gb200x0: the count must be a number from 1 to 555"),
        (("--write", "x"), "--write and --sysfs need the name of a profile"),
    ],
)
def test_bad_names_are_status_2(arguments: tuple[str, ...], message: str) -> None:
    result = profiles(*arguments)
    assert result.exit_code == 2
    assert message in result.output
