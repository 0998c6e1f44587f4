"""A driver with a bug fails its test at once, with the driver's own exception as the cause."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from moorage.driver import Device, DeviceHealth, PrepareError
from moorage.driver.errors import InventoryError
from moorage.node.contract import DevicesRefusedError
from moorage.testing.cluster import Cluster, cluster
from moorage.testing.kubelet import FakeKubelet, fake_kubelet
from moorage.testing.served_drivers import DriverFailedError
from tests.testing.gooddriver import Good
from tests.testing.test_plugin import manifests

LONG_S = 300.0  # nobody waits for it: what is raised is raised at once


@pytest.fixture(scope="module")
def shared() -> Iterator[Cluster]:
    with cluster() as found:
        yield found


@pytest.fixture(scope="module")
def kubelet() -> Iterator[FakeKubelet]:
    with fake_kubelet() as found:
        yield found


class Lost(Good):
    def devices(self) -> list[Device]:
        found: dict[str, str] = {}
        return [Device(name=found["gpu-0"])]


class Forgetful(Good):
    def devices(self) -> list[Device]:
        return None  # type: ignore[return-value]


def check_devices(fixture: Cluster | FakeKubelet) -> None:
    with (
        pytest.raises(InventoryError, match=r"devices\(\) raised KeyError: 'gpu-0'") as caught,
        fixture.run(Lost()),
    ):
        raise AssertionError("it runs")
    assert isinstance(caught.value.__cause__, KeyError)
    (frame,) = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert frame.line == 'return [Device(name=found["gpu-0"])]'
    with (
        pytest.raises(InventoryError, match=r"devices\(\) returned None; return a list"),
        fixture.run(Forgetful()),
    ):
        raise AssertionError("it runs")


def test_a_cluster_raises_what_devices_raised(shared: Cluster) -> None:
    check_devices(shared)


def test_a_fake_kubelet_raises_what_devices_raised(kubelet: FakeKubelet) -> None:
    check_devices(kubelet)


def test_devices_that_the_server_refuses_are_raised(shared: Cluster) -> None:
    class Misnamed(Good):
        def devices(self) -> list[Device]:
            return [Device(name="Not A Name")]

    with pytest.raises(InventoryError, match="Invalid value"), shared.run(Misnamed()):
        raise AssertionError("it runs")


def test_a_driver_that_hangs_says_in_what(kubelet: FakeKubelet) -> None:
    ending = threading.Event()

    class Hanging(Good):
        def devices(self) -> list[Device]:
            ending.wait()
            return []

    text = r"driver good.example.com: waited 0.2 s for devices\(\) to return"
    try:
        with pytest.raises(DriverFailedError, match=text), kubelet.run(Hanging(), within_s=0.2):
            raise AssertionError("it runs")
    finally:
        ending.set()


# --- while a test waits -------------------------------------------------------------------------


class Careless(Good):
    def prepare(self, claim: Any) -> list[Any]:
        return [{}[each.name] for each in claim.devices]


def test_a_bug_in_prepare_ends_the_wait_for_a_pod(shared: Cluster) -> None:
    with shared.run(Careless()):
        shared.apply(manifests("careless"))
        begin_s = time.monotonic()
        text = r"driver good.example.com: prepare\(\) of claim default/careless: KeyError: 'good-"
        with pytest.raises(DriverFailedError, match=text) as caught:
            shared.wait_for("careless", within_s=LONG_S)
        assert time.monotonic() - begin_s < LONG_S / 2
        assert isinstance(caught.value.__cause__, KeyError)
    with shared.run(Good()):
        shared.delete("pod", "careless")


def test_a_bug_in_unprepare_ends_the_wait_for_a_pod_to_go(shared: Cluster) -> None:
    class Clinging(Good):
        clings = True

        def unprepare(self, claim: Any) -> None:
            if self.clings:
                raise ValueError("not mine")

    driver = Clinging()
    with shared.run(driver):
        shared.apply(manifests("clinging", command="sleep 1000000"))
        shared.wait_for("clinging")
        with pytest.raises(DriverFailedError, match=r"unprepare\(\) of claim .*: ValueError: not"):
            shared.delete("pod", "clinging")
        driver.clings = False
        shared.until(lambda: shared.get("pod", "clinging") is None, raises_bugs=False)


def test_a_bug_in_health_ends_any_wait(shared: Cluster) -> None:
    class Unwell(Good):
        async def health(self) -> AsyncIterator[list[DeviceHealth]]:
            found: dict[str, DeviceHealth] = {}
            yield [found["gpu-0"]]

    with (
        shared.run(Unwell()),
        pytest.raises(DriverFailedError, match=r"health\(\) raised KeyError: 'gpu-0'") as caught,
    ):
        shared.until(lambda: False, within_s=LONG_S)
    assert isinstance(caught.value.__cause__, KeyError)


def test_what_a_driver_refuses_is_shown_when_the_wait_is_over(shared: Cluster) -> None:
    class Refusing(Good):
        refuses = True

        def prepare(self, claim: Any) -> list[Any]:
            if self.refuses:
                raise PrepareError("the lamp is broken")
            return super().prepare(claim)

    driver = Refusing()
    with shared.run(driver) as running:
        shared.apply(manifests("refused"))
        shared.until(lambda: list(running.problems))
        with pytest.raises(
            AssertionError, match=r"(?s)is not Running.*the lamp is broken"
        ) as caught:
            shared.wait_for("refused", within_s=0)
        assert not isinstance(caught.value, DriverFailedError)
        driver.refuses = False
        shared.delete("pod", "refused")


def test_a_test_may_wait_for_a_driver_to_do_better(shared: Cluster) -> None:
    class Slow(Good):
        asked = 0

        def prepare(self, claim: Any) -> list[Any]:
            self.asked += 1
            if self.asked == 1:
                raise TimeoutError("the bus is busy")
            return super().prepare(claim)

    with shared.run(Slow()):
        shared.apply(manifests("slow"))
        shared.wait_for("slow", "Succeeded", within_s=120, raises_bugs=False)
        shared.delete("pod", "slow")


def test_a_fake_kubelet_names_the_cause_of_a_refusal(kubelet: FakeKubelet) -> None:
    with kubelet.run(Careless()):
        claim = kubelet.claim("good.example.com")
        with pytest.raises(DevicesRefusedError, match="KeyError: 'good-0'") as caught:
            kubelet.prepare(claim)
        assert isinstance(caught.value.__cause__, KeyError)
