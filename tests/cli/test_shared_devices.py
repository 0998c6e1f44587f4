"""A count of devices where one can be shared: a request gets it once, several requests may."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from moorage.cli.main import moor

CLUSTER = """\
apiVersion: v1
kind: Node
metadata: {name: n}
status: {capacity: {cpu: "8", memory: 8Gi, pods: "10"}}
---
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata: {name: nic}
spec: {selectors: [{cel: {expression: device.driver == "nic.example.com"}}]}
---
apiVersion: resource.k8s.io/v1
kind: ResourceSlice
metadata: {name: s}
spec:
  driver: nic.example.com
  nodeName: n
  pool: {name: n, generation: 1, resourceSliceCount: 1}
  devices:
  - name: eth0
    allowMultipleAllocations: %s
    attributes: {numa: {int: 0}}
    capacity: {bandwidth: {value: 10G, requestPolicy: {default: 1G}}}
"""
CLAIM = """\
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata: {name: c}
spec:
  devices:
    requests:
    - name: nics
      exactly: {deviceClassName: nic, count: 3}
    - name: nics-2
      exactly: {deviceClassName: nic}
    constraints: [{requests: [nics], matchAttribute: nic.example.com/numa}]
"""
POD = """\
---
apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
  - {name: c, image: x, resources: {claims: [%s]}}
  resourceClaims: [{name: d, resourceClaimName: c}]
"""
SPLIT = "ask for 1 device in each of 3 requests instead of 3 in request nics"


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER % "true")
    return path


def run(command: str, *arguments: str | Path, text: str) -> Result:
    found = CliRunner().invoke(moor, [command, *map(str, arguments), "-f", "-"], input=text)
    assert isinstance(found.exception, SystemExit | None), found.exception
    return found


@pytest.mark.parametrize("pod", ["", POD % "{name: d}"])
def test_a_request_for_several_is_offered_as_several_requests(pod: str, cluster: Path) -> None:
    text = CLAIM + pod
    said = run("explain", "--on", cluster, text=text)
    assert f"fix 1: {SPLIT}: a device that can be shared counts once for a request" in said.stdout
    assert "→ gets node n" in said.stdout
    fixed = run("explain", "--on", cluster, "--write-fix", "1", text=text)
    assert "- requests:\n      - nics\n      - nics-3\n      - nics-4\n" in fixed.stdout
    planned = run("plan", "--on", cluster, text=fixed.stdout)
    assert planned.exit_code == 0
    assert planned.stdout.count("nic.example.com/n/eth0") == 4


def test_it_is_not_offered_where_containers_name_the_request(cluster: Path) -> None:
    said = run("explain", "--on", cluster, text=CLAIM + POD % "{name: d, request: nics}")
    assert said.exit_code == 1
    assert SPLIT not in said.stdout


def test_it_is_not_offered_where_no_device_can_be_shared(tmp_path: Path) -> None:
    path = tmp_path / "cluster.yaml"
    path.write_text(CLUSTER % "false")
    assert SPLIT not in run("explain", "--on", path, text=CLAIM).stdout
    assert "count-of-shared-device" not in run("lint", "--on", path, text=CLAIM).stdout


def test_lint_warns_of_the_count(cluster: Path) -> None:
    found = run("lint", "--on", cluster, text=CLAIM)
    assert found.exit_code == 1
    assert (
        "3 devices are wanted, and no node has more than 1: a device that can be shared, such as "
        "eth0, counts once for a request [count-of-shared-device]\n"
        "    write 3 requests for one device each: they may share it\n"
    ) in found.stdout
    one = CLAIM.replace(", count: 3", "")
    assert "count-of-shared-device" not in run("lint", "--on", cluster, text=one).stdout
