"""A driver with a bug fails at once, names the faulty line, and does not register."""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import signal
import sys
import traceback
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from moorage.api.core import Node
from moorage.api.meta import ObjectMeta
from moorage.apiserver.settings import Settings as ServerSettings
from moorage.client.api_client import ApiClient
from moorage.client.client_factory import http_client, load_rest_config
from moorage.client.writes import Create
from moorage.driver import Device, DeviceHealth, Driver, Health, Pool, Prepared
from moorage.driver.errors import HealthError, InventoryError, StartError
from moorage.driver.serving import serving
from tests.client.servers import serving as server_at
from tests.driver.stage import (
    NODE,
    WAIT_S,
    Blinkers,
    Kubelet,
    make_claim,
    played,
    published,
    settings_in,
    short_folder,
)


class Broken(Blinkers):
    """A driver whose devices() a test says; what it reports is logged, as every driver's is."""

    report = Driver.report

    def __init__(self, devices: Callable[[], Any]) -> None:
        super().__init__()
        self._devices = devices

    def devices(self) -> Any:
        return self._devices()


def raising() -> Any:
    found: dict[str, Any] = {}
    return found["gpu-0"]


def half() -> Iterator[Device]:
    yield Device(name="red")
    raise RuntimeError("the bus is gone")


LIST = "return a list of Device or Pool objects, or [] if there are none"
DEVICES: dict[str, tuple[Callable[[], Any], str]] = {
    "an exception": (raising, "devices() raised KeyError: 'gpu-0'"),
    "an exception without words": (lambda: next(iter(())), "devices() raised RuntimeError"),
    "a generator that fails": (half, "devices() raised RuntimeError: the bus is gone"),
    "an exit": (lambda: sys.exit(3), "devices() raised RuntimeError: sys.exit(3) was called"),
    "nothing": (lambda: None, f"devices() returned None; {LIST}"),
    "a number": (lambda: 4, f"devices() returned the int 4; {LIST}"),
    "text": (lambda: "red", f"devices() returned the str 'red'; {LIST}"),
    "a dict": (lambda: {"red": Device(name="red")}, f"devices() returned a dict; {LIST}"),
    "one device": (
        lambda: Device(name="red"),
        "devices() returned a Device; return a list with it",
    ),
    "names": (
        lambda: [Device(name="red"), "green"],
        (
            "devices() returned the str 'green' at [1], not a Device or Pool; "
            "write Device(name='green')"
        ),
    ),
    "devices and pools": (
        lambda: [Device(name="red"), Pool(devices=())],
        "devices() returned Device and Pool objects; return those of one kind",
    ),
    "a device twice": (
        lambda: [Device(name="red")] * 2,
        'found duplicate device "red" in pool "node-1"',
    ),
    "devices without end": (
        lambda: itertools.repeat(Device(name="red")),
        "devices() returned more than 131072 devices",
    ),
    "a value that cannot be": (
        lambda: [Device(name="red", capacity={"memory": "80Gi"})],  # type: ignore[dict-item]
        (
            "devices() raised TypeError: Device.capacity['memory']: expected a DeviceCapacity, "
            "not the str '80Gi'; write DeviceCapacity(value=Quantity.parse('80Gi'))"
        ),
    ),
}


def test_a_driver_that_cannot_say_its_devices_does_not_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @played
    async def scene(folder: Path, client: ApiClient) -> None:
        for case, (devices, text) in DEVICES.items():
            caplog.clear()
            with pytest.raises(InventoryError) as caught:
                async with serving(Broken(devices), settings_in(folder), client):
                    raise AssertionError(f"{case}: it runs")
            assert str(caught.value).startswith(text), case
            assert text in caplog.text, case
            assert list(folder.glob("kubelet/**/*.sock")) == [], case

    scene()


def test_the_authors_line_is_the_first_of_the_traceback(caplog: pytest.LogCaptureFixture) -> None:
    @played
    async def scene(folder: Path, client: ApiClient) -> None:
        for devices in (raising, half):
            with pytest.raises(InventoryError) as caught:
                async with serving(Broken(devices), settings_in(folder), client):
                    pass
            assert caught.value.__cause__ is not None
            frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
            assert frames[0].filename == __file__
            assert frames[-1].name == devices.__name__

    scene()
    assert caplog.text.count("Traceback") == 2
    assert 'return found["gpu-0"]' in caplog.text


@played
async def test_the_node_is_not_told_before_devices_are_known(
    folder: Path, client: ApiClient
) -> None:
    seen: list[Path] = []

    def devices() -> list[Device]:
        seen.extend(folder.glob("kubelet/plugins_registry/*.sock"))
        return [Device(name="red")]

    async with serving(Broken(devices), settings_in(folder), client) as running:
        assert seen == []
        assert running.registrar_socket is not None
        assert running.registrar_socket.is_socket()


@played
async def test_devices_may_come_from_an_async_generator(folder: Path, client: ApiClient) -> None:
    class Streaming(Blinkers):
        async def devices(self) -> AsyncIterator[Device]:  # type: ignore[override]
            yield Device(name="red")
            yield Device(name="blue")

    async with serving(Streaming(), settings_in(folder), client) as running:
        await running.wait_published()
        assert await published(client) == ["blue", "red"]


@played
async def test_devices_that_the_server_refuses_end_the_driver(
    folder: Path, client: ApiClient
) -> None:
    driver = Blinkers(["Not A Name"])
    async with serving(driver, settings_in(folder), client) as running:
        for wait in (running.wait_published(), running.wait_failed()):
            with pytest.raises(InventoryError, match=r"spec\.devices\[0\]\.name: Invalid value"):
                await wait
    assert str(driver.errors[0]).startswith("the server does not take the devices: ResourceSlice")


@played
async def test_a_class_is_no_driver(folder: Path, client: ApiClient) -> None:
    kind: Any = Blinkers
    with pytest.raises(StartError, match=r"^Blinkers is a class; write Blinkers\(\)$"):
        async with serving(kind, settings_in(folder), client):
            pass


# --- prepare --------------------------------------------------------------------------------------

PREPARED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "nothing": (
        lambda _: None,
        (
            "prepare() returned None; "
            "return a list with a Prepared for each device that containers are to get"
        ),
    ),
    "one": (
        lambda claim: Prepared(claim.devices[0]),
        "prepare() returned a Prepared; return a list with it",
    ),
    "devices": (
        lambda claim: claim.devices,
        (
            "prepare() returned an AllocatedDevice at [0], not a Prepared; "
            "write Prepared(device, ContainerEdits(…))"
        ),
    ),
    "an exception": (lambda _: raising(), "KeyError: 'gpu-0'"),
}


@played
async def test_what_prepare_returns_is_checked(folder: Path, client: ApiClient) -> None:
    class Careless(Blinkers):
        answer: Callable[[Any], Any]

        def prepare(self, claim: Any) -> Any:
            return self.answer(claim)

    driver = Careless()
    async with serving(driver, settings_in(folder), client) as running:
        assert running.socket is not None
        for number, (case, (answer, text)) in enumerate(PREPARED.items()):
            driver.answer = answer
            claim = await make_claim(client, f"claim-{number}", "red")
            (said,) = (await Kubelet(running.socket).prepare(claim)).values()
            assert said == text, case
            problem = list(running.problems)[-1]
            assert problem.is_bug
            assert problem.text == f"prepare() of claim default/claim-{number}: {text}"
            await Kubelet(running.socket).unprepare(claim)
        driver.answer = lambda claim: []  # containers may well get nothing
        claim = await make_claim(client, "empty", "red")
        (said,) = (await Kubelet(running.socket).prepare(claim)).values()
        assert [each.device_name for each in said] == ["red"]


# --- health ---------------------------------------------------------------------------------------


class Unwell(Blinkers):
    """A driver whose health() a test says."""

    def __init__(self, health: Callable[[], Any]) -> None:
        super().__init__()
        self._health = health

    def health(self) -> Any:
        return self._health()


async def _no_stream() -> None:
    pass


STREAM = "write an async generator (async def with yield), or return None"


@pytest.mark.parametrize(
    ("health", "text"),
    [
        (list, f"health() returned a list; {STREAM}"),
        (_no_stream, f"health() returned a coroutine; {STREAM}"),
        (raising, "health() raised KeyError: 'gpu-0'"),
    ],
)
def test_health_that_is_no_stream_is_told_at_the_start(
    health: Callable[[], Any], text: str
) -> None:
    @played
    async def scene(folder: Path, client: ApiClient) -> None:
        with pytest.raises(HealthError) as caught:
            async with serving(Unwell(health), settings_in(folder), client):
                pass
        assert str(caught.value) == text

    scene()


@pytest.mark.parametrize(
    ("said", "text"),
    [
        (
            DeviceHealth("red", Health.HEALTHY),
            "health() yielded a DeviceHealth, not a list; write yield [DeviceHealth(…)]",
        ),
        (["red"], "health() yielded a list with the str 'red', not with DeviceHealth"),
    ],
)
def test_what_health_yields_is_checked(said: Any, text: str) -> None:
    async def health() -> AsyncIterator[Any]:
        yield said

    @played
    async def scene(folder: Path, client: ApiClient) -> None:
        driver = Unwell(health)
        async with serving(driver, settings_in(folder), client):
            while not driver.errors:
                await asyncio.sleep(0.005)
        assert str(driver.errors[0]) == text

    scene()


# --- as a program ---------------------------------------------------------------------------------

PROGRAM = """
from moorage.driver import Device, Driver, run

class Lamps(Driver):
    name = "lamp.example.com"

    def devices(self):
        found = {}
        return [Device(name=found["lamp-0"])]

    def prepare(self, claim):
        return []

    def unprepare(self, claim):
        pass

run(Lamps())
"""


def test_a_program_that_cannot_say_its_devices_ends_with_a_traceback() -> None:
    async def play(folder: Path) -> None:
        (folder / "driver.py").write_text(PROGRAM)
        server = ServerSettings(folder / "server", port=0, allows_all=True)
        kubeconfig = folder / "server" / "kubeconfig"
        async with (
            asyncio.timeout(WAIT_S),
            server_at(server),
            http_client(load_rest_config(str(kubeconfig))) as client,
        ):
            await client.write(Create(Node(metadata=ObjectMeta(name=NODE))))
            process = await asyncio.create_subprocess_exec(
                *(sys.executable, str(folder / "driver.py"), "--kubelet-dir", str(folder / "k")),
                env={**os.environ, "NODE_NAME": NODE, "KUBECONFIG": str(kubeconfig)},
                stderr=asyncio.subprocess.PIPE,
            )
            try:
                _, error = await process.communicate()
            finally:
                if process.returncode is None:
                    process.send_signal(signal.SIGKILL)
            said = error.decode()
            assert process.returncode == 1
            assert 'return [Device(name=found["lamp-0"])]' in said
            assert said.endswith("error: devices() raised KeyError: 'lamp-0'\n")
            assert "moorage/driver/driver_calls.py" not in said

    with short_folder() as folder:
        asyncio.run(play(folder))


def test_only_bugs_are_logged_with_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    driver = Broken(raising)
    with caplog.at_level(logging.ERROR):
        driver.report(InventoryError('found duplicate device "red" in pool "node-1"'))
    assert "Traceback" not in caplog.text
