"""`moor explain`, `moor lint` and `moor cel` say the same of a mistake, and of its repair."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from moorage.cli.cel import command as cel
from moorage.cli.explain import command as explain
from moorage.cli.lint import command as lint

GIVEN = 'device.capacity["gpu.example.com"].memroy.compareTo(quantity("40Gi")) >= 0'
MANIFESTS = (Path(__file__).parents[1] / "situations" / "capacity-typo.yaml").read_text()
A = 'device.attributes["gpu.example.com"]'
C = 'device.capacity["gpu.example.com"]'
SELECTORS = (
    GIVEN,
    f'{A}.modle == "a100"',
    f'{A}.drvierVersion == semver("1.2.3")',
    'device.attributes["gpu.exmaple.com"].model == "a100"',
    'device.attributes["example.com"].model == "a100"',
    f'{A}.memory.compareTo(quantity("40Gi")) >= 0',
    f'{A}.model == "A100"',
    f'{A}.model == "a"',
    f'{A}.model == "h200"',
    f'{A}.slot == "0"',
    f"{A}.slot == 7",
    f'{A}.slot >= "0"',
    f'{A}.zones == "left"',
    f'{A}.zones.includes("lefft")',
    f'{A}.driverVersion == "1.2.3"',
    f'{A}.driverVersion.compareTo(semver("1.2")) >= 0',
    f'{A}.driverVersion.compareTo(semver("2.0.0")) >= 0',
    f'{A}.model.startsWith("A")',
    f'{C}.memory.compareTo(quantity("80000Gi")) >= 0',
    f'{C}.memory.compareTo(quantity("1Ti")) >= 0',
    f'{C}.memory.compareTo(quantity("40GB")) >= 0',
    f'{A}.model == "a100" && {A}.model == "h100"',
    'device.driver == "gpu.example.con"',
)


def answered(command: Any, *arguments: str, text: str) -> Any:
    result = CliRunner().invoke(command, [*arguments, "-f", "-", "-o", "json"], input=text)
    return json.loads(result.stdout)


def asked(expression: str) -> str:
    assert GIVEN in MANIFESTS
    return MANIFESTS.replace(f"expression: {GIVEN}", f"expression: {json.dumps(expression)}")


@pytest.mark.parametrize("expression", SELECTORS)
def test_all_commands_name_the_cause_in_the_same_words(expression: str) -> None:
    text = asked(expression)
    (pending,) = answered(explain, "pod/train", "-n", "team", text=text)["pending"]
    tried = answered(cel, expression, text=text)
    findings = answered(lint, text=text)["findings"]
    about = [each for each in findings if each["kind"] == "ResourceClaimTemplate"]
    assert pending["cause"] == tried["cause"]
    assert "; ".join(each["message"] for each in about) == pending["cause"]
    said = ", and ".join(each["remedy"] for each in about)
    assert tried["repairs"][0]["text"] == said
    assert pending["fixes"][0]["text"] == f"request gpu: {said}"
    (change,) = pending["fixes"][0]["changes"]
    assert change["edits"][0]["value"] == tried["repairs"][0]["expression"]


@pytest.mark.parametrize(
    "expression",
    [f"{C}.memory >= 40", f'{A}.model = "a100"', 'device.attributes["model"] == "a100"'],
)
def test_what_does_not_compile_has_the_same_repair_everywhere(expression: str) -> None:
    text = asked(expression)
    (pending,) = answered(explain, "pod/train", "-n", "team", text=text)["pending"]
    tried = answered(cel, expression, text=text)
    (finding,) = (
        each for each in answered(lint, text=text)["findings"] if each["rule"] == "does-not-compile"
    )
    cause = tried["cause"].removeprefix("the expression ")
    assert pending["cause"] == f"template gpus is refused, request gpu: {cause}"
    assert finding["message"] == tried["error"]
    assert finding["remedy"] == tried["repairs"][0]["text"]
    assert pending["fixes"][0]["text"] == f"request gpu: {finding['remedy']}"


FLEET = """\
apiVersion: v1
kind: Node
metadata: {name: node-NUMBER, labels: {zone: ZONE}}
status: {allocatable: {cpu: "8", memory: 8Gi, pods: "10"}}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: node-NUMBER}
spec:
  driver: gpu.example.com
  nodeName: node-NUMBER
  pool: {name: node-NUMBER, generation: 1, resourceSliceCount: 1}
  devices: [{name: gpu-0, attributes: {model: {string: MODEL}}}]
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: gpu}
spec: {selectors: [{cel: {expression: device.driver == "gpu.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: one, namespace: default}
spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, selectors: [
  {cel: {expression: 'device.attributes["gpu.example.com"].model == "MODEL"'}}]}}]}}
---
apiVersion: v1
kind: Pod
metadata: {name: train, namespace: default}
spec:
  containers: [{name: main, image: a}]
  resourceClaims: [{name: one, resourceClaimName: one}]
  nodeSelector: {zone: west}
"""


@pytest.mark.parametrize(
    ("model", "cause"),
    [
        ("b200", 'no device has model "b200": devices have "a100" (1), "h100" (1), "l40s" (1)'),
        ("l40s", "the node selector wants zone=west, which node-1, node-2 have, but its devices"),
    ],
)
def test_a_cause_does_not_depend_on_the_order_of_the_files(model: str, cause: str) -> None:
    fleet = [
        FLEET.replace("NUMBER", number).replace("MODEL", known).replace("ZONE", zone)
        for number, known, zone in (
            ("1", "h100", "west"),
            ("2", "a100", "west"),
            ("3", "l40s", "east"),
        )
    ]
    work = CLAIM.replace("MODEL", model)
    for nodes in (fleet, fleet[::-1]):
        (found,) = answered(explain, text="---\n".join((*nodes, work)))["pending"]
        assert found["cause"].startswith(cause)


def test_the_nodes_of_a_held_claim_are_in_the_order_of_their_names() -> None:
    term = "{matchExpressions: [{key: zone, operator: In, values: [west]}]}"
    held = CLAIM.replace(
        "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu, selectors: [\n"
        '  {cel: {expression: \'device.attributes["gpu.example.com"].model == "MODEL"\'}}]}}]}}',
        "spec: {devices: {requests: [{name: gpu, exactly: {deviceClassName: gpu}}]}}\n"
        "status: {allocation: {devices: {results: [{request: gpu, driver: gpu.example.com, "
        f"pool: p, device: d}}]}}, nodeSelector: {{nodeSelectorTerms: [{term}]}}}}}}",
    ).replace("zone: west", "zone: east")
    zones = (("10", "west"), ("2", "west"), ("3", "east"))
    fleet = [FLEET.replace("NUMBER", number).replace("ZONE", zone) for number, zone in zones]
    (found,) = answered(explain, text="---\n".join((*fleet, held)))["pending"]
    facts = [fact for verdict in found["verdicts"] for fact in verdict["facts"]]
    assert any("only on node-2, node-10" in fact for fact in facts), facts


def test_a_fix_for_a_daemon_is_tried_on_its_own_node() -> None:
    nodes = (
        f"apiVersion: v1\nkind: Node\nmetadata: {{name: node-{number}}}\n"
        f'status: {{allocatable: {{cpu: "{cpus}", memory: 8Gi, pods: "10"}}}}\n'
        for number, cpus in ((1, 2), (2, 16))
    )
    daemons = (
        "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: agent, namespace: default}\n"
        "spec:\n  selector: {matchLabels: {app: agent}}\n  template:\n"
        "    metadata: {labels: {app: agent}}\n    spec: {containers: [\n"
        '      {name: main, image: a, resources: {requests: {cpu: "4"}}}]}\n'
    )
    (found,) = answered(explain, text="---\n".join((*nodes, daemons)))["pending"]
    assert found["pods"] == ["default/agent-node-1"]
    assert {fix["node"] for fix in found["fixes"] if fix["kind"] == "change"} == {"node-1"}, found
