"""`moor claims`."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from moorage.cli.claims import read_labels
from moorage.cli.main import moor

BUSY = str(Path(__file__).parents[2] / "examples/busy-node")
NOW = ("--now", "2026-10-01T12:00:00Z")


def run(*arguments: str) -> Result:
    return CliRunner().invoke(moor, ["claims", "--on", BUSY, *NOW, *arguments])


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("-A",), ["team-a/training", "team-a/uplink", "team-b/waiting"]),
        (("-n", "team-b"), ["team-b/waiting"]),
        ((), []),
        (("-A", "--state", "pending"), ["team-b/waiting"]),
        (("-A", "--node", "node-1"), ["team-a/training", "team-a/uplink"]),
        (("-A", "--pod", "trainer-0"), ["team-a/training"]),
        (("-A", "-l", "app=training"), ["team-a/training"]),
        (("-A", "-l", "!app"), ["team-a/uplink", "team-b/waiting"]),
        (("-A", "--sort-by", "state"), ["team-b/waiting", "team-a/uplink", "team-a/training"]),
    ],
)
def test_filters_and_order(arguments: tuple[str, ...], expected: list[str]) -> None:
    result = run("-o", "name", *arguments)
    names = [f"resourceclaim.resource.k8s.io/{each.partition('/')[2]}" for each in expected]
    assert (result.exit_code, result.stdout.splitlines()) == (0, names)
    rows = csv.DictReader(run("-o", "csv", *arguments).stdout.splitlines())
    assert [f"{row['namespace']}/{row['name']}" for row in rows] == expected


def test_table_tells_devices_consumers_and_age() -> None:
    header, first, *_ = run("-A").stdout.splitlines()
    assert header.split()[:3] == ["NAMESPACE", "NAME", "STATE"]
    assert first.split() == [
        "team-a",
        "training",
        "reserved",
        "node-1",
        "gpu-0-half-0",
        "pod/trainer-0",
        "2h",
        "-",
    ]
    assert run("-n", "team-a").stdout.split()[0] == "NAME"


def test_a_claim_that_is_reserved_for_nobody_is_marked_with_how_to_free_it() -> None:
    _, _, uplink, _ = run("-A").stdout.splitlines()
    assert uplink.endswith("reserved for nobody: delete it, or clear its status.allocation")


def test_wide_has_requests() -> None:
    assert "gpu: 1 × gpu" in run("-A", "-o", "wide").stdout


def test_json_and_yaml_have_the_same_content() -> None:
    tree = json.loads(run("-A", "-o", "json").stdout)
    assert tree == yaml.safe_load(run("-A", "-o", "yaml").stdout)
    (device,) = tree["claims"][1]["devices"]
    assert device["consumedCapacity"] == {"bandwidth": "40G"}
    assert device["published"] is True


def test_of_a_cluster_that_cannot_be_read_nothing_is_said() -> None:
    result = CliRunner().invoke(moor, ["claims", "--live", "--kubeconfig", "/nowhere"])
    assert result.exit_code == 3
    (line,) = result.output.splitlines()
    assert line == "error: cluster: kubeconfig /nowhere: there is no such file"


def test_nothing_found_says_where_there_is_something() -> None:
    result = run()
    assert (result.exit_code, result.stdout) == (0, "")
    assert result.stderr == "No claims found in default namespace. 3 claims in others: use -A.\n"


@pytest.mark.parametrize(
    ("text", "labels", "expected"),
    [
        ("", {}, True),
        ("a=1,b!=2", {"a": "1"}, True),
        ("a==1", {"a": "2"}, False),
        ("a in (1, 2),b", {"a": "2", "b": ""}, True),
        ("a notin (1,2)", {"a": "2"}, False),
        ("!a", {"a": ""}, False),
    ],
)
def test_labels_select_as_with_kubectl(text: str, labels: dict[str, str], expected: bool) -> None:
    assert read_labels(text).matches(labels) is expected


@pytest.mark.parametrize("text", ["a=b=c", "a in 1", "=", "a,,b", "(", "a=" + "x" * 64, "," * 5000])
def test_odd_labels_are_a_usage_error(text: str) -> None:
    result = run("-A", "-l", text)
    assert result.exit_code == 2
    assert "-l: " in result.stderr
