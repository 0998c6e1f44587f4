"""The fixtures of the plugin, as authors of drivers use them."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from moorage.api.core import Node
from moorage.client.client_factory import http_client, load_rest_config
from moorage.drivers.net import NetDriver
from moorage.node.contract import DevicesRefusedError
from moorage.testing.cluster import Cluster, cluster
from moorage.testing.kubelet import FakeKubelet, Fault
from moorage.testing.machine import FakeMachine
from tests.testing.gooddriver import Good

MANIFESTS = """
apiVersion: resource.k8s.io/v1
kind: DeviceClass
metadata:
  name: good
spec:
  selectors:
  - cel:
      expression: device.driver == "good.example.com"
---
apiVersion: resource.k8s.io/v1
kind: ResourceClaim
metadata:
  name: {name}
spec:
  devices:
    requests:
    - name: one
      exactly:
        deviceClassName: good
        count: {count}
---
apiVersion: v1
kind: Pod
metadata:
  name: {name}
spec:
  restartPolicy: Never
  containers:
  - name: main
    image: busybox
    command: [sh, -c, {command}]
    resources:
      claims:
      - name: device
  resourceClaims:
  - name: device
    resourceClaimName: {name}
"""


def manifests(name: str, count: int = 1, command: str = "echo I have $GOOD") -> str:
    return MANIFESTS.format(name=name, count=count, command=command)


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


# --- dra_cluster --------------------------------------------------------------------------------


def test_a_pod_runs_with_the_device_that_its_claim_got(shared: Cluster) -> None:
    with shared.run(Good()) as running:
        shared.apply(manifests("user", command="echo I have $GOOD; exec sleep 1000000"))
        shared.wait_for("user", "Running")
        (result,) = shared.assert_allocated("user", count=1, driver="good.example.com")
        shared.until(lambda: shared.logs("user") == f"I have {result.device}\n")
        shared.delete("pod", "user")
        shared.until(lambda: not running.claims)


def test_a_claim_that_got_nothing_says_why(shared: Cluster) -> None:
    with shared.run(Good()):
        shared.apply(manifests("greedy", count=7))
        with pytest.raises(AssertionError, match="default/greedy is not allocated: pod greedy is"):
            shared.assert_allocated("greedy", within_s=0.5)
    shared.delete("pod", "greedy")


def test_a_pod_that_failed_is_not_waited_for(shared: Cluster) -> None:
    with shared.run(Good()):
        shared.apply(manifests("broken", command="exit 3"))
        with pytest.raises(AssertionError, match=r"but Failed: .*main ended with status 3"):
            shared.wait_for("broken", "Succeeded")
        shared.delete("pod", "broken")


def test_what_a_claim_got_instead_is_told(shared: Cluster) -> None:
    with shared.run(Good()):
        shared.apply(manifests("pair", count=2))
        asserted = shared.assert_allocated
        asserted("pair", devices=("good-0", "good-1"))
        for wanted, why in (
            ({"count": 1}, "has 2 devices, not 1: good.example.com/node-1/good-0, good"),
            ({"driver": "other.example.com"}, "of good.example.com, not of other.example.com"),
            ({"devices": ("good-7",)}, "not good-7"),
            ({"same": "example.com/zone"}, "good-0 has none, good-1 has none"),
        ):
            with pytest.raises(AssertionError, match=why):
                asserted("pair", **wanted)
        shared.delete("pod", "pair")


def test_a_client_of_ones_own_reaches_it_by_its_kubeconfig(shared: Cluster) -> None:
    async def ready() -> Any:
        async with http_client(load_rest_config(str(shared.kubeconfig))) as client:
            return await client.get(Node, "", shared.node_name)

    assert asyncio.run(ready()).metadata.name == "node-1"


def test_unknown_kinds_and_absent_objects(shared: Cluster) -> None:
    assert shared.get("pod", "nobody") is None
    with pytest.raises(ValueError, match="no kind 'spaceship'"):
        shared.get("spaceship", "x")
    with pytest.raises(AssertionError, match="there is no claim default/nobody"):
        shared.assert_allocated("nobody", within_s=0)
    with pytest.raises(AssertionError, match="there was no pod default/nobody within"):
        shared.wait_for("nobody", within_s=0)


# --- fake_kubelet -------------------------------------------------------------------------------


def test_a_driver_withstands_what_a_kubelet_can_do(fake_kubelet: FakeKubelet) -> None:
    with fake_kubelet.run(Good()) as running:
        claim = fake_kubelet.claim("good.example.com")
        for fault in Fault:
            fake_kubelet.fail(fault)
            with pytest.raises(DevicesRefusedError, match=fault.value):
                fake_kubelet.prepare(claim)
        first = fake_kubelet.prepare(claim)
        assert first.env == ("GOOD=good-0",)
        fake_kubelet.restart()
        assert fake_kubelet.prepare(claim) == first
        fake_kubelet.forget()
        assert fake_kubelet.prepare(claim) == first
        fake_kubelet.unprepare(claim)
        assert running.claims == ()


def test_a_driver_that_is_not_there_is_named(fake_kubelet: FakeKubelet) -> None:
    with fake_kubelet.run(Good()):
        claim = fake_kubelet.claim("good.example.com")
    with pytest.raises(DevicesRefusedError, match=r"good\.example\.com"):
        fake_kubelet.prepare(claim)


# --- hardware -----------------------------------------------------------------------------------


def test_a_card_that_vanishes_is_published_no_more(hardware: Callable[[str], FakeMachine]) -> None:
    machine = hardware("dgx-h100")
    driver = NetDriver(machine.host)
    before = {device.name for device in driver.devices()}
    address = next(
        path for path in machine.root.glob("bus/pci/devices/*") if (path / "net").is_dir()
    )
    machine.remove(f"bus/pci/devices/{address.name}")
    after = {device.name for device in driver.devices()}
    assert len(before - after) == 1
    with pytest.raises(FileNotFoundError, match="no-such-thing"):
        machine.remove("class/no-such-thing")


# --- the plugin ---------------------------------------------------------------------------------


def test_loading_the_plugin_loads_nothing_else_of_ours() -> None:
    program = (
        "import sys, moorage.testing.plugin; "
        "print(*sorted(n for n in sys.modules if n.startswith('moorage.')))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["moorage.testing", "moorage.testing.plugin"]
