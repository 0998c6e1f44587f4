"""`moor devices`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.api.timestamp import Timestamp
from moorage.cli.main import moor
from moorage.cli.output import age
from moorage.cli.terminal import printable

BUSY = str(Path(__file__).parents[2] / "examples/busy-node")
HALF_0, HALF_1 = (f"gpu.example.com/node-1/gpu-0-half-{number}" for number in range(2))
WHOLE, TAINTED = "gpu.example.com/node-1/gpu-0", "gpu.example.com/node-1/gpu-1"
NIC = "nic.example.com/node-1/nic-0"


def run(*arguments: str, stdin: str | None = None, color: bool = False) -> Result:
    return CliRunner().invoke(moor, ["devices", *arguments], input=stdin, color=color)


def names(*arguments: str) -> list[str]:
    result = run("--on", BUSY, "-o", "name", *arguments)
    assert result.exit_code == 0, result.output
    return [line.removeprefix("device/") for line in result.stdout.splitlines()]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ((), [WHOLE, HALF_0, HALF_1, TAINTED, NIC]),
        (("--driver", "nic.example.com"), [NIC]),
        (("--driver", "nic.example.com", "--driver", "other"), [NIC]),
        (("--pool", "elsewhere"), []),
        (("--node", "node-1", "--state", "taken", "--state", "shared"), [HALF_0, NIC]),
        (("--node", "node-2"), []),
        (("-l", "profile=half"), [HALF_0, HALF_1]),
        (("-l", "gpu.example.com/profile=half", "-l", "model"), [HALF_0, HALF_1]),
        (("-l", "unknown"), []),
        (("--class", "nic"), [NIC]),
        (("--class", "gpu", "--state", "blocked"), [WHOLE]),
        (("--select", 'device.name == "gpu-1"'), [TAINTED]),
        (("--class", "nic", "--select", 'device.driver == "gpu.example.com"'), []),
        (("--sort-by", "state"), [HALF_1, NIC, HALF_0, WHOLE, TAINTED]),
        (("--sort-by", "device"), [WHOLE, HALF_0, HALF_1, TAINTED, NIC]),
    ],
)
def test_filters_and_order(arguments: tuple[str, ...], expected: list[str]) -> None:
    assert names(*arguments) == expected


def test_table_tells_state_holders_and_why() -> None:
    header, *rows = run("--on", BUSY).stdout.splitlines()
    assert header.split() == ["DRIVER", "POOL", "DEVICE", "NODE", "STATE", "CLAIMS", "DETAIL"]
    assert "counter gpu-0/memory: needs 80Gi, 40Gi of 80Gi left: gpu-0-half-0" in rows[0]
    assert "taken" in rows[1]
    assert "team-a/training" in rows[1]
    assert "example.com/unhealthy=heat:NoSchedule (rule overheats)" in rows[3]
    assert "1 share, bandwidth 40G of 100G" in rows[4]


def test_wide_has_pods_taints_and_attributes() -> None:
    lines = run("--on", BUSY, "-o", "wide").stdout.splitlines()
    assert "pod/trainer-0" in lines[2]
    assert "model=H100 profile=half" in lines[2]


def test_json_and_yaml_have_the_same_content() -> None:
    tree = json.loads(run("--on", BUSY, "-o", "json").stdout)
    assert tree == yaml.safe_load(run("--on", BUSY, "-o", "yaml").stdout)
    assert tree["summary"]["total"] == 5
    whole = tree["devices"][0]
    assert whole["reasons"][0]["by"] == [{"device": HALF_0, "claims": ["team-a/training"]}]
    nic = tree["devices"][4]
    assert nic["shares"] == {"bandwidth": {"total": "100G", "used": "40G", "left": "60G"}}


def test_summary_counts_by_node_and_driver() -> None:
    result = run("--on", BUSY, "--summary")
    assert result.stdout.splitlines()[-1] == "5 devices, 1 free"
    (gpus, _) = json.loads(run("--on", BUSY, "--summary", "-o", "json").stdout)["summary"]
    assert (gpus["node"], gpus["free"], gpus["blocked"]) == ("node-1", 1, 1)


def test_nothing_found_is_said_and_no_failure() -> None:
    for more in ((), ("--summary",)):
        result = run("--on", BUSY, "--pool", "none", *more)
        assert (result.exit_code, result.stdout) == (0, "")
        assert result.stderr.endswith("No devices found.\n")
    assert json.loads(run("--on", BUSY, "--pool", "none", "-o", "json").stdout)["devices"] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--node", "node-11"), "no node node-11 is given; did you mean node-1?"),
        (("--driver", "gpu.example.org"), "no driver gpu.example.org is given; did you mean gpu.e"),
        (("--pool", "elsewhere"), "no pool elsewhere is given"),
        (("-l", "modle=a"), "no device has the attribute modle; did you mean model?"),
    ],
)
def test_a_name_that_nothing_has_is_told(arguments: tuple[str, ...], message: str) -> None:
    result = run("--on", BUSY, *arguments)
    assert (result.exit_code, result.stdout) == (0, "")
    assert f"warning: {message}" in result.stderr


def test_names_are_known_of_devices_that_a_filter_leaves_out() -> None:
    arguments = ("--node", "node-1", "--driver", "gpu.example.com", "-l", "profile=none")
    assert run("--on", BUSY, *arguments).stderr == "No devices found.\n"


def test_gates_decide_what_is_free() -> None:
    result = run(
        "--on",
        BUSY,
        "-o",
        "name",
        "--state",
        "free",
        "--feature-gates",
        "DRADeviceTaintRules=false",
    )
    assert result.stdout.splitlines() == [f"device/{HALF_1}", f"device/{TAINTED}"]


def test_a_selector_that_fails_for_devices_is_warned_about() -> None:
    result = run("--on", BUSY, "--select", 'device.attributes["x.example.com"].y == 1')
    assert result.exit_code == 0
    assert "warning: --select: " in result.stderr
    assert "; scheduling aborts when it looks at one of them" in result.stderr


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--class", "gp"), "no DeviceClass gp is given; did you mean gpu?"),
        (("--select", "1 +"), "--select: compilation failed"),
        (("--select", "1"), "--select: must evaluate to bool"),
        (("--state", "odd"), "is not one of"),
    ],
)
def test_wrong_filters_are_usage_errors(arguments: tuple[str, ...], message: str) -> None:
    result = run("--on", BUSY, *arguments)
    assert result.exit_code == 2
    assert message in result.stderr


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert "\x1b[" not in run("--on", BUSY).stdout
    assert "\x1b[32mfree" in run("--on", BUSY, color=True).stdout
    monkeypatch.setenv("NO_COLOR", "1")
    assert "\x1b[" not in run("--on", BUSY, color=True).stdout


HOSTILE = """
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: first, namespace: ns, uid: u1, creationTimestamp: 2026-01-01T00:00:00Z}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}
status:
  allocation:
    devices:
      results:
      - {request: r, driver: d.example.com, pool: p, device: "bad\\e[31mname"}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: second, namespace: ns, uid: u2, creationTimestamp: 2026-01-01T00:00:00Z}
spec: {devices: {requests: [{name: r, exactly: {deviceClassName: c}}]}}
status:
  allocation:
    devices:
      results:
      - {request: r, driver: d.example.com, pool: p, device: "bad\\e[31mname"}
"""


def test_devices_that_only_claims_know_are_missing_and_conflicts_are_told(tmp_path: Path) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(HOSTILE)
    result = run("--on", str(file))
    assert result.exception is None or isinstance(result.exception, SystemExit)
    assert "\x1b" not in result.stdout
    assert "bad\\x1b[31mname" in result.stdout
    assert "missing" in result.stdout
    assert "conflict: 2 holders of a device that has one" in result.stdout


ODD = """
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s, uid: u, creationTimestamp: 2026-01-01T00:00:00Z}
spec:
  driver: d.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices:
  - name: a
    attributes: {none: {}, many: {string: x, int: 1}, flag: {bool: true}, list: {strings: [p, q]}}
"""


@pytest.mark.parametrize("attribute", ["none", "many=x", "many=1", "flag=true", "list=q"])
@pytest.mark.parametrize("output", ["name", "wide", "json"])
def test_odd_attributes_are_shown_and_found(tmp_path: Path, attribute: str, output: str) -> None:
    file = tmp_path / "dump.yaml"
    file.write_text(ODD)
    result = run("--on", str(file), "-l", attribute, "-o", output)
    assert result.exit_code == 0
    assert "d.example.com" in result.stdout


def test_without_nodes_the_assumption_is_said() -> None:
    source = Path(BUSY, "cluster.yaml").read_text().split("---\n")
    slices = "---\n".join(each for each in source if "kind: ResourceSlice" in each)
    result = run("-f", "-", "-o", "name", "--state", "free", stdin=slices)
    assert len(result.stdout.splitlines()) == 5
    assert "no nodes given" in result.stderr


def test_the_picture_has_all_devices_with_the_states_of_the_list(tmp_path: Path) -> None:
    file = tmp_path / "devices.svg"
    result = run("--on", BUSY, "--state", "free", "--picture", str(file))
    assert result.exit_code == 0, result.output
    text = file.read_text()
    assert "Devices as they are" in text
    free = result.stdout.count(" free ")
    assert f"5 devices, {free} free" in text
    assert "counter " in text  # why gpu-0 is blocked


def test_a_picture_has_to_be_svg_or_html(tmp_path: Path) -> None:
    result = run("--on", BUSY, "--picture", str(tmp_path / "devices.png"))
    assert result.exit_code == 2
    assert "does not end in .svg or .html" in result.stderr


def test_what_a_terminal_would_obey_is_shown_instead() -> None:
    assert printable("a\x1b[2Jb\n") == "a\\x1b[2Jb\\x0a"


@pytest.mark.parametrize(
    ("then", "expected"),
    [
        ("2026-01-03T00:00:00Z", "0s"),
        ("2026-01-02T23:58:01Z", "119s"),
        ("2026-01-02T23:58:00Z", "2m"),
        ("2026-01-02T21:00:00Z", "3h"),
        ("2026-01-01T00:00:00Z", "2d"),
        ("2020-01-01T00:00:00Z", "6y"),
        ("2026-01-04T00:00:00Z", "<future>"),
    ],
)
def test_age_is_as_kubectl_has_it(then: str, expected: str) -> None:
    assert age(Timestamp.parse(then), Timestamp.parse("2026-01-03T00:00:00Z")) == expected
