"""`moor whatif` shows the effect of changes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor

EXAMPLE = Path(__file__).parents[2] / "examples" / "two-nodes"
CLUSTER = str(EXAMPLE / "cluster.yaml")
RULE = str(EXAMPLE / "maintenance.yaml")


def ask(*arguments: str, text: str | None = None) -> Result:
    result = CliRunner().invoke(moor, ["whatif", "--on", CLUSTER, *arguments], input=text)
    assert isinstance(result.exception, SystemExit | None), result.exception
    return result


def test_a_drain_shows_who_moves_and_who_is_lost() -> None:
    result = ask("--drain", "node-1")
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["POD", "BEFORE", "AFTER", "WHY"]
    assert lines[1].split()[:3] == ["team-a/inference-7xk2p", "node-1", "node-2"]
    assert lines[2].split()[:3] == ["team-a/notebook", "node-1", "<lost>"]
    assert "node-1 (cordoned)   gpu.example.com   0 → 2   2" in result.stdout
    assert lines[-1].startswith("1 pod worse off, 1 otherwise different, 1 the same")


def test_a_rule_shows_its_evictions_and_the_status_that_it_would_have() -> None:
    result = ask("--rule", RULE)
    assert result.exit_code == 1
    assert "team-a/inference-7xk2p   at once " in result.stdout
    assert "team-a/notebook          after 60s " in result.stdout
    assert "PodsPendingEviction: 2 pods need to be evicted in 1 namespace." in result.stdout


def test_an_effect_of_none_is_a_preview() -> None:
    result = ask("--taint-device", "*/node-1/*=sick:None")
    assert result.exit_code == 0
    assert "If the effect of rule whatif-1 were NoExecute:" in result.stdout
    assert "2 published devices selected." in result.stdout


def test_nobody_worse_off_is_0() -> None:
    result = ask("--delete-pod", "notebook", "-n", "team-a")
    assert result.exit_code == 0
    assert "<deleted>" in result.stdout


@pytest.mark.parametrize("output", ["json", "yaml", "name", "wide"])
def test_other_outputs(output: str) -> None:
    result = ask("--drain", "node-1", "-o", output)
    assert result.exit_code == 1
    match output:
        case "json":
            tree = json.loads(result.stdout)
            assert [each["turn"] for each in tree["pods"]] == ["moves", "lost"]
            assert tree["summary"]["worse"] == 1
        case "name":
            assert result.stdout.splitlines()[1] == "pod/notebook"
        case "wide":
            assert "gpu.example.com/node-2/gpu-1" in result.stdout
        case _:
            assert "turn: lost" in result.stdout


def test_machines_are_added_under_names_that_are_free() -> None:
    arguments = ("--profile", "dgx-h100x2", "--add-profile", "dgx-h100", "-o", "json")
    tree = json.loads(ask(*arguments).stdout)
    nodes = {each["node"] for each in tree["devices"] if each["totalBefore"] == 0}
    assert nodes == {"dgx-h100-2"}


def test_racks_are_added_whole() -> None:
    arguments = ("--profile", "gb200-nvl72", "--add-profile", "gb200-nvl72", "-o", "json")
    tree = json.loads(ask(*arguments).stdout)
    nodes = {each["node"] for each in tree["devices"] if each["totalBefore"] == 0}
    assert len(nodes) == 18
    assert "gb200-nvl72-18" in nodes


def test_slices_are_replaced_from_standard_input() -> None:
    slices = """\
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-2-new}
spec:
  driver: gpu.example.com
  nodeName: node-2
  pool: {name: node-2, generation: 2, resourceSliceCount: 1}
  devices: [{name: gpu-0}, {name: gpu-1}, {name: gpu-2}]
"""
    result = ask("--replace-slices", "-", text=slices)
    assert result.exit_code == 0
    assert "gpu.example.com/node-1/gpu-0 is in no slice any more, but stays allocated" in (
        result.stdout
    )
    assert "node-2   gpu.example.com   1 → 2   2 → 3" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "nothing is changed: give one of --add, "),
        (("--drain", "node1"), "--drain node1: there is no node node1; did you mean node-1?"),
        (
            ("--delete-claim", "team-a/notebook"),
            (
                "--delete-claim team-a/notebook: there is no claim team-a/notebook; "
                "did you mean team-a/notebook-gpu?"
            ),
        ),
        (
            ("--taint-device", "gpu.example.com/node-1/gpu7=k:NoExecute"),
            "there is no device gpu.example.com/node-1/gpu7; did you mean",
        ),
        (("--taint-device", "gpu-0=k:NoExecute"), "must be of the form DRIVER/POOL/DEVICE=KEY"),
        (("--taint-device", "*/*/gpu-0=k:Never"), 'Unsupported value: "Never"'),
        (("--taint-device", "*/*/gpu-0=-k:None"), "spec.taint.key: Invalid value"),
        (("--taint-node", "node-1=k:Never"), "effect Never: must be one of NoSchedule, "),
        (("--taint-node", "node-1=k/:NoSchedule"), "--taint-node node-1=k/:NoSchedule: "),
        (("--taint-node", "node-1"), "must be of the form NODE=KEY[=VALUE]:EFFECT"),
        (("--add-profile", "dgx"), "--add-profile dgx: there is no profile 'dgx'"),
        (("--rule", CLUSTER), "there is no DeviceTaintRule in it"),
        (("--replace-slices", RULE), "there is no ResourceSlice in it"),
        (("-f", "-", "--add", "-"), "standard input can be read once only"),
    ],
)
def test_what_is_wrong_is_named(arguments: tuple[str, ...], message: str) -> None:
    result = ask(*arguments, text="")
    assert result.exit_code == 2
    assert message in result.stderr


def test_a_change_that_is_refused_or_unreadable_is_no_answer(tmp_path: Path) -> None:
    result = ask("--rule", "-", text=Path(RULE).read_text().replace("NoExecute", "Never"))
    assert (result.exit_code, result.stdout) == (1, "")
    assert 'Unsupported value: "Never"' in result.stderr
    result = ask("--add", str(tmp_path / "missing.yaml"))
    assert (result.exit_code, result.stdout) == (3, "")
    assert "no such file or directory" in result.stderr


def test_a_name_that_may_be_in_what_was_not_read_is_no_mistake_of_the_caller(
    tmp_path: Path,
) -> None:
    result = ask("-f", str(tmp_path / "missing.yaml"), "--drain", "node9")
    assert (result.exit_code, result.stdout) == (3, "")
    said = "error: --drain node9: there is no node node9; did you mean node-1?"
    assert f"{said}; not everything could be read\n" in result.stderr


def test_what_is_added_may_be_changed_further() -> None:
    result = ask("--add-profile", "dgx-h100", "--cordon", "dgx-h100-0", "-o", "json")
    tree = json.loads(result.stdout)
    assert {each["node"] for each in tree["devices"] if each["isCordoned"]} == {"dgx-h100-0"}
